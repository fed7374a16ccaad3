"""Variances alone: K(x, x) and Θ(x, x) of every node, without any correlation.

The rules are those of `deficits` at correlation 1. They are written once, for the one variance of
inputs of equal norm and for arrays with a variance of each input.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from nngp.architecture import Activation, Network
from nngp.architecture.graph import (
    Added,
    Affine,
    Joined,
    Masked,
    Multiplied,
    Node,
    Nonlinearity,
    Normalised,
)
from nngp.covariance import derivative_at_zero, derivative_layer, layer_at
from nngp.curve.deficits import check_variance
from nngp.errors import VarianceError

Variance = Any  # a float, or an array with one of each input
Moment = Callable[[Activation, Variance], Variance]


class NodeVariance(NamedTuple):
    """K(x, x) of a node and, if it is asked for, Θ(x, x)."""

    cov: Variance
    tangent: Variance | None

    @property
    def output(self) -> Variance:
        """Θ(x, x) if it is asked for, otherwise K(x, x)."""
        return self.cov if self.tangent is None else self.tangent


def output_variance(network: Network, input_var: float) -> float:
    """The kernel of an input with itself, equal to the bit to that of `recursion`."""
    found = node_variances(network, float(input_var), _moment, _slope_moment, check_variance)
    return float(found[-1].output)


def node_variances(
    network: Network,
    input_var: Variance,
    moment: Moment,
    slope_moment: Moment,
    check: Callable[[Variance, int, Variance], object],
) -> list[NodeVariance]:
    """The variances of the input and of every node. `moment` gives E[phi²], `slope_moment`
    E[phi'²]; `check` is called with a variance, the number of its layer and the
    largest on the way to it."""
    zero = 0.0 * input_var if network.is_tangent else None
    found, layer = [NodeVariance(input_var, zero)], 0
    largest = [input_var]  # on the way to each node
    for node in network.graph:
        own = [found[source] for source in node.sources]
        before = largest_before(node, [largest[source] for source in node.sources])
        with np.errstate(over="ignore"):
            found.append(_next_variance(node, own, moment, slope_moment))
        if isinstance(node, Affine | Added | Multiplied | Joined):
            check(found[-1].cov, layer, before)
        largest.append(np.maximum(before, found[-1].cov))
        layer += isinstance(node, Affine)
    return found


def largest_before(node: Node, own: Sequence[Variance]) -> Variance:
    """The largest variance on the way to a node, from those on the way to its sources."""
    return reduce(np.minimum if isinstance(node, Multiplied) else np.maximum, own)


def _next_variance(
    node: Node, own: Sequence[NodeVariance], moment: Moment, slope_moment: Moment
) -> NodeVariance:
    first = own[0]
    match node:
        case Affine(weight_var=weight, bias_var=bias):
            cov = bias + weight * first.cov
            return NodeVariance(cov, _if(first, lambda theta: cov + weight * theta))
        case Nonlinearity(activation=phi):
            tangent = _if(first, lambda theta: slope_moment(phi, first.cov) * theta)
            return NodeVariance(moment(phi, first.cov), tangent)
        case Added():
            return _mixed(own, [1.0] * len(own))
        case Joined(shares=shares):
            return _mixed(own, shares)
        case Multiplied():
            other = own[1]
            tangent = _if(first, lambda theta: theta * other.cov + first.cov * other.tangent)
            return NodeVariance(first.cov * other.cov, tangent)
        case Normalised():
            if np.any(first.cov == 0):
                raise VarianceError(
                    "layer norm divides by the variance of the units, and it is zero; give the "
                    "nngp.Dense before it a bias_var, or leave inputs of zeros out"
                )
            one = 1.0 + 0.0 * first.cov
            return NodeVariance(one, _if(first, lambda theta: theta / first.cov))
        case Masked(keep=keep):
            more = 1 / keep - 1
            return NodeVariance(
                first.cov + first.cov * more, _if(first, lambda theta: theta + theta * more)
            )


def _if(own: NodeVariance, rule: Callable[..., Variance]) -> Variance | None:
    return None if own.tangent is None else rule(own.tangent)


def _mixed(own: Sequence[NodeVariance], weights: Sequence[float]) -> NodeVariance:
    tangents = [one.tangent for one in own if one.tangent is not None]
    cov = weighted_sum(weights, [one.cov for one in own])
    return NodeVariance(cov, weighted_sum(weights, tangents) if tangents else None)


def weighted_sum(weights: Sequence[float], parts: Sequence[Variance]) -> Variance:
    """The sum of parts, each times its weight."""
    return sum(weight * part for weight, part in zip(weights, parts, strict=True))


def _moment(phi: Activation, var: float) -> float:
    if var > 0:
        return layer_at(phi, var).second_moment
    return float(phi(np.zeros(1))[0] ** 2)


def _slope_moment(phi: Activation, var: float) -> float:
    return derivative_layer(phi, var).second_moment if var > 0 else derivative_at_zero(phi)
