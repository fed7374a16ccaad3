"""Networks of images wherever a network is taken: JAX, devices, posteriors, ensembles of trained
networks, averages, conjugate gradients, draws, finite networks, estimators, forecasts."""

import mpmath as mp
import numpy as np
import pytest

import nngp
from nngp import (
    NTK,
    Act,
    AvgPool,
    Chain,
    Conv,
    Dense,
    Dropout,
    Flatten,
    GlobalAvgPool,
    Image,
    LayerNorm,
    Residual,
)

RNG = np.random.default_rng(0)
X, Xs = RNG.standard_normal((12, 40)), RNG.standard_normal((5, 40))
Y = RNG.standard_normal(12)
RELU = Act("relu")
START = Image((4, 5, 2)), Conv(3, 2.0, 0.1), RELU
NETS = {
    "flatten": Chain(*START, Conv(2, 1.5, 0.1, padding="circular"), RELU, Flatten(), Dense(1.2)),
    "pooled": Chain(
        *START, AvgPool(2, 1), Conv(2, 1.0, stride=2), Act("erf"), Flatten(), Dense(1.0)
    ),
    "residual": Chain(
        *START, Conv(3, 1.0), Residual(LayerNorm(), RELU, Conv(3, 1.0)), GlobalAvgPool(), Dense(1.0)
    ),
}
every_network = pytest.mark.parametrize("net", NETS.values(), ids=NETS)


def direct(net, noise=0.1):
    """Mean and variance at Xs from dense matrices."""
    K, Ks = nngp.kernel(net, X), nngp.kernel(net, Xs, X)
    inverse = np.linalg.inv(K + noise * np.eye(len(X)))
    return Ks @ inverse @ Y, nngp.kernel_diag(net, Xs) - np.einsum("ij,jk,ik->i", Ks, inverse, Ks)


@every_network
@pytest.mark.parametrize("solver", ["cholesky", nngp.CG(tolerance=1e-12)], ids=["cholesky", "cg"])
def test_posteriors_are_those_of_the_matrices(net, solver):
    mean, var = direct(net)
    posterior = nngp.condition(net, X, Y, noise_var=0.1, solver=solver, engine="cpu")
    found = posterior.predict(Xs)
    np.testing.assert_allclose(found[0], mean, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(found[1], var, rtol=1e-7)


def test_trained_networks_and_draws_from_the_prior():
    net = NETS["pooled"]
    ensemble = nngp.training.train_ensemble(net, X, Y)
    theta, mixed = nngp.kernel(NTK(net), X), nngp.kernel(NTK(net), Xs, X)
    expected = mixed @ np.linalg.solve(theta, Y)
    np.testing.assert_allclose(ensemble.mean(Xs), expected, rtol=1e-6, atol=1e-8)
    draws = nngp.sample_prior(net, Xs, 4000, seed=0)
    K = nngp.kernel(net, Xs)
    error = np.sqrt((K**2 + np.outer(K.diagonal(), K.diagonal())) / 4000)
    assert np.all(np.abs(np.cov(draws.reshape(4000, -1).T) - K) < 5 * error)


def test_averages_over_transformations_and_heads():
    net = NETS["flatten"]
    flipped = X.reshape(12, 4, 5, 2)[:, :, ::-1].reshape(12, -1)
    average = nngp.Invariant(net, nngp.images.flips((4, 5, 2)))
    terms = [nngp.kernel(net, one, other) for one in (X, flipped) for other in (X, flipped)]
    np.testing.assert_allclose(nngp.kernel(average, X), sum(terms) / 4, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        nngp.kernel_diag(average, X), (sum(terms) / 4).diagonal(), rtol=0, atol=1e-12
    )
    head = nngp.WithHead(average, nngp.Architecture(1, "relu"))
    assert np.linalg.eigvalsh(nngp.kernel(head, X)).min() > 0


@pytest.mark.slow
def test_estimators_take_a_network_of_images():
    from sklearn.datasets import load_digits

    digits = load_digits()
    rows, labels = digits.data[:120] / 16, digits.target[:120]
    net = Chain(Image((8, 8)), Conv(3, 2.0, 0.1), RELU, AvgPool(2), Flatten(), Dense(1.0))
    model = nngp.NNGPClassifier(network=net).fit(rows[:90], labels[:90])
    assert model.score(rows[90:], labels[90:]) > 0.8


def test_forecasts_count_planes_and_warn_about_days():
    net = Chain(*START, GlobalAvgPool(), Dense(1.0))
    found = nngp.forecast(1000, 40, network=net, engine="cpu")
    assert found.planes == 20
    assert 0 < found.kernel_seconds < 3600
    large = Chain(Image((64, 64)), Conv(3, 2.0), RELU, GlobalAvgPool(), Dense(1.0))
    with pytest.warns(nngp.errors.LongJobWarning, match=r"4096 planes .* nngp.Flatten"):
        nngp.forecast(20_000, 4096, network=large, engine="cpu", memory=10**13)


SLOW = pytest.mark.slow  # JAX compiles for seconds


@pytest.mark.parametrize("wrap", [lambda net: net, pytest.param(NTK, marks=SLOW)])
@pytest.mark.parametrize(
    "name", ["flatten", *(pytest.param(n, marks=SLOW) for n in ("pooled", "residual"))]
)
def test_jax_functions_agree(name, wrap):
    jax = pytest.importorskip("jax")
    net = NETS[name]
    K = nngp.kernel(wrap(net), X[:2])
    with jax.enable_x64(True):
        k = jax.jit(nngp.jax_kernel(wrap(net)))
        found = [[float(k(a, b)) for b in X[:2]] for a in X[:2]]
    np.testing.assert_allclose(found, K, rtol=0, atol=1e-13 * K.max())


@pytest.mark.slow
def test_gradients_of_jax_functions_agree_with_differences():
    jax = pytest.importorskip("jax")
    net, step = NETS["pooled"], 1e-5
    with jax.enable_x64(True):
        k = jax.jit(nngp.jax_kernel(net))
        slope = jax.grad(k)(X[0], X[1])
        moved = [X[0] + sign * step * np.eye(40)[7] for sign in (1, -1)]
        difference = (float(k(moved[0], X[1])) - float(k(moved[1], X[1]))) / (2 * step)
        assert np.isfinite(jax.grad(k)(X[0], X[0])).all()
    assert float(slope[7]) == pytest.approx(difference, rel=1e-7)


@pytest.mark.parametrize("wrap", [lambda net: net, NTK], ids=["K", "tangent"])
@pytest.mark.parametrize("name", ["flatten", pytest.param("pooled", marks=SLOW)])
def test_a_device_computes_the_same_tiles(name, wrap):
    pytest.importorskip("jax")
    from nngp.gram.device.images import DeviceImageTerm
    from nngp.gram.inputs import Inputs

    network, rows = wrap(NETS[name]), Inputs.of(X)
    found = DeviceImageTerm(network, rows, rows).block(slice(0, 12), slice(0, 12))
    K = nngp.kernel(network, X)
    np.testing.assert_allclose(found, K, rtol=0, atol=1e-13 * K.max())


def test_the_polynomials_of_arcs_err_by_their_rounding_alone():
    pytest.importorskip("jax")
    from nngp.gram.device.images import arc_polynomials, horner

    c = np.concatenate([np.linspace(0, 1, 201), 1 - np.logspace(-15, -1, 15)])
    t, (arc, value) = 2 * np.sqrt(1 - c) - 1, arc_polynomials()
    with mp.workdps(30):
        exact = [mp.asin(mp.mpf(float(one))) for one in c]
        roots = [mp.sqrt(1 - mp.mpf(float(one)) ** 2) for one in c]
        found = zip(c, t, exact, roots, strict=True)
        for one, at, angle, root in found:
            assert abs(horner(arc, at) - angle) < 4e-15
            assert abs(horner(value, at) - (root + float(one) * angle)) < 4e-15


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NETS, "dropout"])
def test_wide_drawn_networks_have_the_kernel_as_covariance(name):
    pytest.importorskip("jax")
    masked = Chain(
        Image((4, 5, 2)), Dropout(0.8), *START[1:], Dropout(0.5), AvgPool(2), Flatten(), Dense(1.0)
    )
    net, count = {**NETS, "dropout": masked}[name], 2000
    drawn = nngp.FiniteNetwork(net, width=128)
    values = drawn.sample(Xs[:3], n_networks=count, seed=1)[..., 0]
    K = nngp.kernel(net, Xs[:3])
    error = np.sqrt((K**2 + np.outer(K.diagonal(), K.diagonal())) / count)
    assert np.all(np.abs(values.T @ values / count - K) < 4 * error)
    if name != "dropout":
        theta = nngp.kernel(NTK(net), Xs[:3])
        found = drawn.empirical_ntk(Xs[:3], n_networks=20).mean(axis=0)
        np.testing.assert_allclose(found, theta, rtol=0, atol=0.1 * theta.max())


@pytest.mark.slow
def test_drawn_networks_count_channels_as_units():
    pytest.importorskip("jax")
    drawn = nngp.FiniteNetwork(NETS["pooled"], width=16)
    shapes = [layer["w"].shape for layer in drawn.draw(d=40)]
    assert shapes == [(18, 16), (64, 16), (64, 1)]
    assert drawn.sample(Xs, n_networks=2).shape == (2, 5, 1)
    assert drawn.empirical_kernels(Xs, n_networks=2).shape == (2, 3, 5, 5)
    with pytest.raises(ValueError, match=r"4 x 5 x 2 = 40 columns .* have 39"):
        drawn.draw(d=39)
