"""Figure 5: draws have the covariance of the prior, and are drawn as they are stored."""

import numpy as np
import pytest

from nngp_paper.errors import NothingMeasuredError
from nngp_paper.experiment import rounded
from nngp_paper.part import Results
from nngp_paper.parts import fig05_prior, fig06_angular, fig07_graphical_model
from nngp_paper.runs.study import Outcome, Study, carry_out
from nngp_paper.scope import Scope

SCOPE = Scope("digits", (100,))


def put(store, study, result):
    carry_out(store, Study(study.experiment, study.configs, lambda _: Outcome(result)))


def relu_layer(K, weight_var, bias_var):
    """App. B for a whole matrix: any norms."""
    deviations = np.sqrt(np.diag(K))
    both = np.outer(deviations, deviations)
    theta = np.arccos(np.clip(K / both, -1, 1))
    shape = np.sin(theta) + (np.pi - theta) * np.cos(theta)
    return bias_var + weight_var / (2 * np.pi) * both * shape


def test_numbers_are_short_and_plain():
    values = rounded(np.array([[np.pi * 1e-20, -1e5 / 3], [np.inf, 0.0]]))
    assert values == [[3.1415927e-20, -33333.333], [np.inf, 0.0]]
    assert type(values[0][0]) is float
    assert rounded(2 / 3) == 0.66666667
    assert rounded([]) == []


def test_draws_of_the_prior_have_its_covariance():
    (config,) = fig05_prior.study(SCOPE).configs
    network = {"activation": "relu", "depth": 10, "weight_var": 1.8, "bias_var": 0.01}
    assert config == {**network, "points": 401, "draws": 10, "seed": 0}
    result = fig05_prior.study(SCOPE).work({**config, "points": 5, "draws": 20_000}).result
    assert result["x"] == [-2.0, -1.0, 0.0, 1.0, 2.0]
    x = np.array(result["x"])
    K = 0.01 + 1.8 * np.outer(x, x)
    for _ in range(10):
        K = relu_layer(K, 1.8, 0.01)
    values = np.array(result["values"])
    assert values.shape == (20_000, 5)
    np.testing.assert_allclose(values.T @ values / 20_000, K, atol=0.05 * K.max())


def test_draws_depend_on_the_seed_only():
    (config,) = fig05_prior.study(SCOPE).configs
    work = fig05_prior.study(SCOPE).work
    first, again, other = (work({**config, "points": 9, "seed": s}).result for s in (0, 0, 1))
    assert first == again
    assert first["values"] != other["values"]


def put_prior(store):
    x = np.linspace(-2, 2, 9)
    values = [(slope * x).tolist() for slope in range(12)]
    put(store, fig05_prior.study(SCOPE), {"x": x.tolist(), "values": values})


@pytest.mark.parametrize(
    ("figure", "name"),
    [(fig05_prior, "prior"), (fig06_angular, "angular"), (fig07_graphical_model, "spread")],
)
def test_where_nothing_is_finished_a_sentence_says_so(store, figure, name):
    with pytest.raises(NothingMeasuredError, match=f"no finished run of '{name}'"):
        figure.read(Results(store, SCOPE))


def test_finished_runs_come_in_the_order_of_the_study(store):
    def work(config):
        if config["x"] == 2:
            raise ArithmeticError("two fails")
        return Outcome({"y": config["x"]})

    carry_out(store, Study("some", [{"x": x} for x in (3, 1, 2)], work))
    store.declare("some", [{"x": 5}])
    carry_out(store, Study("other", [{"x": 4}], work))
    asked = Study("some", [{"x": x} for x in range(6)], work)
    results = Results(store, SCOPE)
    assert results.finished(asked) == [({"x": 1}, {"y": 1}), ({"x": 3}, {"y": 3})]
    with pytest.raises(NothingMeasuredError, match="no finished run of 'some' with these options"):
        results.finished(Study("some", [{"x": 0}, {"x": 2}, {"x": 5}], work))


def test_draws_are_read_and_drawn(store, pyplot, tmp_path):
    put_prior(store)
    data = fig05_prior.read(Results(store, SCOPE))
    assert (data.architecture.depth, data.architecture.weight_var) == (10, 1.8)
    assert (data.x[0], data.values.shape) == (-2.0, (12, 9))
    (axes,) = fig05_prior.draw(data).axes
    assert len(axes.lines) == 12
    for slope, line in enumerate(axes.lines):
        np.testing.assert_allclose(line.get_xdata(), data.x)
        np.testing.assert_allclose(line.get_ydata(), slope * data.x)
    looks = {(line.get_color(), line.get_linestyle()) for line in axes.lines}
    assert len(looks) == 12
    assert axes.get_title() == "12 draws: relu, depth 10, weight_var 1.8, bias_var 0.01"
    for name in ("a.png", "a.svg"):
        fig05_prior.draw(data, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 10_000
