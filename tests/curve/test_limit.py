"""Deficits to relative precision at any depth, and their limit at infinite depth."""

import json
import math
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from scipy.optimize import brentq

import nngp


def arctan_and_cosine(x):
    return np.arctan(x) + np.cos(x) / 4


# exact values, by mpmath: see oracles/make_deep_slopes.py
SLOPES = json.loads((Path(__file__).parents[1] / "oracles" / "deep_slopes.json").read_text())


@pytest.mark.parametrize("row", SLOPES, ids=lambda row: row["activation"])
def test_small_deficits_are_products_of_slopes(row):
    """D = m Π w E[phi'²], for m so small that nothing else matters; down to 1e-300."""
    ours = row["activation"] == "arctan + cos/4"
    net = nngp.Architecture(
        row["depth"],
        arctan_and_cosine if ours else row["activation"],
        row["weight_var"],
        row["bias_var"],
    )
    curve = nngp.curves.compile_curve(net)
    assert curve.variance == pytest.approx(float(row["variance"]), rel=1e-12)
    with mp.workdps(25):
        product = mp.mpf(row["product"])
        lowest = float(mp.mpf("1e-299") / product)
        for m in (1e-30, np.sqrt(1e-30 * lowest), lowest):
            exact = float(product * mp.mpf(m))
            assert curve.deficit(one_minus=m) == pytest.approx(exact, rel=1e-10, abs=0)
    assert curve.deficit(one_minus=lowest) < 2e-299
    assert curve.deficit_error < 1e-10


@pytest.mark.parametrize("name", ["relu", "erf", "tanh", "hard_tanh", "sin", "gelu"])
def test_the_limit_solves_the_equation_of_koenigs(name):
    """Started at the fixed point of the variance, every layer is the same map f of the
    correlation, and the limit of the deficits satisfies h(f(c)) = chi h(c)."""
    w, b = 0.7, 0.2

    def layer(q, c):
        return float(b + w * nngp.curves.layer_covariance(name, q, q, c))

    q = brentq(lambda q: layer(q, 1.0) - q, 1e-3, 10, xtol=1e-15, rtol=1e-15)
    net = nngp.Architecture(math.inf, name, w, b)
    curve = nngp.curves.compile_curve(net, (q - b) / w, tol=1e-9)
    start = np.array([-0.8, -0.1, 0.3, 0.7])  # of the inputs; b + w c/... enters the first layer
    corr = (b + (q - b) * start) / q
    moved = np.array([layer(q, c) for c in corr]) / q
    back = (moved * q - b) / (q - b)  # the input whose first layer has that correlation
    chi = w * float(nngp.curves.layer_derivatives(name, q, q, 1 - 1e-14).corr) / q
    np.testing.assert_allclose(curve.deficit(back), chi * curve.deficit(start), rtol=1e-6)
    assert (curve.scale, curve.offset) == (pytest.approx(1.0), math.inf)


def test_deep_networks_approach_their_limit():
    corr = np.linspace(-1, 1, 21)
    limit = nngp.curves.compile_curve(nngp.Architecture(math.inf, "relu", 1.2, 0.1))
    deep = nngp.curves.compile_curve(nngp.Architecture(120, "relu", 1.2, 0.1))
    np.testing.assert_allclose(deep.deficit(corr) / deep.scale, limit.deficit(corr), rtol=1e-7)
    assert limit.deficit_error < 1e-11


def test_without_bias_the_offset_is_finite():
    """The variance vanishes, layers become linear, and K/s itself converges."""
    corr = np.linspace(-1, 1, 21)
    limit = nngp.curves.compile_curve(nngp.Architecture(math.inf, "gelu", 1.0, 0.0))
    deep = nngp.curves.compile_curve(nngp.Architecture(60, "gelu", 1.0, 0.0))
    np.testing.assert_allclose(limit(corr), deep(corr) / deep.scale, rtol=1e-8)
    assert limit.offset == pytest.approx(deep.offset, rel=1e-8)


def test_sensitivities_of_the_limit():
    corr, h = np.array([0.9, 0.4, 0.0, -0.5]), 1e-5

    def curve(w, b):
        return nngp.curves.compile_curve(nngp.Architecture(math.inf, "erf", w, b))

    found = curve(0.8, 0.2).sensitivity(corr)
    for name, up, down in (
        ("weight_var", curve(0.8 + h, 0.2), curve(0.8 - h, 0.2)),
        ("bias_var", curve(0.8, 0.2 + h), curve(0.8, 0.2 - h)),
    ):
        slope = (up(corr) - down(corr)) / (2 * h)
        np.testing.assert_allclose(found[name], slope, rtol=1e-5, atol=1e-8)


def test_where_there_is_no_limit():
    cases = [
        (("erf", 3.0, 0.1), "chaotic phase"),
        (("step", 1.0, 0.1), "chaotic phase"),
        (("relu", 2.0, 0.0), "too near criticality"),
        (("erf", math.pi / 4, 0.0), "too near criticality"),
        (("relu", 3.0, 0.1), "past the range of float64"),
        (("relu", 1.5, 0.0), "past the range of float64"),
    ]
    for net, message in cases:
        with pytest.raises(nngp.errors.NoLimitError, match=message) as told:
            nngp.curves.compile_curve(nngp.Architecture(math.inf, *net))
        assert "limit kernel" in str(told.value)


def test_an_infinite_architecture():
    net = nngp.Architecture(math.inf, "relu", 1.0, 0.1)
    assert nngp.Architecture.from_dict(json.loads(json.dumps(net.as_dict()))) == net
    assert net.truncated(3) == nngp.Architecture(3, "relu", 1.0, 0.1)
    with pytest.raises(ValueError, match="must be one number"):
        nngp.Architecture(math.inf, "relu", [1.0, 2.0], 0.1)
    with pytest.raises(ValueError, match="finite depth only"):
        _ = net.weight_vars
    for bad in (-math.inf, math.nan, 1.5, True):
        with pytest.raises(ValueError, match="whole number of hidden layers"):
            nngp.Architecture(bad, "relu")


def test_the_kernel_of_an_infinite_network():
    net = nngp.Architecture(math.inf, "relu", 1.0, 0.1)
    X = nngp.normalize(np.random.default_rng(0).normal(size=(6, 4)))
    K = nngp.kernel(net, X)
    np.testing.assert_array_equal(np.diagonal(K), nngp.kernel_diag(net, X))
    np.testing.assert_array_equal(np.diagonal(K), 1.0)
    assert np.linalg.eigvalsh(K).min() > 0
    assert nngp.kernel(net, [[1.0, 0.0]], [[0.0, 1.0]])[0, 0] == pytest.approx(0.0, abs=1e-14)
    with pytest.raises(ValueError, match=r"inputs of equal norm.*normalize"):
        nngp.kernel(net, 2 * np.arange(6.0)[:, None] * X)
    with pytest.raises(ValueError, match=r"inputs of equal norm.*normalize"):
        nngp.kernel_diag(net, np.arange(6.0)[:, None] * X)


def test_a_linear_network_is_its_own_limit():
    """Every layer is exact, so there is nothing to wait for; a bias makes the offset infinite."""
    for bias_var in (0.0, 1e-6, 0.3):
        curve = nngp.curves.compile_curve(nngp.Architecture(math.inf, "identity", 0.5, bias_var))
        np.testing.assert_allclose(curve.deficit([0.3, -0.5, 1.0]), [0.7, 1.5, 0.0], rtol=1e-14)
        assert curve.offset == (math.inf if bias_var else 0.0)
        assert curve.deficit_error < 1e-12


def test_lists_of_layers_raise_at_infinite_depth():
    net = nngp.Architecture(math.inf, "relu", 1.0, 0.1)
    for call in (
        lambda: nngp.curves.compile_curves(net),
        lambda: nngp.curves.compile_curve(net).sensitivity(0.5, per_layer=True),
    ):
        with pytest.raises(ValueError, match="finite depth only"):
            call()


def test_derivatives_of_deficits_keep_their_digits():
    """d/dq of F(1) - F(c), by differences in mpmath of E[phi(u) phi(v)] in closed form."""
    for name in ["sin", "cos", "erf", "gelu", "gaussian"]:
        layers = {
            "sin": lambda q, c: mp.exp(-q) * mp.sinh(q * c),
            "cos": lambda q, c: mp.exp(-q) * mp.cosh(q * c),
            "erf": lambda q, c: 2 / mp.pi * mp.asin(2 * q * c / (1 + 2 * q)),
            "gaussian": lambda q, c: 1 / mp.sqrt((1 + 2 * q) ** 2 - (2 * q * c) ** 2),
            "gelu": lambda q, c: (
                q * c / 4
                + q * c / (2 * mp.pi) * mp.asin(q * c / (1 + q))
                + q**2
                / (2 * mp.pi * mp.sqrt((1 + q) ** 2 - (q * c) ** 2))
                * (1 + c * c - 2 * q * c * c / (1 + q))
            ),
        }
        from nngp.architecture import as_activation
        from nngp.covariance import layer_at

        layer = layers[name]
        for q in (1e-8, 0.3, 20.0):
            for m in (1e-100, 1e-9, 0.2, 1.0):
                at = layer_at(as_activation(name), q)
                found = at.deficit_in_var(np.zeros(1, bool), np.array([m]))
                with mp.workdps(260):
                    h, c = mp.mpf(10) ** -60, 1 - mp.mpf(m)
                    up, here, down = (
                        layer(x, mp.mpf(1)) - layer(x, c) for x in (q + h * q, mp.mpf(q), q - h * q)
                    )
                    exact = (up - down) / (2 * h * mp.mpf(q))
                error = (mp.mpf(float(found[0])) - exact) / (here / mp.mpf(q))
                assert abs(float(error)) < 1e-13


def test_any_bias_makes_a_finite_offset_infinite():
    found = nngp.curves.compile_curve(nngp.Architecture(math.inf, "erf", 0.5, 0.0)).sensitivity(0.5)
    assert np.isfinite(found["weight_var"])
    assert found["bias_var"] == np.inf


def test_rounding_of_the_last_octave_is_not_amplified():
    """Below the last octave deficits are a power of m; noise in that power would pass for need of
    more octaves, down to where float64 ends."""
    net = nngp.Architecture(math.inf, "tanh", 0.80001, 0.3)
    curve = nngp.curves.compile_curve(net, 1.0000000000000002, tol=1e-11)
    assert curve.profile.deficit.coefs.shape[1] == 56
