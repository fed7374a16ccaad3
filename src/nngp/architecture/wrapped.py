"""A network that stands for another one: the same operations, with another kernel."""

from collections.abc import Iterator

from nngp.architecture.activation import Activation
from nngp.architecture.graph import Graph, Node
from nngp.architecture.network import Network
from nngp.architecture.outline import Outline


class WrappedNetwork(Network):
    """Everything is that of `network`, unless a subclass says otherwise."""

    network: Network

    def nodes(self) -> Iterator[Node]:
        return self.network.nodes()

    def outline(self) -> Outline:
        return self.network.outline()

    @property
    def is_infinite(self) -> bool:
        return self.network.is_infinite

    @property
    def graph(self) -> Graph:
        return self.network.graph

    @property
    def weight_vars(self) -> tuple[float, ...]:
        return self.network.weight_vars

    @property
    def bias_vars(self) -> tuple[float, ...]:
        return self.network.bias_vars

    @property
    def activations(self) -> tuple[Activation, ...]:
        return self.network.activations

    @property
    def depth(self) -> int:  # type: ignore[override]
        return self.network.depth
