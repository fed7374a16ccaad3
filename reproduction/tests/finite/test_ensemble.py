"""Networks trained in the last layer, against linear algebra for each of them,
and against the posterior of the infinitely wide network for all together."""

import numpy as np
import pytest

import nngp

pytest.importorskip("jax")

from nngp_paper.finite.ensemble import last_layer_ensemble

NET = nngp.Architecture(2, "tanh", (1.0, 1.4, 1.8), (0.2, 0.1, 0.3))
WIDTH, COUNT, NOISE = 150, 300, 0.05
RNG = np.random.default_rng(3)
X, X_NEW = RNG.standard_normal((7, 2)), RNG.standard_normal((3, 2))
Y = nngp.sample_prior(NET, X, 2, seed=4).T
ALL = np.concatenate([X, X_NEW])  # trained networks are asked at both


def train(Y=Y, noise_var=NOISE, net=NET, count=COUNT, **options):
    network = nngp.FiniteNetwork(net, WIDTH, n_out=2)
    options = {"seed": 2, "tolerance": 1e-10} | options
    return last_layer_ensemble(network, X, Y, ALL, count, noise_var, **options)


@pytest.fixture(scope="module")
def trained():
    return train()


@pytest.fixture(scope="module")
def trained_without_noise():
    return train(noise_var=0.0, tolerance=1e-9)


@pytest.fixture(scope="module")
def start():
    """Outputs and kernels of the same networks before training, in plain NumPy."""
    return before_training(NET)


def before_training(net, count=COUNT):
    layers = nngp.FiniteNetwork(net, WIDTH, n_out=2).draw(2, count, seed=2)
    h = np.broadcast_to(ALL, (count, *ALL.shape))
    for layer in layers[:-1]:
        h = np.tanh(h @ layer["w"] + layer["b"][:, None])
    K = net.bias_vars[-1] + net.weight_vars[-1] * h @ h.transpose(0, 2, 1) / WIDTH
    return h @ layers[-1]["w"] + layers[-1]["b"][:, None], K


def solved(f, K, targets, noise_var):
    """The minimum in closed form, at all inputs: f + K(·, X) (K + noise)⁻¹ (targets - f(X))."""
    n = len(X)
    system = K[:, :n, :n] + noise_var * np.eye(n)
    return f + K[:, :, :n] @ np.linalg.solve(system, targets - f[:, :n])


@pytest.mark.slow
def test_each_network_reaches_its_minimum(trained, start):
    """The targets' noise is what the outputs at the training inputs say it was."""
    f, K = start
    n = len(X)
    shift = np.linalg.solve(K[:, :n, :n], trained[:, :n] - f[:, :n])  # (K + noise)⁻¹ (Y + ε - f)
    targets = K[:, :n, :n] @ shift + NOISE * shift + f[:, :n]
    np.testing.assert_allclose(trained, solved(f, K, targets, NOISE), atol=1e-6)
    noise = (targets - Y) / np.sqrt(NOISE)
    assert abs(noise.mean()) < 4 / np.sqrt(noise.size)
    assert abs(noise.var() - 1) < 4 * np.sqrt(2 / noise.size)
    # independent between points, outputs, networks, and of the first draw
    flat = noise.reshape(COUNT, -1)
    table = np.concatenate([flat, f[:, :n].reshape(COUNT, -1)], axis=1)
    between = np.corrcoef(table.T)[: 2 * n]
    assert np.abs(between[between < 0.999]).max() < 4.5 / np.sqrt(COUNT)
    assert abs(np.mean(noise[1:] * noise[:-1])) < 4 / np.sqrt(noise.size)
    # and of the numbers that the weights were made of, which come first in their row
    weights = nngp.FiniteNetwork(NET, WIDTH, n_out=2).draw(2, COUNT, seed=2)[0]["w"]
    numbers = weights.reshape(COUNT, -1)[:, : 2 * n] * np.sqrt(2 / NET.weight_vars[0])
    assert abs(np.mean(flat * numbers)) < 4 / np.sqrt(noise.size)


@pytest.mark.slow
def test_other_targets_move_outputs_linearly(trained, start):
    """With the same seed the noise is the same, so the difference is known without it."""
    f, K = start
    other = train(Y=-2 * Y)
    zero = np.zeros_like(f)
    np.testing.assert_allclose(
        trained - other,
        solved(zero, K, np.broadcast_to(3 * Y, (COUNT, *Y.shape)), NOISE),
        atol=1e-6,
    )


@pytest.mark.slow
def test_without_noise_the_nearest_weights_that_fit(trained_without_noise, start):
    f, K = start
    exact = trained_without_noise
    np.testing.assert_allclose(exact[:, : len(X)], np.broadcast_to(Y, (COUNT, 7, 2)), atol=1e-5)
    np.testing.assert_allclose(exact, solved(f, K, Y, 0.0), atol=1e-4)


def test_without_biases():
    """A bias of variance 0 is 0, and stays."""
    net = nngp.Architecture(2, "tanh", 1.5, 0.0)
    f, K = before_training(net, 40)
    trained = train(noise_var=0.0, net=net, count=40, tolerance=1e-9)
    np.testing.assert_allclose(trained, solved(f, K, Y, 0.0), atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("noise_var", [NOISE, 0.0])
def test_the_ensemble_is_the_posterior(noise_var, trained, trained_without_noise):
    """Mean and variance within sampling error and what is left at this width: 5/width deviations
    and 3n/width of the variance (by hand, the biases of `solved` are 4 and 2n at most, and fall as
    1/width). Another network's posterior is told apart."""
    out = trained if noise_var else trained_without_noise
    out = out[:, len(X) :]

    def distance(net):
        mean, variance = nngp.condition(net, X, Y, noise_var=max(noise_var, 1e-10)).predict(X_NEW)
        of_mean = np.abs(out.mean(axis=0) - mean) / np.sqrt(variance)[:, None]
        of_variance = np.abs(out.var(axis=0, ddof=1) / variance[:, None] - 1)
        return (
            np.max(of_mean) / (4 / np.sqrt(COUNT) + 5 / WIDTH),
            np.max(of_variance) / (4 * np.sqrt(2 / COUNT) + 3 * len(X) / WIDTH),
        )

    assert max(distance(NET)) < 1
    assert min(distance(nngp.Architecture(1, "relu", 4.0, 0.5))) > 1


def test_too_few_steps_are_said():
    with pytest.raises(
        RuntimeError, match=r"network \d+ is at .* after 3 steps, and the tolerance"
    ):
        train(steps=3)


NETWORK = nngp.FiniteNetwork(NET, 10, n_out=2)


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        ((NET, X, Y, X_NEW), {}, "must be an nngp.FiniteNetwork, got Architecture"),
        ((NETWORK, X, Y, X_NEW[:, :1]), {}, "X has 2 features and X_test has 1"),
        ((NETWORK, X, Y[:5], X_NEW), {}, "Y has 5 rows and the inputs have 7"),
        ((NETWORK, X, Y[:, 0], X_NEW), {}, "make it with n_out=1"),
        ((NETWORK, X, Y * np.nan, X_NEW), {}, "Y holds nan"),
        ((NETWORK, X * np.nan, Y, X_NEW), {}, "X holds nan"),
        ((NETWORK, X, Y, X_NEW * np.inf), {}, "X_test holds"),
        ((NETWORK, X, Y, X_NEW), {"noise_var": -1.0}, "noise_var must be finite and not negative"),
        ((NETWORK, X, Y, X_NEW), {"tolerance": 0.0}, "tolerance must be a number between 0 and 1"),
        ((NETWORK, X, Y, X_NEW), {"tolerance": "low"}, "tolerance must be a number between"),
        ((NETWORK, X, Y, X_NEW), {"steps": 0}, "steps must be a whole number of at least 1"),
        ((NETWORK, X, Y, X_NEW), {"n_networks": 0}, "n_networks must be a whole number"),
        ((NETWORK, X, Y, X_NEW), {"seed": -1}, "seed must be a whole number"),
    ],
)
def test_bad_input_is_said(arguments, options, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        last_layer_ensemble(*arguments, **options)
