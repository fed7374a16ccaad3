"""Layers on top of an average over transformations, as a network."""

from dataclasses import dataclass
from typing import Any

from nngp.architecture.invariances.invariant import Invariant
from nngp.architecture.network import Network, WrappedNetwork
from nngp.architecture.outline import Outline, OutlineStep
from nngp.architecture.tangent import NTK


@dataclass(frozen=True)
class WithHead(WrappedNetwork):
    """A network whose first part is averaged over transformations, and whose head is not.

    Many outputs of the average are brought to equal norm (layer normalisation) and go into the
    head. With k_G the kernel of the average and k that of the head for inputs of norm one, its
    kernel is k(c) of c = k_G(x, x') / √(k_G(x, x) k_G(x', x')). What the average does not tell
    apart, the head does not either. It costs one look-up more than the average. Gradients of the
    evidence name the head's variances "head.weight_var" and "head.bias_var".

    The tangent kernel of all of it is that of tangent kernels of both:
    `WithHead(Invariant(NTK(network), transformations), NTK(head))`.

    Parameters
    ----------
    average : Invariant
    head : Network
        `nngp.Architecture`, or a network of parts.

    Examples
    --------
    >>> import nngp
    >>> average = nngp.Invariant(nngp.Architecture(2), nngp.images.flips((2, 2)))
    >>> net = nngp.WithHead(average, nngp.Architecture(3, "relu", 2.0, 0.0))
    >>> K = nngp.kernel(net, [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]])
    >>> (K / K[0, 0]).round(3).tolist()
    [[1.0, 1.0, 0.883], [1.0, 1.0, 0.883], [0.883, 0.883, 1.0]]
    """

    network: Invariant
    head: Network

    def __init__(self, average: Invariant, head: Network) -> None:
        if not isinstance(average, Invariant):
            raise TypeError(
                "WithHead takes an nngp.Invariant and the network on top of it, got "
                f"{type(average).__name__}"
            )
        if not isinstance(head, Network) or head.base is not head:
            raise TypeError(
                "the head must be a network without transformations (nngp.Architecture, "
                f"nngp.Chain, ...), got {type(head).__name__}"
            )
        if average.is_tangent != head.is_tangent:
            raise TypeError(
                "the tangent kernel of layers on top of an average needs that of both: write "
                "nngp.WithHead(nngp.Invariant(nngp.NTK(network), transformations), nngp.NTK(head))"
            )
        if average.is_infinite or head.is_infinite:
            raise ValueError("layers on top of an average must be of finite depth, as must both")
        if average.has_masks or head.has_masks:
            raise ValueError("layers on top of an average cannot be combined with dropout")
        object.__setattr__(self, "network", average)
        object.__setattr__(self, "head", head)

    @property
    def average(self) -> Invariant:
        """The part that is averaged."""
        return self.network

    @property
    def is_tangent(self) -> bool:  # type: ignore[override]
        return self.network.is_tangent

    @property
    def base(self) -> Network:
        return self.network.base

    @property
    def depth(self) -> int:  # type: ignore[override]
        return self.network.depth + self.head.depth

    def products(self, d: int) -> int:
        return self.network.products(d)

    def outline(self) -> Outline:
        step = OutlineStep("other", "layer normalisation", ())
        return (*self.network.outline(), step, *self.head.outline())

    @property
    def values(self) -> list[Any]:
        return ["headed", self.network.values, self.head.values]

    def as_dict(self) -> dict[str, Any]:
        return {"part": "headed", "of": self.network.as_dict(), "head": self.head.as_dict()}

    def __repr__(self) -> str:
        return f"WithHead({self.network!r}, {self.head!r})"


def average_of(network: Network) -> Network:
    """The part of a network that reads its inputs: the average below a head, else all of it."""
    return network.network if isinstance(network, WithHead) else network


def tangent_of(network: Network) -> Network:
    """The tangent kernel of a network, whether or not it is invariant."""
    if isinstance(network, WithHead):
        return WithHead(_tangent_average(network.average), NTK(network.head))
    return _tangent_average(network) if isinstance(network, Invariant) else NTK(network)


def _tangent_average(average: Invariant) -> Invariant:
    return Invariant(NTK(average.network), average.transformations)


def covariance_of(network: Network) -> Network:
    """The network whose tangent kernel this is; other networks as they are."""
    if isinstance(network, Invariant):
        return Invariant(covariance_of(network.network), network.transformations)
    return network.network if isinstance(network, NTK) else network
