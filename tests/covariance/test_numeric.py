"""Numeric layers: the error they report is honest, at extreme variances and correlations.

The exact values are in oracles/layers.json (see make_layers.py there).
"""

import json
from pathlib import Path

import numpy as np
import pytest

import nngp

ROWS = json.loads((Path(__file__).parents[1] / "oracles" / "layers.json").read_text())
NAMES = sorted({row["activation"] for row in ROWS})


def of(name):
    rows = [row for row in ROWS if row["activation"] == name]
    columns = [np.array([row[key] for row in rows]) for key in ("var1", "var2")]
    corr = np.array([float.fromhex(row["corr"]) for row in rows])
    value = np.array([np.longdouble(row["value"]) for row in rows])
    return *columns, corr, value


@pytest.mark.parametrize("name", NAMES)
def test_the_tolerance_is_met_and_the_true_error_within_ten_times_the_reported(name):
    var1, var2, corr, exact = of(name)
    value, error = nngp.curves.layer_covariance(name, var1, var2, corr, return_error=True)
    assert np.all(np.abs(value - exact) <= 10 * error)
    at_one = {q: nngp.curves.layer_covariance(name, q, q, 1.0) for q in {*var1, *var2}}
    scale = np.sqrt([at_one[a] * at_one[b] for a, b in zip(var1, var2, strict=True)])
    assert np.max(np.abs(value - exact) / scale) < 1e-12
    assert np.max(error / scale) < 1e-12


@pytest.mark.parametrize("name", NAMES)
def test_kinks_need_not_be_declared(name):
    var1, var2, corr, exact = (x[:20] for x in of(name))
    fn = nngp.Architecture(1, name).activation.fn
    value, error = nngp.curves.layer_covariance(
        nngp.Activation(fn), var1, var2, corr, return_error=True
    )
    assert np.all(np.abs(value - exact) <= 10 * error)
    assert np.max(error) < 1e-12 * np.abs(exact).max()


def test_an_odd_kink_and_a_jump_are_found():
    def saw(x):
        return np.where(x > 0.3, np.sin(x), x**2)

    found = nngp.curves.layer_covariance(saw, 1.0, 1.0, 0.8)
    declared = nngp.curves.layer_covariance(nngp.Activation(saw, kinks=(0.3,)), 1.0, 1.0, 0.8)
    rng = np.random.default_rng(0)
    u, z = rng.standard_normal((2, 4_000_000))
    sampled = saw(u) * saw(0.8 * u + 0.6 * z)
    assert found == pytest.approx(declared, rel=1e-12)
    assert abs(found - sampled.mean()) < 5 * sampled.std() / 2000


@pytest.mark.parametrize(("var", "corr"), [(1.0, 1.0), (300.0, -0.999)])
def test_two_kinks_close_together_are_both_found(var, corr):
    def ramp(x):
        return np.clip(x - 0.3, 0, 0.2)

    value = nngp.curves.layer_covariance(ramp, var, var, corr)
    declared = nngp.curves.layer_covariance(nngp.Activation(ramp, kinks=(0.3, 0.5)), var, var, corr)
    assert value == pytest.approx(declared, rel=1e-12, abs=1e-16)


def test_a_narrow_bump_is_not_stepped_over():
    def bump(x):
        return np.exp(-(((x - 0.7) / 0.02) ** 2))

    # E[phi²] is a Gaussian integral
    s = 0.02**2 / 4
    exact = np.sqrt(s / (s + 40)) * np.exp(-0.5 * 0.7**2 / (s + 40))
    value, error = nngp.curves.layer_covariance(bump, 40.0, 40.0, 1.0, return_error=True)
    assert abs(value - exact) <= 10 * error
    assert error < 1e-12 * exact


def test_a_singular_derivative_is_reported_as_an_error():
    """E[sqrt|u|]² = 2^(1/2) Gamma(3/4)² / pi at correlation 0."""
    from scipy.special import gamma

    value, error = nngp.curves.layer_covariance(
        lambda x: np.sqrt(np.abs(x)), 1.0, 1.0, 0.0, return_error=True
    )
    assert abs(value - np.sqrt(2) * gamma(0.75) ** 2 / np.pi) <= 10 * error
    assert error < 1e-4


def test_without_variance_the_correlation_means_nothing():
    for name in ("step", "sign", "cos"):
        values = nngp.curves.layer_covariance(name, 0.0, 0.0, [0.0, 1.0, -1.0, 0.5])
        assert np.ptp(values) == 0


def test_a_staircase_with_many_declared_kinks():
    stairs = nngp.Activation(np.round, kinks=[i + 0.5 for i in range(-30, 30)])
    value, error = nngp.curves.layer_covariance(stairs, 4.0, 4.0, 0.5, return_error=True)
    rng = np.random.default_rng(0)
    u, z = rng.standard_normal((2, 2_000_000))
    sampled = np.round(2 * u) * np.round(u + np.sqrt(3.0) * z)
    assert abs(value - sampled.mean()) < 5 * sampled.std() / np.sqrt(2e6)
    assert error < 1e-11


def test_too_much_structure_is_refused():
    with pytest.raises(nngp.errors.ActivationError, match="too much structure"):
        nngp.curves.layer_covariance(lambda x: np.sign(np.sin(1e4 * x)), 1.0, 1.0, 0.5)


def test_a_noisy_callable_reports_its_noise():
    def rounded(x):
        return np.tanh(x.astype(np.float32))

    value, error = nngp.curves.layer_covariance(rounded, 1.0, 1.0, 0.5, return_error=True)
    exact = nngp.curves.layer_covariance("tanh", 1.0, 1.0, 0.5)
    assert 1e-10 < error < 1e-5
    assert abs(value - exact) <= 10 * error


@pytest.mark.parametrize("method", ["series", "quadrature"])
def test_the_two_numeric_methods_agree(method):
    corr = np.array([-0.9, -0.2, 0.0, 0.7, 0.95])
    value = nngp.curves.layer_covariance("tanh", 0.8, 2.5, corr, method=method)
    np.testing.assert_allclose(
        value, nngp.curves.layer_covariance("tanh", 0.8, 2.5, corr), rtol=1e-13, atol=1e-15
    )


@pytest.mark.parametrize(
    ("name", "q1", "q2", "c"),
    [
        ("tanh", 0.5, 4.0, -0.8),
        ("silu", 1.0, 1.0, 0.3),
        ("elu", 2.0, 2.0, 0.999),
        ("hard_tanh", 0.5, 4.0, -0.8),
        ("relu6", 2.0, 2.0, 0.999),
    ],
)
def test_derivatives_against_differences(name, q1, q2, c):
    F, d = nngp.curves.layer_covariance, nngp.curves.layer_derivatives(name, q1, q2, c)

    def difference(function, x, h):
        steps = [(function(x + s) - function(x - s)) / (2 * s) for s in (h, h / 2)]
        return (4 * steps[1] - steps[0]) / 3

    h = 1e-3 * min(1.0, 100 * (1 - abs(c)))
    assert d.corr == pytest.approx(difference(lambda x: F(name, q1, q2, x), c, h), rel=1e-6)
    assert d.var1 == pytest.approx(
        difference(lambda x: F(name, x, q2, c), q1, 1e-3 * q1), rel=1e-6, abs=1e-8
    )
    assert d.var2 == pytest.approx(
        difference(lambda x: F(name, q1, x, c), q2, 1e-3 * q2), rel=1e-6, abs=1e-8
    )


@pytest.mark.parametrize("name", ["step", "sign", "relu", "erf", "gelu", "abs", "relu2"])
def test_numeric_derivatives_against_closed_forms_jumps_included(name):
    closed = nngp.Architecture(1, name).activation
    numeric = nngp.Activation(closed.fn)
    for q1, q2, c in [(1.0, 1.0, 0.3), (0.5, 2.0, -0.9), (3.0, 3.0, 0.999)]:
        expected = nngp.curves.layer_derivatives(closed, q1, q2, c)
        got = nngp.curves.layer_derivatives(numeric, q1, q2, c)
        scale = nngp.curves.layer_covariance(closed, max(q1, q2), max(q1, q2), 1.0)
        np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-11 * scale)


def test_a_shifted_jump_has_the_right_derivatives():
    def shifted(x):
        return np.where(x > 0.4, 1.0, -0.5)

    phi = nngp.Activation(shifted, kinks=(0.4,))
    d = nngp.curves.layer_derivatives(phi, 1.3, 0.9, 0.5)
    F, h = nngp.curves.layer_covariance, 1e-4
    assert d.corr == pytest.approx(
        (F(phi, 1.3, 0.9, 0.5 + h) - F(phi, 1.3, 0.9, 0.5 - h)) / (2 * h), rel=1e-6
    )
    assert d.var1 == pytest.approx(
        (F(phi, 1.3 + h, 0.9, 0.5) - F(phi, 1.3 - h, 0.9, 0.5)) / (2 * h), rel=1e-6
    )
