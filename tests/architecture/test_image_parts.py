"""Parts of convolutional networks: values that JSON can hold, drawings, and clear refusals."""

import json

import pytest

import nngp
from nngp import (
    Act,
    AvgPool,
    Chain,
    Conv,
    Dense,
    Flatten,
    GlobalAvgPool,
    Image,
    LayerNorm,
    Product,
    Residual,
    Sum,
)
from nngp.architecture.planes import Axis, AxisWindow

START, END = (Image((4, 5, 3)), Conv(3, 2.0, 0.1)), (Flatten(), Dense(1.0))
NETWORKS = [
    Chain(*START, Act("relu"), *END),
    Chain(Image((4, 5)), Conv((1, 2), 2.0, stride=2, padding="valid"), GlobalAvgPool(), Dense(1.0)),
    Chain(*START, Act("relu"), AvgPool(2, (1, 2)), AvgPool(2), *END),
]


@pytest.mark.parametrize("net", NETWORKS)
def test_networks_survive_json_and_their_own_repr(net):
    assert nngp.Network.from_dict(json.loads(json.dumps(net.as_dict()))) == net
    assert eval(repr(net), vars(nngp)) == net
    assert str(net).startswith("input\nImage")


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((Conv(3, 1.0), *END), "begin the network with nngp.Image"),
        ((*START, Dense(1.0)), "nngp.Flatten.. or nngp.GlobalAvgPool.. before it"),
        ((*START, Act("relu"), *END, *END), "flatten it once"),
        ((Dense(1.0), *START, *END), "comes first"),
        ((*START, Flatten(), Act("relu"), Dense(1.0)), "put an nngp.Dense behind it"),
        ((*START, Flatten(), LayerNorm(), Dense(1.0)), "put an nngp.Dense behind it"),
        ((*START, Product(Flatten(), Chain(Conv(1, 1.0), Flatten())), Dense(1.0)), "product"),
        ((*START, Flatten()), "does not end in an affine map"),
        ((*START, Conv(6, 1.0, padding="valid"), *END), "6 x 6 is larger .* 4 x 5"),
        ((*START, AvgPool(5), *END), "5 x 5 is larger .* 4 x 5"),
        ((*START, Residual(Act("relu"), Conv(3, 1.0, stride=2)), *END), "4 x 5 and 2 x 3"),
        ((*START, Act("relu"), Act("relu"), *END), "put an nngp.Dense"),
    ],
)
def test_networks_without_a_gaussian_limit_are_refused(parts, words):
    with pytest.raises(ValueError, match=words):
        _ = Chain(*parts).graph


def test_a_dense_branch_beside_the_image_is_refused():
    with pytest.raises(ValueError, match=r"begin a dense branch with nngp.Flatten\(\)"):
        _ = Sum(Chain(*START, *END), Dense(1.0)).graph


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Image(4), "height 1"),
        (lambda: Image((4, 0)), "width"),
        (lambda: Conv(0, 1.0), "window"),
        (lambda: Conv((1, 2, 3), 1.0), "a number or .height, width."),
        (lambda: Conv(3, 1.0, padding="zeros"), "same, valid, circular"),
        (lambda: Conv(3, -1.0), "weight_var"),
        (lambda: AvgPool(2, 0), "stride"),
    ],
)
def test_wrong_arguments_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_planes_are_counted():
    def planes(*parts):
        return Chain(Image((8, 6)), Conv(3, 1.0), *parts, Dense(1.0)).planes.planes

    assert planes(Flatten()) == 1
    assert planes(AvgPool(2), Flatten()) == 9
    assert planes(AvgPool(2), Conv(3, 1.0), AvgPool(2), Flatten()) == 7 * 6
    assert planes(GlobalAvgPool()) == 48
    assert Chain(Dense(1.0)).planes is None


def test_a_window_needs_the_offsets_that_it_reads():
    window = AxisWindow(7, 2, 2, "valid", mean=True)
    assert window.needed([1]) == {1, 2, 3}
    assert AxisWindow(7, 3, 2, "circular", mean=False).needed([1]) == {2, -5}
    assert window.behind(Axis(7, (0, 1, 6))) == Axis(3, (0,))
