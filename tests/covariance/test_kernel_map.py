"""Layers known by their kernel map, against the same activations known by their function."""

import numpy as np
import pytest

import nngp
from nngp.errors import ActivationError

X = np.random.default_rng(0).standard_normal((7, 4))
Y = np.sin(X[:, :1])
POINTS = {"equal norms": nngp.normalize(X), "any norms": X}


def erf_map(cov, q1, q2):
    return 2 / np.pi * np.arcsin(2 * cov / np.sqrt((1 + 2 * q1) * (1 + 2 * q2)))


def erf_slope(cov, q1, q2):
    return 4 / np.pi / np.sqrt((1 + 2 * q1) * (1 + 2 * q2) - 4 * cov**2)


def rbf_map(cov, q1, q2):
    import jax.numpy as jnp

    return jnp.exp(cov - 0.5 * (q1 + q2))


def relu_map(cov, q1, q2):
    corr = np.clip(cov / np.sqrt(q1 * q2), -1, 1)
    return (np.sqrt(q1 * q2 * (1 - corr**2)) + cov * (np.pi - np.arccos(corr))) / (2 * np.pi)


def relu_slope(cov, q1, q2):
    return (np.pi - np.arccos(np.clip(cov / np.sqrt(q1 * q2), -1, 1))) / (2 * np.pi)


def sign_map(cov, q1, q2):
    return 2 / np.pi * np.arcsin(np.clip(cov / np.sqrt(q1 * q2), -1, 1))


def sign_slope(cov, q1, q2):
    with np.errstate(divide="ignore"):
        return 2 / np.pi / np.sqrt(np.maximum(q1 * q2 - cov**2, 0.0))


from_dual = nngp.Activation.from_dual
PAIRS = {
    "erf": (from_dual(erf_map, erf_slope), "erf"),
    "rbf, written for JAX": (from_dual(rbf_map, rbf_map), nngp.Activation.rbf(0.5)),
    "relu": (from_dual(relu_map, relu_slope), "relu"),
    "sign": (from_dual(sign_map, sign_slope), "sign"),
}


def both(name, depth=3):
    return [nngp.Architecture(depth, phi, 1.6, 0.2) for phi in PAIRS[name]]


@pytest.mark.parametrize("norms", POINTS)
@pytest.mark.parametrize("name", PAIRS)
def test_kernel(name, norms):
    own, known = both(name)
    K, expected = (nngp.kernel(net, POINTS[norms]) for net in (own, known))
    size = 1e-11 if name != "sign" else 1e-9  # whose map has few digits near correlation 1
    np.testing.assert_allclose(K, expected, rtol=0, atol=size * expected.max())


@pytest.mark.parametrize("name", PAIRS)
def test_curve_and_its_error(name):
    """Down to pairs that differ by 1e-15 in the cosine, where F(1) - F(c) would cancel."""
    own, known = (nngp.curves.compile_curve(net, tol=1e-8) for net in both(name))
    m = 10.0 ** -np.arange(0.0, 16.0)
    assert own.error < (1e-11 if name != "sign" else 1e-9)
    gap = own.deficit(one_minus=m) / known.deficit(one_minus=m) - 1
    assert np.abs(gap).max() < max(own.deficit_error, 1e-11)


@pytest.mark.parametrize("norms", POINTS)
@pytest.mark.parametrize("name", ["erf", "rbf, written for JAX", "relu"])
def test_tangent_kernel(name, norms):
    T, expected = (nngp.kernel(nngp.NTK(net), POINTS[norms]) for net in both(name))
    np.testing.assert_allclose(T, expected, rtol=0, atol=1e-10 * expected.max())


@pytest.mark.parametrize("norms", POINTS)
@pytest.mark.parametrize("name", ["erf", "rbf, written for JAX", "relu"])
def test_evidence_gradient(name, norms):
    own, known = (
        nngp.condition(net, POINTS[norms], Y, noise_var=0.01).evidence_gradient()
        for net in both(name)
    )
    for key, expected in known.items():
        np.testing.assert_allclose(own[key], expected, rtol=1e-8, atol=1e-8)


def test_without_a_slope():
    """Kernels are computed, with a larger error that is reported; what needs it is refused."""
    phi = from_dual(erf_map)
    net, known = (nngp.Architecture(2, one, 1.6, 0.2) for one in (phi, "erf"))
    for inputs in POINTS.values():
        np.testing.assert_allclose(nngp.kernel(net, inputs), nngp.kernel(known, inputs), rtol=1e-9)
    curve, expected = nngp.curves.compile_curve(net, tol=1e-9), nngp.curves.compile_curve(known)
    m = 10.0 ** -np.arange(0.0, 16.0)
    gap = curve.deficit(one_minus=m) / expected.deficit(one_minus=m) - 1
    assert np.abs(gap).max() < curve.deficit_error < 1e-7
    with pytest.raises(ActivationError, match="without its slope"):
        nngp.kernel(nngp.NTK(net), X)
    for inputs in POINTS.values():
        posterior = nngp.condition(net, inputs, Y, noise_var=0.01)
        assert np.isfinite(posterior.log_evidence)
        with pytest.raises(ActivationError, match="without its slope"):
            posterior.evidence_gradient()


def test_jax_kernel():
    import jax
    import jax.numpy as jnp

    net, known = both("rbf, written for JAX", depth=1)
    with jax.enable_x64(True):
        for inputs in ((X[0], X[1]), (X[0], X[0])):
            x1, x2 = map(jnp.asarray, inputs)
            k, expected = nngp.jax_kernel(net), nngp.jax_kernel(known)
            assert float(k(x1, x2)) == pytest.approx(float(expected(x1, x2)), rel=1e-12)
            found = jax.grad(k, argnums=(0, 2))(x1, x2, 1.6, 0.2)
            wanted = jax.grad(expected, argnums=(0, 2))(x1, x2, 1.6, 0.2)
            for a, b in zip(found, wanted, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    with pytest.raises(ActivationError, match="cannot be traced by JAX"):
        nngp.jax_kernel(both("erf")[0])


def test_estimators_take_the_network():
    rows = np.random.default_rng(1).standard_normal((40, 3))
    targets = rows[:, 0] * rows[:, 1]
    own, known = (
        nngp.NNGPRegressor(network=net, random_state=0).fit(rows, targets).predict(rows)
        for net in both("erf", depth=1)
    )
    np.testing.assert_allclose(own, known, atol=1e-3)


def test_zero_inputs():
    zero = np.zeros((2, 3))
    own, known = (nngp.Architecture(1, phi, 1.0, 0.0) for phi in PAIRS["erf"])
    np.testing.assert_array_equal(nngp.kernel(own, zero), nngp.kernel(known, zero))


def test_what_cannot_work_is_refused():
    phi, net = PAIRS["erf"][0], both("erf")[0]
    with pytest.raises(ActivationError, match="known by its kernel map alone"):
        nngp.FiniteNetwork(net, width=8)
    with pytest.raises(ValueError, match="known by its kernel map, which cannot be written"):
        net.as_dict()
    with pytest.raises(ValueError, match="cannot be scaled"):
        nngp.Activation.scaled(phi, 2.0)
    with pytest.raises(TypeError, match="f must be a function"):
        from_dual("relu")
    wrong = nngp.Architecture(1, from_dual(erf_map, erf_map), 1.0, 0.1)
    with pytest.raises(ActivationError, match="is not its derivative in cov"):
        nngp.kernel(wrong, X)
    lost = nngp.Architecture(1, from_dual(lambda cov, q1, q2: np.sqrt(cov)), 1.0, 0.1)
    with pytest.raises(ActivationError, match="returned NaN at cov="):
        nngp.kernel(lost, X)
    for wrong_shape in (lambda cov, q1, q2: np.ones(17), lambda cov, q1, q2: cov[0]):
        shapeless = nngp.Architecture(1, from_dual(wrong_shape), 1.0, 0.1)
        with pytest.raises(ActivationError, match="must return a number for each pair"):
            nngp.kernel(shapeless, X)
    negative = nngp.Architecture(1, from_dual(lambda cov, q1, q2: -cov), 1.0, 0.1)
    with pytest.raises(nngp.errors.VarianceError, match="no variance is negative"):
        nngp.kernel(negative, X)
