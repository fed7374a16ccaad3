"""Kernels of convolutional networks agree with brute force over all pairs of positions, with
averages over shifts and with neural-tangents; a pair's value does not depend on other pairs."""

import json
from pathlib import Path

import numpy as np
import pytest

import nngp
from nngp import (
    NTK,
    Act,
    AvgPool,
    Chain,
    Concat,
    Conv,
    Dense,
    Dropout,
    Flatten,
    GlobalAvgPool,
    Image,
    LayerNorm,
    Product,
    Repeat,
    Residual,
    Sum,
)
from tests.oracles.image_covariances import brute_force

RELU, ERF = Act("relu"), Act("erf")
READOUT = (Flatten(), Dense(1.2, 0.2))
PADDINGS = ("same", "valid", "circular")


def images(n, channels, seed=0):
    return np.random.default_rng(seed).standard_normal((n, 30 * channels))


def check(*parts, channels=1):
    """K and Θ of 5 x 6 images."""
    net, X = Chain(Image((5, 6, channels)), *parts), images(3, channels)
    K, theta = brute_force(net.parts, X.reshape(3, 5, 6, channels))
    for network, expected in ((net, K), (NTK(net), theta)):
        atol = 1e-12 * expected.max()
        found = nngp.kernel(network, X)
        np.testing.assert_allclose(found, expected, rtol=0, atol=atol)
        np.testing.assert_array_equal(found, found.T)
        np.testing.assert_allclose(nngp.kernel_diag(network, X), expected.diagonal(), atol=atol)
        if not net.has_masks:
            np.testing.assert_allclose(nngp.kernel(network, X, X[1:]), expected[:, 1:], atol=atol)


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("stride", [1, 2, (1, 3)])
@pytest.mark.parametrize("window", [1, 2, 3, (1, 4)])
@pytest.mark.parametrize("channels", [1, 3])
def test_convolutions_agree_with_brute_force(window, stride, padding, channels):
    first = Conv(window, 2.0, 0.1, stride=stride, padding=padding)
    check(first, RELU, Conv(2, 1.5, 0.1), ERF, *READOUT, channels=channels)


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("stride", [1, 2])
def test_global_pooling_agrees_with_brute_force(stride, padding):
    first = Conv((2, 3), 2.0, 0.1, stride=stride, padding=padding)
    second = Conv((1, 2), 1.5, 0.1, padding=padding)
    check(first, RELU, second, RELU, GlobalAvgPool(), Dense(1.0, 0.1), ERF, Dense(1.0))


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("pool", [AvgPool(2), AvgPool(2, 1), AvgPool((1, 3), (2, 1))])
def test_local_pooling_agrees_with_brute_force(pool, padding):
    check(Conv(2, 2.0, 0.1, padding=padding), RELU, pool, Conv(2, 1.2), RELU, *READOUT)


@pytest.mark.parametrize(
    "parts",
    [
        (Conv(2, 2.0), LayerNorm(), RELU, AvgPool(2, 1), Conv(1, 1.0), LayerNorm(), RELU, *READOUT),
        (Conv(3, 2.0), Repeat(Residual(ERF, Conv(3, 1.2)), 2), Dropout(0.7), AvgPool(2), *READOUT),
        (Dropout(0.8), Conv(3, 2.0, 0.1), RELU, Dropout(0.5), GlobalAvgPool(), Dense(1.0)),
        (
            Sum(Chain(Conv(3, 1.0), RELU, Conv(3, 0.5, 0.2, padding="circular")), Conv(1, 0.5)),
            Concat(RELU, ERF, shares=(0.3, 0.7)),
            Conv(1, 1.0),
            AvgPool((2, 3)),
            GlobalAvgPool(),
            Dense(1.2, 0.2),
        ),
        (Product(Conv(3, 1.0, 0.1), Conv(2, 2.0)), Conv(1, 1.0), RELU, GlobalAvgPool(), Dense(1.0)),
        # Branches that need different planes.
        (
            Conv(3, 2.0),
            RELU,
            Sum(Chain(Conv(2, 1.0), GlobalAvgPool(), Dense(1.0)), Chain(Conv(2, 1.0), *READOUT)),
        ),
        (Flatten(), Dense(1.0, 0.1), RELU, Dense(1.0)),
    ],
)
def test_other_parts_around_convolutions_agree_with_brute_force(parts):
    check(*parts, channels=2)


def test_a_sequence_is_an_image_of_height_one():
    X = images(3, 1)
    net = Chain(Image((1, 30)), Conv((1, 3), 2.0, 0.1), RELU, AvgPool((1, 4)), *READOUT)
    K, _ = brute_force(net.parts, X.reshape(3, 1, 30, 1))
    np.testing.assert_allclose(nngp.kernel(net, X), K, rtol=0, atol=1e-12)


def test_activations_without_a_closed_form_agree_with_those_that_have_one():
    numeric = nngp.Activation(lambda x: np.maximum(x, 0.0), "my relu", kinks=(0.0,))
    X = images(2, 1)
    found, expected = (
        nngp.kernel(NTK(Chain(Image((5, 6)), Conv(3, 2.0, 0.1), Act(phi), *READOUT)), X)
        for phi in (numeric, "relu")
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("wrap", [lambda net: net, NTK])
def test_circular_pooling_is_an_average_over_shifts(wrap):
    X, (height, width) = images(4, 2), (5, 6)
    body = (Image((5, 6, 2)), Conv(3, 2.0, 0.1, padding="circular"), RELU)
    pooled = wrap(Chain(*body, Conv(3, 1.5, padding="circular"), GlobalAvgPool(), Dense(1.0)))
    flat = wrap(Chain(*body, Conv(3, 1.5, padding="circular"), Flatten(), Dense(1.0)))
    rolled = X.reshape(4, height, width, 2)
    K = np.zeros((4, 4))
    for down in range(height):
        for across in range(width):
            moved = np.roll(rolled, (down, across), axis=(1, 2)).reshape(4, -1)
            K += nngp.kernel(flat, X, moved) / (height * width)
    np.testing.assert_allclose(nngp.kernel(pooled, X), K, rtol=0, atol=1e-13 * K.max())


def test_tangent_kernels_of_nearly_black_images_are_those_of_few_pixels():
    """Where two images agree on a receptive field the correlation there is exactly one."""
    X = np.zeros((2, 30))
    X[0, 7], X[1, 22] = 1.0, -0.5
    parts = (Conv(3, 2.0, 0.1), RELU) * 4
    net = Chain(Image((5, 6)), *parts, *READOUT)
    _, theta = brute_force(net.parts, X.reshape(2, 5, 6, 1))
    np.testing.assert_allclose(nngp.kernel(NTK(net), X), theta, rtol=1e-12)


def test_a_value_depends_on_its_pair_alone_and_equal_images_have_the_diagonals():
    X = images(150, 1)
    X[140] = X[3]
    layers = Repeat(Chain(Conv(3, 1.7, 0.1), RELU, Conv(3, 1.7), ERF), 3)
    net = Chain(Image((5, 6)), layers, AvgPool(2, 1), *READOUT)
    K = nngp.kernel(net, X)
    np.testing.assert_array_equal(nngp.kernel(net, X[[2, 149]]), K[np.ix_([2, 149], [2, 149])])
    np.testing.assert_array_equal(nngp.kernel(net, X[100:], X[:7]), K[100:, :7])
    assert K[140, 3] == K[3, 3] == nngp.kernel_diag(net, X)[3]


def test_what_makes_no_sense_is_refused_with_a_remedy():
    X = images(3, 1)
    net = Chain(Image((5, 6)), Conv(3, 2.0), RELU, *READOUT)
    with pytest.raises(ValueError, match=r"5 x 6 x 1 = 30 columns .* have 29"):
        nngp.kernel(net, X[:, 1:])
    with pytest.raises(ValueError, match="method='auto'"):
        nngp.kernel(net, X, method="curve")
    with pytest.raises(ValueError, match="compare a few networks by log_evidence"):
        nngp.condition(net, X, [1.0, 2.0, 3.0], noise_var=0.1).evidence_gradient()
    with pytest.raises(ValueError, match="relative_noise=False"):
        nngp.condition(net, X, [1.0, 2.0, 3.0], relative_noise=True)


CORRELATED = {15}  # positions that see the same pixels: neural-tangents takes arccos there


def test_sixty_random_networks_agree_with_neural_tangents():
    """The record is written by tests/oracles/make_images.py."""
    record = json.loads((Path(__file__).parents[1] / "oracles" / "images.json").read_text())
    assert len(record) == 60
    for number, one in enumerate(record):
        net = nngp.Network.from_dict(one["network"])
        X = np.random.default_rng(number).standard_normal((2, net.planes.columns))
        K, theta = (nngp.kernel(network, X) for network in (net, NTK(net)))
        np.testing.assert_allclose(K, one["nngp"], rtol=0, atol=1e-13 * K.max())
        within = 1e-8 if number in CORRELATED else 1e-9
        np.testing.assert_allclose(theta, one["ntk"], rtol=0, atol=within * theta.max())
        if number in CORRELATED:
            _, exact = brute_force(net.parts, X.reshape(2, *net.parts[0].shape))
            np.testing.assert_allclose(theta, exact, rtol=0, atol=1e-12 * theta.max())


def test_what_images_do_not_have_is_refused_in_a_sentence():
    net = nngp.Chain(
        nngp.Image((2, 2)),
        nngp.Conv(3, 2.0, 0.1),
        nngp.Act("relu"),
        nngp.Flatten(),
        nngp.Dense(1.5),
    )
    X = np.random.default_rng(0).normal(size=(6, 4))
    posterior = nngp.condition(net, X, X[:, 0], noise_var=0.1)
    for asked in (
        lambda: posterior.predict_gradient(X[:1]),
        lambda: nngp.curves.compile_curve(net),
        lambda: nngp.regimes.diagnose(net),
    ):
        with pytest.raises(TypeError, match="images"):
            asked()
