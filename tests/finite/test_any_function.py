"""Tangent kernels and linearisations of any function: against whole gradients, the package's own
networks, and first-order expansions; kernels of given weights and of two sets of inputs."""

import numpy as np
import pytest

import nngp

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

RNG = np.random.default_rng(0)
X, X2 = RNG.normal(size=(7, 3)), RNG.normal(size=(4, 3))
PARAMS = {"first": (RNG.normal(size=(3, 5)), RNG.normal(size=5)), "last": RNG.normal(size=(5, 2))}
NET = nngp.Architecture(2, "tanh", 1.5, 0.2)
NETWORK = nngp.FiniteNetwork(NET, width=6, n_out=2)


def f(params, X):
    """Two outputs whose products of gradients change with their order."""
    w, b = params["first"]
    h = X @ w + b
    return jnp.tanh(h) @ params["last"] + jnp.stack([0.0 * h[:, 0], jnp.sin(h[:, 1])], axis=1)


def whole(params, A, B):
    """The full kernel from all gradients at once."""
    with jax.enable_x64(True):
        both = [jax.jacobian(f)(params, jnp.asarray(one)) for one in (A, B)]
    flat = [
        np.concatenate(
            [np.reshape(leaf, (*leaf.shape[:2], -1)) for leaf in jax.tree.leaves(one)], 2
        )
        for one in both
    ]
    return np.einsum("aop,bqp->aboq", *flat)


@pytest.mark.parametrize("most", [2**28, 3000])
def test_the_kernel_is_that_of_whole_gradients(monkeypatch, most):
    monkeypatch.setattr("nngp.finite.any_function.AT_A_TIME", most)
    for second in (None, X2):
        exact = whole(PARAMS, X, X if second is None else second)
        found = nngp.finite.empirical_ntk(f, PARAMS, X, second, full=True)
        np.testing.assert_allclose(found, exact, atol=1e-13)
        mean = nngp.finite.empirical_ntk(f, PARAMS, X, second)
        np.testing.assert_allclose(mean, np.einsum("aboo->ab", exact) / 2, atol=1e-13)
    own = nngp.finite.empirical_ntk(f, PARAMS, X)
    assert (own == own.T).all()
    assert own.dtype == np.float64


def test_one_output_and_inputs_of_any_shape():
    def norm(w, images):
        return jnp.sum(w * images**2, axis=(1, 2))

    images = RNG.normal(size=(3, 2, 4)).astype(np.float32)
    found = nngp.finite.empirical_ntk(norm, np.float32(RNG.normal(size=(2, 4))), images)
    np.testing.assert_allclose(found, np.einsum("aij,bij->ab", images**2, images**2), rtol=1e-5)
    assert found.dtype == np.float32


def in_units_of_the_prior(weights):
    """Weights of unit variance, and the function of them that the network is."""
    shapes = [layer["w"].shape[0] for layer in weights]
    scales = [
        {"w": np.sqrt(w / fan_in), "b": np.sqrt(b)}
        for w, b, fan_in in zip(NET.weight_vars, NET.bias_vars, shapes, strict=True)
    ]
    unit = jax.tree.map(lambda one, scale: one / scale, weights, scales)
    return unit, lambda at, X: NETWORK.forward(
        jax.tree.map(lambda one, scale: one * scale, at, scales), X
    )


def test_forward_of_a_network_is_a_function_of_its_weights():
    weights = NETWORK.draw(d=3, seed=4)
    unit, function = in_units_of_the_prior(weights)
    for second in (None, X2):
        wanted = NETWORK.empirical_ntk(X, seed=4, X2=second)[0]
        found = nngp.finite.empirical_ntk(function, unit, X, second)
        np.testing.assert_allclose(found, wanted, atol=1e-12)
        given = NETWORK.empirical_ntk(X, X2=second, weights=weights)
        np.testing.assert_allclose(given, wanted, atol=1e-13)


def test_kernels_of_given_weights_and_two_sets():
    stacked = NETWORK.draw(d=3, n_networks=3, seed=1)
    drawn = NETWORK.empirical_kernels(X, n_networks=3, seed=1)
    np.testing.assert_allclose(NETWORK.empirical_kernels(X, weights=stacked), drawn, atol=1e-13)
    both = NETWORK.empirical_kernels(np.vstack([X, X2]), n_networks=3, seed=1)
    crossed = NETWORK.empirical_kernels(X, n_networks=3, seed=1, X2=X2)
    np.testing.assert_allclose(crossed, both[..., :7, 7:], atol=1e-13)
    one = [{name: part[2] for name, part in layer.items()} for layer in stacked]
    np.testing.assert_allclose(NETWORK.empirical_kernels(X, weights=one), drawn[2], atol=1e-13)


def test_linearize_is_the_first_order():
    with jax.enable_x64(True):
        straight = nngp.finite.linearize(f, PARAMS)
        change = jax.tree.map(lambda one: RNG.normal(size=one.shape), PARAMS)
        np.testing.assert_allclose(straight(PARAMS, X), f(PARAMS, X), atol=1e-14)
        gaps = []
        for h in (1e-2, 1e-3):
            moved = jax.tree.map(lambda one, other, h=h: one + h * other, PARAMS, change)
            gaps.append(np.abs(straight(moved, X) - f(moved, X)).max())
        assert gaps[1] < 0.02 * gaps[0]  # of second order
        slope = jax.grad(lambda at: jnp.sum(straight(at, X)))(moved)
        wanted = jax.grad(lambda at: jnp.sum(f(at, X)))(PARAMS)
    np.testing.assert_allclose(slope["last"], wanted["last"], atol=1e-12)


def test_bad_arguments_are_said():
    with pytest.raises(ValueError, match="must give an output for each row"):
        nngp.finite.empirical_ntk(lambda p, X: jnp.sum(X) * p, np.ones(()), X)
    with pytest.raises(TypeError, match="tree of arrays of real numbers"):
        nngp.finite.empirical_ntk(f, {"a": np.arange(3)}, X)
    with pytest.raises(ValueError, match="X2 holds numbers that are not finite"):
        nngp.finite.empirical_ntk(f, PARAMS, X, np.full((1, 3), np.nan))
    with pytest.raises(ValueError, match="rows of X1 have shape"):
        nngp.finite.empirical_ntk(f, PARAMS, X, X2[:, :2])
    with pytest.raises(ValueError, match="X has 3 features and X2 has 2"):
        NETWORK.empirical_ntk(X, X2=X2[:, :2])
    with pytest.raises(ValueError, match="not finite"):
        nngp.finite.empirical_ntk(lambda p, X: jnp.sqrt(X[:, 0] * p), np.ones(()), np.zeros((2, 1)))
