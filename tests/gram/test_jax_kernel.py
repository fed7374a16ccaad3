"""The JAX kernel equals the NumPy one; its gradients are right, and finite everywhere."""

from functools import cache
from itertools import product

import numpy as np
import pytest

import nngp

jax = pytest.importorskip("jax")
jnp = jax.numpy

RNG = np.random.default_rng(0)
x, y = RNG.standard_normal((2, 5))
# polynomials grow past what differences of step 1e-4 can follow
POLYNOMIALS = "cube", "relu3", "square"
# one of each kind: with kinks, smooth, a jump, odd, without a closed form
KINDS = {"relu", "erf", "step", "sin", "tanh"}


def names(*without):
    return [
        name if name in KINDS else pytest.param(name, marks=pytest.mark.slow)
        for name in nngp.activations.names()
        if name not in (*POLYNOMIALS, *without)
    ]


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


@cache
def value_and_gradients(name):
    """One program for all inputs."""
    k = nngp.jax_kernel(nngp.Architecture(2, name))
    return jax.jit(jax.value_and_grad(k, argnums=(0, 1, 2, 3)))


def numpy_kernel(name, depth, a, b, weight_var, bias_var):
    return nngp.kernel(nngp.Architecture(depth, name, weight_var, bias_var), a[None], b[None])[0, 0]


@pytest.mark.parametrize("name", names())
def test_value_and_gradients(name):
    value, gradients = value_and_gradients(name)(x, y, 1.2, 0.1)
    assert value == pytest.approx(numpy_kernel(name, 2, x, y, 1.2, 0.1), rel=1e-11)
    h, e = 1e-4, np.eye(5)[0]
    K = numpy_kernel
    differences = [
        K(name, 2, x + h * e, y, 1.2, 0.1) - K(name, 2, x - h * e, y, 1.2, 0.1),
        K(name, 2, x, y + h * e, 1.2, 0.1) - K(name, 2, x, y - h * e, 1.2, 0.1),
        K(name, 2, x, y, 1.2 + h, 0.1) - K(name, 2, x, y, 1.2 - h, 0.1),
        K(name, 2, x, y, 1.2, 0.1 + h) - K(name, 2, x, y, 1.2, 0.1 - h),
    ]
    got = [gradients[0][0], gradients[1][0], gradients[2], gradients[3]]
    np.testing.assert_allclose(got, np.array(differences) / (2 * h), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", names("step", "sign"))
def test_gradient_where_the_inputs_coincide(name):
    """K(x, x') has its symmetric maximum structure there: d/dx1 = half of d K(x, x) / dx."""
    net = nngp.Architecture(2, name, 1.2, 0.1)
    _, (got, *_) = value_and_gradients(name)(x, x, 1.2, 0.1)
    h = 1e-4
    diagonal = [
        (nngp.kernel_diag(net, (x + h * e)[None])[0] - nngp.kernel_diag(net, (x - h * e)[None])[0])
        / (2 * h)
        for e in np.eye(5)
    ]
    np.testing.assert_allclose(got, 0.5 * np.array(diagonal), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", names())
def test_gradients_are_finite_everywhere(name):
    pairs = {
        "equal": (x, x),
        "opposite": (x, -x),
        "first zero": (0 * x, y),
        "second zero": (x, 0 * y),
        "both zero": (0 * x, 0 * x),
        "parallel": (x, 3 * x),
    }
    for (which, pair), bias_var in product(pairs.items(), (0.0, 0.1)):
        value, gradients = value_and_gradients(name)(*pair, 1.2, bias_var)
        assert np.isfinite(value), (which, bias_var)
        assert all(np.isfinite(g).all() for g in gradients), (which, bias_var)


def test_gradient_at_opposite_inputs_is_right():
    """relu without bias: E[phi'(u) phi'(-u)] = 0, so K(x, -x) does not move to first order."""
    k = nngp.jax_kernel(nngp.Architecture(1, "relu", 1.2, 0.0))
    np.testing.assert_allclose(jax.jit(jax.grad(k))(x, -x), 0.0, atol=1e-15)
    gradient = jax.jit(jax.grad(nngp.jax_kernel(nngp.Architecture(1, "erf", 1.2, 0.0))))
    np.testing.assert_allclose(gradient(x, -x), -gradient(x, x), rtol=1e-12)


def test_gradient_at_equal_inputs_is_exact_whatever_the_rounding():
    """relu: K(x, x) is linear in x·x, so the gradient is known to the last digits."""
    k = jax.jit(jax.grad(nngp.jax_kernel(nngp.Architecture(3, "relu", 1.2, 0.1))))
    for z in RNG.standard_normal((40, 5)):
        np.testing.assert_allclose(k(z, z), (1.2 / 2) ** 3 * 1.2 * z / 5, rtol=1e-13)


def test_batches_and_per_layer_variances():
    net = nngp.Architecture(2, "gelu", (1.0, 1.5, 2.0), (0.1, 0.0, 0.2))
    X = RNG.standard_normal((6, 5))
    k = nngp.jax_kernel(net)
    K = jax.jit(jax.vmap(jax.vmap(k, (None, 0)), (0, None)))(X, X)
    np.testing.assert_allclose(K, nngp.kernel(net, X), rtol=1e-12)
    by_layer = jax.jit(jax.grad(k, argnums=2))
    in_layers = by_layer(x, y, jnp.array([1.0, 1.5, 2.0]), jnp.array([0.1, 0.0, 0.2]))
    assert in_layers.shape == (3,)


def test_a_users_function_with_kinks_and_one_with_jumps():
    def ramp(z):
        return jnp.clip(z, 0.0, 2.0)

    k = jax.jit(nngp.jax_kernel(nngp.Architecture(1, ramp, 1.2, 0.1)))
    same = nngp.Architecture(1, lambda z: np.clip(z, 0.0, 2.0), 1.2, 0.1)  # faster without JAX
    assert k(x, y) == pytest.approx(nngp.kernel(same, x[None], y[None])[0, 0], rel=1e-11)
    with pytest.raises(nngp.errors.ActivationError, match="jumps and has no closed form"):
        nngp.jax_kernel(nngp.Architecture(1, lambda z: jnp.where(z > 0.5, 1.0, 0.0)))


def test_single_precision_stays_single():
    k = nngp.jax_kernel(nngp.Architecture(2, "relu"))
    assert k(x.astype(np.float32), y.astype(np.float32)).dtype == jnp.float32


def test_wrong_shapes():
    with pytest.raises(ValueError, match="must be vectors of one length"):
        nngp.jax_kernel(nngp.Architecture(1))(np.ones(3), np.ones(4))


def test_a_numpy_function_is_explained():
    net = nngp.Architecture(1, lambda z: z / (1 + np.exp(-z)))
    with pytest.raises(nngp.errors.ActivationError, match=r"write it with jax\.numpy"):
        jax.jit(nngp.jax_kernel(net))(x, y)


@pytest.mark.parametrize("name", names())
def test_gradients_are_finite_in_single_precision(name):
    a = jnp.asarray(x, dtype=jnp.float32)
    for pair, bias_var in product(((a, a), (a, -a), (0 * a, a), (0 * a, 0 * a)), (0.0, 0.1)):
        _, gradients = value_and_gradients(name)(*pair, jnp.float32(1.2), jnp.float32(bias_var))
        assert all(np.isfinite(g).all() for g in gradients)


def test_infinite_depth_is_refused():
    with pytest.raises(ValueError, match="finite depth only"):
        nngp.jax_kernel(nngp.Architecture(float("inf"), "relu", 1.0, 0.1))
