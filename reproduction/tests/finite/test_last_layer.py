"""Posterior means given the hidden layers, against ridge regression on the drawn features."""

import numpy as np
import pytest

import nngp
from nngp_paper.datasets import split

pytest.importorskip("jax")

from nngp_paper.finite.ensemble import last_layer_ensemble
from nngp_paper.finite.last_layer import last_layer_means

NET = nngp.Architecture(2, "tanh", (1.0, 1.4, 1.8), (0.2, 0.1, 0.3))
RNG = np.random.default_rng(3)
X, X_NEW = RNG.standard_normal((30, 4)), RNG.standard_normal((5, 4))
Y = RNG.standard_normal((30, 2))


def drawn_features(net, width, count, inputs, phi, seed):
    """Features of the last layer in units of the prior deviation, in plain NumPy."""
    layers = nngp.FiniteNetwork(net, width, n_out=2).draw(inputs.shape[1], count, seed=seed)
    h = np.broadcast_to(inputs, (count, *inputs.shape))
    for layer in layers[:-1]:
        h = phi(h @ layer["w"] + layer["b"][:, None])
    bias = np.full((count, len(inputs), 1), np.sqrt(net.bias_vars[-1]))
    return np.concatenate([h * np.sqrt(net.weight_vars[-1] / width), bias], axis=2)


@pytest.mark.parametrize("width", [10, 29, 30, 80])  # fewer units than points, as many, more
def test_means_are_ridge_regression_on_the_features(width):
    linear_model = pytest.importorskip("sklearn.linear_model")
    noises = (0.01, 0.5)
    network = nngp.FiniteNetwork(NET, width, n_out=2)
    found = last_layer_means(network, X, Y, X_NEW, 3, noises, seed=5)
    assert found.shape == (3, 2, 5, 2)
    own = drawn_features(NET, width, 3, np.concatenate([X, X_NEW]), np.tanh, 5)
    for features, means in zip(own, found, strict=True):
        for noise, mean in zip(noises, means, strict=True):
            ridge = linear_model.Ridge(alpha=noise, fit_intercept=False, solver="svd")
            expected = ridge.fit(features[:30], Y).predict(features[30:])
            np.testing.assert_allclose(mean, expected, atol=1e-9)


@pytest.mark.parametrize("width", [32, 200, 300])
def test_the_papers_noise_is_not_lost_to_rounding(width):
    """Units that few images switch on make kernels almost singular. The oracle factors the features
    themselves, whose condition number is the root of the kernel's."""
    net = nngp.Architecture(3, "relu", 2.0, 0.2)
    data = split("digits", 200)
    inputs, targets = np.concatenate([data.X, data.X_test[:50]]), data.targets(data.labels)[:, :2]
    network = nngp.FiniteNetwork(net, width, n_out=2)
    found = last_layer_means(network, data.X, targets, data.X_test[:50], 4, [1e-10])[:, 0]
    own = drawn_features(net, width, 4, inputs, lambda z: np.maximum(z, 0), 0)
    for features, mean in zip(own, found, strict=True):
        rows = np.concatenate([features[:200], 1e-5 * np.eye(width + 1)])
        right = np.concatenate([targets, np.zeros((width + 1, 2))])
        expected = features[200:] @ np.linalg.lstsq(rows, right, rcond=None)[0]
        np.testing.assert_allclose(mean, expected, atol=1e-3 * np.abs(expected).max())


def test_a_linear_network_without_hidden_layers_is_the_process():
    """Its features are the inputs, the same for every network and every width."""
    net = nngp.Architecture(0, "relu", 1.5, 0.2)
    found = last_layer_means(nngp.FiniteNetwork(net, 7, n_out=2), X, Y, X_NEW, 2, [0.1])
    process = nngp.condition(net, X, Y, noise_var=0.1).mean(X_NEW)
    np.testing.assert_allclose(found[:, 0], np.stack([process] * 2), atol=1e-10)


def test_wide_networks_have_the_mean_of_the_process():
    net = nngp.Architecture(1, "relu", 1.5, 0.2)
    process = nngp.condition(net, X, Y, noise_var=0.1).mean(X_NEW)
    far, near = (
        np.abs(
            last_layer_means(nngp.FiniteNetwork(net, width, 2), X, Y, X_NEW, 4, [0.1]) - process
        ).max()
        for width in (50, 20_000)
    )
    assert near < 0.1 * np.abs(process).max() < far


def test_trained_ensembles_have_that_mean():
    """What descent owes to the draw that it starts from is the same for Y and -Y: half of the
    difference is the mean."""
    network = nngp.FiniteNetwork(NET, 60, n_out=2)
    trained = [
        last_layer_ensemble(network, X[:6], sign * Y[:6], X_NEW, 3, 0.0, tolerance=1e-10)
        for sign in (1, -1)
    ]
    means = last_layer_means(network, X[:6], Y[:6], X_NEW, 3, [0.0])[:, 0]
    np.testing.assert_allclose((trained[0] - trained[1]) / 2, means, atol=1e-5)


def test_bad_input_is_said():
    network = nngp.FiniteNetwork(NET, 10, n_out=2)
    with pytest.raises(ValueError, match="make it with n_out=1"):
        last_layer_means(network, X, Y[:, 0], X_NEW, 2, [0.1])
    with pytest.raises(ValueError, match="noise_var must be finite and not negative"):
        last_layer_means(network, X, Y, X_NEW, 2, [-0.1])
