"""A network printed: every part on a line of its own, branches indented, numbers in a column."""

import math

import pytest

import nngp
from nngp import Act, Chain, Concat, Dense, Dropout, LayerNorm, Product, Repeat, Residual, Sum

BLOCK = Residual(LayerNorm(), Act("relu"), Dense(1.0, 0.5))


def test_a_plain_network_counts_its_layers():
    assert str(nngp.Architecture(3, "relu", 1.6, 0.1)).splitlines() == [
        "input",
        "Dense     weight_var 1.6, bias_var 0.1",
        "3 times",
        "└ relu",
        "  Dense   weight_var 1.6, bias_var 0.1",
        "output",
    ]
    assert "infinitely often" in str(nngp.Architecture(math.inf, "tanh", 1.0, 0.1))
    assert str(nngp.Architecture(0)).count("Dense") == 1


@pytest.mark.parametrize("depth", [1, 2])
def test_different_variances_are_spelled_out(depth):
    net = nngp.Architecture(depth, "erf", [1.0, 2.0, 3.0][: depth + 1], 0.1)
    assert str(net) == str(net.chain)
    assert str(net).count("weight_var") == depth + 1


def test_branches_are_indented_and_end_where_the_join_does():
    net = Chain(Dense(1.0), Sum(BLOCK, Chain(Dropout(0.9), Dense(2.0)), Chain()), Dense(1.0))
    assert str(net).splitlines()[2:-2] == [
        "Sum",
        "├ Residual",
        "│ ├ identity",
        "│ └ LayerNorm",
        "│   relu",
        "│   Dense   weight_var 1, bias_var 0.5",
        "├ Dropout   keep 0.9",
        "│ Dense     weight_var 2, bias_var 0",
        "└ identity",
    ]


def test_every_part_is_named():
    joined = Concat(Act("erf"), Act("sin"), shares=(0.25, 0.75))
    gate = Product(Chain(Dense(1.0)), Chain(Dense(2.0)))
    text = str(nngp.NTK(Chain(Dense(1.0), joined, gate, Repeat(Dense(1.0), 7))))
    assert text.startswith("tangent kernel of\ninput\n")
    for words in ("Concat", "shares 0.25 : 0.75", "erf", "sin", "Product", "7 times"):
        assert words in text


def test_repr_is_still_the_constructor():
    net = Chain(Dense(2.0, 0.1), Repeat(BLOCK, 50), Dense(1.0))
    assert eval(repr(net), vars(nngp)) == net
    assert "\n" not in repr(net)
