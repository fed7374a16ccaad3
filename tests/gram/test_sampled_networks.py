"""Appendix C: sampled wide networks have this covariance, and their own scatters as 1/width."""

import numpy as np
import pytest

import nngp

ACTIVATIONS = {
    "relu": lambda z: np.maximum(z, 0),
    "tanh": np.tanh,
    "erf": None,
    "hard_tanh": lambda z: np.clip(z, -1, 1),
}
X = np.random.default_rng(1).standard_normal((3, 10)) * np.array([[0.5], [1.0], [1.5]])
WEIGHT_VAR, BIAS_VAR, DEPTH = 1.5, 0.2, 3


def activation(name):
    if ACTIVATIONS[name] is not None:
        return ACTIVATIONS[name]
    from scipy.special import erf

    return erf


def empirical_kernels(name, width, count, seed):
    """weight_var K^L + bias_var of `count` random networks, from their last hidden layer."""
    rng, phi = np.random.default_rng(seed), activation(name)
    out = np.empty((count, len(X), len(X)))
    for i in range(count):
        h = X
        for _ in range(DEPTH):
            W = rng.standard_normal((h.shape[1], width)) * np.sqrt(WEIGHT_VAR / h.shape[1])
            h = phi(h @ W + rng.standard_normal(width) * np.sqrt(BIAS_VAR))
        out[i] = BIAS_VAR + WEIGHT_VAR * h @ h.T / width
    return out


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("erf", "hard_tanh")]


@pytest.mark.parametrize("name", ["relu", "tanh", *SLOW])
def test_mean_agrees_within_its_standard_error(name):
    samples = empirical_kernels(name, width=400, count=300, seed=2)
    K = nngp.kernel(nngp.Architecture(DEPTH, name, WEIGHT_VAR, BIAS_VAR), X)
    standard_error = samples.std(axis=0) / np.sqrt(len(samples))
    # finite width also biases the mean by O(1/width) of the variance
    bias = 3.0 / 400 * K.max()
    assert np.all(np.abs(samples.mean(axis=0) - K) < 5 * standard_error + bias)
    # a kernel of another depth is told apart by the same samples
    other = nngp.kernel(nngp.Architecture(DEPTH + 1, name, WEIGHT_VAR, BIAS_VAR), X)
    assert np.any(np.abs(samples.mean(axis=0) - other) > 5 * standard_error + bias)


@pytest.mark.slow
def test_spread_falls_as_one_over_width():
    spread = [
        empirical_kernels("relu", width, 300, seed=3).var(axis=0).mean() for width in (30, 120, 480)
    ]
    slopes = np.diff(np.log(spread)) / np.log(4)
    np.testing.assert_allclose(slopes, -1.0, atol=0.2)
