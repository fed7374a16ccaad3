"""The seam of this room: what every description of a network gives to those who compute with it."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from nngp.architecture.activation import Activation, spec_of
from nngp.architecture.graph import Affine, Graph, Masked, Node, Nonlinearity, check_graph
from nngp.architecture.outline import Outline, as_html, as_text
from nngp.architecture.planes import PlanePlan, plan_planes


class Network(ABC):
    """A description of an infinitely wide network: frozen, hashable, without data.

    `Architecture` is the paper's chain of equal layers, the parts (`Chain`, `Residual`, ...) make
    any other shape, and `NTK` stands for the tangent kernel of either. `print` draws it as text,
    `nngp.plots.network` as a picture.

    Examples
    --------
    >>> import nngp
    >>> block = nngp.Residual(nngp.Act("relu"), nngp.Dense(1.0))
    >>> net = nngp.Chain(nngp.Dense(2.0, 0.1), nngp.Repeat(block, 50))
    >>> isinstance(net, nngp.Network), net.depth, hash(net) == hash(net)
    (True, 50, True)
    >>> print(net)
    input
    Dense       weight_var 2, bias_var 0.1
    50 times
    └ Residual
      ├ identity
      └ relu
        Dense   weight_var 1, bias_var 0
    output
    """

    is_tangent = False  # whether its kernel is the tangent kernel
    depth: int  # number of nonlinearities on the longest way from input to output

    @abstractmethod
    def nodes(self) -> Iterator[Node]:
        """The operations in the order of computation (`graph`), endless at infinite depth."""

    @abstractmethod
    def as_dict(self) -> dict[str, Any]:
        """Convert to values that JSON can hold; `nngp.network_from_dict` reads them back."""

    @abstractmethod
    def outline(self) -> Outline:
        """The steps from input to output, for text and pictures."""

    def __str__(self) -> str:
        return as_text(self.outline())

    def _repr_html_(self) -> str:
        """A drawing, for notebooks."""
        return as_html(self.outline())

    @property
    def base(self) -> "Network":
        """The network whose kernel is a function of norms and cosines: this one, unless it is an
        average over transformations."""
        return self

    def products(self, d: int) -> int:
        """How many matrices of inner products a kernel matrix takes, for inputs of d columns."""
        return 1

    @property
    def is_infinite(self) -> bool:
        """Whether the depth is infinite."""
        return False

    @property
    def graph(self) -> Graph:
        """The operations of a network of finite depth, checked."""
        if self.is_infinite:
            raise ValueError(
                "a network of infinite depth has no list of layers; this works at finite depth only"
            )
        return _graph_of(self)

    @property
    def weight_vars(self) -> tuple[float, ...]:
        """weight_var of each affine map, in the order of computation."""
        return tuple(node.weight_var for node in self.graph if isinstance(node, Affine))

    @property
    def bias_vars(self) -> tuple[float, ...]:
        """bias_var of each affine map, in the order of computation."""
        return tuple(node.bias_var for node in self.graph if isinstance(node, Affine))

    @property
    def activations(self) -> tuple[Activation, ...]:
        """The different activations, in the order in which they first occur."""
        found = (node.activation for node in self.graph if isinstance(node, Nonlinearity))
        return tuple(dict.fromkeys(found))

    @property
    def has_masks(self) -> bool:
        """Whether there is dropout: two equal inputs then are two draws of the masks."""
        return not self.is_infinite and any(isinstance(node, Masked) for node in self.graph)

    @property
    def planes(self) -> PlanePlan | None:
        """How covariances of images are laid out; None for a network that reads rows as they
        are."""
        return None if self.is_infinite else plan_planes(self.graph)

    @property
    def values(self) -> list[Any]:
        """Values that identify the network, for a digest."""
        return [self.is_tangent, [_node_values(node) for node in self.graph]]

    def if_deep(self, words: str) -> str:
        """Words for a message, where there are layers to spare: empty at depth 0 and 1."""
        return words if self.depth > 1 else ""


@lru_cache(maxsize=256)
def _graph_of(network: Network) -> Graph:
    graph = tuple(network.nodes())
    check_graph(graph)
    return graph


@lru_cache(maxsize=256)
def depth_of(network: Network) -> int:
    """Number of nonlinearities on the longest way from input to output."""
    depths = [0]
    for node in network.graph:
        below = max(depths[source] for source in node.sources)
        depths.append(below + isinstance(node, Nonlinearity))
    return depths[-1]


def _node_values(node: Node) -> list[Any]:
    """Plain values of a node."""
    own = {**vars(node)}
    if isinstance(node, Nonlinearity):
        own["activation"] = activation_identity(node.activation)
    return [type(node).__name__, [[name, _plain(value)] for name, value in own.items()]]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def activation_identity(phi: Activation) -> Any:
    """Values that identify an activation: a built-in one by its name, a user's function by its
    name, its kinks and its values on a wide grid."""
    try:
        return spec_of(phi)
    except ValueError:
        far = np.geomspace(1e-12, 1e12, 4001)
        grid = np.concatenate([np.linspace(-30.0, 30.0, 6001), far, -far])
        with np.errstate(all="ignore"):
            return [phi.name, list(phi.kinks), np.asarray(phi.fn(grid), dtype=np.float64)]
