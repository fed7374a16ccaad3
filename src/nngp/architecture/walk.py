"""The rules of infinite width, each written once.

A network is a list of nodes (`graph`). Behind every node there is a covariance K and, for a tangent
kernel, Θ. With F = E[phi(u) phi(v)] and F' = E[phi'(u) phi'(v)] at the covariance that enters,

    node             K becomes            Θ becomes
    affine map       b + w K              (b + w K) + w Θ
    nonlinearity     F(K)                 F'(K) Θ
    sum              K1 + K2              Θ1 + Θ2
    product          K1 K2                Θ1 K2 + K1 Θ2
    side by side     p1 K1 + p2 K2        p1 Θ1 + p2 Θ2
    layer norm       K / sqrt(q q')       Θ / sqrt(q q')
    dropout          K, but q / keep      the same
                     for equal inputs
    windows          mean of K over the   the same
                     steps of a window

`walk` states these rules in terms of six operations on whatever represents K. Each representation
implements the six (`Operations`) and nothing else: deficits with their errors where all inputs have
one norm, triples (q, q', K) otherwise, derivatives around either. A new kind of node is a dataclass
in `graph`, a line here, and an operation only if these six do not express it. Windows, of which
convolution and pooling are made, have a seventh; only what represents images implements it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import repeat
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

import numpy as np

from nngp.architecture.activation import Activation
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
    Windowed,
    last_uses,
)
from nngp.architecture.network import Network

State = TypeVar("State")  # what represents the covariance, or the tangent kernel, of a node
Number = Any  # a float, or a scalar of JAX


class Operations(Protocol[State]):
    """The operations on a covariance K that the rules of every node are made of."""

    def mix(self, weights: Sequence[Number], states: Sequence[State], constant: Number) -> State:
        """constant + Σ w K. Variances of the network arrive as `Parameter`."""

    def times(self, one: State, other: State) -> State:
        """The product of two covariances."""

    def dual(self, phi: Activation, state: State) -> State:
        """E[phi(u) phi(v)]."""

    def slope(self, phi: Activation, state: State) -> State:
        """E[phi'(u) phi'(v)]."""

    def normalise(self, state: State, by: State) -> State:
        """The state over sqrt(q q'), with q and q' those of `by`."""

    def mask(self, state: State, keep: float) -> State:
        """The same covariance for two draws of the masks, and q / keep for one."""


class ImageOperations(Operations[State], Protocol):
    """The operations where units have positions in an image."""

    def window(self, state: State, node: Windowed) -> State:
        """Means over windows (`planes`). A convolution is such a mean, then an affine map."""


class Parameter(float):
    """A variance of a network: a number that also knows which one it is."""

    kind: str  # "weight_var" or "bias_var"
    layer: int  # index of its affine map

    def __new__(cls, value: float, kind: str, layer: int) -> "Parameter":
        out = super().__new__(cls, value)
        out.kind, out.layer = kind, layer
        return out


class Pair(NamedTuple, Generic[State]):
    """The covariance of a node and, if it is asked for, its tangent kernel."""

    cov: State
    tangent: State | None

    @property
    def output(self) -> State:
        """The tangent kernel if it is asked for, otherwise the covariance."""
        return self.cov if self.tangent is None else self.tangent


Variances = Callable[[int], tuple[Number, Number]]  # weight_var and bias_var of an affine map


def walk(
    network: Network,
    operations: Operations[State],
    inputs: State,
    *,
    variances: Variances | None = None,
    tangent: State | None = None,
) -> Iterator[tuple[Node, Pair[State]]]:
    """Yield every node with its states, in the order of computation; endless at infinite depth.

    `inputs` is the state of the inputs, of covariance x·x'/d. With `variances` those of the network
    are replaced, affine map by affine map. `tangent` is the tangent kernel of what gives the
    inputs, which by default has no weights.
    """
    if network.is_tangent and tangent is None:
        tangent = operations.mix([0.0], [inputs], 0.0)
    states = {INPUT: Pair(inputs, tangent)}
    steps = _steps(network.nodes(), repeat([])) if network.is_infinite else _plan_of(network)
    for index, (node, weight, bias, unused) in enumerate(steps, start=1):
        if variances is not None and isinstance(weight, Parameter):
            weight, bias = variances(weight.layer)
        own = [states[source] for source in node.sources]
        states[index] = found = _step(operations, node, own, weight, bias)
        if network.is_infinite:  # a chain
            del states[index - 1]
        for source in unused:
            del states[source]
        yield node, found


_Step = tuple[Node, Number, Number, list[int]]  # with its variances, and what is not used again


def _steps(nodes: Iterable[Node], unused: Iterable[list[int]]) -> Iterator[_Step]:
    layer = 0
    for node, done in zip(nodes, unused, strict=False):
        if isinstance(node, Affine):
            weight = Parameter(node.weight_var, "weight_var", layer)
            yield node, weight, Parameter(node.bias_var, "bias_var", layer), done
            layer += 1
        else:
            yield node, 0.0, 0.0, done


@lru_cache(maxsize=256)
def _plan_of(network: Network) -> tuple[_Step, ...]:
    return tuple(_steps(network.graph, last_uses(network.graph)))


def output(steps: Iterator[tuple[Node, Pair[State]]]) -> State:
    """The state of the last node of a walk: of the tangent kernel if it is asked for."""
    for _, found in steps:  # `*_, last = steps` would keep the states of all nodes in memory
        last = found
    return last.output


def _step(
    do: Operations[State], node: Node, own: Sequence[Pair[State]], weight: Number, bias: Number
) -> Pair[State]:
    """The rule of one node."""
    K, T = own[0]
    match node:
        case Affine():
            out = do.mix([weight], [K], bias)
            return Pair(out, None if T is None else do.mix([1.0, weight], [out, T], 0.0))
        case Nonlinearity(activation=phi):
            out = do.dual(phi, K)
            return Pair(out, None if T is None else do.times(do.slope(phi, K), T))
        case Added():
            return _mixed(do, own, [1.0] * len(own))
        case Joined(shares=shares):
            return _mixed(do, own, shares)
        case Multiplied():
            K2, T2 = own[1]
            out = do.times(K, K2)
            if T is None or T2 is None:
                return Pair(out, None)
            return Pair(out, do.mix([1.0, 1.0], [do.times(T, K2), do.times(K, T2)], 0.0))
        case Normalised():
            return Pair(do.normalise(K, K), None if T is None else do.normalise(T, K))
        case Masked(keep=keep):
            return Pair(do.mask(K, keep), None if T is None else do.mask(T, keep))
        case Windowed():
            on_images = cast(ImageOperations[State], do)
            out = on_images.window(K, node)
            return Pair(out, None if T is None else on_images.window(T, node))


def _mixed(
    do: Operations[State], own: Sequence[Pair[State]], weights: Sequence[float]
) -> Pair[State]:
    tangents = [pair.tangent for pair in own if pair.tangent is not None]
    cov = do.mix(weights, [pair.cov for pair in own], 0.0)
    return Pair(cov, do.mix(weights, tangents, 0.0) if tangents else None)


class RangeCheck:
    """Check of every variance along a walk.

    Where a variance on the way to a node is positive, that of the node may not be zero; a product
    is zero with any of its factors, so there the smaller one counts.
    """

    def __init__(self, input_var: Number, check: Callable[[Number, int, Number], object]) -> None:
        self._largest, self._layer, self._check = [input_var], 0, check

    def __call__(self, node: Node, variance: Number) -> None:
        """Check the variance of the next node of the walk."""
        own = [self._largest[source] for source in node.sources]
        before = own[0]
        for other in own[1:]:
            before = (np.minimum if isinstance(node, Multiplied) else np.maximum)(before, other)
        if isinstance(node, Affine | Added | Multiplied | Joined):
            self._check(variance, self._layer, before)
        self._layer += isinstance(node, Affine)
        self._largest.append(np.maximum(before, variance))
