"""Closed forms of a φ(b x + c) + d against integrals and moments in 40 digits by mpmath.

The oracle integrates over one variable alone, E[φ(v) | u] being elementary, or sums moments. None
of it is how the package computes.
"""

import mpmath as mp
import numpy as np
import pytest

import nngp
from nngp.covariance import layer_at

Scaled = nngp.Activation.scaled
VARIANCES = [1e-6, 0.3, 40.0, 1e6]
CORRELATIONS = [-0.9, 0.0, 0.6, 0.999]


def conditional(mean_of, phi):
    """E[phi(u) E[phi(v) | u]], given the conditional expectation for a mean and a variance."""

    def expected(q1, q2, c):
        s1, s2 = mp.sqrt(q1), mp.sqrt(q2)

        def integrand(z):
            known = mean_of(c * s2 * z, q2 * (1 - c**2))
            return phi(s1 * z) * known * mp.npdf(z)

        width = 1 / (1 + s1 + s2)
        edges = [width * x for x in (-64, -16, -4, -1, 0, 1, 4, 16, 64)]
        edges = [-14, -7, -3, -1, *[x for x in edges if abs(x) < 1], 1, 3, 7, 14]
        return mp.quad(integrand, sorted(edges), maxdegree=9)

    return expected


def of_erf(a, b, d):
    def known(mean, var):
        return a * mp.erf(b * mean / mp.sqrt(1 + 2 * b**2 * var)) + d

    return conditional(known, lambda x: a * mp.erf(b * x) + d)


def of_gaussian(a, b, c):
    def known(mean, var):
        wide = 1 + 2 * b**2 * var
        return a * mp.exp(-((b * mean + c) ** 2) / wide) / mp.sqrt(wide)

    return conditional(known, lambda x: a * mp.exp(-((b * x + c) ** 2)))


def of_leaky_relu(below, above):
    def known(mean, var):
        if var == 0:
            return above * mean if mean > 0 else below * mean
        s = mp.sqrt(var)
        up = mean * mp.ncdf(mean / s) + s * mp.npdf(mean / s)
        return above * up + below * (mean - up)

    return conditional(known, lambda x: above * x if x > 0 else below * x)


def of_wave(a, b, c):
    """a sin(b x + c), from the characteristic function of u - v and u + v."""

    def expected(q1, q2, corr):
        cov = corr * mp.sqrt(q1 * q2)
        apart, together = (mp.exp(-0.5 * b**2 * (q1 + q2 + 2 * s * cov)) for s in (-1, 1))
        return 0.5 * a**2 * (apart - mp.cos(2 * c) * together)

    return expected


def of_polynomial(coefficients):
    def moment(i, j, q1, q2, cov):  # E[u^i v^j] by Isserlis
        total = mp.mpf(0)
        for k in range(min(i, j) + 1):
            if (i - k) % 2 or (j - k) % 2:
                continue
            ways = mp.binomial(i, k) * mp.binomial(j, k) * mp.factorial(k)
            ways *= mp.fac2(i - k - 1) * mp.fac2(j - k - 1)
            total += ways * cov**k * q1 ** ((i - k) // 2) * q2 ** ((j - k) // 2)
        return total

    def expected(q1, q2, corr):
        cov = corr * mp.sqrt(q1 * q2)
        pairs = [(i, j) for i in range(len(coefficients)) for j in range(len(coefficients))]
        return sum(coefficients[i] * coefficients[j] * moment(i, j, q1, q2, cov) for i, j in pairs)

    return expected


CASES = {
    "erf": (Scaled("erf", 1.7, -25.0), of_erf(1.7, -25.0, 0.0)),
    "sigmoid-like": (Scaled("erf", 0.5, 0.4, d=0.5), of_erf(0.5, 0.4, 0.5)),
    "gaussian": (Scaled("gaussian", -0.7, 3.0), of_gaussian(-0.7, 3.0, 0.0)),
    "shifted gaussian": (Scaled("gaussian", 2.0, 0.5, 0.8), of_gaussian(2.0, 0.5, 0.8)),
    "two slopes": (nngp.activations.leaky_relu(0.3, -2.0), of_leaky_relu(0.3, -2.0)),
    "sin": (Scaled("sin", 0.6, 3.0, 0.4), of_wave(0.6, 3.0, 0.4)),
    "cos": (Scaled("cos", 2.0, 0.1, 0.4), of_wave(2.0, 0.1, 0.4 + mp.pi / 2)),
    "rbf": (nngp.Activation.rbf(0.7), of_wave(mp.sqrt(2), mp.sqrt(mp.mpf(1.4)), mp.pi / 4)),
    "polynomial": (
        nngp.Activation.polynomial([0.5, -1.0, 0.0, 2.0, 0.25]),
        of_polynomial([0.5, -1.0, 0.0, 2.0, 0.25]),
    ),
    "monomial": (nngp.Activation.polynomial([0] * 7 + [1]), of_polynomial([0] * 7 + [1])),
}
WAVES = ("sin", "cos", "rbf", "polynomial", "monomial")  # whose oracle is no integral


@pytest.mark.parametrize("name", CASES)
def test_value_and_derivatives(name):
    phi, expected = CASES[name]
    few = [(40.0, 1e6, -0.9)]
    with mp.workdps(40 if name in WAVES else 22):
        pairs = (
            few if name not in WAVES else [(q, 3 * q, c) for q in VARIANCES for c in CORRELATIONS]
        )
        for q1, q2, c in pairs:
            q1, q2, c = mp.mpf(q1), mp.mpf(q2), mp.mpf(c)
            scale = mp.sqrt(expected(q1, q1, 1) * expected(q2, q2, 1)) if name in WAVES else None
            check(phi, expected, q1, q2, c, scale)


def check(phi, expected, q1, q2, c, scale):
    at = float(q1), float(q2), float(c)
    value, error = nngp.curves.layer_covariance(phi, *at, return_error=True)
    scale = (
        float(scale)
        if scale is not None
        else np.sqrt(
            nngp.curves.layer_covariance(phi, at[0], at[0], 1.0)
            * nngp.curves.layer_covariance(phi, at[1], at[1], 1.0)
        )
    )
    assert abs(value - float(expected(q1, q2, c))) <= max(error, 1e-14 * scale)
    assert error <= (1e-11 if "sin" in phi.name or "cos" in phi.name else 1e-13) * scale
    rates = nngp.curves.layer_derivatives(phi, *at)
    step = mp.mpf(10) ** -8
    slopes = [
        float(
            (
                expected(q1 * (1 + step * i), q2 * (1 + step * j), c + step * k)
                - expected(q1 * (1 - step * i), q2 * (1 - step * j), c - step * k)
            )
            / (2 * step)
        )
        for i, j, k in ((0, 0, 1), (1, 0, 0), (0, 1, 0))
    ]
    found = rates.corr, rates.var1 * at[0], rates.var2 * at[1]
    np.testing.assert_allclose(found, slopes, rtol=1e-9, atol=1e-8 * scale)


@pytest.mark.parametrize("name", CASES)
def test_deficits_keep_their_relative_precision(name):
    """Near correlation 1, at small and large variances, as a curve needs them."""
    phi, expected = CASES[name]
    with mp.workdps(40):
        for q in VARIANCES if name in WAVES else [0.3]:
            layer = layer_at(phi, q)
            for m in [1e-9, 1e-3, 0.7] if name in WAVES else [0.01]:
                exact = expected(mp.mpf(q), mp.mpf(q), mp.mpf(1))
                here = np.array([m]), np.zeros(1, bool)
                deficit = exact - expected(mp.mpf(q), mp.mpf(q), 1 - mp.mpf(m))
                assert layer.deficit(here[1], here[0])[0] == pytest.approx(
                    float(deficit), rel=max(layer.error, 1e-13)
                )
                total = exact + expected(mp.mpf(q), mp.mpf(q), mp.mpf(m) - 1)
                if layer.parity == "none":
                    surplus = layer.surplus(here[0])[0]
                    assert surplus == pytest.approx(float(total), rel=2 * layer.surplus_error)


@pytest.mark.parametrize("name", CASES)
def test_derivative_of_the_deficit_in_the_variance(name):
    phi, _ = CASES[name]
    m, plus, step = np.array([1e-6, 0.1, 0.9]), np.zeros(3, bool), 1e-4
    near = [layer_at(phi, 2.0 + s).deficit(plus, m) for s in (-2 * step, -step, step, 2 * step)]
    slope = (near[0] - 8 * near[1] + 8 * near[2] - near[3]) / (12 * step)
    found = layer_at(phi, 2.0).deficit_in_var(plus, m)
    size = np.maximum(np.abs(slope), layer_at(phi, 2.0).deficit(plus, m))
    np.testing.assert_allclose(found / size, slope / size, rtol=0, atol=1e-9)


def test_scaled_activations_are_written_down_and_read():
    import json
    import pickle

    for phi, _ in CASES.values():
        net = nngp.Architecture(2, phi, 1.5, 0.1)
        again = nngp.Network.from_dict(json.loads(json.dumps(net.as_dict())))
        assert again == net == pickle.loads(pickle.dumps(net))


def test_numeric_activations_are_scaled_too():
    phi = Scaled("tanh", 2.0, 0.5, 1.0, -0.5)
    own = nngp.Activation(lambda x: 2 * np.tanh(0.5 * x + 1) - 0.5)
    at = 0.7, 3.0, 0.4
    assert nngp.curves.layer_covariance(phi, *at) == pytest.approx(
        nngp.curves.layer_covariance(own, *at)
    )
    net, other = (nngp.NTK(nngp.Architecture(2, one, 1.5, 0.1)) for one in (phi, own))
    X = nngp.normalize(np.random.default_rng(0).standard_normal((4, 3)))
    np.testing.assert_allclose(nngp.kernel(net, X), nngp.kernel(other, X), rtol=1e-11)


def test_a_scaled_activation_with_numbers_that_are_none_is_refused():
    with pytest.raises(ValueError, match="must be finite"):
        Scaled("erf", np.inf)
    with pytest.raises(ValueError, match="list of finite numbers"):
        nngp.Activation.polynomial([])
    with pytest.raises(ValueError, match="degree of at most 30"):
        nngp.Activation.polynomial([1.0] * 40)
    with pytest.raises(ValueError, match="gamma must be positive"):
        nngp.Activation.rbf(0.0)
