"""The tangent kernel of a network is that of its Jacobian, written out in all weights and biases in
units of their prior deviation; kernels and outputs of any shape are those of a plain network."""

import numpy as np
import pytest
from scipy.special import erf

import nngp
from nngp import Act, Chain, Concat, Dense, Dropout, LayerNorm, Product, Residual, Sum

pytest.importorskip("jax")

RNG = np.random.default_rng(5)
X = RNG.standard_normal((3, 4))
NET = Chain(
    Dense(1.5, 0.2),
    Residual(LayerNorm(), Act("tanh"), Dense(0.8, 0.0)),
    Concat(
        Product(Chain(Act("erf"), Dense(1.2, 0.1)), Dense(1.0, 0.3)),
        Chain(Dense(2.0, 0.4), Act("relu")),
        shares=(0.25, 0.75),
    ),
    Dense(1.1, 0.3),
)
WIDTH = 8


@pytest.fixture(scope="module")
def network():
    return nngp.FiniteNetwork(NET, WIDTH, n_out=3)


def plain(layers, X):
    """The network by hand: outputs, and what goes into each affine map."""

    def affine(i, h):
        return h @ layers[i]["w"] + layers[i]["b"]

    z = affine(0, X)
    centred = z - z.mean(axis=1, keepdims=True)
    a = np.tanh(centred / centred.std(axis=1, keepdims=True))
    h = z + affine(1, a)
    joined = np.concatenate([affine(2, erf(h)) * affine(3, h), np.maximum(affine(4, h), 0)], axis=1)
    return affine(5, joined), [X, a, erf(h), h, h, joined]


def jacobian(network, layers, X):
    """Gradients of all outputs in all variables, by central differences: (n, n_out, variables)."""
    graph = [node for node in NET.graph if hasattr(node, "weight_var")]
    columns, step = [], 1e-5
    for layer, node in zip(layers, graph, strict=True):
        scales = {"w": np.sqrt(node.weight_var / len(layer["w"])), "b": np.sqrt(node.bias_var)}
        for name, scale in scales.items():
            for place in np.ndindex(layer[name].shape):
                ends = []
                for sign in (1, -1):
                    kept = layer[name][place]
                    layer[name][place] += sign * step
                    ends.append(plain(layers, X)[0])
                    layer[name][place] = kept
                columns.append(scale * (ends[0] - ends[1]) / (2 * step))
    return np.stack(columns, axis=-1)


@pytest.fixture(scope="module")
def layers(network):
    return [{k: v.copy() for k, v in one.items()} for one in network.draw(4, seed=3)]


def test_outputs_and_kernels_are_those_of_a_plain_network(network, layers):
    assert [layer["w"].shape for layer in layers] == [
        (4, 8),
        (8, 8),
        (8, 2),
        (8, 2),
        (8, 6),
        (8, 3),
    ]
    outputs, inputs = plain(layers, X)
    np.testing.assert_allclose(network.sample(X, 1, seed=3)[0], outputs, rtol=1e-10)
    np.testing.assert_allclose(network.forward(layers, X), outputs, rtol=1e-10)
    kernels = network.empirical_kernels(X, seed=3)
    assert kernels.shape == (1, 6, 3, 3)
    for K, h, w, b in zip(kernels[0], inputs, NET.weight_vars, NET.bias_vars, strict=True):
        np.testing.assert_allclose(K, b + w * h @ h.T / h.shape[1], rtol=1e-10)


def test_the_tangent_kernel_is_that_of_the_jacobian(network, layers, monkeypatch):
    J, seen = jacobian(network, layers, X), []
    monkeypatch.setattr("nngp.finite.batched_networks.AT_A_TIME", 1)
    found = network.empirical_ntk(X, n_networks=2, seed=3, progress=seen.append)
    assert found.shape == (2, 3, 3)
    assert len(seen) == 2  # one network at a time
    np.testing.assert_allclose(found[0], np.einsum("iov,jov->ij", J, J) / 3, rtol=1e-7)


def test_a_chain_is_its_architecture_to_the_bit():
    net = nngp.Architecture(2, "tanh", (1.5, 1.2, 2.0), (0.2, 0.1, 0.3))
    pair = [nngp.FiniteNetwork(one, (7, 9), n_out=2) for one in (net, net.chain)]
    for ask in ("sample", "empirical_kernels", "empirical_ntk"):
        one, other = (getattr(network, ask)(X, n_networks=3, seed=1) for network in pair)
        np.testing.assert_array_equal(one, other)


def test_outputs_that_are_a_sum_have_a_kernel_of_their_own():
    net = Sum(Chain(Dense(1.0), Act("relu"), Dense(0.8, 0.1)), Dense(0.5, 0.2))
    kernels = nngp.FiniteNetwork(net, 8).empirical_kernels(X)
    assert kernels.shape == (1, 4, 3, 3)
    np.testing.assert_allclose(kernels[0, 3], kernels[0, 1] + kernels[0, 2], rtol=1e-12)
    normed = nngp.FiniteNetwork(Chain(Dense(2.0, 0.3), LayerNorm()), 8).empirical_kernels(X)[0]
    deviations = np.sqrt(np.diagonal(normed[0]))
    np.testing.assert_allclose(normed[1], normed[0] / np.outer(deviations, deviations), rtol=1e-12)


def test_masks_are_of_each_network_row_and_unit():
    keep, twice = 0.7, X[[0, 1, 0]]
    network = nngp.FiniteNetwork(Chain(Dense(1.0), Dropout(keep), Dense(1.0)), 40)
    outputs = network.sample(twice, 3, seed=4)
    assert np.all(outputs[:, 0] != outputs[:, 2])  # equal rows, but other masks
    weights = network.draw(4, 3, seed=4)
    np.testing.assert_allclose(network.forward(weights, twice, seed=4), outputs, rtol=1e-12)
    np.testing.assert_allclose(network.sample(twice[:1], 3, seed=4), outputs[:, :1], rtol=1e-12)
    without = network.forward(weights, twice)
    np.testing.assert_allclose(without[:, 0], without[:, 2], rtol=1e-12)
    # Sums of products of masked units with themselves show how many are kept.
    kernels = network.empirical_kernels(np.repeat(X[:1], 50, axis=0), 20, seed=4)[:, 1]
    h = np.einsum("d,kdw->kw", X[0], network.draw(4, 20, seed=4)[0]["w"])
    full = np.mean(h**2, axis=1)
    own = np.diagonal(kernels, axis1=1, axis2=2) / full[:, None]
    others = kernels[:, *np.triu_indices(50, 1)] / full[:, None]
    for values, wanted in ((own, 1 / keep), (others, 1.0)):
        each = values.mean(axis=1)
        assert abs(each.mean() - wanted) < 4 * each.std() / np.sqrt(20)


@pytest.mark.parametrize(
    ("use", "sentence"),
    [
        (
            lambda: nngp.FiniteNetwork(nngp.NTK(NET), 8),
            r"pass the network itself \(nngp.NTK\(...\).network\)",
        ),
        (
            lambda: nngp.FiniteNetwork(nngp.Architecture(1, "sign"), 8).empirical_ntk(X),
            "'sign' jumps, so its gradient",
        ),
        (lambda: nngp.FiniteNetwork(NET, 8).empirical_ntk(X, 0), "networks must be a whole"),
        (
            lambda: nngp.FiniteNetwork(NET, 8).empirical_ntk(np.ones((60_000, 2)), 100),
            "GB are free; take fewer networks",
        ),
    ],
)
def test_what_cannot_be_is_said(use, sentence):
    with pytest.raises((TypeError, ValueError, MemoryError), match=sentence):
        use()


def test_rows_of_whole_numbers_stay_so():
    """An embedding looks its tokens up: (p[0] + p[1]) has a gradient of ones in two rows."""
    tokens = np.array([[0, 1], [1, 2]])
    K = nngp.finite.empirical_ntk(lambda p, X: p[X].sum((1, 2)), np.ones((5, 3)), tokens)
    np.testing.assert_allclose(K, [[6.0, 3.0], [3.0, 6.0]])
