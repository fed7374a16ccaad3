"""Functions of drawn networks, against the weights that `draw` gives, in plain NumPy."""

import numpy as np
import pytest

import nngp

pytest.importorskip("jax")

NET = nngp.Architecture(2, "tanh", 1.5, 0.1)
X = np.random.default_rng(0).standard_normal((4, 3))
NETWORK = nngp.FiniteNetwork(NET, 20, n_out=2)
FUNCTIONS = NETWORK.functions(d=3)
MASKED = nngp.FiniteNetwork(
    nngp.Chain(nngp.Dense(1.0), nngp.Act("relu"), nngp.Dropout(0.5), nngp.Dense(1.0)), 20
)


def last_hidden(weights, key, X, scale):
    return scale * FUNCTIONS.last_hidden(weights, X)


def outputs_with_masks(weights, key, X):
    return MASKED.functions(d=3).forward(weights, X, key)


def test_features_are_those_of_the_drawn_weights():
    found = NETWORK.evaluate(last_hidden, X, [2.0], n_networks=5, seed=3)
    layers = NETWORK.draw(3, 5, seed=3)
    h = np.broadcast_to(X, (5, *X.shape))
    for layer in layers[:-1]:
        h = np.tanh(h @ layer["w"] + layer["b"][:, None])
    np.testing.assert_allclose(found, 2 * h, atol=1e-12)


def test_the_key_drops_the_units_that_sample_drops():
    found = MASKED.evaluate(outputs_with_masks, X, n_networks=5, seed=3)
    np.testing.assert_allclose(found, MASKED.sample(X, 5, seed=3), atol=1e-12)


def test_a_network_without_a_last_layer_says_so():
    network = nngp.FiniteNetwork(nngp.Sum(nngp.Dense(1.0), nngp.Dense(1.0)), 8)
    functions = network.functions(d=3)
    with pytest.raises(ValueError, match="does not end in one affine map"):
        functions.last_hidden(network.draw(3), X)
