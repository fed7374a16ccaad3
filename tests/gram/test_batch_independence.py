"""The value of a pair depends on that pair and the network, not on other rows of the batch."""

import numpy as np
import pytest

import nngp


def _quartic(x):
    return x**4


def _decaying(x):
    return np.exp(-x / 2)


def _growing(x):
    return x**3 - x


def _network(phi):
    return nngp.Chain(nngp.Dense(1.0), nngp.Act(phi), nngp.Dense(1.0))


@pytest.mark.parametrize(
    ("phi", "far"),
    [(_quartic, 1e4), (_quartic, 1e6), (_decaying, 9.0), (_growing, 1e3)],
)
@pytest.mark.parametrize("tangent", [False, True])
def test_a_pair_does_not_depend_on_other_rows(phi, far, tangent):
    net = nngp.NTK(_network(phi)) if tangent else _network(phi)
    X = np.array([[1.0], [0.9]])
    alone = nngp.kernel(net, X)
    together = nngp.kernel(net, np.concatenate([X, [[far]]]))[:2, :2]
    np.testing.assert_allclose(together, alone, rtol=1e-11)


def test_quartic_tangent_kernel_beside_a_huge_row():
    # K = x x'; E[u^4 v^4] = 9 + 72 K² + 24 K^4 at variances 1; E[u³ v³] = 9 K + 6 K³
    x, y = 1.0, 0.9
    a, b, k = x * x, y * y, x * y
    value = 9 * a**2 * b**2 + 72 * a * b * k**2 + 24 * k**4
    exact = value + 16 * (9 * a * b * k + 6 * k**3) * k
    K = nngp.kernel(nngp.NTK(_network(_quartic)), np.array([[x], [y], [1e6]]))
    assert K[0, 1] == pytest.approx(exact, rel=1e-12)


def test_tangent_kernel_of_a_line_with_equal_norms():
    X = nngp.normalize(np.random.default_rng(0).normal(size=(5, 3)))
    K = nngp.kernel(nngp.NTK(_network(lambda x: 1 - x)), X)
    np.testing.assert_allclose(K, 1 + 2 * X @ X.T / 3, rtol=1e-11)


@pytest.mark.parametrize("equal", [False, True])
def test_moments_that_are_finite_below_the_next_level(equal):
    """E[exp(-u)] at variance 18² is e^162; at the next power of four it is past float64."""
    X = np.array([[18.0, 0.0], [0.0, 18.0]]) if equal else np.array([[1.0, 0.5], [18.0, 17.0]])
    k = X @ X.T / 2
    q = np.diag(k)
    value = np.exp((q[:, None] + q + 2 * k) / 8)
    units = np.sqrt(np.outer(np.diag(value), np.diag(value)))
    K = nngp.kernel(_network(_decaying), X)
    np.testing.assert_allclose(K / units, value / units, atol=1e-12)
    T = nngp.kernel(nngp.NTK(_network(_decaying)), X)
    np.testing.assert_allclose(T / units, (value + value * k / 4) / units, atol=1e-10)
