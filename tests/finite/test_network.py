"""Networks of finite width as they are drawn: their weights have the prior's moments, outputs and
kernels are those of a network written in plain NumPy, and a draw depends on its seed and place
only."""

import math
import sys

import numpy as np
import pytest

import nngp

jax = pytest.importorskip("jax")

NET = nngp.Architecture(2, "tanh", (1.5, 1.2, 2.0), (0.2, 0.1, 0.3))
X = np.random.default_rng(1).standard_normal((3, 4)) * [[0.5], [1.0], [2.0]]
COUNT, SEED = 400, 5
SIZES = [(4, 7), (7, 9), (9, 2)]


@pytest.fixture(scope="module")
def network():
    return nngp.FiniteNetwork(NET, (7, 9), n_out=2)


@pytest.fixture(scope="module")
def layers(network):
    return network.draw(4, COUNT, seed=SEED)


@pytest.fixture(scope="module")
def outputs(network):
    return network.sample(X, COUNT, seed=SEED)


@pytest.fixture(scope="module")
def kernels(network):
    return network.empirical_kernels(X, COUNT, seed=SEED)


def plain(layers, i):
    """Network i by hand: what goes into each affine map, and the outputs."""
    into = [X]
    for layer in layers[:-1]:
        into.append(np.tanh(into[-1] @ layer["w"][i] + layer["b"][i]))
    return into, into[-1] @ layers[-1]["w"][i] + layers[-1]["b"][i]


def test_weights_have_the_moments_of_the_prior(layers):
    for (fan_in, fan_out), layer, weight_var, bias_var in zip(
        SIZES, layers, NET.weight_vars, NET.bias_vars, strict=True
    ):
        assert layer["w"].shape == (COUNT, fan_in, fan_out)
        assert layer["b"].shape == (COUNT, fan_out)
        for values, variance in ((layer["w"], weight_var / fan_in), (layer["b"], bias_var)):
            assert values.dtype == np.float64
            z = values.ravel() / np.sqrt(variance)
            assert abs(z.mean()) < 4 / np.sqrt(z.size)
            assert abs(z.var() - 1) < 4 * np.sqrt(2 / z.size)


def test_all_weights_are_independent(layers):
    """No number is used twice, in a network or in another."""
    values = [
        part[:50].ravel() / np.sqrt(variance)
        for layer, w, b, (fan_in, _) in zip(
            layers, NET.weight_vars, NET.bias_vars, SIZES, strict=True
        )
        for part, variance in ((layer["w"], w / fan_in), (layer["b"], b))
    ]
    standard = np.concatenate(values).round(10)  # as they were before they were scaled
    assert np.unique(standard).size == standard.size
    other = nngp.FiniteNetwork(NET, (7, 10)).draw(4, 3, seed=SEED)
    assert not np.isin(other[0]["w"], layers[0]["w"]).any()
    assert not np.isin(other[0]["b"], layers[0]["b"]).any()


def test_outputs_are_those_of_a_plain_network(network, layers, outputs):
    assert outputs.shape == (COUNT, 3, 2)
    expected = [plain(layers, i)[1] for i in range(COUNT)]
    np.testing.assert_allclose(outputs, expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(network.forward(layers, X), expected, rtol=1e-12, atol=1e-13)


def test_kernels_are_those_of_the_layer_below(layers, kernels):
    assert kernels.shape == (COUNT, 3, 3, 3)
    for i in range(0, COUNT, 57):
        for l, h in enumerate(plain(layers, i)[0]):  # noqa: E741
            expected = NET.bias_vars[l] + NET.weight_vars[l] * h @ h.T / h.shape[1]
            np.testing.assert_allclose(kernels[i, l], expected, rtol=1e-12)


def test_kernels_are_right_on_average(kernels, outputs):
    """Layer 0 exactly, layer 1 at any width; and outputs have the last kernel as covariance."""
    exact = [nngp.kernel(NET.truncated(layer), X) for layer in range(3)]
    np.testing.assert_allclose(kernels[:, 0], np.broadcast_to(exact[0], (COUNT, 3, 3)), rtol=1e-12)
    doubt = kernels[:, 1].std(axis=0) / np.sqrt(COUNT)
    assert np.all(np.abs(kernels[:, 1].mean(axis=0) - exact[1]) < 4 * doubt)
    assert np.any(np.abs(kernels[:, 1].mean(axis=0) - exact[2]) > 8 * doubt)
    products = np.einsum("kio,kjo->kij", outputs, outputs) / 2
    doubt = (products - kernels[:, 2]).std(axis=0) / np.sqrt(COUNT)
    assert np.all(np.abs((products - kernels[:, 2]).mean(axis=0)) < 4 * doubt)


def test_a_network_is_fixed_by_seed_and_place(network, outputs, monkeypatch):
    """However many there are, and however many at a time."""
    seen = []
    monkeypatch.setattr("nngp.finite.batched_networks.AT_A_TIME", 14_000)
    fewer = network.sample(X, 31, seed=SEED, progress=seen.append)
    assert len(seen) > 2  # chunks, the last of them not full
    assert [step.done for step in seen] == sorted(step.done for step in seen)
    assert seen[-1].done == 1
    np.testing.assert_allclose(fewer, outputs[:31], rtol=1e-12, atol=1e-13)
    assert np.all(network.sample(X, 31, seed=SEED) == fewer)
    assert not np.any(network.sample(X, 31, seed=SEED + 1) == fewer)


def test_one_network(network, outputs, layers, monkeypatch):
    one = network.draw(4, seed=SEED)
    assert [layer["w"].shape for layer in one] == SIZES
    np.testing.assert_array_equal(one[1]["w"], layers[1]["w"][0])
    np.testing.assert_allclose(network.forward(one, X), outputs[0], rtol=1e-12, atol=1e-13)
    monkeypatch.setattr("nngp.finite.batched_networks.AT_A_TIME", 3_000)
    some = [{name: part[:4] for name, part in layer.items()} for layer in layers]
    np.testing.assert_allclose(network.forward(some, X), outputs[:4], rtol=1e-12, atol=1e-13)


def test_single_precision_on_request(network):
    import jax

    single = network.draw(4, seed=SEED, dtype="float32")
    assert {part.dtype for layer in single for part in layer.values()} == {np.dtype("float32")}
    out = network.forward(single, X)
    assert out.dtype == np.float32
    double = [{name: part.astype(float) for name, part in layer.items()} for layer in single]
    np.testing.assert_allclose(out, network.forward(double, X), rtol=1e-5, atol=1e-6)
    assert not jax.config.jax_enable_x64


def test_depth_zero_is_linear():
    linear = nngp.FiniteNetwork(nngp.Architecture(0, "relu", 2.0, 0.0), width=3)
    out = linear.sample([[1.0, 2.0], [-2.0, -4.0]], 5)
    np.testing.assert_allclose(out[:, 1], -2 * out[:, 0], rtol=1e-12)


def test_layers_of_one_width():
    assert nngp.FiniteNetwork(NET, 6).widths == (6, 6)
    assert nngp.FiniteNetwork(NET, [7, 9]) == nngp.FiniteNetwork(NET, np.array([7, 9]))
    assert hash(nngp.FiniteNetwork(NET, 6)) == hash(nngp.FiniteNetwork(NET, 6))
    assert "FiniteNetwork" in dir(nngp)


IMPOSSIBLE = [
    (lambda: nngp.FiniteNetwork("relu", 5), "must be an nngp.Architecture"),
    (lambda: nngp.FiniteNetwork(nngp.Architecture(math.inf), 5), "infinite depth cannot be"),
    (lambda: nngp.FiniteNetwork(NET, 0), "width must be a whole number of at least 1, got 0"),
    (lambda: nngp.FiniteNetwork(NET, 2.5), "width must be a whole number"),
    (lambda: nngp.FiniteNetwork(NET, True), "width must be a whole number"),
    (lambda: nngp.FiniteNetwork(NET, (5, 5, 5)), "width has 3 values and the network has 2"),
    (lambda: nngp.FiniteNetwork(NET, (5, 0)), "width must be a whole number"),
    (lambda: nngp.FiniteNetwork(NET, 5, n_out=0), "n_out must be a whole number"),
    (
        lambda: nngp.FiniteNetwork(nngp.Architecture(1, np.tanh), 5),
        "does not work on JAX arrays",
    ),
    (
        lambda: nngp.FiniteNetwork(nngp.Architecture(1, lambda x: x.sum()), 5),
        "must act elementwise",
    ),
]


def test_networks_that_cannot_be():
    for make, sentence in IMPOSSIBLE:
        with pytest.raises((TypeError, ValueError), match=sentence):
            make()


BAD = [
    (lambda net: net.sample(X, 0), "networks must be a whole number of at least 1, got 0"),
    (lambda net: net.empirical_kernels(X, -1), "networks must be a whole number"),
    (lambda net: net.draw(0), "d must be a whole number of at least 1"),
    (lambda net: net.draw(4, 0), "networks must be a whole number"),
    (lambda net: net.sample(X, 1, seed=-1), "seed must be a whole number of at least 0"),
    (lambda net: net.sample(X, 1, seed=0.5), "seed must be a whole number"),
    (lambda net: net.sample(X, 1, dtype="float16"), "'float64' or 'float32', got 'float16'"),
    (lambda net: net.sample([[np.nan]], 1), "X holds nan"),
    (lambda net: net.sample(np.zeros((2, 2, 2)), 1), "X must be two-dimensional"),
    (lambda net: net.forward(net.draw(4), X[:, :3]), r"layers \(3, 7, 9, 2\) from inputs"),
    (lambda net: net.forward(net.draw(4)[:2], X), "weights must be those"),
    (lambda net: net.forward([], X), "weights must be those"),
    (lambda net: net.forward([1, 2, 3], X), "weights must be those"),
    (lambda net: net.forward([{"w": "a", "b": "b"}] * 3, X), "weights must be those"),
    (lambda net: net.sample(X, 10**12), "GB are free; take fewer networks"),
]


def test_bad_input_is_said(network):
    for use, sentence in BAD:
        with pytest.raises((TypeError, ValueError, MemoryError), match=sentence):
            use(network)


def test_what_is_not_finite_is_said():
    square = nngp.FiniteNetwork(nngp.Architecture(1, "square"), 3)
    with pytest.raises(nngp.errors.VarianceError, match="not finite; take a smaller weight_var"):
        square.sample([[1e200]], 2)


def test_missing_jax_is_said_when_a_network_is_made(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ImportError, match=r"pip install 'nngp\[finite\]'"):
        nngp.FiniteNetwork(NET, 5)


def test_a_precision_rounds_a_network_and_does_not_draw_another():
    network = nngp.FiniteNetwork(nngp.Architecture(1, "tanh"), width=5)
    double, single = (network.draw(3, seed=0, dtype=dtype) for dtype in ("float64", "float32"))
    for exact, rounded in zip(double, single, strict=True):
        assert rounded["w"].dtype == np.float32
        for name in "wb":
            np.testing.assert_allclose(rounded[name], exact[name], rtol=1e-6)


def test_outputs_can_be_traced():
    network = nngp.FiniteNetwork(nngp.Architecture(1, "tanh", 1.5, 0.2), width=5)
    weights, X = network.draw(3, seed=0), np.ones((2, 3))
    with jax.enable_x64(True):
        by_weight, by_input = jax.grad(lambda w, x: network.forward(w, x).sum(), (0, 1))(weights, X)
    units = np.tanh(X @ weights[0]["w"] + weights[0]["b"])
    below = (1 - units**2) * weights[1]["w"][:, 0]
    np.testing.assert_allclose(by_weight[1]["w"][:, 0], units.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(by_weight[0]["w"], X.T @ below, rtol=1e-12)
    np.testing.assert_allclose(by_input, below @ weights[0]["w"].T, rtol=1e-12)
