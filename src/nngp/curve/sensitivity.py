"""Derivatives of a curve in the correlation and in every variance, by forward mode.

The rules of `recursion`, differentiated. Parameters are the weight variances of all affine maps and
then their bias variances, each by itself or all of a kind together.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nngp._arrays import Array, Mask
from nngp.architecture import Activation, Network
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
from nngp.covariance import Layer, derivative_layer, layer_at
from nngp.curve.recursion import (
    LayerState,
    NodeState,
    input_state,
    node_states,
    through_layer,
)
from nngp.errors import VarianceError


@dataclass(frozen=True)
class Tangents:
    """Derivatives of K(x, x) and of the deficit in each parameter, and of K in c."""

    variance: Array  # (parameters,)
    deficit: Array  # (parameters, nodes)
    slope: Array  # (nodes,)


class NodeTangents(NamedTuple):
    """Derivatives of the covariance of a node and, if it is asked for, of its tangent kernel."""

    cov: Tangents
    tangent: Tangents | None

    @property
    def output(self) -> Tangents:
        """Those of the tangent kernel if it is asked for, otherwise of the covariance."""
        return self.cov if self.tangent is None else self.tangent


Source = tuple[NodeState, NodeTangents]


def output_tangents(
    network: Network, input_var: float, negative: Mask, m: Array, *, per_layer: bool
) -> tuple[LayerState, Tangents]:
    """State and derivatives of the output."""
    *_, last = node_tangents(network, input_var, negative, m, per_layer=per_layer)
    return last[1].output, last[2].output


def layer_tangents(
    network: Network, input_var: float, negative: Mask, m: Array
) -> Iterator[tuple[LayerState, Tangents]]:
    """Yield state and derivatives behind each affine map, for ever at infinite depth; all layers
    move together."""
    for node, state, found in node_tangents(network, input_var, negative, m, per_layer=False):
        if isinstance(node, Affine):
            yield state.output, found.output


def node_tangents(
    network: Network, input_var: float, negative: Mask, m: Array, *, per_layer: bool
) -> Iterator[tuple[Node, NodeState, NodeTangents]]:
    """Yield every node with its state and derivatives; at infinite depth `per_layer` is False."""
    layers = len(network.weight_vars) if per_layer else 1
    zero = Tangents(np.zeros(2 * layers), np.zeros((2 * layers, len(m))), np.zeros(len(m)))
    start = Tangents(zero.variance, zero.deficit, np.full(len(m), input_var))
    begin = NodeTangents(start, zero if network.is_tangent else None)
    known = {INPUT: (input_state(network, input_var, negative, m), begin)}
    unused, layer = None if network.is_infinite else last_uses(network.graph), 0
    for index, (node, state) in enumerate(node_states(network, input_var, negative, m), start=1):
        own = [known[source] for source in node.sources]
        with np.errstate(over="ignore"):
            found = _next(node, own, state, layer if per_layer else 0)
        layer += isinstance(node, Affine)
        known[index] = state, found
        for source in [index - 1] if unused is None else unused[index - 1]:
            del known[source]
        yield node, state, found


def _next(node: Node, own: Sequence[Source], state: NodeState, parameter: int) -> NodeTangents:
    """The derivatives at a node from those at its sources."""
    before, first = own[0]
    match node:
        case Affine(weight_var=weight):
            cov = _affine(weight, before.cov, first.cov, parameter, bias=True)
            if first.tangent is None or before.tangent is None:
                return NodeTangents(cov, None)
            scaled = _affine(weight, before.tangent, first.tangent, parameter, bias=False)
            return NodeTangents(cov, _sum([(1.0, cov), (1.0, scaled)]))
        case Nonlinearity(activation=phi):
            return _through(phi, before, first)
        case Added():
            return _mixed(own, [1.0] * len(own))
        case Joined(shares=shares):
            return _mixed(own, shares)
        case Multiplied():
            return _multiplied(own)
        case Normalised():
            return NodeTangents(*(_divided(before, first, part) for part in (0, 1)))  # type: ignore[arg-type]
        case Masked(keep=keep):
            return NodeTangents(*(part and _masked(part, keep) for part in first))  # type: ignore[arg-type]


def _affine(
    weight: float, before: LayerState, own: Tangents, parameter: int, *, bias: bool
) -> Tangents:
    variance, deficit = weight * own.variance, weight * own.deficit
    variance[parameter] += before.variance
    deficit[parameter] += before.deficit
    if bias:
        variance[len(variance) // 2 + parameter] += 1.0
    return Tangents(variance, deficit, _finite(weight * own.slope))


def _through(phi: Activation, before: NodeState, own: NodeTangents) -> NodeTangents:
    q = before.cov.variance
    if q == 0:
        raise VarianceError("derivatives need a positive variance in every layer")
    cov = _layer(layer_at(phi, q), before.cov, own.cov)
    if own.tangent is None or before.tangent is None:
        return NodeTangents(cov, None)
    slope = derivative_layer(phi, q)
    factors = (through_layer(slope, before.cov), _layer(slope, before.cov, own.cov))
    return NodeTangents(cov, _product(factors, (before.tangent, own.tangent)))


def _layer(layer: Layer, before: LayerState, own: Tangents) -> Tangents:
    """D' = Delta(q, e) with e = D / q: dD' = q slope de + Delta_q dq."""
    local = layer.slope(before.negative, before.m)  # E[phi'(u) phi'(v)]
    in_var = layer.deficit_in_var(before.negative, before.m)
    column = own.variance[:, None]
    moved = own.deficit - before.e * column
    # Where phi jumps the slope at c = ±1 is large; what does not move stays where it is.
    deficit = np.where(moved == 0, 0.0, local * moved) + in_var * column
    variance = layer.radial_moment / before.variance * own.variance
    return Tangents(variance, deficit, _finite(local * own.slope))


def _finite(slope: Array) -> Array:
    """Infinite at c = ±1 where phi jumps: large but finite."""
    largest = np.finfo(float).max
    return np.clip(slope, -largest, largest)


def _sum(parts: Sequence[tuple[float, Tangents]]) -> Tangents:
    return Tangents(
        np.sum([weight * part.variance for weight, part in parts], axis=0),
        np.sum([weight * part.deficit for weight, part in parts], axis=0),
        _finite(np.sum([weight * part.slope for weight, part in parts], axis=0)),
    )


def _mixed(own: Sequence[Source], weights: Sequence[float]) -> NodeTangents:
    cov = _sum([(w, one.cov) for w, (_, one) in zip(weights, own, strict=True)])
    tangents = [one.tangent for _, one in own if one.tangent is not None]
    if not tangents:
        return NodeTangents(cov, None)
    return NodeTangents(cov, _sum(list(zip(weights, tangents, strict=True))))


def _product(one: tuple[LayerState, Tangents], other: tuple[LayerState, Tangents]) -> Tangents:
    (a, da), (b, db) = one, other
    values = a.variance - a.deficit, b.variance - b.deficit
    return Tangents(
        da.variance * b.variance + a.variance * db.variance,
        da.variance[:, None] * b.deficit
        + da.deficit * values[1]
        + a.deficit * db.variance[:, None]
        + values[0] * db.deficit,
        _finite(da.slope * values[1] + values[0] * db.slope),
    )


def _multiplied(own: Sequence[Source]) -> NodeTangents:
    (state, found), (other, more) = own
    cov = _product((state.cov, found.cov), (other.cov, more.cov))
    if state.tangent is None or other.tangent is None:
        return NodeTangents(cov, None)
    assert found.tangent is not None
    assert more.tangent is not None
    left = _product((state.tangent, found.tangent), (other.cov, more.cov))
    right = _product((state.cov, found.cov), (other.tangent, more.tangent))
    return NodeTangents(cov, _sum([(1.0, left), (1.0, right)]))


def _divided(before: NodeState, own: NodeTangents, which: int) -> Tangents | None:
    """Of K / q or Θ / q."""
    state, moved = before[which], own[which]
    if state is None or moved is None:
        return None
    q, change = before.cov.variance, own.cov.variance / before.cov.variance
    return Tangents(
        (moved.variance - state.variance * change) / q,
        (moved.deficit - state.deficit * change[:, None]) / q,
        _finite(moved.slope / q),
    )


def _masked(own: Tangents, keep: float) -> Tangents:
    more = own.variance * (1 / keep - 1)
    return Tangents(own.variance + more, own.deficit + more[:, None], own.slope)
