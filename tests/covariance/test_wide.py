"""Steep, narrow and very large: every error that is reported is true, whatever the variance.

Exact values of the built-in activations are in oracles/wide_layers.json (see make_wide_layers.py),
those of random ones in oracles/random_layers.json (see make_random_layers.py).
"""

import json
from itertools import product
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from oracles.random_activations import RandomActivation
from scipy.special import erf

import nngp

ORACLES = Path(__file__).parents[1] / "oracles"
ROWS = json.loads((ORACLES / "wide_layers.json").read_text())
RANDOM = json.loads((ORACLES / "random_layers.json").read_text())
NAMES = sorted({row["activation"] for row in ROWS})


@pytest.mark.parametrize("name", NAMES)
def test_built_in_activations_from_tiny_to_huge_variances(name):
    rows = [row for row in ROWS if row["activation"] == name]
    columns = (np.array([row[key] for row in rows]) for key in ("var1", "var2", "corr", "scale"))
    var1, var2, corr, scale = columns
    exact = np.array([np.longdouble(row["value"]) for row in rows])
    value, error = nngp.curves.layer_covariance(name, var1, var2, corr, return_error=True)
    assert np.all(np.abs(value - exact) <= 10 * error)
    assert np.max(error / scale) < 1e-12
    assert np.max(np.abs(value - exact) / scale) < 1e-12


@pytest.mark.parametrize(
    ("name", "var"),
    [("erf", 1e4), ("gelu", 1e2), ("relu", 1e12), ("step", 1e20), ("gaussian", 1e8), ("erf", 1e20)],
)
def test_callables_against_closed_forms_at_large_variances(name, var):
    closed = nngp.Architecture(1, name).activation
    corr = np.array([1.0, -1.0, 0.0, 0.5, -0.97, 1 - 1e-4, 1 - 1e-8])
    value, error = nngp.curves.layer_covariance(
        nngp.Activation(closed.fn), var, 3 * var, corr, return_error=True
    )
    exact, rounding = nngp.curves.layer_covariance(closed, var, 3 * var, corr, return_error=True)
    assert np.all(np.abs(value - exact) <= 10 * error + rounding)
    scale = np.sqrt(nngp.curves.layer_covariance(closed, var, var, 1.0)) * np.sqrt(
        nngp.curves.layer_covariance(closed, 3 * var, 3 * var, 1.0)
    )
    assert np.max(error) < 1e-12 * scale


def test_a_steep_function_is_the_same_as_a_large_variance():
    corr = np.array([1.0, 0.3, -0.99, 1 - 1e-6])
    steep, error = nngp.curves.layer_covariance(
        lambda x: np.tanh(1e4 * x), 1.0, 2.0, corr, return_error=True
    )
    assert np.max(error) < 1e-12
    np.testing.assert_allclose(
        steep, nngp.curves.layer_covariance("tanh", 1e8, 2e8, corr), atol=1e-13
    )


@pytest.mark.parametrize(
    ("size", "n"),
    [
        (1e4, 2),
        pytest.param(1e5, 9, marks=pytest.mark.slow),
        pytest.param(1e7, 9, marks=pytest.mark.slow),
    ],
)
def test_the_kernel_of_large_inputs_of_unequal_norms(size, n):
    """The first terms of the expansion in 1/size: E[tanh tanh] = (2/π) arcsin c - O(size⁻²), and
    1 - sqrt(2/π)/s at equal points."""
    X = np.random.default_rng(0).normal(size=(n, 5)) * size
    K = nngp.kernel(nngp.Architecture(1, "tanh", 1.0, 0.0), X)
    norm = np.linalg.norm(X, axis=1)
    corr = np.clip(X @ X.T / np.outer(norm, norm), -1, 1)
    far = (2 / np.pi) * np.arcsin(corr)
    off = ~np.eye(n, dtype=bool)
    assert np.abs(K - far)[off].max() < 10 / size**2 + 1e-14
    deviation = norm / np.sqrt(5)
    np.testing.assert_allclose(
        np.diag(K), 1 - np.sqrt(2 / np.pi) / deviation, atol=2 / size**2 + 1e-15
    )


@pytest.mark.parametrize("name", ["sin", "cos", "erf", "gaussian", "gelu"])
def test_closed_forms_of_huge_inputs(name):
    for size in (1e8, 3e9, 1e77, 1e140):
        check_huge_inputs(name, size)


def check_huge_inputs(name, size):
    X = np.random.default_rng(1).normal(size=(6, 4)) * size
    K = nngp.kernel(nngp.Architecture(1, name, 1.0, 0.0), X)
    q = (X**2).mean(axis=1)
    exact = {
        "sin": np.full(6, 0.5),
        "cos": np.full(6, 0.5),
        "erf": np.ones(6),
        "gaussian": 0.5 / np.sqrt(q),
        "gelu": 0.5 * q,
    }[name]
    np.testing.assert_allclose(np.diag(K), exact, rtol=1e-7)
    assert np.isfinite(K).all()
    root = np.sqrt(exact)
    assert np.all(np.abs(K) <= np.outer(root, root) * (1 + 1e-7))


@pytest.mark.parametrize(("q1", "q2"), [(0.3, 2.0), (1e8, 1e8), (1e8, 1.0000001e8), (40.0, 40.0)])
def test_sines_against_mpmath(q1, q2):
    for odd, corr in product((True, False), (1.0, -1.0, 0.4, 1 - 1e-9, 1e-7 - 1)):
        check_sine(odd, corr, q1, q2)


def check_sine(odd, corr, q1, q2):
    name = "sin" if odd else "cos"
    value, error = nngp.curves.layer_covariance(name, q1, q2, corr, return_error=True)
    slopes = nngp.curves.layer_derivatives(name, q1, q2, corr)
    with mp.workdps(60):
        a, b, c = mp.mpf(q1), mp.mpf(q2), mp.mpf(corr)

        def moment(a, b):
            half, rho = (a + b) / 2, mp.sqrt(a * b) * c
            grow, fall = mp.exp(rho - half), mp.exp(-rho - half)
            return (grow - fall) / 2 if odd else (grow + fall) / 2

        assert abs(value - moment(a, b)) <= 10 * error
        exact = mp.diff(lambda x: moment(x, b), a)
        # At fixed correlation; the size of the terms is exp(-gap)
        assert abs(slopes.var1 - exact) <= 1e-12 * (abs(exact) + 1 / (1 + a)) + 1e-300


@pytest.mark.parametrize(
    ("place", "width", "var"), [(0.0, 1e-3, 100.0), (0.6123, 0.01, 1.0), (0.6123, 0.01, 900.0)]
)
def test_narrow_bumps_are_found(place, width, var):
    def bump(x):
        return np.exp(-(((x - place) / width) ** 2))

    corr = np.array([1.0, 0.5, -0.999])
    value, error = nngp.curves.layer_covariance(bump, var, var, corr, return_error=True)
    exact = _bump_moment(place, width, var, corr)
    assert np.all(np.abs(value - exact) <= 10 * error)
    assert np.all(error <= 1e-12 * _bump_moment(place, width, var, 1.0))


def _bump_moment(place, width, var, corr):
    """E of exp(-(x-a)²/w² - (y-a)²/w²): a Gaussian integral over x + y and x - y."""
    along, across = var * (1 + corr) + 0.5 * width**2, var * (1 - corr) + 0.5 * width**2
    return 0.5 * width**2 * np.exp(-(place**2) / along) / np.sqrt(along * across)


def test_a_bump_that_no_sample_meets_can_be_declared():
    place, width = 0.7312345, 1e-7

    def bump(x):
        return 3 * np.exp(-(((x - place) / width) ** 2))

    phi = nngp.Activation(bump, features=(place,))
    value, error = nngp.curves.layer_covariance(phi, 1.0, 1.0, 1.0, return_error=True)
    exact = 9 * _bump_moment(place, width, 1.0, 1.0)
    assert abs(value - exact) <= 10 * error + 1e-9 * exact  # the place itself has 16 digits
    assert error < 1e-8 * exact


def test_a_bump_beside_tanh_ends():
    def phi(x):
        return np.tanh(x) + 0.3 * np.exp(-(((x - 0.505) * 1500) ** 2))

    value, error = nngp.curves.layer_covariance(phi, 1.0, 1.0, 0.0, return_error=True)
    w = 1 / 1500
    mean = 0.3 * w / np.sqrt(w**2 + 2) * np.exp(-(0.505**2) / (w**2 + 2))
    assert abs(value - mean**2) <= 10 * error  # E[tanh] = 0
    assert error < 1e-12


def test_only_the_scale_is_large():
    for scale in [1e140, 1e-140]:
        value, error = nngp.curves.layer_covariance(
            lambda x, scale=scale: scale * np.tanh(x), 1.0, 2.0, [1.0, -0.5], return_error=True
        )
        exact = nngp.curves.layer_covariance("tanh", 1.0, 2.0, [1.0, -0.5])
        np.testing.assert_allclose(value / scale / scale, exact, rtol=1e-12)
        assert np.all(error <= 1e-12 * scale * scale)


def test_a_scale_past_float64_is_said_to_be_one():
    with pytest.raises(nngp.errors.ActivationError, match=r"is too large.*divide"):
        nngp.curves.layer_covariance(lambda x: 1e160 * np.tanh(x), 1.0, 1.0, 0.5)


def test_powers_past_float64_are_an_error():
    for name in ["square", "cube", "relu2", "relu3"]:
        with pytest.raises(nngp.errors.VarianceError, match="past the range of float64"):
            nngp.curves.layer_covariance(name, 1e200, 1e200, [0.0, 0.5])


@pytest.mark.parametrize("var", [pytest.param(1e3, marks=pytest.mark.slow), 1e8])
def test_deficits_and_slopes_of_a_callable_against_closed_forms(var):
    closed = nngp.Architecture(1, "erf").activation
    numeric = nngp.Activation(lambda x: erf(x))
    one_minus = np.array([1e-12, 1e-7, 1e-3, 0.3, 1.0])
    curves = [
        nngp.curves.compile_curve(nngp.Architecture(1, phi, var, 0.0)) for phi in (closed, numeric)
    ]
    exact, found = (curve.deficit(one_minus=one_minus) for curve in curves)
    np.testing.assert_allclose(found, exact, rtol=1e-12)


def _honest(rows):
    table = []
    for row in rows:
        phi, pair = RandomActivation(row["terms"]), [row[key] for key in ("var1", "var2", "corr")]
        activation = nngp.Activation(phi, features=phi.features)
        try:
            value, error = nngp.curves.layer_covariance(activation, *pair, return_error=True)
        except nngp.errors.ActivationError:  # too much structure, and said so
            table.append((np.nan, np.nan, 0.0))
            continue
        off = abs(mp.mpf(float(value)) - mp.mpf(row["value"]))
        table.append((float(off), float(error), _scale(activation, *pair[:2])))
    return np.array(table)


def _scale(activation, var1, var2):
    return float(
        np.prod([nngp.curves.layer_covariance(activation, q, q, 1.0) for q in (var1, var2)]) ** 0.5
    )


def test_random_activations_report_their_error():
    _check_honest(_honest(RANDOM[400:412]))


@pytest.mark.deep
@pytest.mark.parametrize("part", range(10))
def test_a_thousand_random_activations_report_their_error(part):
    table = _honest(RANDOM[100 * part : 100 * part + 100])
    done = np.isfinite(table[:, 0])
    ratio = table[done, 0] / np.maximum(table[done, 1], 1e-300)
    relative = table[done, 1] / np.maximum(table[done, 2], 1e-300)  # a far step has no moment
    print(
        f"\npart {part}: {done.sum()} of 100 done, error below 1e-12: "
        f"{np.mean(relative < 1e-12):.2f}, below 1e-6: {np.mean(relative < 1e-6):.2f}, "
        f"largest true / reported error: {np.max(ratio):.2g}"
    )
    _check_honest(table)


def _check_honest(table):
    done = np.isfinite(table[:, 0])
    dishonest = done & (table[:, 0] > 10 * table[:, 1] + 1e-300)
    assert not dishonest.any(), table[dishonest]
    assert done.mean() > 0.9


@pytest.mark.parametrize(("name", "q1", "q2"), [("erf", 1e6, 3e6), ("gelu", 1e10, 1e10)])
def test_derivatives_of_a_callable_at_large_variances(name, q1, q2):
    closed = nngp.Architecture(1, name).activation
    corr = np.array([0.0, 0.5, -0.97, 1 - 1e-6])
    exact = nngp.curves.layer_derivatives(closed, q1, q2, corr)
    found = nngp.curves.layer_derivatives(nngp.Activation(closed.fn), q1, q2, corr)
    scale = float(np.sqrt(nngp.curves.layer_covariance(closed, q1, q1, 1.0)))
    scale *= float(np.sqrt(nngp.curves.layer_covariance(closed, q2, q2, 1.0)))
    np.testing.assert_allclose(found.corr, exact.corr, rtol=1e-11)
    np.testing.assert_allclose(found.var1, exact.var1, rtol=1e-10, atol=1e-12 * scale / q1)
    np.testing.assert_allclose(found.var2, exact.var2, rtol=1e-10, atol=1e-12 * scale / q2)
