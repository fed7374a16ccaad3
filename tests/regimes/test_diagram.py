"""The diagram is the scalar functions on a grid; bad input is refused in one sentence."""

import numpy as np
import pytest

import nngp
from nngp import regimes

WEIGHTS, BIASES = [0.5, 1.5, 3.0, 4.5], [0.0, 0.2, 1.4]


@pytest.mark.parametrize("name", ["relu", "tanh", "hard_tanh", "sign"])
def test_the_diagram_is_the_scalar_functions(name):
    diagram = regimes.phase_diagram(name, WEIGHTS, BIASES)
    assert diagram.activation == name
    for i, b in enumerate(BIASES):
        for j, w in enumerate(WEIGHTS):
            scale = regimes.depth_scale(name, w, b)
            expected = {
                "variance": regimes.variance_fixed_point(name, w, b),
                "correlation": regimes.correlation_fixed_point(name, w, b),
                "chi": regimes.chi(name, w, b),
                "chi_at_fixed_point": regimes.chi(name, w, b, at="fixed point"),
                "xi_q": scale.xi_q,
                "xi_c": scale.xi_c,
            }
            found = {key: getattr(diagram, key)[i, j] for key in expected}
            assert found == pytest.approx(expected, rel=1e-9)
            assert diagram.phase[i, j] == regimes.phase(name, w, b)
    if name == "sign":
        assert (diagram.critical_weight_vars == 0).all()
    else:
        assert diagram.critical_weight_vars == pytest.approx(regimes.critical_line(name, BIASES))


def test_many_networks_share_their_series():
    # More variances than nodes of a panel: interpolated, and still the scalar answer.
    weights = np.linspace(1.2, 5.0, 40)
    diagram = regimes.phase_diagram("hard_tanh", weights, [0.1, 0.6])
    for i, j in ((0, 3), (1, 39)):
        w, b = weights[j], [0.1, 0.6][i]
        c = regimes.correlation_fixed_point("hard_tanh", w, b)
        slope = regimes.chi("hard_tanh", w, b, at="fixed point")
        assert diagram.correlation[i, j] == pytest.approx(c, abs=1e-10)
        assert diagram.chi_at_fixed_point[i, j] == pytest.approx(slope, rel=1e-9)


def test_columns_are_flat_and_complete():
    columns = regimes.phase_diagram("erf", WEIGHTS, BIASES).columns()
    assert {len(column) for column in columns.values()} == {12}
    assert columns["weight_var"][:4].tolist() == WEIGHTS
    assert columns["bias_var"][::4].tolist() == BIASES
    k = 6
    q = regimes.variance_fixed_point("erf", columns["weight_var"][k], columns["bias_var"][k])
    assert columns["variance"][k] == pytest.approx(q, rel=1e-14)
    numbers = [column for name, column in columns.items() if name != "phase"]
    assert not np.isnan(numbers).any()


def test_the_default_grid_is_the_papers():
    diagram = regimes.phase_diagram("relu")
    assert diagram.variance.shape == (30, 30)
    assert (diagram.weight_vars[0], diagram.weight_vars[-1]) == (0.1, 5.0)
    assert (diagram.bias_vars[0], diagram.bias_vars[-1]) == (0.0, 2.0)
    edge = regimes.edge_of_chaos("erf")
    assert len(edge.bias_var) == 50
    assert (np.diff(edge.weight_var) > 0).all()


@pytest.mark.parametrize("activation", ["tanh", "erf", "relu", "gelu", "silu", "sin", np.arctan])
def test_edges_of_many_activations(activation):
    edge = regimes.edge_of_chaos(activation, [0.0, 0.4, 1.7])
    assert edge.weight_var.shape == edge.variance.shape == (3,)
    at_line = regimes.variance_fixed_point(activation, edge.weight_var * (1 - 1e-9), edge.bias_var)
    assert (at_line < np.inf).all()


def test_scalars_give_scalars_and_arrays_arrays():
    assert type(regimes.variance_fixed_point("tanh", 1.0, 0.5)) is float
    assert type(regimes.chi("tanh", 1.0, 0.5)) is float
    assert type(regimes.phase("tanh", 1, 0)) is str
    assert type(regimes.critical_line("tanh", 0.5)) is float
    assert regimes.chi("tanh", [[1.0], [2.0]], [0.1, 0.2, 0.3]).shape == (2, 3)
    assert regimes.depth_scale("erf", [1.0, 2.0], 0.1).xi_c.shape == (2,)
    assert regimes.critical_line("erf", [[0.1, 0.2]]).shape == (1, 2)
    assert regimes.chi("tanh", [], []).shape == (0,)


@pytest.mark.parametrize(
    ("at", "name"), [(0.3, "tanh"), (-0.3, "tanh"), (0.99, "tanh"), (-0.5, "erf")]
)
def test_chi_at_a_given_correlation(at, name):
    q = regimes.variance_fixed_point(name, 2.0, 0.3)
    expected = 2.0 * nngp.curves.layer_derivatives(name, q, q, at).corr / q
    assert regimes.chi(name, 2.0, 0.3, at=at) == pytest.approx(float(expected), rel=1e-9)


BAD = [
    (lambda: regimes.phase("relu", -1.0, 0.1), "weight_var must be a finite variance"),
    (lambda: regimes.phase("relu", 1.0, np.nan), "bias_var must be a finite variance"),
    (lambda: regimes.phase("relu", np.inf, 0.1), "weight_var must be a finite variance"),
    (lambda: regimes.chi("rleu", 1.0, 0.1), "did you mean: relu"),
    (lambda: regimes.chi("relu", 1.0, 0.1, at=1.5), "at must be a correlation"),
    (lambda: regimes.chi("relu", 1.0, 0.1, at="end"), "at must be a correlation"),
    (lambda: regimes.chi("relu", 1.0, 0.1, at=None), "at must be a correlation"),
    (lambda: regimes.chi("relu", 1.0, 0.1, at=[0.1]), "at must be a correlation"),
    (lambda: regimes.critical_line("tanh", weight_var=1e30), r"every bias_var up to 1e\+30"),
    (lambda: regimes.chi("relu", [1.0, 2.0], [0.1, 0.2, 0.3]), "do not broadcast"),
    (lambda: regimes.variance_fixed_point("relu", [1.0], 0.1, all=True), "all=True takes one"),
    (lambda: regimes.critical_line("relu"), "give either bias_var or weight_var"),
    (lambda: regimes.critical_line("relu", 0.1, weight_var=1.0), "give either bias_var"),
    (lambda: regimes.critical_line("sign", 0.1), "no critical weight_var at bias_var=0.1"),
    (lambda: regimes.critical_line("relu", weight_var=1.0), "no critical bias_var"),
    (lambda: regimes.edge_of_chaos("tanh", []), "at least one value"),
    (lambda: regimes.phase_diagram("tanh", [], [0.1]), "at least one value"),
    (lambda: regimes.phase_diagram("tanh", [1.0], 0.1), "one-dimensional grid"),
]


def test_bad_input_is_refused_in_one_sentence():
    for call, message in BAD:
        with pytest.raises(ValueError, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)


MASKED = np.ma.masked_array([1.0, 2.0], [False, True])


def test_non_numeric_variances_are_refused():
    for value in ("two", "2", ["2"], None, [None, 1.0], 1j, MASKED, True):
        with pytest.raises(TypeError, match=r"weight_var (must be a number|has masked)"):
            regimes.phase("relu", value, 0.1)
        with pytest.raises(TypeError, match=r"bias_var (must be a number|has masked)"):
            regimes.phase("relu", 1.0, value)


def test_without_weights_all_inputs_are_one():
    for name in ("step", "relu", "tanh"):
        for bias_var in (0.0, 0.5):
            assert regimes.correlation_fixed_point(name, 0.0, bias_var) == 1.0
            assert regimes.chi(name, 0.0, bias_var) == 0.0
            assert regimes.depth_scale(name, 0.0, bias_var).xi_c == 0.0
            assert regimes.variance_fixed_point(name, 0.0, bias_var) == bias_var


def test_a_bias_too_small_to_see_is_none():
    assert regimes.critical_line("tanh", 1e-100) == pytest.approx(1.0)
    assert regimes.variance_fixed_point("relu", 1.0, 1e-57) == pytest.approx(2e-57)
    assert regimes.variance_fixed_point("relu", 1.0, 1e-100) == 0.0


def test_the_module_is_loaded_on_use():
    assert nngp.regimes is regimes
    assert "regimes" in dir(nngp)
