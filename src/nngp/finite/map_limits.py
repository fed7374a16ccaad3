"""Limits of the kernels of a network's affine maps as the width grows. Needs no JAX.

Takes a network; gives for each kernel of `FiniteNetwork.empirical_kernels` that depends on the
width the network whose kernel is its limit: the part of the network up to that map. Maps that read
inputs only have their exact kernel at any width.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from nngp.architecture import Architecture, Network
from nngp.architecture.graph import Affine, Masked, Node, Windowed, image_sizes
from nngp.architecture.network import depth_of
from nngp.architecture.outline import Outline


@dataclass(frozen=True)
class Beginning(Network):
    """The first nodes of a network; the last of them is its output, of an image at all positions
    side by side."""

    network: Network
    length: int

    def nodes(self) -> Iterator[Node]:
        yield from self.network.graph[: self.length]
        if image_sizes(self.network.graph)[self.length] is not None:
            yield Windowed(self.length, "flat")
            yield Affine(self.length + 1, 1.0, 0.0)

    @property
    def depth(self) -> int:  # type: ignore[override]
        return depth_of(self)

    def outline(self) -> Outline:
        return self.network.outline()

    def as_dict(self) -> dict[str, Any]:
        raise TypeError("the beginning of a network cannot be saved; save the network")


def map_limits(network: Network) -> dict[int, Network]:
    """By place in `empirical_kernels`, the networks that kernels converge to."""
    inexact = _inexact(network)
    maps = [i for i, node in enumerate(network.graph, 1) if isinstance(node, Affine)]
    out = {
        place: _beginning(network, place, index)
        for place, index in enumerate(maps)
        if inexact[index]
    }
    if maps[-1] != len(network.graph) and inexact[-1]:
        out[len(maps)] = network
    return out


def _beginning(network: Network, place: int, index: int) -> Network:
    if isinstance(network, Architecture):
        return network.truncated(place)
    return network if index == len(network.graph) else Beginning(network, index)


def _inexact(network: Network) -> list[bool]:
    """Whether the kernel of a node depends on the width, the input first."""
    drawn, inexact = [False], [False]  # drawn: units are random, so a kernel made of them is
    for node in network.graph:
        random = any(drawn[source] for source in node.sources)
        below = any(inexact[source] for source in node.sources)
        drawn.append(random or isinstance(node, Affine | Masked))
        inexact.append(random if isinstance(node, Affine) else below or isinstance(node, Masked))
    return inexact
