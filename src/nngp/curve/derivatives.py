"""Derivatives of a curve in the correlation and in every variance: the walk in forward mode.

A state is that of the deficits and its derivatives. Parameters are the weight variances of all
affine maps and then their bias variances, each by itself or all of a kind together; the last is the
variance of the inputs.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nngp._arrays import Array, Mask
from nngp.architecture import Activation, Network
from nngp.architecture.graph import Affine, Node
from nngp.architecture.walk import Pair, Parameter, output, walk
from nngp.covariance import Layer, derivative_layer, layer_at
from nngp.curve.deficits import Deficits, LayerState, StateCheck, input_state
from nngp.errors import VarianceError


class Tangents(NamedTuple):
    """A state with the derivatives of K(x, x) and of the deficit in each parameter, and of K in
    the correlation of the inputs."""

    state: LayerState
    variance: Array  # (parameters,)
    deficit: Array  # (parameters, nodes)
    slope: Array  # (nodes,)


class Derivatives:
    """The operations of a walk on states with their derivatives, by the product and chain rule."""

    def __init__(self, parameters: int, *, per_layer: bool) -> None:
        self._count, self._per_layer, self._values = parameters, per_layer, Deficits()

    def _place(self, parameter: Parameter) -> int:
        layer = parameter.layer if self._per_layer else 0
        return layer + (self._count // 2 if parameter.kind == "bias_var" else 0)

    def mix(
        self, weights: Sequence[float], states: Sequence[Tangents], constant: float
    ) -> Tangents:
        value = self._values.mix(weights, [one.state for one in states], constant)
        moved = [self._weighted(weight, one) for weight, one in zip(weights, states, strict=True)]
        variance, deficit, slope = (np.sum(part, axis=0) for part in zip(*moved, strict=True))
        if isinstance(constant, Parameter):
            variance[self._place(constant)] += 1.0
        return Tangents(value, variance, deficit, _finite(slope))

    def _weighted(self, weight: float, one: Tangents) -> tuple[Array, Array, Array]:
        """The derivatives of a weight times a state."""
        variance, deficit = weight * one.variance, weight * one.deficit
        if isinstance(weight, Parameter):
            variance[self._place(weight)] += one.state.variance
            deficit[self._place(weight)] += one.state.deficit
        return variance, deficit, weight * one.slope

    def times(self, one: Tangents, other: Tangents) -> Tangents:
        a, b = one.state, other.state
        values = a.variance - a.deficit, b.variance - b.deficit
        return Tangents(
            self._values.times(a, b),
            one.variance * b.variance + a.variance * other.variance,
            one.variance[:, None] * b.deficit
            + one.deficit * values[1]
            + a.deficit * other.variance[:, None]
            + values[0] * other.deficit,
            _finite(one.slope * values[1] + values[0] * other.slope),
        )

    def dual(self, phi: Activation, state: Tangents) -> Tangents:
        _check_positive(state)
        layer = layer_at(phi, state.state.variance)
        return _through(layer, self._values.dual(phi, state.state), state)

    def slope(self, phi: Activation, state: Tangents) -> Tangents:
        _check_positive(state)
        layer = derivative_layer(phi, state.state.variance)
        return _through(layer, self._values.slope(phi, state.state), state)

    def normalise(self, state: Tangents, by: Tangents) -> Tangents:
        q, change = by.state.variance, by.variance / by.state.variance
        return Tangents(
            self._values.normalise(state.state, by.state),
            (state.variance - state.state.variance * change) / q,
            (state.deficit - state.state.deficit * change[:, None]) / q,
            _finite(state.slope / q),
        )

    def mask(self, state: Tangents, keep: float) -> Tangents:
        more = state.variance * (1 / keep - 1)
        value = self._values.mask(state.state, keep)
        return Tangents(value, state.variance + more, state.deficit + more[:, None], state.slope)


def _check_positive(own: Tangents) -> None:
    if own.state.variance == 0:
        raise VarianceError("derivatives need a positive variance in every layer")


def _through(layer: Layer, value: LayerState, own: Tangents) -> Tangents:
    """D' = Delta(q, e) with e = D / q: dD' = q slope de + Delta_q dq."""
    before = own.state
    local = layer.slope(before.negative, before.m)  # E[phi'(u) phi'(v)]
    in_var = layer.deficit_in_var(before.negative, before.m)
    column = own.variance[:, None]
    moved = own.deficit - before.e * column
    # Where phi jumps the slope at c = ±1 is large; what does not move stays where it is.
    deficit = np.where(moved == 0, 0.0, local * moved) + in_var * column
    variance = layer.radial_moment / before.variance * own.variance
    return Tangents(value, variance, deficit, _finite(local * own.slope))


def _finite(slope: Array) -> Array:
    """Infinite at c = ±1 where phi jumps: large but finite."""
    largest = np.finfo(float).max
    return np.clip(slope, -largest, largest)


def node_tangents(
    network: Network, input_var: float, negative: Mask, m: Array, *, per_layer: bool
) -> Iterator[tuple[Node, Pair[Tangents]]]:
    """Yield every node with its states and their derivatives; at infinite depth `per_layer` is
    False."""
    count = 1 + (2 * len(network.weight_vars) if per_layer else 2)
    check, do = StateCheck(input_var), Derivatives(count, per_layer=per_layer)
    state, variance = input_state(input_var, negative, m), np.zeros(count)
    variance[-1] = 1.0
    deficit = np.outer(variance, state.deficit / input_var if input_var else np.zeros_like(m))
    inputs = Tangents(state, variance, deficit, np.full(len(m), input_var))
    steps = walk(network, do, inputs)
    while True:
        with np.errstate(all="ignore"):
            found = next(steps, None)
        if found is None:
            return
        node, (cov, tangent) = found
        check(node, Pair(cov.state, None if tangent is None else tangent.state))
        yield found


def output_tangents(
    network: Network, input_var: float, negative: Mask, m: Array, *, per_layer: bool
) -> Tangents:
    """State and derivatives of the output."""
    return output(node_tangents(network, input_var, negative, m, per_layer=per_layer))


def layer_tangents(
    network: Network, input_var: float, negative: Mask, m: Array
) -> Iterator[Tangents]:
    """Yield state and derivatives behind each affine map, for ever at infinite depth; all layers
    move together."""
    for node, states in node_tangents(network, input_var, negative, m, per_layer=False):
        if isinstance(node, Affine):
            yield states.output
