"""Networks of any shape: pairs of inputs of any norms agree with the curve, with JAX, and with a
recursion written down for one pair in mpmath; equal rows behind dropout are two draws."""

import mpmath as mp
import numpy as np
import pytest

import nngp
from nngp import Act, Chain, Concat, Dense, Dropout, LayerNorm, Product, Repeat, Residual, Sum

RNG = np.random.default_rng(0)
X = RNG.standard_normal((7, 4))
X[5] = X[0]  # a duplicate
X[6] = -2 * X[1]  # the opposite direction
ON_SPHERE = nngp.normalize(X)

COMPOSED = Chain(
    Dense(1.6, 0.1),
    Repeat(Residual(Act("relu"), Dense(1.0, 0.05)), 3),
    Act("erf"),
    Dropout(0.9),
    Concat(Dense(1.0), Chain(Dense(2.0), Act("relu")), shares=(0.25, 0.75)),
    Dense(1.0),
    LayerNorm(),
    Act("gelu"),
    Product(Dense(1.5), Dense(0.5, 0.2), Dense(1.0, 0.1)),
    Dense(2.0, 0.1),
)
NETWORKS = {
    "chain": Chain(Dense(1.6, 0.1), Act("relu"), Dense(1.6, 0.1), Act("erf"), Dense(0.7, 0.2)),
    "numeric": Chain(Dense(1.6, 0.1), Act("tanh"), Dense(1.6, 0.1), Act("elu"), Dense(0.7)),
    "user": Chain(Dense(1.6, 0.1), Act(np.arctan), Dense(1.0, 0.1)),
    "residual": Chain(Dense(1.0), Repeat(Residual(Act("relu"), Dense(1.0)), 4), Dense(1.0, 0.1)),
    "layer norm": Chain(Dense(2.0, 0.1), LayerNorm(), Act("gelu"), Dense(1.0), LayerNorm()),
    "dropout": Chain(Dropout(0.8), Dense(1.5, 0.1), Act("relu"), Dropout(0.7), Dense(1.5, 0.1)),
    "sum": Sum(Dense(1.0, 0.1), Chain(Dense(2.0), Act("tanh"), Dense(1.0))),
    "product": Chain(Product(Dense(1.0, 0.2), Chain(Dense(2.0), Act("erf"))), Dense(1.0)),
    "concat": Chain(Concat(Dense(1.0), Chain(Dense(1.0), Act("relu"))), Dense(1.3, 0.1)),
    "composed": COMPOSED,
}


def both(names=NETWORKS, slow=()):
    return [
        pytest.param(
            wrap(NETWORKS[name]),
            id=f"{name}, {kind}",
            marks=pytest.mark.slow if name in slow else (),
        )
        for name in names
        for kind, wrap in (("K", lambda net: net), ("NTK", nngp.NTK))
    ]


@pytest.mark.parametrize("net", both())
def test_pairs_agree_with_the_curve_and_matrices_are_positive_definite(net):
    curve = nngp.kernel(net, ON_SPHERE)
    pairs = nngp.kernel(net, ON_SPHERE, method="pairwise")
    np.testing.assert_allclose(pairs, curve, rtol=0, atol=2e-12 * curve.max())
    for inputs in (X, ON_SPHERE):
        diagonal = np.diagonal(nngp.kernel(net, inputs))
        np.testing.assert_allclose(diagonal, nngp.kernel_diag(net, inputs), rtol=2e-14)
    points = np.random.default_rng(1).standard_normal((12, 4))
    for inputs in (points, nngp.normalize(points)):
        values = np.linalg.eigvalsh(nngp.kernel(net, inputs))
        assert values.min() > -1e-12 * values.max()


CLOSED = [name for name in NETWORKS if name not in ("user", "numeric")]


@pytest.mark.parametrize("net", both(CLOSED, slow={*CLOSED} - {"residual", "composed"}))
def test_the_jax_function_is_the_kernel(net):
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        k = jax.jit(nngp.jax_kernel(net))
        found = np.array([[float(k(x, y)) for y in X] for x in X])
        slopes = jax.grad(nngp.jax_kernel(net), argnums=(0, 2, 3))(
            X[0], X[5], np.array(net.weight_vars), np.array(net.bias_vars)
        )
    K = nngp.kernel(net, X)
    apart = ~np.eye(len(X), dtype=bool)  # of two inputs, not of one with itself
    np.testing.assert_allclose(found[apart], K[apart], rtol=0, atol=1e-11 * K.max())
    assert all(np.isfinite(slope).all() for slope in slopes)


def test_one_pair_of_a_residual_network_in_mpmath():
    """Relu with layer norm at unequal norms, K and the tangent kernel, step by step."""
    net = Chain(
        Dense(1.5, 0.1),
        Residual(Act("relu"), Dense(0.7, 0.2)),
        LayerNorm(),
        Act("relu"),
        Dense(2.0),
    )
    x, y = X[0], X[1]
    with mp.workdps(40):

        def relu(q1, q2, k):
            c = k / mp.sqrt(q1 * q2)
            angle = mp.acos(min(max(c, -1), 1))
            value = mp.sqrt(q1 * q2) * (mp.sin(angle) + (mp.pi - angle) * c) / (2 * mp.pi)
            return value, (mp.pi - angle) / (2 * mp.pi)

        def step(w, b, k, theta):
            k = [b + w * part for part in k]
            return k, [part + w * t for part, t in zip(k, theta, strict=True)]

        def act(k, theta):
            pairs = (k[0], k[0], k[0]), (k[1], k[1], k[1]), (k[0], k[1], k[2])
            moved = [relu(*pair) for pair in pairs]
            return [v for v, _ in moved], [s * t for (_, s), t in zip(moved, theta, strict=True)]

        def dot(a, b):
            return mp.fsum(mp.mpf(p) * mp.mpf(q) for p, q in zip(a, b, strict=True)) / len(a)

        k, theta = step(mp.mpf(1.5), mp.mpf(0.1), [dot(x, x), dot(y, y), dot(x, y)], [0, 0, 0])
        branch = step(mp.mpf(0.7), mp.mpf(0.2), *act(k, theta))
        k, theta = (
            [a + b for a, b in zip(*pair, strict=True)]
            for pair in zip((k, theta), branch, strict=True)
        )
        scale = k[0], k[1], mp.sqrt(k[0] * k[1])
        k, theta = ([a / s for a, s in zip(part, scale, strict=True)] for part in (k, theta))
        k, theta = step(mp.mpf(2), mp.mpf(0), *act(k, theta))
        expected = [float(k[2]), float(theta[2])]
    found = [nngp.kernel(one, [x, y])[0, 1] for one in (net, nngp.NTK(net))]
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_equal_rows_behind_dropout_are_two_draws():
    net = NETWORKS["dropout"]
    for inputs in (X, ON_SPHERE):
        K = nngp.kernel(net, inputs)
        assert K[0, 5] < 0.95 * K[0, 0] == 0.95 * K[5, 5]
        # the same row on both sides of a cross matrix is two draws too
        np.testing.assert_allclose(nngp.kernel(net, inputs[:1], inputs[:1]), K[0, 5], rtol=1e-12)
    plain = NETWORKS["residual"]
    assert nngp.kernel(plain, X)[0, 5] == nngp.kernel(plain, X)[0, 0]


def test_the_tangent_kernel_of_a_jump_is_refused():
    for name in ["sign", "step"]:
        net = nngp.NTK(nngp.Architecture(2, name))
        for inputs in (X, ON_SPHERE):
            with pytest.raises(nngp.errors.ActivationError, match="jumps, so its gradient"):
                nngp.kernel(net, inputs)


def test_layer_norm_of_nothing_is_refused():
    net = Chain(Dense(1.0), LayerNorm(), Act("relu"), Dense(1.0))
    for inputs in (np.zeros((2, 3)), [[0.0, 0.0], [1.0, 2.0]]):
        with pytest.raises(nngp.errors.VarianceError, match="layer norm divides by the variance"):
            nngp.kernel(net, inputs)
