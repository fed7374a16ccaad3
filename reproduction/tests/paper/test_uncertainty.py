"""Figures 3 and 8: the numbers are those of linear algebra; which runs are shown, and where."""

from pathlib import Path

import numpy as np
import pytest

from nngp_paper import datasets
from nngp_paper.errors import NothingMeasuredError
from nngp_paper.part import Results
from nngp_paper.parts import fig03_uncertainty, fig08_uncertainty_by_size
from nngp_paper.runs import RunStore
from nngp_paper.runs.study import carry_out
from nngp_paper.scope import Scope
from nngp_paper.shared import one_network, uncertainty
from nngp_paper.shared.uncertainty import binned, correlation, uncertainty_study

DIGITS = Scope("digits", (200, 100), engine="cpu")
SCOPE = Scope("digits", (500, 100, 200, 1000))


def largest_size(store, scope):
    return fig03_uncertainty.read(Results(store, scope))


def smaller_sizes(store, scope):
    return fig08_uncertainty_by_size.read(Results(store, scope))


def relu_kernel(X, Z, depth, weight_var, bias_var):
    """Eq. 5 with the arc-cosine formula of app. B, for inputs of x·x/d = 1."""
    d = X.shape[1]
    K, q = bias_var + weight_var * X @ Z.T / d, bias_var + weight_var
    for _ in range(depth):
        theta = np.arccos(np.clip(K / q, -1, 1))
        K = bias_var + weight_var * q / (2 * np.pi) * (
            np.sin(theta) + (np.pi - theta) * np.cos(theta)
        )
        q = bias_var + weight_var * q / 2
    return K, q


def test_the_runs_are_the_papers_network_on_every_size():
    study = uncertainty_study(DIGITS)
    assert study.experiment == "doubt"
    assert [(c["train"], c["activation"]) for c in study.configs] == [
        (100, "relu"),
        (100, "tanh"),
        (200, "relu"),
        (200, "tanh"),
    ]
    network = {"depth": 3, "weight_var": 2.0, "bias_var": 0.2}
    assert study.configs[0] == {
        "dataset": "digits",
        "train": 100,
        "test": 500,
        "activation": "relu",
        **network,
        "bin": 20,
    }
    (one,) = uncertainty_study(Scope("mnist", (50_000,), activations=("gelu", "tanh"))).configs
    assert (one["activation"], one["test"], one["bin"]) == ("tanh", 10_000, 100)


def test_the_numbers_are_those_of_linear_algebra():
    data = datasets.split("digits", 100)
    study = uncertainty_study(DIGITS)
    outcome = study.work(study.configs[0])
    K, q = relu_kernel(data.X, data.X, 3, 2.0, 0.2)
    K[np.diag_indices(100)] = q + 1e-10
    cross, _ = relu_kernel(data.X_test, data.X, 3, 2.0, 0.2)
    mean = cross @ np.linalg.solve(K, data.targets(data.labels))
    variance = q - np.sum(cross * np.linalg.solve(K, cross.T).T, axis=1)
    squares = (mean - data.targets(data.labels_test)) ** 2
    rows = np.argsort(variance).reshape(25, 20)
    expected, realised = variance[rows].mean(axis=1), squares[rows].mean(axis=(1, 2))
    result = outcome.result
    np.testing.assert_allclose(result["predicted"], expected, rtol=1e-5)
    np.testing.assert_allclose(result["realised"], realised, rtol=1e-5)
    assert result["correlation"] == pytest.approx(np.corrcoef(expected, realised)[0, 1], abs=1e-5)
    assert result["points"] == 500
    assert (outcome.device, outcome.jitter) == ("cpu", 1e-10)


def test_noise_is_part_of_what_is_expected(monkeypatch):
    noisy = uncertainty.condition
    monkeypatch.setattr(
        uncertainty, "condition", lambda *args, **more: noisy(*args, noise_var=100.0, **more)
    )
    study = uncertainty_study(DIGITS)
    outcome = study.work(study.configs[0])
    assert min(outcome.result["predicted"]) > 100
    assert outcome.jitter == 100.0


def test_data_are_read_once_a_size_from_where_they_are(tmp_path, monkeypatch):
    asked, real = [], one_network.split

    def split(name, train, *, data):
        asked.append((name, train, data))
        return real(name, train)

    monkeypatch.setattr(one_network, "split", split)
    scope = Scope("digits", (100, 200), data=Path("elsewhere"), engine="cpu")
    with RunStore(tmp_path / "runs.db") as store:
        keys = carry_out(store, uncertainty_study(scope))
        assert all(store.get(key).status == "done" for key in keys)
    assert asked == [("digits", 100, Path("elsewhere")), ("digits", 200, Path("elsewhere"))]


def test_the_engine_is_the_scopes():
    study = uncertainty_study(Scope("digits", (100,), engine="abacus"))
    with pytest.raises(ValueError, match="abacus"):
        study.work(study.configs[0])


def test_bins_go_up_in_what_is_expected_and_hold_all_points():
    expected, errors = np.array([5.0, 1.0, 4.0, 2.0, 3.0]), np.array([50.0, 10.0, 0.0, 30.0, 20.0])
    predicted, realised = binned(expected, errors, 2)
    assert predicted.tolist() == [2.0, 4.5]  # of 1, 2, 3 and of 4, 5
    assert realised.tolist() == [20.0, 25.0]
    assert binned(expected, errors, 9)[0].tolist() == [3.0]


def test_what_does_not_vary_does_not_correlate():
    up = np.array([1.0, 2.0, 4.0])
    assert correlation(up, 3 - 2 * up) == pytest.approx(-1)
    for pair in ((up, np.ones(3)), (np.ones(3), up)):
        with pytest.raises(ArithmeticError, match="nothing correlates"):
            correlation(*pair)


def measured(store, scope, *sizes, activations=("relu", "tanh"), **changed):
    for config in uncertainty_study(scope).configs:
        if config["train"] in sizes and config["activation"] in activations:
            (key,) = store.declare("doubt", [{**config, **changed}])
            store.claim([key])
            store.finish(key, result_for(**config), seconds=1.0)


def result_for(train, activation, **_):
    bins = np.arange(1, 26) / train
    low = 0.5 if activation == "relu" else 0.75
    return {
        "predicted": bins.tolist(),
        "realised": (low * bins).tolist(),
        "correlation": low + train / 10_000,
        "points": 500,
    }


def test_figure_3_is_the_largest_and_figure_8_the_others(store):
    measured(store, SCOPE, 100, 200, 500, 1000)
    largest, others = largest_size(store, SCOPE), smaller_sizes(store, SCOPE)
    assert (largest.dataset, largest.done, largest.wanted) == ("digits", 8, 8)
    assert largest.sizes == (1000,)
    assert [curve.activation for curve in largest.curves] == ["relu", "tanh"]
    assert others.sizes == (100, 200, 500)
    curve = others.curves[3]
    assert (curve.train, curve.activation, curve.points, curve.bin) == (200, "tanh", 500, 20)
    assert curve.correlation == pytest.approx(0.77)
    np.testing.assert_allclose(curve.predicted, np.arange(1, 26) / 200)
    np.testing.assert_allclose(curve.realised, 0.75 * np.arange(1, 26) / 200)


def test_what_is_finished_is_shown(store):
    measured(store, SCOPE, 100, 200)
    measured(store, SCOPE, 500, activations=("tanh",))
    measured(store, Scope("mnist", (1000,)), 1000)  # another data set
    measured(store, SCOPE, 1000, bin=100)  # other runs
    store.declare("doubt", uncertainty_study(SCOPE).configs)
    assert largest_size(store, SCOPE).sizes == (500,)
    assert [curve.activation for curve in largest_size(store, SCOPE).curves] == ["tanh"]
    assert smaller_sizes(store, SCOPE).sizes == (100, 200)
    assert (largest_size(store, SCOPE).done, largest_size(store, SCOPE).wanted) == (5, 8)
    small = Scope("digits", (100, 1000))
    assert (largest_size(store, small).sizes, largest_size(store, small).wanted) == ((100,), 4)


def test_where_nothing_is_finished_a_sentence_says_so(store):
    store.declare("doubt", uncertainty_study(SCOPE).configs)
    sentence = (
        r"runs\.db has no finished run of 'doubt' with these options; run nngp-paper reproduce"
    )
    for read in (largest_size, smaller_sizes):
        with pytest.raises(NothingMeasuredError, match=sentence):
            read(store, SCOPE)
    measured(store, SCOPE, 100)
    with pytest.raises(NothingMeasuredError, match="one training size on digits only"):
        smaller_sizes(store, SCOPE)


@pytest.fixture
def draw():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    yield uncertainty.draw
    pyplot.close("all")


def test_a_panel_has_the_bins_the_diagonal_and_the_correlations(store, draw):
    measured(store, SCOPE, 100, 200, 500, 1000)
    (axes,) = draw(largest_size(store, SCOPE)).axes
    assert axes.get_title() == "n = 1,000\nrelu r = 0.600, tanh r = 0.850"
    relu, tanh, diagonal = axes.lines
    np.testing.assert_allclose(relu.get_xdata(), np.arange(1, 26) / 1000)
    np.testing.assert_allclose(relu.get_ydata(), np.arange(1, 26) / 2000)
    np.testing.assert_allclose(tanh.get_ydata(), 0.75 * np.arange(1, 26) / 1000)
    assert relu.get_color() != tanh.get_color()
    assert relu.get_marker() != tanh.get_marker()
    for x, y in (diagonal.get_xy1(), diagonal.get_xy2()):
        assert x == y
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert axes.get_xlim()[1] > 25 / 1000
    assert axes.get_ylim()[1] > 0.75 * 25 / 1000


def test_hollow_marks_are_scaled_by_leave_one_out(store, draw):
    measured(store, SCOPE, 100)
    config = {"dataset": "digits", "train": 100, "activation": "relu"}
    network = {"depth": 3, "weight_var": 2.0, "bias_var": 0.2}
    (key,) = store.declare("loo_scale", [{**config, **network}])
    store.claim([key])
    store.finish(key, {"scale": 0.25}, seconds=1.0)
    data = largest_size(store, SCOPE)
    assert [curve.scale for curve in data.curves] == [0.25, None]
    assert data.curves[0].ratio == pytest.approx(2.0)
    figure = draw(data)
    relu, hollow, tanh, _ = figure.axes[0].lines
    np.testing.assert_allclose(hollow.get_xdata(), 0.25 * relu.get_xdata())
    np.testing.assert_allclose(hollow.get_ydata(), relu.get_ydata())
    assert hollow.get_markerfacecolor() == "none"
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["relu", "tanh", "scaled by leave-one-out", "as large as expected"]
    assert tanh.get_color() != relu.get_color()


def test_small_multiples_share_their_scales_and_their_legend(store, draw, tmp_path):
    scope = Scope("digits", (100, 200, 300, 400, 500, 1000))
    measured(store, scope, 100, 200, 300, 500, 1000)
    measured(store, scope, 400, activations=("tanh",))
    data = smaller_sizes(store, scope)
    figure = draw(data)
    panels = [axes for axes in figure.axes if axes.axison]
    assert [axes.get_title().split("\n")[0] for axes in panels] == [
        f"n = {size}" for size in (100, 200, 300, 400, 500)
    ]
    assert panels[3].get_title() == "n = 400\ntanh r = 0.790"
    assert (
        len({axes.get_xlim() for axes in panels}) == len({axes.get_ylim() for axes in panels}) == 1
    )
    assert panels[0].get_xlim()[1] > 0.25
    assert [bool(axes.get_xlabel()) for axes in panels] == [False, False, True, True, True]
    assert panels[3].lines[0].get_color() == panels[0].lines[1].get_color()
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["relu", "tanh", "as large as expected"]
    assert "mean of 20 test points" in figure.get_suptitle()
    assert "(11 of 12 runs are finished)" in figure.get_suptitle()
    for name in ("a.png", "a.svg"):
        draw(data, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 10_000


def test_no_word_is_cut_off_or_too_small(store, draw):
    from matplotlib.text import Text

    measured(store, SCOPE, 100, 200, 500, 1000)
    for data in (largest_size(store, SCOPE), smaller_sizes(store, SCOPE)):
        figure = draw(data)
        figure.canvas.draw()
        box = figure.get_tightbbox()
        assert min(box.x0, box.y0) >= 0
        assert box.x1 <= figure.get_figwidth() <= 7.2
        assert box.y1 <= figure.get_figheight()
        assert "finished" not in figure.get_suptitle()
        assert min(t.get_fontsize() for t in figure.findobj(Text) if t.get_text()) >= 8


def test_the_legend_names_what_is_there(store, draw):
    measured(store, SCOPE, 100, activations=("tanh",))
    (legend,) = draw(largest_size(store, SCOPE)).legends
    assert [text.get_text() for text in legend.get_texts()] == ["tanh", "as large as expected"]
