"""Networks for which the rules of infinite width do not hold are refused, and no others."""

import numpy as np
import pytest

import nngp
from nngp import NTK, Act, Chain, Concat, Dense, Dropout, LayerNorm, Product, Repeat, Residual, Sum
from nngp.architecture.graph import last_uses

RELU, MAP, NOTHING = Act("relu"), Dense(1.0, 0.1), Chain()
UNITS = Chain(MAP, RELU)  # not Gaussian, and of positive mean

REFUSED = {
    "the network has no layers": [NOTHING, Repeat(NOTHING, 3)],
    "the outputs of this network are not Gaussian": [
        UNITS,
        Dropout(0.5),
        Chain(MAP, Dropout(0.5)),
        Concat(MAP, MAP),
        Product(MAP, MAP),
        Residual(MAP),  # the input itself is not Gaussian
        Sum(MAP, UNITS),
    ],
    "activation 'relu' needs Gaussian units": [
        Chain(RELU, MAP),
        Chain(MAP, RELU, RELU, MAP),
        Chain(MAP, Dropout(0.9), RELU, MAP),
        Chain(Residual(MAP), RELU, MAP),
        Chain(Concat(MAP, MAP), RELU, MAP),
        Chain(Product(MAP, MAP), RELU, MAP),
        Chain(Sum(MAP, UNITS), RELU, MAP),
    ],
    "nngp.LayerNorm needs Gaussian units of mean zero": [
        Chain(LayerNorm(), MAP),
        Chain(UNITS, LayerNorm(), MAP),
        Chain(MAP, Dropout(0.9), LayerNorm(), MAP),
        Chain(Product(MAP, MAP), LayerNorm(), MAP),
        Chain(Concat(MAP, MAP), LayerNorm(), MAP),
    ],
    "branches of nngp.Product must be independent": [
        Chain(Product(NOTHING, NOTHING), MAP),
        Chain(MAP, Product(NOTHING, RELU), MAP),
        Chain(MAP, Product(RELU, LayerNorm()), MAP),
        Chain(MAP, Product(NOTHING, MAP, Dropout(0.5)), MAP),
        Chain(MAP, Product(NOTHING, Residual(RELU, MAP)), MAP),
    ],
    "branches that are added must have no covariance": [
        Chain(MAP, Residual(RELU), MAP),
        Chain(MAP, Residual(LayerNorm()), MAP),
        Chain(Residual(Dropout(0.5)), MAP),
        Chain(Sum(NOTHING, NOTHING), MAP),
        Chain(Sum(UNITS, UNITS), MAP),  # two means that are not zero
        Chain(UNITS, Sum(NOTHING, UNITS), MAP),
        Chain(MAP, Sum(NOTHING, Residual(RELU, MAP)), MAP),
        Chain(Sum(Concat(MAP, UNITS), UNITS), MAP),
    ],
}
ACCEPTED = [
    MAP,
    Sum(MAP, MAP),
    Chain(Residual(MAP), MAP),
    Chain(MAP, Repeat(Residual(RELU, MAP), 3)),
    Chain(MAP, Residual(LayerNorm(), RELU, Dropout(0.9), MAP), LayerNorm(), RELU, MAP),
    Chain(Sum(UNITS, MAP), MAP, RELU, MAP),
    Chain(Product(UNITS, UNITS, MAP), MAP),
    Chain(MAP, Product(NOTHING, MAP, Chain(RELU, MAP)), MAP, RELU, MAP),
    Chain(Sum(Product(UNITS, MAP), UNITS), MAP),  # the product has mean zero
    Chain(MAP, Concat(NOTHING, RELU, LayerNorm()), MAP),  # the same units may stand side by side
    Chain(MAP, LayerNorm(), LayerNorm(), RELU, Dropout(0.5), Dropout(0.5), MAP, MAP),
]


CASES = [(net, words) for words, nets in REFUSED.items() for net in nets]


def test_refused():
    for net, message in CASES:
        for call in (
            lambda net: net.graph,
            lambda net: NTK(net).graph,
            lambda net: nngp.kernel(net, np.eye(3)),
            lambda net: nngp.kernel_diag(net, np.eye(3)),
            nngp.curves.compile_curve,
        ):
            with pytest.raises(ValueError, match=message):
                call(net)


def test_accepted():
    X = nngp.normalize(np.random.default_rng(0).normal(size=(5, 4)))
    for net in ACCEPTED:
        for own in (net, NTK(net)):
            K = nngp.kernel(own, X)
            np.testing.assert_array_equal(np.diagonal(K), nngp.kernel_diag(own, X))
            assert np.linalg.eigvalsh(K).min() > 0


def test_a_state_is_kept_until_its_last_use():
    net = Chain(MAP, Residual(RELU, MAP), MAP)
    assert last_uses(net.graph) == [[0], [], [2], [1, 3], [4]]
