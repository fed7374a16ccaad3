"""Fixed points: all of them, the limit with depth, and continuity across the critical line."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from nngp import regimes
from nngp.curves import layer_covariance
from nngp.regimes.correlation import _root


def gate(height):
    """Small within three of zero, `height` outside: E[phi²] rises like a step."""

    def phi(x):
        return height / (1 + np.exp(-np.clip(5 * (np.abs(x) - 3), -500, 500)))

    return phi


def image(phi, weight_var, bias_var, q):
    z = np.linspace(-12, 12, 40_001)
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    return bias_var + weight_var * np.trapezoid(density * phi(np.sqrt(q) * z) ** 2, z)


def test_two_stable_variances_and_the_one_that_is_reached():
    few_strong, many_weak = (gate(12.0), 0.25), (gate(3.0), 4.0)  # the same V
    for phi, weight_var in (few_strong, many_weak):
        stable = regimes.variance_fixed_point(phi, weight_var, 0.5, all=True)
        assert len(stable) == 2
        for q in stable:
            assert image(phi, weight_var, 0.5, q) == pytest.approx(q, rel=1e-9)
            assert abs(image(phi, weight_var, 0.5, 1.01 * q) / q - 1) < 0.01
    low, high = stable
    assert low < 1 < 10 < high
    assert regimes.variance_fixed_point(*few_strong, 0.5) == pytest.approx(low, rel=1e-12)
    assert regimes.variance_fixed_point(*many_weak, 0.5) == pytest.approx(high, rel=1e-12)


def test_a_variance_that_jumps_over_fixed_points():
    # V rises, peaks, and falls through a stable variance near 3000; but from 0.3 it leaps past
    # that, and past the unstable one near 14,000, to where the second step of phi leads it.
    def phi(x):
        near = (np.abs(x) > 0.9) & (np.abs(x) < 1.1)
        return np.where(near, 1.8e3, np.where(np.abs(x) > 400, 5.8e3, 0.0))

    stable = regimes.variance_fixed_point(phi, 0.3, 0.0, all=True)
    q = 0.3
    for _ in range(100):
        q = image(phi, 0.3, 0.0, q)
    assert len(stable) == 3
    assert stable[1] < 5e3 < 5e6 < q
    assert regimes.variance_fixed_point(phi, 0.3, 0.0) == pytest.approx(q, rel=1e-3)


def test_zero_and_infinity_attract():
    assert regimes.variance_fixed_point("square", 0.2, 0.0, all=True).tolist() == [0.0, np.inf]
    found = regimes.variance_fixed_point("gelu", 1.9, 0.0, all=True)
    assert found.tolist() == [0.0]


def test_two_roots_between_two_points_of_the_grid():
    # V = b + 3 w q² touches the diagonal almost: roots (1 ± 1e-4) / 6w
    w, b = 0.01, (1 - 1e-8) / 0.12
    assert regimes.variance_fixed_point("square", w, b) == pytest.approx((1 - 1e-4) / (6 * w))
    assert regimes.variance_fixed_point("square", w, (1 + 1e-8) / 0.12) == np.inf


NETWORKS = given(
    st.sampled_from(["tanh", "erf", "relu", "gelu", "sin", "cos", "gaussian", "sigmoid", "step"]),
    st.floats(1e-3, 20),
    st.floats(0, 5),
)


@NETWORKS
@settings(max_examples=25, deadline=None)
def test_fixed_points_are_fixed(name, weight_var, bias_var):
    check_fixed_points(name, weight_var, bias_var)


@pytest.mark.slow
@NETWORKS
@settings(max_examples=300, deadline=None)
def test_fixed_points_of_many_networks_are_fixed(name, weight_var, bias_var):
    check_fixed_points(name, weight_var, bias_var)


def check_fixed_points(name, weight_var, bias_var):
    q = regimes.variance_fixed_point(name, weight_var, bias_var)
    c = regimes.correlation_fixed_point(name, weight_var, bias_var)
    assert q >= 0
    assert 0 <= c <= 1
    scale = regimes.depth_scale(name, weight_var, bias_var)
    assert scale.xi_q >= 0
    assert scale.xi_c >= 0
    if 0 < q < 1e6:
        moment = layer_covariance(name, q, q, [1.0, c])
        assert (bias_var + weight_var * moment) == pytest.approx([q, c * q], rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("name", ["tanh", "erf", "hard_tanh", "sin", "silu", "elu"])
def test_chi_and_correlation_are_continuous_across_the_line(name):
    bias = np.array([0.3, 1.0, 2.0])
    line = regimes.critical_line(name, bias)
    sides = [line * (1 - 1e-6), line, line * (1 + 1e-6)]
    below, on, above = (regimes.chi(name, w, bias) for w in sides)
    if (np.abs(on - 1) < 1e-9).all():
        assert (below < 1).all()
        assert (above > 1).all()
        assert np.abs(above - below).max() < 1e-4
        c = regimes.correlation_fixed_point(name, sides[2], bias)
        assert ((c < 1) & (c > 0.9999)).all()
    else:
        assert name == "silu"  # at a small bias the variance jumps instead
        assert (regimes.variance_fixed_point(name, sides[2], bias)[:1] == np.inf).all()


def test_near_one_the_correlation_keeps_its_digits():
    # sin: F(1) - F(1-e) = (1 - exp(-qe)) (1 + exp(-q(2-e))) / 2, so e* is known to rounding
    weight_var, bias_var = regimes.critical_line("sin", 0.5) * (1 + 1e-7), 0.5
    q = regimes.variance_fixed_point("sin", weight_var, bias_var)
    e = 1 - regimes.correlation_fixed_point("sin", weight_var, bias_var)
    deficit = -np.expm1(-q * e) * (1 + np.exp(-q * (2 - e))) / 2
    assert 1e-8 < e < 1e-5
    assert weight_var * deficit / q == pytest.approx(e, rel=1e-8)


@pytest.mark.parametrize("name", ["gelu", "silu"])
@pytest.mark.parametrize("bias_var", [0.0, 0.1, 0.3, 1.0])
def test_the_line_of_gelu_and_silu_is_where_the_flow_changes(name, bias_var):
    line = regimes.critical_line(name, bias_var)
    below, above = line * (1 - 1e-4), line * (1 + 1e-4)
    assert regimes.variance_fixed_point(name, below, bias_var) < np.inf
    assert regimes.chi(name, below, bias_var) < 1
    beyond = regimes.variance_fixed_point(name, above, bias_var)
    assert beyond == np.inf or regimes.chi(name, above, bias_var) > 1


@pytest.mark.parametrize("name", ["tanh", "hard_tanh", "relu6"])
def test_correlations_at_every_distance_from_one(name):
    """Series, quadratures and layers take over from each other: each root solves the equation."""
    bias_var = 0.4
    line = regimes.critical_line(name, bias_var)
    weights = line * (1 + np.array([1e-3, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5]))
    q = regimes.variance_fixed_point(name, weights, bias_var)
    c = regimes.correlation_fixed_point(name, weights, bias_var)
    assert (np.diff(c) < 0).all()
    assert 1 - c[0] < 1e-2 < 0.08 < 1 - c[-1]
    image = bias_var + weights * layer_covariance(name, q, q, c)
    assert image == pytest.approx(c * q, rel=1e-11)


@pytest.mark.parametrize("name", ["tanh", "erf", "hard_tanh"])
def test_on_the_line_but_for_rounding_the_correlation_is_one(name):
    line = regimes.critical_line(name, 0.4)
    weights = line * (1 + 1e-12 * np.arange(-2, 6))
    assert regimes.correlation_fixed_point(name, weights, 0.4) == pytest.approx(1.0, abs=1e-9)


def test_noise_of_phi_does_not_push_the_root_away():
    # chi_1 is just above 1, D(e)/e just below: the correlation is one, not an end of the range
    e = _root(lambda e: 0.9999999 * e, np.ones(1), 1e-30, 1e-4)
    assert e == pytest.approx([0.0], abs=1e-20)
