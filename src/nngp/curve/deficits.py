"""A network on deficits: the walk for inputs of equal variance.

Takes a network, the input variance and correlations as (sign, m = 1 - |c|); gives the state of each
node in turn. The rules of the nodes are those of `architecture/walk.py`; here are the six
operations that they are made of.

A state holds not K but the deficit D = K(x, x) - K(c) and the surplus K(x, x) + K(c), of which the
small one keeps its relative precision at any depth: all operations add, scale or multiply them, and
subtract nothing large. Behind dropout the deficit of equal inputs, which are two draws of the
masks, is positive.

Where derivatives are asked for, a state also carries them (`Rates`).

Error bounds are propagated too. For c >= 0, D is concave in e = 1 - c, so a layer never amplifies
the relative error of e; for c < 0 the same holds of 1 + c. So the error of a deep curve is about
the sum of its layers' errors.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np

from nngp._arrays import EPS, TINY, Array, Mask
from nngp.architecture import Activation, Network
from nngp.architecture.graph import Affine, Node
from nngp.architecture.walk import Pair, Parameter, RangeCheck, output, walk
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
MAX_VARIANCE = 1e290  # with a larger one the tables would overflow

Item = TypeVar("Item")


class Rates(NamedTuple):
    """Derivatives of K(x, x) and of the deficit in each parameter, and of K in the correlation of
    the inputs. Parameters are the weight variances of all affine maps and then their bias
    variances, each by itself or all of a kind together; the last is the variance of the inputs."""

    variance: Array  # (parameters,)
    deficit: Array  # (parameters, nodes)
    slope: Array  # (nodes,)


@dataclass(frozen=True)
class LayerState:
    """K(x, x), the deficit K(x, x) - K(c) and the surplus K(x, x) + K(c) of one node."""

    variance: float
    deficit: Array
    surplus: Array
    variance_error: float  # relative
    e_error: float  # of e = deficit / variance, relative
    counted: float = 0.0  # the part of variance_error that e_error has counted already
    derivatives: Rates | None = None  # where they are asked for

    @property
    def rates(self) -> Rates:
        """The derivatives that were asked for."""
        assert self.derivatives is not None
        return self.derivatives

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
    """The operations of a walk on deficits. With derivatives, there is one for each variance of a
    kind if `per_layer`, otherwise one for all of them."""

    def __init__(self, per_layer: bool = False) -> None:
        self._per_layer = per_layer

    def mix(
        self, weights: Sequence[float], states: Sequence[LayerState], constant: float
    ) -> LayerState:
        """A constant plus weighted states."""
        value = _mixture(weights, states, constant)
        if states[0].derivatives is None:
            return value
        terms = [self._weighted(weight, one) for weight, one in zip(weights, states, strict=True)]
        variance, deficit, slope = (np.sum(part, axis=0) for part in zip(*terms, strict=True))
        if isinstance(constant, Parameter):
            variance[self._place(constant, len(variance))] += 1.0
        return replace(value, derivatives=Rates(variance, deficit, _finite(slope)))

    def _weighted(self, weight: float, one: LayerState) -> Rates:
        """The derivatives of a weight times a state."""
        own = one.rates
        variance, deficit = weight * own.variance, weight * own.deficit
        if isinstance(weight, Parameter):
            place = self._place(weight, len(variance))
            variance[place] += one.variance
            deficit[place] += one.deficit
        return Rates(variance, deficit, weight * own.slope)

    def _place(self, parameter: Parameter, count: int) -> int:
        layer = parameter.layer if self._per_layer else 0
        return layer + (count // 2 if parameter.kind == "bias_var" else 0)

    def times(self, one: LayerState, other: LayerState) -> LayerState:
        """The product of two functions of the correlation."""
        value = _product(one, other)
        if one.derivatives is None:
            return value
        a, b = one.variance - one.deficit, other.variance - other.deficit
        moved, others = one.rates, other.rates
        rates = Rates(
            moved.variance * other.variance + one.variance * others.variance,
            moved.variance[:, None] * other.deficit
            + moved.deficit * b
            + one.deficit * others.variance[:, None]
            + a * others.deficit,
            _finite(moved.slope * b + a * others.slope),
        )
        return replace(value, derivatives=rates)

    def dual(self, phi: Activation, state: LayerState) -> LayerState:
        """F of an activation; where every input is zero, every unit is phi(0)."""
        if state.variance == 0:
            return _constant(at_zero(phi), state)
        return _through(layer_at(phi, state.variance), state)

    def slope(self, phi: Activation, state: LayerState) -> LayerState:
        """F' of an activation."""
        if state.variance == 0:
            return _constant(at_zero(derivative_of(phi, 1.0)), state)
        return _through(derivative_layer(phi, state.variance), state)

    def normalise(self, state: LayerState, by: LayerState) -> LayerState:
        """Divided by the variance of `by`, whose own becomes exactly one."""
        q = by.variance
        if q == 0:
            raise VarianceError(
                "layer norm divides by the variance of the units, and it is zero; give the "
                "nngp.Dense before it a bias_var, or leave inputs of zeros out"
            )
        variance = 1.0 if state is by else state.variance / q
        error = 0.0 if state is by else state.variance_error + by.variance_error + EPS
        deficit, surplus = state.deficit / q, state.surplus / q
        value = LayerState(variance, deficit, surplus, error, state.e_error + EPS)
        if state.derivatives is None:
            return value
        own, change = state.rates, by.rates.variance / q
        rates = Rates(
            (own.variance - state.variance * change) / q,
            (own.deficit - state.deficit * change[:, None]) / q,
            _finite(own.slope / q),
        )
        return replace(value, derivatives=rates)

    def mask(self, state: LayerState, keep: float) -> LayerState:
        """Only an input with itself has the same mask, so only the variance changes."""
        more = state.variance * (1 / keep - 1)
        value = LayerState(
            state.variance + more,
            state.deficit + more,
            state.surplus + more,
            state.variance_error + 2 * EPS,
            state.e_error + 2 * EPS,
        )
        if state.derivatives is None:
            return value
        own = state.rates
        moved = own.variance * (1 / keep - 1)
        rates = Rates(own.variance + moved, own.deficit + moved[:, None], own.slope)
        return replace(value, derivatives=rates)


def _mixture(weights: Sequence[float], states: Sequence[LayerState], constant: float) -> LayerState:
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


def _product(one: LayerState, other: LayerState) -> LayerState:
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
    return LayerState(variance, np.where(negative, far, gap), np.where(negative, gap, far), *errors)


def _constant(value: float, before: LayerState) -> LayerState:
    """The value for inputs of zeros."""
    if before.derivatives is not None:
        raise VarianceError("derivatives need a positive variance in every layer")
    zero = np.zeros_like(before.m)
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
    rates = None if before.derivatives is None else _rates_through(layer, before)
    return LayerState(layer.second_moment, deficit, surplus, *errors, rates)


def _rates_through(layer: Layer, before: LayerState) -> Rates:
    """D' = Delta(q, e) with e = D / q: dD' = q slope de + Delta_q dq."""
    own = before.rates
    local = layer.slope(before.negative, before.m)  # E[phi'(u) phi'(v)]
    in_var = layer.deficit_in_var(before.negative, before.m)
    column = own.variance[:, None]
    moved = own.deficit - before.e * column
    # Where phi jumps the slope at c = ±1 is large; what does not move stays where it is.
    deficit = np.where(moved == 0, 0.0, local * moved) + in_var * column
    variance = layer.radial_moment / before.variance * own.variance
    return Rates(variance, deficit, _finite(local * own.slope))


def _finite(slope: Array) -> Array:
    """Infinite at c = ±1 where phi jumps: large but finite."""
    largest = np.finfo(float).max
    return np.clip(slope, -largest, largest)


def input_state(input_var: float, negative: Mask, m: Array, parameters: int = 0) -> LayerState:
    """The state of the inputs themselves; with derivatives if there are parameters."""
    deficit, surplus = (np.where(negative, 2 - m, m), np.where(negative, m, 2 - m))
    state = LayerState(input_var, input_var * deficit, input_var * surplus, 0.0, 2 * EPS)
    if not parameters:
        return state
    variance = np.zeros(parameters)
    variance[-1] = 1.0
    rates = Rates(variance, np.outer(variance, deficit), np.full(len(m), input_var))
    return replace(state, derivatives=rates)


def node_states(
    network: Network, input_var: float, negative: Mask, m: Array, *, per_layer: bool | None = None
) -> Iterator[tuple[Node, NodeStates]]:
    """Yield every node with its states; VarianceError outside the range of float64. Derivatives are
    carried along unless `per_layer` is None; at infinite depth it is not True."""
    parameters = 0
    if per_layer is not None:
        parameters = 1 + (2 * len(network.weight_vars) if per_layer else 2)
    inputs = input_state(input_var, negative, m, parameters)
    check, steps = StateCheck(input_var), walk(network, Deficits(bool(per_layer)), inputs)
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


def output_state(
    network: Network, input_var: float, negative: Mask, m: Array, *, per_layer: bool | None = None
) -> LayerState:
    """The state of the last node."""
    return output(node_states(network, input_var, negative, m, per_layer=per_layer))


def output_variance(network: Network, input_var: float) -> float:
    """The kernel of an input with itself: the walk without any pair."""
    return output_state(network, float(input_var), np.zeros(0, bool), np.zeros(0)).variance


def propagate(
    network: Network, input_var: float, negative: Mask, m: Array, *, derivatives: bool = False
) -> Iterator[LayerState]:
    """Yield the states behind each affine map, for ever at infinite depth; derivatives are those in
    the variances of all layers together."""
    shared = False if derivatives else None
    for node, states in node_states(network, input_var, negative, m, per_layer=shared):
        if isinstance(node, Affine):
            yield states.output


def after(items: Iterator[Item], layers: int) -> Item:
    """The item that the iterator yields after `layers` others."""
    for _ in range(layers):
        next(items)
    return next(items)


def _check_tangent(variance: float, layer: int, before: float) -> None:
    check_variance(variance, layer, 0.0, "tangent kernel")


def negative_variance(layer: str, variance: float) -> str:
    """The message about a variance that only a wrong kernel map can give."""
    return (
        f"the variance of {layer} is {variance:.3g}, and no variance is negative; check the "
        "function that was passed to nngp.Activation.from_dual"
    )


def check_variance(variance: float, layer: int, before: float, name: str = "variance") -> float:
    """The variance of a layer; VarianceError outside the range of float64, unless it is 0."""
    if not variance < MAX_VARIANCE or (variance < SMALLEST and before > 0):
        fewer = "a smaller depth, or " if layer > 1 else ""
        if variance < 0:
            raise VarianceError(negative_variance(f"layer {layer}", variance))
        raise VarianceError(
            f"the {name} of layer {layer} is {variance:.3g}, past the range of float64; use "
            f"{fewer}a weight_var nearer to where the variance stays put"
        )
    return variance
