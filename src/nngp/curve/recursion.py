"""The recursion of eq. 5 over the nodes of a network, for inputs of equal variance.

Takes a network, the input variance and correlations as (sign, m = 1 - |c|); gives the state of each
node in turn, of the covariance K and, for a tangent kernel, of Θ beside it. With F = E[phi phi] and
F' = E[phi' phi'] the rules are

    affine map      b + w K           (b + w K) + w Θ
    nonlinearity    F(K)              F'(K) Θ
    sum             K1 + K2           Θ1 + Θ2
    product         K1 K2             Θ1 K2 + K1 Θ2
    side by side    p1 K1 + p2 K2     the same of Θ
    layer norm      K / q             Θ / q
    dropout         K, but q / keep for an input with itself; Θ likewise

A state holds not K but the deficit D = K(x, x) - K(c) and the surplus K(x, x) + K(c), of which the
small one keeps its relative precision at any depth: all rules add, scale or multiply them, and
subtract nothing large. Behind dropout the deficit of equal inputs, which are two draws of the
masks, is positive.

Error bounds are propagated too. For c >= 0, D is concave in e = 1 - c, so a layer never amplifies
the relative error of e; for c < 0 the same holds of 1 + c. So the error of a deep curve is about
the sum of its layers' errors.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, NamedTuple, TypeVar

import numpy as np

from nngp._arrays import EPS, TINY, Array, Mask
from nngp.architecture import Network
from nngp.architecture.graph import (
    INPUT,
    Added,
    Affine,
    Joined,
    Masked,
    Multiplied,
    Node,
    Nonlinearity,
    Normalised,
    last_uses,
)
from nngp.covariance import (
    Layer,
    both_sides,
    derivative_at_zero,
    derivative_layer,
    layer_at,
)
from nngp.errors import VarianceError

SMALLEST = 1e-290  # variance: with a smaller one deficits would underflow
LARGEST = 1e290  # with a larger one the tables would overflow


Item = TypeVar("Item")
Variance = Any  # a float, or an array with one of each input


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


class NodeState(NamedTuple):
    """The covariance of a node and, if it is asked for, its tangent kernel."""

    cov: LayerState
    tangent: LayerState | None

    @property
    def output(self) -> LayerState:
        """The tangent kernel if there is one, otherwise the covariance."""
        return self.cov if self.tangent is None else self.tangent


def propagate(network: Network, input_var: float, negative: Mask, m: Array) -> Iterator[LayerState]:
    """Yield the states behind each affine map, for ever at infinite depth."""
    for node, state in node_states(network, input_var, negative, m):
        if isinstance(node, Affine):
            yield state.output


def output_state(network: Network, input_var: float, negative: Mask, m: Array) -> LayerState:
    """The state of the last node."""
    *_, (_, state) = node_states(network, input_var, negative, m)
    return state.output


def node_states(
    network: Network, input_var: float, negative: Mask, m: Array
) -> Iterator[tuple[Node, NodeState]]:
    """Yield every node with its state, in the order of computation."""
    states, layer = {INPUT: input_state(network, input_var, negative, m)}, 0
    largest = {INPUT: input_var}  # as `largest_before` has it
    unused = None if network.is_infinite else last_uses(network.graph)
    for index, node in enumerate(network.nodes(), start=1):
        with np.errstate(all="ignore"):
            state = _next_state(node, [states[source] for source in node.sources])
        before = largest_before(node, [largest[source] for source in node.sources])
        _check(node, state, before, layer)
        largest[index] = max(before, state.cov.variance)
        layer += isinstance(node, Affine)
        states[index] = state
        for source in [index - 1] if unused is None else unused[index - 1]:
            del states[source], largest[source]
        yield node, state


def largest_before(node: Node, own: Sequence[Variance]) -> Variance:
    """The largest variance on the way to a node, from those on the way to its sources. Where it is
    positive, that of the node may not be zero; a product is zero with any of its factors."""
    return reduce(np.minimum if isinstance(node, Multiplied) else np.maximum, own)


def after(items: Iterator[Item], layers: int) -> Item:
    """The item that the iterator yields after `layers` others."""
    for _ in range(layers):
        next(items)
    return next(items)


def input_state(network: Network, input_var: float, negative: Mask, m: Array) -> NodeState:
    """The state of the inputs themselves."""
    deficit, surplus = (np.where(negative, 2 - m, m), np.where(negative, m, 2 - m))
    cov = LayerState(input_var, input_var * deficit, input_var * surplus, 0.0, 2 * EPS)
    zero = np.zeros_like(m)
    return NodeState(cov, LayerState(0.0, zero, zero, 0.0, 0.0) if network.is_tangent else None)


def _next_state(node: Node, own: Sequence[NodeState]) -> NodeState:
    """The state of a node from those of its sources."""
    first = own[0]
    match node:
        case Affine(weight_var=weight, bias_var=bias):
            cov = mixture([(weight, first.cov)], bias)
            tangent = first.tangent and mixture([(1.0, cov), (weight, first.tangent)])
            return NodeState(cov, tangent)
        case Nonlinearity(activation=phi):
            cov, tangent = first
            if cov.variance == 0:  # every input is zero, so every unit is phi(0)
                moved = _constant(float(phi(np.zeros(1))[0] ** 2), cov.m)
                slope = tangent and _constant(derivative_at_zero(phi), cov.m)
            else:
                moved = through_layer(layer_at(phi, cov.variance), cov)
                slope = tangent and through_layer(derivative_layer(phi, cov.variance), cov)
            return NodeState(moved, slope and tangent and product(slope, tangent))
        case Added():
            return _mixed(own, [1.0] * len(own))
        case Joined(shares=shares):
            return _mixed(own, shares)
        case Multiplied():
            return _multiplied(*own)
        case Normalised():
            return NodeState(*(part and _divided(part, first.cov) for part in first))  # type: ignore[arg-type]
        case Masked(keep=keep):
            return NodeState(*(part and _masked(part, keep) for part in first))  # type: ignore[arg-type]


def _constant(value: float, like: Array) -> LayerState:
    zero = np.zeros_like(like)
    return LayerState(value, zero, zero + 2 * value, 2 * EPS, 4 * EPS)


def _mixed(own: Sequence[NodeState], weights: Sequence[float]) -> NodeState:
    cov = mixture(list(zip(weights, (one.cov for one in own), strict=True)))
    tangents = [one.tangent for one in own if one.tangent is not None]
    return NodeState(cov, mixture(list(zip(weights, tangents, strict=True))) if tangents else None)


def _multiplied(one: NodeState, other: NodeState) -> NodeState:
    cov = product(one.cov, other.cov)
    if one.tangent is None or other.tangent is None:
        return NodeState(cov, None)
    parts = product(one.tangent, other.cov), product(one.cov, other.tangent)
    return NodeState(cov, mixture([(1.0, part) for part in parts]))


def mixture(parts: Sequence[tuple[float, LayerState]], constant: float = 0.0) -> LayerState:
    """A constant plus weighted states. An error of one variance moves e by as much as its own e
    differs from that of the whole."""
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
        for share, (_, state) in zip(shares, parts, strict=True)
    )
    errors = (
        sum(share * part.variance_error for share, (_, part) in zip(shares, parts, strict=True)),
        max(state.e_error for _, state in parts) + moved,
    )
    return LayerState(variance, deficit, surplus, errors[0] + EPS, errors[1] + 2 * EPS)


def product(one: LayerState, other: LayerState) -> LayerState:
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


def through_layer(layer: Layer, before: LayerState) -> LayerState:
    """F of a layer at these correlations."""
    deficit, surplus = both_sides(layer, before.negative, before.m)
    gain = layer.radial_moment / max(layer.second_moment, TINY)  # d log F / d log q
    variance = abs(gain) * before.variance_error + layer.error
    # An error of q changes deficit and variance in proportion; only the difference reaches e.
    unbalanced = abs(layer.stretch - gain) * before.variance_error
    own = layer.surplus_error if layer.parity == "none" else layer.error
    errors = variance, before.e_error + unbalanced + own, layer.error
    return LayerState(layer.second_moment, deficit, surplus, *errors)


def _divided(state: LayerState, cov: LayerState) -> LayerState:
    """Layer norm: divided by the variance, which makes that of the covariance exactly one."""
    if cov.variance == 0:
        raise VarianceError(
            "layer norm divides by the variance of the units, and it is zero; give the nngp.Dense "
            "before it a bias_var, or leave inputs of zeros out"
        )
    variance = 1.0 if state is cov else state.variance / cov.variance
    error = 0.0 if state is cov else state.variance_error + cov.variance_error + EPS
    deficit, surplus = state.deficit / cov.variance, state.surplus / cov.variance
    return LayerState(variance, deficit, surplus, error, state.e_error + EPS)


def _masked(state: LayerState, keep: float) -> LayerState:
    """Dropout: only an input with itself has the same mask, so only the variance changes."""
    more = state.variance * (1 / keep - 1)
    return LayerState(
        state.variance + more,
        state.deficit + more,
        state.surplus + more,
        state.variance_error + 2 * EPS,
        state.e_error + 2 * EPS,
    )


def _check(node: Node, state: NodeState, before: float, layer: int) -> None:
    """Raise VarianceError outside the range of float64, unless a variance is 0 all along."""
    if isinstance(node, Affine | Added | Multiplied | Joined):
        check_variance(state.cov.variance, layer, before)
        if state.tangent is not None:
            check_variance(state.tangent.variance, layer, 0.0, "tangent kernel")


def check_variance(variance: float, layer: int, before: float, name: str = "variance") -> float:
    """The variance of a layer; VarianceError outside the range of float64, unless it is 0."""
    if not variance < LARGEST or (variance < SMALLEST and before > 0):
        fewer = "a smaller depth, or " if layer > 1 else ""
        raise VarianceError(
            f"the {name} of layer {layer} is {variance:.3g}, past the range of float64; use "
            f"{fewer}a weight_var nearer to where the variance stays put"
        )
    return variance
