"""Families of transformations: what they do to an image, that their averages are complete, and what
is refused; orbits against all pairs written out."""

import json
import math
import pickle
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import nngp
from nngp import images, symmetries
from nngp.architecture.invariances import orbit_of

NET = nngp.Architecture(2, "relu", 1.6, 0.1)
IMAGE = np.arange(24.0)  # 4 x 3 pixels of two colours


def transformed(family, shape):
    """The image under every transformation, as an array of that shape."""
    return [one(IMAGE[None])[0].reshape(shape) for one in family.elements(len(IMAGE))]


def test_flips_mirror_an_image():
    shape = (4, 3, 2)
    _, mirrored = transformed(images.flips(shape), shape)
    np.testing.assert_array_equal(mirrored, IMAGE.reshape(shape)[:, ::-1])
    _, upside_down = transformed(images.flips(shape, axis="vertical"), shape)
    np.testing.assert_array_equal(upside_down, IMAGE.reshape(shape)[::-1])


def test_channels_may_come_first():
    shape = (2, 4, 3)
    _, mirrored = transformed(images.flips(shape), shape)
    np.testing.assert_array_equal(mirrored, IMAGE.reshape(shape)[:, :, ::-1])


def test_shifts_move_an_image_in_a_circle():
    shape = (4, 3, 2)
    moves = list(product((-1, 0, 1), repeat=2))
    for found, move in zip(transformed(images.shifts(1, shape), shape), moves, strict=True):
        np.testing.assert_array_equal(found, np.roll(IMAGE.reshape(shape), move, (0, 1)))


def test_quarter_turns():
    square = np.arange(9.0)
    found = [one(square[None])[0].reshape(3, 3) for one in images.rotations().elements(9)]
    for k, one in enumerate(found):
        np.testing.assert_array_equal(one, np.rot90(square.reshape(3, 3), k))


def test_small_turns_keep_the_norm_and_what_is_round():
    X = np.random.default_rng(0).normal(size=(3, 64))
    down, right = np.mgrid[0:8, 0:8] - 3.5
    X[0] = np.exp(-(down**2 + right**2) / 4).ravel()
    left, still, other = images.rotations((8, 8), degrees=20).elements(64)
    assert still(X) is X
    np.testing.assert_allclose((left(X) ** 2).sum(axis=1), (X**2).sum(axis=1), rtol=1e-14)
    np.testing.assert_allclose(left(X)[0], X[0], atol=0.03)
    assert np.abs(left(X)[1] - X[1]).max() > 0.3
    mirror = images.flips((8, 8)).elements(64)[1]
    np.testing.assert_allclose(mirror(left(X)), other(mirror(X)), atol=1e-12)


def test_small_turns_turn_as_quarter_turns_do():
    X = np.random.default_rng(0).normal(size=(2, 64))
    by_90 = images.rotations((8, 8), degrees=90, count=2).elements(64)[1]
    quarter = images.rotations((8, 8)).elements(64)[1]
    np.testing.assert_allclose(by_90(X), quarter(X), atol=1e-9)


def test_orders_of_colours():
    shape = (2, 4, 3)
    same, swapped = transformed(images.colour_order(shape), shape)
    np.testing.assert_array_equal(same, IMAGE.reshape(shape))
    np.testing.assert_array_equal(swapped, IMAGE.reshape(shape)[::-1])


def test_blocks_of_columns():
    found = [
        one(IMAGE[None, :7])[0] for one in symmetries.permutations([[0, 1], [4, 6]]).elements(7)
    ]
    assert [list(one) for one in found] == [[0, 1, 2, 3, 4, 5, 6], [4, 6, 2, 3, 0, 5, 1]]
    cyclic = symmetries.permutations([0, 2, 1], kind="cyclic").elements(3)
    assert sorted(list(one(np.array([[5.0, 6.0, 7.0]]))[0]) for one in cyclic) == [
        [5.0, 6.0, 7.0],
        [6.0, 7.0, 5.0],
        [7.0, 5.0, 6.0],
    ]


def test_signs():
    same, turned = symmetries.signs([1]).elements(3)
    assert turned(np.ones((1, 3)))[0].tolist() == [1.0, -1.0, 1.0]
    assert same(np.ones((1, 3)))[0].tolist() == [1.0, 1.0, 1.0]


FAMILIES = {
    "flips": images.flips((4, 4), probability=0.3),
    "vertical": images.flips((4, 4), axis="vertical", probability=0.1),
    "shifts": images.shifts(1, (4, 4)),
    "wide": images.shifts(1, (4, 4), width=0.8),
    "turns": images.rotations((4, 4)),
    "colours": images.colour_order((2, 2, 4), probability=0.2),
    "sets": symmetries.permutations([[0, 1], [2, 3], [8, 4]]),
    "signs": symmetries.signs([1, 5], probability=0.4),
}


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_weights_sum_to_one_and_slopes_are_their_derivatives(family):
    assert family.weights.sum() == pytest.approx(1, rel=1e-14)
    assert len(family.weights) == len(family.elements(16))
    for name, slope in family.slopes().items():
        value = getattr(family, name)
        more, less = (replace(family, **{name: value + h}) for h in (1e-6, -1e-6))
        difference = (more.weights - less.weights) / 2e-6
        np.testing.assert_allclose(slope, difference, atol=1e-9)


@pytest.mark.parametrize("names", [["flips", "wide"], ["turns", "vertical"], ["sets", "signs"]])
def test_an_orbit_is_the_average_over_all_pairs(names):
    """Of inner products: Σ w_g w_h (g x)·(h x')."""
    families, rng = tuple(FAMILIES[name] for name in names), np.random.default_rng(0)
    x, y = rng.normal(size=(2, 1, 16))
    group = [
        (second(first(x)), second(first(y)), v * w)
        for first, v in zip(families[0].elements(16), families[0].weights, strict=True)
        for second, w in zip(families[1].elements(16), families[1].weights, strict=True)
    ]
    cubes = sum(v * w * (gx @ hy.T).item() ** 3 for gx, _, v in group for _, hy, w in group)
    orbit = orbit_of(families, 16)
    found = sum(term.weight * (x @ term.order(y).T).item() ** 3 for term in orbit.terms())
    assert found == pytest.approx(cubes, rel=1e-12)
    assert sum(term.weight for term in orbit.terms()) == pytest.approx(1, rel=1e-14)
    orders = [order.key for order in orbit.orders]
    assert len(set(orders)) == len(orders) < len(group) ** 2


def test_a_group_costs_as_many_products_as_it_has_elements():
    flips, shifts = images.flips((8, 8)), images.shifts(2, (8, 8))
    assert nngp.Invariant(NET, flips).products(64) == 2
    assert nngp.Invariant(NET, images.rotations((8, 8))).products(64) == 4
    assert nngp.Invariant(NET, shifts).products(64) == 64  # from -4 to 4 are all eight shifts
    assert nngp.Invariant(NET, images.shifts(1, (8, 8))).products(64) == 25
    assert nngp.Invariant(NET, [flips, images.shifts(1, (8, 8))]).products(64) == 50
    assert nngp.Invariant(NET, images.rotations((8, 8), degrees=9)).products(64) == 9
    assert NET.products(64) == 1
    off = nngp.Invariant(NET, images.flips((8, 8), probability=0.0))
    assert off.products(64) == 1


def test_triangular_weights_of_shifts():
    orbit = orbit_of((images.shifts(1, (9, 9)),), 81)
    along = np.array([1, 2, 3, 2, 1]) / 9
    expected = sorted(np.outer(along, along).ravel())
    np.testing.assert_allclose(sorted(orbit.order_weights), expected, rtol=1e-13)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_a_network_can_be_saved_sent_and_compared(family):
    net = nngp.Invariant(nngp.NTK(NET), [family])
    text = json.dumps(net.as_dict(), allow_nan=False)
    assert nngp.Network.from_dict(json.loads(text)) == net
    assert pickle.loads(pickle.dumps(net)) == net
    assert hash(net) == hash(nngp.Invariant(nngp.NTK(NET), family))
    assert net != nngp.Invariant(NET, family)


def test_small_turns_can_be_saved_and_own_functions_cannot():
    net = nngp.Invariant(NET, images.rotations((4, 4), degrees=5, count=4))
    assert nngp.Network.from_dict(net.as_dict()) == net
    with pytest.raises(ValueError, match="functions of your own cannot be saved"):
        nngp.Invariant(NET, lambda X: X).as_dict()


def test_it_prints():
    text = str(nngp.Invariant(NET, [images.flips((4, 4)), symmetries.permutations([0, 1])]))
    assert text.splitlines()[1].startswith("average over flips")
    assert "2 blocks of 1, all" in text
    assert repr(nngp.Invariant(NET, images.flips())).startswith("Invariant(Architecture(")


def test_a_family_prints_as_the_call_that_makes_it():
    names = {"images": images, "symmetries": symmetries, "inf": math.inf}
    for family in FAMILIES.values():
        assert eval(repr(family), names) == family


IMPOSSIBLE = [
    (lambda: images.flips((4,)), r"shape must be \(height, width\)"),
    (lambda: images.flips((9, 9, 9)), "which axis the channels are"),
    (lambda: images.flips((3, 9, 3)), "which axis the channels are"),
    (lambda: images.flips(axis="diagonal"), "axis must be one of"),
    (lambda: images.flips(probability=1.5), "between 0 and 1"),
    (lambda: images.shifts(0), "at least 1"),
    (lambda: images.shifts(1, width=0.0), "width must be positive"),
    (lambda: images.shifts(1, width=math.nan), "width must be positive"),
    (lambda: images.rotations(degrees=0), "between 0 and 180"),
    (lambda: images.colour_order((8, 8)), "two channels or more"),
    (lambda: symmetries.permutations([0]), "two or more columns"),
    (lambda: symmetries.permutations([[0, 1], [2]]), "of one length"),
    (lambda: symmetries.permutations([[0, 1], [1, 2]]), "must not share"),
    (lambda: symmetries.permutations(range(9)), "use kind='cyclic'"),
    (lambda: symmetries.signs(probability=-0.1), "between 0 and 1"),
    (lambda: symmetries.functions(), "at least one function"),
    (lambda: symmetries.functions(abs, weights=[1.0]), "2 numbers of at least 0"),
    (lambda: symmetries.functions(abs, weights=[1.0, -1.0]), "2 numbers of at least 0"),
    (lambda: nngp.Invariant(NET, []), "at least one family"),
    (lambda: nngp.Invariant(NET, [images.flips(), images.flips((4, 4))]), "told apart"),
]


def test_what_cannot_be_is_one_sentence():
    for make, sentence in IMPOSSIBLE:
        with pytest.raises(ValueError, match=sentence):
            make()


UNFIT = [
    (images.flips(), 12, "12 is no square"),
    (images.flips((4, 4)), 17, "have 16 numbers, and X has 17"),
    (images.rotations((4, 3)), 12, "must be square"),
    (images.shifts(2, (4, 4)), 16, "the same shift would be counted twice"),
    (symmetries.signs([7]), 4, "column 7"),
    ([images.shifts(9, (64, 64)), images.flips((64, 64))], 4096, "too many to average"),
]


def test_what_does_not_fit_the_inputs_is_one_sentence():
    for families, d, sentence in UNFIT:
        with pytest.raises(ValueError, match=sentence):
            nngp.kernel(nngp.Invariant(NET, families), np.ones((2, d)))


def test_what_is_no_network_or_family():
    with pytest.raises(TypeError, match="families, such as"):
        nngp.Invariant(NET, "flips")
    with pytest.raises(TypeError, match="not invariant yet"):
        nngp.Invariant(nngp.Invariant(NET, images.flips()), images.flips())
    with pytest.raises(TypeError, match=r"nngp.Invariant\(nngp.NTK"):
        nngp.NTK(nngp.Invariant(NET, images.flips()))
    for wrong in ({"family": "flips"}, {"family": "waves"}, {}):
        with pytest.raises(ValueError, match="famil"):
            nngp.Network.from_dict({"part": "invariant", "of": NET.as_dict(), "families": [wrong]})
