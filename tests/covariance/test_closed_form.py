"""Closed forms against integration in polar coordinates, derivatives against differences of those.

In polar coordinates u = sqrt(q1) r cos(w), v = sqrt(q2) r cos(w - theta) every activation with a
kink at 0 is smooth between four rays, so Gauss-Legendre is exact there. Nothing of it is shared
with the package. Deficits are checked against mpmath.
"""

from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest

import nngp
from nngp.architecture import as_activation
from nngp.covariance import closed_form

CLOSED = [n for n in nngp.activations.names() if as_activation(n).closed_form is not None]
PAIRS = [(1.0, 1.0, 0.3), (0.2, 3.0, -0.7), (2.0, 2.0, 0.98), (1e-4, 5.0, 0.5), (4.0, 1.0, -0.99)]


def polar_integral(phi, q1, q2, c):
    theta = np.arccos(c)
    r, wr = np.polynomial.legendre.leggauss(120)
    r, wr = 6.5 * (r + 1), 6.5 * wr
    radial = wr * r * np.exp(-0.5 * r**2)
    rays = np.sort(np.mod(np.pi / 2 + np.array([0, np.pi, theta, np.pi + theta]), 2 * np.pi))
    t, wt = np.polynomial.legendre.leggauss(60)
    total = 0.0
    for a, b in zip(rays, [*rays[1:], rays[0] + 2 * np.pi], strict=True):
        w = 0.5 * (a + b) + 0.5 * (b - a) * t
        u = np.sqrt(q1) * np.outer(r, np.cos(w))
        v = np.sqrt(q2) * np.outer(r, np.cos(w - theta))
        total += radial @ (phi(u) * phi(v)) @ (0.5 * (b - a) * wt)
    return total / (2 * np.pi)


@pytest.mark.parametrize("name", CLOSED)
def test_value(name):
    for pair in PAIRS:
        check_value(name, *pair)


def check_value(name, q1, q2, c):
    value, error = nngp.curves.layer_covariance(name, q1, q2, c, return_error=True)
    expected = polar_integral(as_activation(name), q1, q2, c)
    scale = np.sqrt(
        nngp.curves.layer_covariance(name, q1, q1, 1.0)
        * nngp.curves.layer_covariance(name, q2, q2, 1.0)
    )
    assert abs(value - expected) <= 2e-13 * scale
    assert error <= 1e-13 * scale


def test_leaky_relu_of_any_slope():
    for slope in [-1.0, -0.3, 0.01, 0.5, 1.0, 2.0]:
        phi = nngp.activations.leaky_relu(slope)
        expected = polar_integral(phi, 0.5, 2.0, 0.6)
        assert nngp.curves.layer_covariance(phi, 0.5, 2.0, 0.6) == pytest.approx(
            expected, rel=1e-12
        )


@pytest.mark.parametrize("name", CLOSED)
def test_derivatives(name):
    for pair in PAIRS:
        check_derivatives(name, *pair)


def check_derivatives(name, q1, q2, c):
    def difference(function, x):
        # Richardson's extrapolation of central differences: error near 1e-10
        h = 1e-2 * min(abs(x), 1 - abs(c) if x == c else abs(x))
        coarse = [(function(x + s * h) - function(x - s * h)) / (2 * s * h) for s in (1, 0.5, 0.25)]
        first = [(4 * b - a) / 3 for a, b in pairwise(coarse)]
        return (16 * first[1] - first[0]) / 15

    F, d = nngp.curves.layer_covariance, nngp.curves.layer_derivatives(name, q1, q2, c)
    scale = np.sqrt(F(name, q1, q1, 1.0) * F(name, q2, q2, 1.0))
    assert d.corr == pytest.approx(
        difference(lambda x: F(name, q1, q2, x), c), rel=1e-7, abs=1e-8 * scale
    )
    assert d.var1 == pytest.approx(
        difference(lambda x: F(name, x, q2, c), q1), rel=1e-7, abs=1e-8 * scale / q1
    )
    assert d.var2 == pytest.approx(
        difference(lambda x: F(name, q1, x, c), q2), rel=1e-7, abs=1e-8 * scale / q2
    )


MP_DEFICITS = {
    "relu": lambda q, c: q / (2 * mp.pi) * (mp.sqrt(1 - c * c) + (mp.pi - mp.acos(c)) * c),
    "step": lambda q, c: (mp.pi - mp.acos(c)) / (2 * mp.pi),
    "erf": lambda q, c: 2 / mp.pi * mp.asin(2 * q * c / (1 + 2 * q)),
    "sin": lambda q, c: (mp.exp(-q * (1 - c)) - mp.exp(-q * (1 + c))) / 2,
    "cos": lambda q, c: (mp.exp(-q * (1 - c)) + mp.exp(-q * (1 + c))) / 2,
    "gaussian": lambda q, c: 1 / mp.sqrt((1 + 2 * q) ** 2 - (2 * q * c) ** 2),
    "gelu": lambda q, c: (
        q * c * (mp.mpf(1) / 4 + mp.asin(q * c / (1 + q)) / (2 * mp.pi))
        + q**2
        / (2 * mp.pi * mp.sqrt((1 + q) ** 2 - (q * c) ** 2))
        * (1 + c * c - 2 * q * c * c / (1 + q))
    ),
    "relu2": lambda q, c: (
        q**2 / (2 * mp.pi) * (3 * mp.sqrt(1 - c * c) * c + (mp.pi - mp.acos(c)) * (1 + 2 * c * c))
    ),
    "relu3": lambda q, c: (
        q**3
        / (2 * mp.pi)
        * (mp.sqrt(1 - c * c) * (15 - 11 * (1 - c * c)) + (mp.pi - mp.acos(c)) * (9 * c + 6 * c**3))
    ),
}


@pytest.mark.parametrize("name", MP_DEFICITS)
def test_deficit_has_relative_precision_however_small(name):
    for q in (1e-6, 0.3, 2.0, 50.0):
        check_deficit(name, q)


def check_deficit(name, q):
    m = np.array([1e-250, 1e-40, 1e-17, 1e-9, 1e-3, 0.2, 0.9, 1.0])
    form = closed_form(as_activation(name).closed_form)
    with mp.workdps(600):
        formula = MP_DEFICITS[name]
        exact = [formula(mp.mpf(q), mp.mpf(1)) - formula(mp.mpf(q), 1 - mp.mpf(x)) for x in m]
        relative = [
            abs(mp.mpf(float(d)) / e - 1) for d, e in zip(form.deficit(q, m), exact, strict=True)
        ]
    assert max(relative) < 1e-14 * form.loss(q)


def test_zero_variance_is_the_constant_phi_of_zero():
    assert nngp.curves.layer_covariance("cos", 0.0, 0.0, 0.3) == 1.0
    assert nngp.curves.layer_covariance("relu", 0.0, 2.0, 0.3) == 0.0
    assert nngp.curves.layer_covariance("softplus", 0.0, 0.0, 1.0) == pytest.approx(np.log(2) ** 2)


def test_bad_arguments():
    cases = [
        ((-1.0, 1.0, 0.0), "variances must not be negative"),
        ((1.0, 1.0, 1.5), r"corr must lie in \[-1, 1\], got 1.5"),
        ((np.nan, 1.0, 0.0), "var1 holds NaN"),
        ((1.0, 1.0, np.inf), "corr holds NaN or infinity"),
    ]
    for arguments, message in cases:
        with pytest.raises(ValueError, match=message):
            nngp.curves.layer_covariance("relu", *arguments)


def test_unknown_method_and_missing_closed_form():
    with pytest.raises(ValueError, match="method must be one of"):
        nngp.curves.layer_covariance("relu", 1.0, 1.0, 0.0, method="magic")
    with pytest.raises(ValueError, match="has no closed form"):
        nngp.curves.layer_covariance("tanh", 1.0, 1.0, 0.0, method="closed")
    with pytest.raises(ValueError, match="derivatives need positive variances"):
        nngp.curves.layer_derivatives("relu", 0.0, 1.0, 0.0)


def test_rates_are_slope_and_radials():
    for name in CLOSED:
        form = closed_form(as_activation(name).closed_form)
        q1, q2, c = (np.array(column) for column in zip(*PAIRS, strict=True))
        for together, apart in zip(
            form.rates(np, q1, q2, c),
            (form.slope(np, q1, q2, c), form.radial(np, q1, q2, c), form.radial(np, q2, q1, c)),
            strict=True,
        ):
            np.testing.assert_allclose(together, apart, rtol=1e-12)


@pytest.mark.parametrize("q", [1e13, 0.9e15, 1.1e15, 1e17, 1e25, 1e40])
def test_gelu_at_variances_where_it_is_nearly_relu(q):
    """Deficits in 120 digits, against the error that the form states."""
    form = closed_form(("gelu",))
    m = np.array([1e-3 / q, 1 / q, 1e3 / q, 1e-6, 0.1, 1.0])

    def value(c, q):
        rho, root = q * c, mp.sqrt(1 + 2 * q + q * q * (1 - c * c))
        top = q * q + rho**2 * (1 - q * q) / (1 + q) ** 2
        return (rho + 2 / mp.pi * (rho * mp.atan2(rho, root) + top / root)) / 4

    with mp.workdps(120):
        big = mp.mpf(q)
        one, steps = mp.mpf(1), [mp.mpf(x) for x in m]
        deficits = [value(one, big) - value(one - x, big) for x in steps]
        slopes = [mp.diff(lambda v, x=x: value(one, v) - value(one - x, v), big) for x in steps]
        surplus = [value(one, big) + value(x - one, big) for x in steps]
        moment = float(value(one, big))
    allowed = 4 * np.finfo(float).eps * form.loss(q)
    np.testing.assert_allclose(form.deficit(q, m), np.array(deficits, float), rtol=allowed)
    np.testing.assert_allclose(form.deficit_in_var(q, m), np.array(slopes, float), rtol=allowed)
    np.testing.assert_allclose(form.surplus(q, m), np.array(surplus, float), rtol=allowed)
    assert float(form.value(np, q, q, np.float64(1.0))) == pytest.approx(moment, rel=1e-14)
    assert form.loss(q) * np.finfo(float).eps < 4e-8
    for c in (1.0, 0.5, -0.3):
        with mp.workdps(120):
            slope = mp.diff(lambda x: value(x, big), mp.mpf(c) - mp.mpf("1e-30")) / big
            radial = 2 * big * mp.diff(lambda v, c=c: value(mp.mpf(c), v), big) / 2
        at = (np, q, q, np.float64(c))
        assert float(form.slope(*at)) == pytest.approx(float(slope), rel=allowed)
        assert float(form.radial(*at)) == pytest.approx(float(radial), abs=allowed * q)


def test_without_variance_activations_are_constant():
    for name in CLOSED:
        value, error = nngp.curves.layer_covariance(name, 0.0, 0.0, 0.5, return_error=True)
        expected = float(as_activation(name)(np.zeros(1))[0]) ** 2
        assert float(value) == pytest.approx(expected, abs=1e-15)
        assert 0 <= error < 1e-14
