"""A network on deficits: the walk for inputs of equal variance.

Takes a network, the input variance and correlations as (sign, m = 1 - |c|); gives the state of each
node in turn. The rules of the nodes are those of `architecture/walk.py`; here are the six
operations that they are made of.

A state holds not K but the deficit D = K(x, x) - K(c) and the surplus K(x, x) + K(c), of which the
small one keeps its relative precision at any depth: all operations add, scale or multiply them, and
subtract nothing large. Behind dropout the deficit of equal inputs, which are two draws of the
masks, is positive.

Error bounds are propagated too. For c >= 0, D is concave in e = 1 - c, so a layer never amplifies
the relative error of e; for c < 0 the same holds of 1 + c. So the error of a deep curve is about
the sum of its layers' errors.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from nngp._arrays import EPS, TINY, Array, Mask
from nngp.architecture import Activation, Network
from nngp.architecture.graph import Affine, Node
from nngp.architecture.walk import Pair, RangeCheck, output, walk
from nngp.covariance import (
    Layer,
    at_zero,
    both_sides,
    derivative_layer,
    derivative_of,
    layer_at,
)
from nngp.errors import VarianceError

SMALLEST = 1e-290  # variance: with a smaller one deficits would underflow
LARGEST = 1e290  # with a larger one the tables would overflow

Item = TypeVar("Item")


@dataclass(frozen=True)
class LayerState:
    """K(x, x), the deficit K(x, x) - K(c) and the surplus K(x, x) + K(c) of one node."""

    variance: float
    deficit: Array
    surplus: Array
    variance_error: float  # relative
    e_error: float  # of e = deficit / variance, relative
    counted: float = 0.0  # the part of variance_error that e_error has counted already

    @cached_property
    def negative(self) -> Mask:
        """Whether the correlation is negative."""
        if self.variance == 0:
            return np.zeros(self.deficit.shape, bool)
        return self.deficit / self.variance > 1

    @cached_property
    def m(self) -> Array:
        """1 - |c|."""
        if self.variance == 0:
            return np.zeros_like(self.deficit)
        small = np.where(self.negative, self.surplus / self.variance, self.deficit / self.variance)
        return np.minimum(small, 1.0)

    @property
    def e(self) -> Array:
        """The deficit relative to the variance, 1 - c."""
        return self.deficit / self.variance if self.variance > 0 else np.zeros_like(self.deficit)

    @property
    def error(self) -> float:
        """Error of K relative to the variance."""
        return self.variance_error + float(np.max(self.e, initial=0.0)) * self.e_error


NodeStates = Pair[LayerState]


class Deficits:
    """The operations of a walk on deficits."""

    def mix(
        self, weights: Sequence[float], states: Sequence[LayerState], constant: float
    ) -> LayerState:
        """A constant plus weighted states. An error of one variance moves e by as much as its own e
        differs from that of the whole."""
        parts = list(zip(weights, states, strict=True))
        variance = constant + sum(weight * state.variance for weight, state in parts)
        deficit = np.asarray(sum(weight * state.deficit for weight, state in parts))
        surplus = np.asarray(2 * constant + sum(weight * state.surplus for weight, state in parts))
        if variance == 0:
            return LayerState(0.0, deficit, surplus, 2 * EPS, 4 * EPS)
        shares = [weight * state.variance / variance for weight, state in parts]
        whole = deficit > 0
        e = deficit[whole] / variance
        moved = sum(
            share
            * float(np.max(np.abs(state.e[whole] / e - 1), initial=0.0))
            * (state.variance_error - state.counted)
            for share, state in zip(shares, states, strict=True)
        )
        errors = (
            sum(share * state.variance_error for share, state in zip(shares, states, strict=True)),
            max(state.e_error for state in states) + moved,
        )
        return LayerState(variance, deficit, surplus, errors[0] + EPS, errors[1] + 2 * EPS)

    def times(self, one: LayerState, other: LayerState) -> LayerState:
        """The product of two functions of the correlation. With a gap the difference of an absolute
        value from its largest, the gap of a product adds without subtracting anything large."""
        gaps = [np.where(s.negative, s.surplus, s.deficit) for s in (one, other)]
        variance = one.variance * other.variance
        gap = one.variance * gaps[1] + np.maximum(other.variance - gaps[1], 0.0) * gaps[0]
        negative = one.negative != other.negative
        far = 2 * variance - gap
        errors = (
            one.variance_error + other.variance_error + EPS,
            max(one.e_error, other.e_error) + 2 * EPS,
        )
        return LayerState(
            variance, np.where(negative, far, gap), np.where(negative, gap, far), *errors
        )

    def dual(self, phi: Activation, state: LayerState) -> LayerState:
        """F of an activation; where every input is zero, every unit is phi(0)."""
        if state.variance == 0:
            return _constant(at_zero(phi), state.m)
        return _through(layer_at(phi, state.variance), state)

    def slope(self, phi: Activation, state: LayerState) -> LayerState:
        """F' of an activation."""
        if state.variance == 0:
            return _constant(at_zero(derivative_of(phi, 1.0)), state.m)
        return _through(derivative_layer(phi, state.variance), state)

    def normalise(self, state: LayerState, by: LayerState) -> LayerState:
        """Divided by the variance of `by`, whose own becomes exactly one."""
        if by.variance == 0:
            raise VarianceError(
                "layer norm divides by the variance of the units, and it is zero; give the "
                "nngp.Dense before it a bias_var, or leave inputs of zeros out"
            )
        variance = 1.0 if state is by else state.variance / by.variance
        error = 0.0 if state is by else state.variance_error + by.variance_error + EPS
        deficit, surplus = state.deficit / by.variance, state.surplus / by.variance
        return LayerState(variance, deficit, surplus, error, state.e_error + EPS)

    def mask(self, state: LayerState, keep: float) -> LayerState:
        """Only an input with itself has the same mask, so only the variance changes."""
        more = state.variance * (1 / keep - 1)
        return LayerState(
            state.variance + more,
            state.deficit + more,
            state.surplus + more,
            state.variance_error + 2 * EPS,
            state.e_error + 2 * EPS,
        )


def _constant(value: float, like: Array) -> LayerState:
    zero = np.zeros_like(like)
    return LayerState(value, zero, zero + 2 * value, 2 * EPS, 4 * EPS)


def _through(layer: Layer, before: LayerState) -> LayerState:
    """F of a layer at these correlations."""
    deficit, surplus = both_sides(layer, before.negative, before.m)
    gain = layer.radial_moment / max(layer.second_moment, TINY)  # d log F / d log q
    variance = abs(gain) * before.variance_error + layer.error
    # An error of q changes deficit and variance in proportion; only the difference reaches e.
    unbalanced = abs(layer.stretch - gain) * before.variance_error
    own = layer.surplus_error if layer.parity == "none" else layer.error
    errors = variance, before.e_error + unbalanced + own, layer.error
    return LayerState(layer.second_moment, deficit, surplus, *errors)


def input_state(input_var: float, negative: Mask, m: Array) -> LayerState:
    """The state of the inputs themselves."""
    deficit, surplus = (np.where(negative, 2 - m, m), np.where(negative, m, 2 - m))
    return LayerState(input_var, input_var * deficit, input_var * surplus, 0.0, 2 * EPS)


def node_states(
    network: Network, input_var: float, negative: Mask, m: Array
) -> Iterator[tuple[Node, NodeStates]]:
    """Yield every node with its states; VarianceError outside the range of float64."""
    inputs, check = input_state(input_var, negative, m), StateCheck(input_var)
    steps = walk(network, Deficits(), inputs)
    while True:
        with np.errstate(all="ignore"):
            found = next(steps, None)
        if found is None:
            return
        check(*found)
        yield found


class StateCheck:
    """Check of the variances of K and Θ behind every node of a walk."""

    def __init__(self, input_var: float) -> None:
        self._covariance = RangeCheck(input_var, check_variance)
        self._tangent = RangeCheck(0.0, _check_tangent)

    def __call__(self, node: Node, states: NodeStates) -> None:
        self._covariance(node, states.cov.variance)
        if states.tangent is not None:
            self._tangent(node, states.tangent.variance)


def output_state(network: Network, input_var: float, negative: Mask, m: Array) -> LayerState:
    """The state of the last node."""
    return output(node_states(network, input_var, negative, m))


def output_variance(network: Network, input_var: float) -> float:
    """The kernel of an input with itself: the walk without any pair."""
    return output_state(network, float(input_var), np.zeros(0, bool), np.zeros(0)).variance


def propagate(network: Network, input_var: float, negative: Mask, m: Array) -> Iterator[LayerState]:
    """Yield the states behind each affine map, for ever at infinite depth."""
    for node, states in node_states(network, input_var, negative, m):
        if isinstance(node, Affine):
            yield states.output


def after(items: Iterator[Item], layers: int) -> Item:
    """The item that the iterator yields after `layers` others."""
    for _ in range(layers):
        next(items)
    return next(items)


def _check_tangent(variance: float, layer: int, before: float) -> None:
    check_variance(variance, layer, 0.0, "tangent kernel")


def check_variance(variance: float, layer: int, before: float, name: str = "variance") -> float:
    """The variance of a layer; VarianceError outside the range of float64, unless it is 0."""
    if not variance < LARGEST or (variance < SMALLEST and before > 0):
        fewer = "a smaller depth, or " if layer > 1 else ""
        raise VarianceError(
            f"the {name} of layer {layer} is {variance:.3g}, past the range of float64; use "
            f"{fewer}a weight_var nearer to where the variance stays put"
        )
    return variance
