"""The rules of infinite width, on numbers: one pair, followed by hand."""

import numpy as np
import pytest

import nngp
from nngp.architecture.walk import Parameter, RangeCheck, output, walk


class Pairs:
    """The six operations for one pair of inputs whose variances are one where it matters: the
    activation squares, E[u² v²] = 1 + 2 c² and E[2u 2v] = 4 c."""

    def __init__(self):
        self.parameters = []

    def mix(self, weights, states, constant):
        self.parameters += [x for x in (*weights, constant) if isinstance(x, Parameter)]
        return constant + sum(w * s for w, s in zip(weights, states, strict=True))

    def times(self, one, other):
        return one * other

    def dual(self, phi, state):
        return 1 + 2 * state**2

    def slope(self, phi, state):
        return 4 * state

    def normalise(self, state, by):
        return state / (by + 3.25)

    def mask(self, state, keep):
        return state


def found(network, k=0.5, **options):
    return output(walk(network, Pairs(), k, **options))


SQUARE, DENSE = nngp.Act("square"), nngp.Dense(3.0, 0.25)


def test_the_covariance_behind_every_part():
    assert found(DENSE) == 0.25 + 3 * 0.5
    assert found(nngp.Chain(DENSE, SQUARE, DENSE)) == 0.25 + 3 * (1 + 2 * 1.75**2)
    assert found(nngp.Chain(DENSE, nngp.LayerNorm(), DENSE)) == pytest.approx(0.25 + 3 * 0.35)
    assert found(nngp.Chain(DENSE, nngp.Dropout(0.5), DENSE)) == 0.25 + 3 * 1.75
    both = nngp.Sum(DENSE, nngp.Dense(2.0))
    assert found(both) == 1.75 + 1.0
    assert found(nngp.Chain(nngp.Product(DENSE, nngp.Dense(2.0)), DENSE)) == 0.25 + 3 * 1.75
    joined = nngp.Chain(nngp.Concat(DENSE, nngp.Dense(2.0), shares=(0.25, 0.75)), DENSE)
    assert found(joined) == 0.25 + 3 * (0.25 * 1.75 + 0.75 * 1.0)


def test_the_tangent_kernel_behind_every_part():
    """Θ = K behind the first map, as the inputs have no weights."""
    ntk = nngp.NTK
    assert found(ntk(DENSE)) == 1.75
    above = 0.25 + 3 * (1 + 2 * 1.75**2)
    assert found(ntk(nngp.Chain(DENSE, SQUARE, DENSE))) == above + 3 * (4 * 1.75) * 1.75
    normed = nngp.Chain(DENSE, DENSE, nngp.LayerNorm(), DENSE)  # K = 5.5 and Θ = 10.75 before it
    assert found(ntk(normed)) == pytest.approx(0.25 + 3 * 5.5 / 8.75 + 3 * 10.75 / 8.75)
    assert found(ntk(nngp.Sum(DENSE, nngp.Dense(2.0)))) == 1.75 + 1.0
    gated = nngp.Chain(nngp.Product(DENSE, nngp.Dense(2.0)), DENSE)
    assert found(ntk(gated)) == 0.25 + 3 * 1.75 + 3 * (1.75 * 1.0 + 1.75 * 1.0)
    passed = nngp.Sum(nngp.Chain(nngp.Dense(1.0), nngp.Dense(1.0)), nngp.Dense(2.0))
    assert found(ntk(passed)) == (0.5 + 0.5) + 1.0


def test_variances_know_which_they_are():
    """Each map's weight and bias once for K; the weight once more for Θ."""
    operations = Pairs()
    network = nngp.Chain(nngp.Dense(2.0, 0.5), SQUARE, DENSE)
    output(walk(nngp.NTK(network), operations, 0.5))
    met = [(one.kind, one.layer, float(one)) for one in operations.parameters]
    first = [("weight_var", 0, 2.0), ("bias_var", 0, 0.5), ("weight_var", 0, 2.0)]
    assert met == [*first, ("weight_var", 1, 3.0), ("bias_var", 1, 0.25), ("weight_var", 1, 3.0)]


def test_other_variances_take_the_place_of_the_networks():
    given = [(2.0, 1.0), (10.0, 0.0)]
    network = nngp.Chain(DENSE, SQUARE, DENSE)
    assert found(network, variances=given.__getitem__) == 10 * (1 + 2 * 2.0**2)


def test_a_walk_of_infinite_depth_goes_on():
    steps = walk(nngp.Architecture(np.inf, "square", 0.1, 0.0), Pairs(), 0.5)
    values = [next(steps)[1].cov for _ in range(5)]
    assert values[:3] == [0.05, 1 + 2 * 0.05**2, 0.1 * (1 + 2 * 0.05**2)]


def test_a_variance_may_be_zero_where_what_is_before_it_is():
    met = []
    network = nngp.Chain(nngp.Product(DENSE, nngp.Dense(2.0)), DENSE)
    check = RangeCheck(0.0, lambda variance, layer, before: met.append((variance, layer, before)))
    for node, variance in zip(network.graph, (0.25, 0.0, 0.0, 0.5), strict=True):
        check(node, variance)
    # The product is zero with its second factor, which the inputs leave at zero.
    assert met == [(0.25, 0, 0.0), (0.0, 1, 0.0), (0.0, 2, 0.0), (0.5, 2, 0.0)]


def test_only_states_that_are_needed_stay_in_memory():
    block = nngp.Residual(nngp.Act("square"), nngp.Dense(1.0))
    net = nngp.NTK(nngp.Chain(DENSE, nngp.Repeat(block, 40), DENSE))
    counted = Counted()
    output(walk(net, counted, counted.new()))
    assert counted.most <= 12


class Counted:
    """Operations whose results have no values, and are counted while they are in memory."""

    def __init__(self):
        self.alive = self.most = 0

    def new(self, *ignored):
        state = State(self)
        self.alive += 1
        self.most = max(self.most, self.alive)
        return state

    mix = times = dual = slope = normalise = mask = new


class State:
    def __init__(self, owner):
        self._owner = owner

    def __del__(self):
        self._owner.alive -= 1
