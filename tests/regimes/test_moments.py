"""Moments of difficult callables: hidden kinks, endless structure, flat pieces, roots."""

import warnings

import numpy as np
import pytest

import nngp
from nngp import regimes
from nngp.architecture import as_activation
from nngp.regimes.moments import moments_of


def softsign(x):
    return x / (1 + np.abs(x))


def log_sign(x):
    return np.sign(x) * np.log1p(np.abs(x))


def triangle(x):
    return np.abs(np.mod(x, 2) - 1)


def peaks(x):
    return 4 * np.exp(-4 * (np.abs(x) - 3) ** 2)


def late_sigmoid(x):
    return 1 / (1 + np.exp(-np.clip(20 * (x - 2), -700, 700)))


def root(x):
    return np.sign(x) * np.sqrt(np.abs(x))


def x_sine(x):
    return x * np.sin(x)


def late_relu(x):
    return np.maximum(x - 3, 0)


def hard_shrink(x):
    return np.where(np.abs(x) > 0.5, x, 0)


def flat_at_zero(x):
    return np.exp(-1 / np.maximum(x**2, 1e-300))


def chirp(x):
    return np.sin(x**2)


def directly(phi, q):
    """E[phi²] by brute force."""
    z = np.linspace(-14, 14, 2_000_001)
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    return np.trapezoid(density * phi(np.sqrt(q) * z) ** 2, z)


@pytest.mark.parametrize("phi", [softsign, log_sign])
def test_a_kink_hidden_in_the_second_derivative(phi):
    assert regimes.critical_line(phi, 0.0) == pytest.approx(1.0, abs=1e-12)
    assert regimes.chi(phi, 0.5, 0.0) == pytest.approx(0.5, abs=1e-12)
    assert regimes.phase(phi, 0.9, 0.0) == "ordered"
    line = regimes.critical_line(phi, 1e-9)
    q = regimes.variance_fixed_point(phi, line, 1e-9)
    assert q == pytest.approx(1e-9 + line * directly(phi, q), rel=1e-9)
    assert regimes.chi(phi, line, 1e-9) == pytest.approx(1.0, abs=1e-9)


def test_small_variances_of_softsign():
    # E[phi²] = q - 2 E|u|³ + 3 E[u⁴] - ...
    q = np.array([1e-40, 1e-20, 1e-9])
    at = moments_of(as_activation(softsign))(q)
    series = q - 2 * np.sqrt(8 / np.pi) * q**1.5 + 9 * q**2 - 4 * np.sqrt(128 / np.pi) * q**2.5
    assert at.second == pytest.approx(series, rel=1e-12)
    assert at.slope == pytest.approx(1 - 4 * np.sqrt(2 * q / np.pi) + 10 * q, rel=1e-10)


@pytest.mark.parametrize(
    ("phi", "weight_var", "bias_var", "expected"),
    [
        pytest.param(triangle, 15.648, 0.0, 5.216, marks=pytest.mark.slow),
        pytest.param(triangle, 15_000.0, 0.5, 5000.5, marks=pytest.mark.slow),
        pytest.param(np.floor, 27.3, 2.0, np.inf, marks=pytest.mark.slow),
        (np.floor, 0.0869, 20.0, 21.935129),
        (peaks, 0.262, 20.0, 20.372024),
        (late_sigmoid, 0.5, 4.0, 4.077587),
        (late_relu, 1.0, 0.5, 0.50000049),
        (late_relu, 1.0, 0.0, 0.0),
        (flat_at_zero, 1.0, 0.5, 0.570858),
        (hard_shrink, 0.5, 0.0, 0.0),
        (lambda x: x + 1e-12, 0.5, 0.0, 1e-24),
    ],
)
def test_variances_against_brute_force(phi, weight_var, bias_var, expected):
    q = regimes.variance_fixed_point(phi, weight_var, bias_var)
    assert q == pytest.approx(expected, rel=1e-6)
    if 0 < q < np.inf:
        assert bias_var + weight_var * directly(phi, q) == pytest.approx(q, rel=1e-5)


def test_slopes_of_a_late_start():
    q = regimes.variance_fixed_point(late_sigmoid, 2.0, 1.0)
    u, h = np.sqrt(q) * np.linspace(-12, 12, 1_000_001), 1e-5
    density = np.exp(-0.5 * u**2 / q) / np.sqrt(2 * np.pi * q)
    rise = (late_sigmoid(u + h) - late_sigmoid(u - h)) / (2 * h)
    slope = np.trapezoid(density * rise**2, u)
    assert regimes.chi(late_sigmoid, 2.0, 1.0) == pytest.approx(2 * slope, rel=1e-6)
    assert regimes.phase(peaks, 0.262, 20.0) != "unbounded"  # phi is bounded


def test_slopes_that_are_infinite():
    assert regimes.chi(root, 1.0, 0.1) == np.inf  # E[phi'²] diverges at 0
    assert regimes.chi(x_sine, 2.0, 0.0) == np.inf  # grows with q, which is infinite
    assert regimes.chi(hard_shrink, 0.5, 0.5) == np.inf  # jumps
    assert regimes.chi(late_relu, 1.0, 0.5) < 1


def wild_outside(x):
    return np.where(np.abs(x) < 1000, np.sign(x), 9 * np.sign(np.sin(40 * x)))


def test_inaccurate_moments_give_a_warning():
    with pytest.warns(nngp.errors.ToleranceWarning, match="grows beyond"):
        regimes.variance_fixed_point(wild_outside, 1e5, 0.0)
    with pytest.warns(nngp.errors.ToleranceWarning, match="grows beyond"):
        regimes.variance_fixed_point(chirp, 1e5, 0.5)
    with pytest.warns(nngp.errors.ToleranceWarning, match="are known to"):
        regimes.chi(lambda x: np.sign(x) * np.abs(x) ** 0.6, 1.0, 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        q = regimes.variance_fixed_point(chirp, 1.0, 0.5)
        regimes.phase_diagram("tanh", [1.0, 50.0], [0.0, 1.0])
        regimes.variance_fixed_point(np.exp, 5.0, 0.1)
    assert q == pytest.approx(0.5 + directly(chirp, q), rel=1e-9)
