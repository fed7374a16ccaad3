"""Wide networks, trained by full-batch gradient descent in JAX, have the ensemble's mean, variance
and losses within standard errors."""

import numpy as np
import pytest

import nngp

jax = pytest.importorskip("jax")

WEIGHT_VAR, BIAS_VAR, WIDTH, NETWORKS, STEPS, RATE = 1.6, 0.1, 2048, 100, 60, 0.5
NET = nngp.Architecture(1, "relu", WEIGHT_VAR, BIAS_VAR)
RNG = np.random.default_rng(2)
X = nngp.normalize(RNG.normal(size=(8, 3)))
Y = np.sin(2 * X[:, 0])
XS = nngp.normalize(RNG.normal(size=(4, 3)))


def trained_networks(noise_var):
    """Outputs at XS, and training losses, of networks with weights in units of their deviation."""
    jnp = jax.numpy
    stds = np.sqrt([WEIGHT_VAR, BIAS_VAR])

    def outputs(weights, inputs):
        w1, b1, w2, b2 = weights
        hidden = jnp.maximum(inputs @ w1 * stds[0] / np.sqrt(3) + stds[1] * b1, 0.0)
        return hidden @ w2 * stds[0] / np.sqrt(WIDTH) + stds[1] * b2

    def one(key):
        shapes = [(3, WIDTH), (WIDTH,), (WIDTH,), ()]
        keys = jax.random.split(key, 4)
        start = [jax.random.normal(k, s) for k, s in zip(keys, shapes, strict=True)]

        def loss(weights):
            moved = sum(jnp.sum((a - b) ** 2) for a, b in zip(weights, start, strict=True))
            squares = jnp.sum((outputs(weights, X) - Y) ** 2)
            return (squares + noise_var * moved) / (2 * len(Y))

        def step(weights, _):
            slopes = jax.grad(loss)(weights)
            return [w - RATE * s for w, s in zip(weights, slopes, strict=True)], None

        end, _ = jax.lax.scan(step, start, None, STEPS)
        return outputs(end, XS), jnp.sum((outputs(end, X) - Y) ** 2) / (2 * len(Y))

    found = jax.lax.map(one, jax.random.split(jax.random.key(0), NETWORKS))
    return tuple(np.asarray(part, dtype=np.float64) for part in found)


@pytest.mark.parametrize("noise_var", [0.5, pytest.param(0.0, marks=pytest.mark.slow)])
def test_wide_networks_have_the_ensembles_mean_variance_and_loss(noise_var):
    outputs, losses = trained_networks(noise_var)
    networks = nngp.training.train_ensemble(
        NET, X, Y, time=STEPS, learning_rate=RATE, noise_var=noise_var
    )
    assert nngp.training.max_learning_rate(NET, X) > 2 * RATE
    mean, variance = networks.predict(XS)
    error = np.sqrt(variance / NETWORKS)
    assert (np.abs(outputs.mean(axis=0) - mean) < 4 * error + 0.005).all()
    ratio = outputs.var(axis=0, ddof=1) / variance
    assert (np.abs(ratio - 1) < 4 * np.sqrt(2 / NETWORKS)).all()
    expected = networks.losses([STEPS]).train_expected[0]
    scatter = losses.std() / np.sqrt(NETWORKS)
    assert abs(losses.mean() - expected) < 4 * scatter + 0.02 * expected
    untrained = networks.at(0.0).variance(XS)  # the test would see training that did nothing
    assert (variance < 0.5 * untrained).any()
