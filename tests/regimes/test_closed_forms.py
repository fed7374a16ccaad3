"""Networks whose regimes are known by formula: relu, the identity, erf, sin, cos, a Gaussian."""

import numpy as np
import pytest
from scipy.optimize import brentq

from nngp import regimes
from nngp.activations import leaky_relu

WEIGHTS, BIASES = np.array([0.3, 1.0, 1.7, 1.99]), np.array([0.01, 0.5, 2.0])[:, None]


def test_relu_below_its_line():
    network = "relu", WEIGHTS, BIASES
    assert regimes.variance_fixed_point(*network) == pytest.approx(BIASES / (1 - WEIGHTS / 2))
    half = np.broadcast_to(WEIGHTS / 2, (3, 4))
    assert regimes.chi(*network) == pytest.approx(half, rel=1e-14)
    assert regimes.depth_scale(*network).xi_c == pytest.approx(-1 / np.log(half), rel=1e-12)
    assert (regimes.correlation_fixed_point(*network) == 1).all()
    assert (regimes.phase(*network) == "bounded").all()


def test_relu_on_and_beyond_its_line():
    assert regimes.variance_fixed_point("relu", 2.0, 0.0) == 2.0  # every variance stays
    assert list(regimes.variance_fixed_point("relu", 2.0, 0.0, all=True)) == [2.0]
    assert regimes.phase("relu", 2.0, 0.0) == "critical"
    assert regimes.depth_scale("relu", 2.0, 0.0) == (np.inf, np.inf)
    assert regimes.variance_fixed_point("relu", 2.0, 0.5) == np.inf
    assert regimes.variance_fixed_point("relu", [1.0, 3.0], [0.0, 0.0]).tolist() == [0.0, np.inf]
    assert regimes.phase("relu", [1.0, 3.0, 3.0], [0.0, 0.0, 0.5]).tolist() == ["unbounded"] * 3
    assert regimes.critical_line("relu", [0.0, 0.3, 5.0]) == pytest.approx([2.0] * 3, rel=1e-12)


def test_softplus_is_relu_far_out():
    assert regimes.critical_line("softplus", [0.0, 0.3]) == pytest.approx([2.0, 2.0], rel=1e-10)
    assert regimes.phase("softplus", [1.9, 2.0, 2.1], 0.3).tolist() == [
        "bounded",
        "critical",
        "unbounded",
    ]
    c = regimes.correlation_fixed_point("silu", 3.0, 0.1)
    assert (c, regimes.depth_scale("silu", 3.0, 0.1).xi_c) == (1.0, np.inf)


@pytest.mark.parametrize("slope", [-1.0, 0.2, 1.0])
def test_leaky_relus(slope):
    phi, second = leaky_relu(slope), (1 + slope**2) / 2
    assert regimes.critical_line(phi, 0.4) == pytest.approx(1 / second, rel=1e-12)
    q = regimes.variance_fixed_point(phi, 0.5, 0.4)
    assert q == pytest.approx(0.4 / (1 - 0.5 * second), rel=1e-14)


def test_identity():
    network = "identity", 0.8, 0.3
    assert regimes.variance_fixed_point(*network) == pytest.approx(1.5, rel=1e-14)
    assert regimes.chi(*network, at=-0.4) == pytest.approx(0.8, rel=1e-14)
    assert regimes.depth_scale(*network) == pytest.approx((-1 / np.log(0.8),) * 2)
    assert regimes.phase("linear", [1.0, 1.2], [0.0, 0.1]).tolist() == ["critical", "unbounded"]
    assert regimes.critical_line("identity", 0.7) == pytest.approx(1.0, rel=1e-12)


def erf_second(q):
    return 2 / np.pi * np.arcsin(2 * q / (1 + 2 * q))


def erf_slope(q):
    return 4 / np.pi / np.sqrt(1 + 4 * q)


def test_the_whole_line_of_erf_is_straight_between_its_points():
    edge = regimes.edge_of_chaos("erf")
    q = np.geomspace(1e-6, edge.variance[-1], 2000)
    found = np.interp(1 / erf_slope(q), edge.weight_var, edge.bias_var)
    assert found == pytest.approx(q - erf_second(q) / erf_slope(q), abs=2e-3)


@pytest.mark.parametrize("bias_var", [1e-3, 0.1, 1.0, 7.0])
def test_erf(bias_var):
    q = brentq(lambda q: q - erf_second(q) / erf_slope(q) - bias_var, 1e-6, 100, xtol=1e-14)
    assert regimes.critical_line("erf", bias_var) == pytest.approx(1 / erf_slope(q), rel=1e-10)
    weight_var = 1.5 / erf_slope(q)
    q = brentq(lambda q: bias_var + weight_var * erf_second(q) - q, 1e-6, 100, xtol=1e-14)
    network = "erf", weight_var, bias_var
    assert regimes.variance_fixed_point(*network) == pytest.approx(q, rel=1e-12)
    assert regimes.chi(*network) == pytest.approx(weight_var * erf_slope(q), rel=1e-12)
    c = regimes.correlation_fixed_point(*network)
    image = bias_var + weight_var * 2 / np.pi * np.arcsin(2 * q * c / (1 + 2 * q))
    assert 0 < c < 1
    assert image / q == pytest.approx(c, rel=1e-12)


def test_lines_without_bias():
    # q at which chi_1 = 1: sin at 0, cos where q = coth q, exp(-x²) where 4q² = 1 + 4q
    q = brentq(lambda q: q - 1 / np.tanh(q), 1, 2, xtol=1e-15)
    gauss = (1 + np.sqrt(2)) / 2
    expected = {
        "sin": 1.0,
        "tanh": 1.0,
        "erf": np.pi / 4,
        "hard_tanh": 1.0,
        "elu": 1.0,
        "cos": 2 / -np.expm1(-2 * q),
        "gaussian": (1 + 4 * gauss) ** 1.5 / (4 * gauss),
    }
    found = {name: regimes.critical_line(name, 0.0) for name in expected}
    assert found == pytest.approx(expected, rel=1e-10)


def test_square_leaves_by_a_saddle_or_from_an_unstable_start():
    # V = b + 3 w q²: no fixed point beyond w = 1/(12 b); the start w + b is unstable at 1/sqrt(3)
    found = regimes.critical_line("square", [0.0, 0.1, 1.0])
    expected = [1 / np.sqrt(3), 1 / np.sqrt(3) - 0.1, 1 / 12]
    assert found == pytest.approx(expected, rel=1e-10)


def test_a_jump_is_always_chaotic():
    assert regimes.chi("sign", 0.1, 1.0) == np.inf
    assert regimes.phase("step", [0.01, 3.0], 0.5).tolist() == ["chaotic", "chaotic"]
    c = regimes.correlation_fixed_point("sign", 1.0, 0.5)
    assert (0.5 + 2 / np.pi * np.arcsin(c)) / 1.5 == pytest.approx(c, rel=1e-12)
