"""Units of the nodes of networks: equal where branches are added or multiplied, in shares where
they are joined, copies of the inputs where these stand beside hidden units."""

import warnings

import numpy as np
import pytest

import nngp
from nngp import Act, Chain, Concat, Dense, Dropout, LayerNorm, Product, Repeat, Residual, Sum

pytest.importorskip("jax")

D, A = Dense(1.0), Act("relu")


def units(net, width=12, d=5, n_out=2):
    layout = nngp.FiniteNetwork(net, width, n_out).layout(d)
    return layout.units, layout.shapes


@pytest.mark.parametrize(
    ("net", "nodes", "maps"),
    [
        (nngp.Architecture(2, "relu"), (5, 12, 12, 12, 12, 2), [(5, 12), (12, 12), (12, 2)]),
        (Chain(D, Residual(A, D), D), (5, 12, 12, 12, 12, 2), [(5, 12), (12, 12), (12, 2)]),
        # Branches share the width, also where what is joined is added to something.
        (
            Chain(D, Concat(D, D, shares=(0.25, 0.75)), D),
            (5, 12, 3, 9, 12, 2),
            [(5, 12), (12, 3), (12, 9), (12, 2)],
        ),
        (
            Chain(D, Sum(Concat(D, D, D), D), D),
            (5, 12, 4, 4, 4, 12, 12, 12, 2),
            [(5, 12), (12, 4), (12, 4), (12, 4), (12, 12), (12, 2)],
        ),
        # Branches that pass units on have as many as what they begin at.
        (Chain(D, Concat(Chain(), A), D), (5, 6, 6, 12, 2), [(5, 6), (12, 2)]),
        (
            Chain(D, Concat(Concat(D, D), D), D),
            (5, 12, 3, 3, 6, 6, 12, 2),
            [(5, 12), (12, 3), (12, 3), (12, 6), (12, 2)],
        ),
        # Inputs are repeated: 12 units become 15, three copies.
        (Chain(Residual(D), D), (15, 15, 15, 2), [(5, 15), (15, 2)]),
        (Chain(Product(Chain(), D), D), (15, 15, 15, 2), [(5, 15), (15, 2)]),
        (Chain(Dropout(0.5), D), (15, 15, 2), [(15, 2)]),
        (Chain(Concat(Chain(), D), D), (10, 10, 20, 2), [(5, 10), (20, 2)]),
        # Outputs that are sums, and outputs that are units of a hidden layer.
        (Sum(Chain(D, A, D), D), (5, 12, 12, 2, 2, 2), [(5, 12), (12, 2), (5, 2)]),
        (Chain(D, Residual(A, D)), (5, 12, 12, 12, 12), [(5, 12), (12, 12)]),
        (Chain(D, LayerNorm()), (5, 12, 12), [(5, 12)]),
    ],
)
def test_units_of_nodes(net, nodes, maps):
    assert units(net) == (nodes, tuple(maps))
    outputs = nngp.FiniteNetwork(net, 12, 2).layout(5)
    assert outputs.n_out == 2


def test_equal_shares_are_exact_at_any_width():
    net = Chain(D, Concat(D, D, D), D)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert units(net, width=16)[0] == (5, 16, 5, 5, 5, 15, 2)


def test_shares_that_are_no_whole_units_are_said():
    net = Chain(D, Concat(D, D, shares=(0.3, 0.7)), D)
    with pytest.warns(
        nngp.errors.ToleranceWarning, match=r"\(4, 8\) units stand for them; take a width"
    ):
        nngp.FiniteNetwork(net, 12)


def test_widths_of_each_hidden_layer():
    net = Chain(D, Repeat(Residual(A, D, A, D), 2), D)
    network = nngp.FiniteNetwork(net, (6, 7, 8))
    assert network.widths == (6, 7, 8)
    assert network.layout(5).sizes == (5, 6, 7, 6, 8, 6, 1)
    with pytest.raises(ValueError, match="width has 2 values and the network has 3 hidden layers"):
        nngp.FiniteNetwork(net, (6, 7))


def test_repeated_inputs_keep_their_kernel():
    X = np.random.default_rng(0).standard_normal((3, 5))
    net = Chain(Concat(Chain(), Chain()), Dense(1.5, 0.1))
    found = nngp.FiniteNetwork(net, 12).empirical_kernels(X)[0, -1]
    np.testing.assert_allclose(found, 0.1 + 1.5 * X @ X.T / 5, rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: nngp.FiniteNetwork(Chain(D, Concat(Chain(), A, shares=(0.25, 0.75)), D), 12),
            "begin at the same units and cannot have the shares",
        ),
        (
            lambda: nngp.FiniteNetwork(Chain(D, Concat(D, D, shares=(0.01, 0.99)), D), 12),
            "a branch of nngp.Concat has no unit at this width",
        ),
        (lambda: nngp.FiniteNetwork(Chain(D, LayerNorm(), A, D), 1), "one unit alone is always 0"),
        (
            lambda: nngp.FiniteNetwork(Chain(D, Residual(A, D)), 4, n_out=5),
            "units of a hidden layer, which has 4; take a larger width",
        ),
    ],
)
def test_what_has_no_units_is_said(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
