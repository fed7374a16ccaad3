"""A network as a graph: one node for each operation, in the order of computation.

Index 0 is the input, index i the i-th node; the last node is the output. Whatever a network is made
of (`parts`), all that computes with it (curves, pairs of inputs, finite networks) walks this list
once, with one rule for each kind of node.

The rules hold in the limit of infinite width under conditions that `check_graph` enforces:

- An activation sees Gaussian units, and layer norm units that are Gaussian with mean zero. Units
  are Gaussian behind an affine map, and stay so in sums and under layer norm.
- Branches that are added have no covariance, and branches that are multiplied are independent:
  unit i of one is not made of the same random units as unit i of another.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nngp.architecture.activation import Activation

INPUT = 0  # index of the input
MOST = 250_000  # nodes of a network: more take minutes to compute


@dataclass(frozen=True)
class Affine:
    """Weights of variance weight_var / fan-in, and biases of variance bias_var."""

    source: int
    weight_var: float
    bias_var: float

    @property
    def sources(self) -> tuple[int, ...]:
        return (self.source,)


@dataclass(frozen=True)
class Nonlinearity:
    """An activation, unit by unit."""

    source: int
    activation: Activation

    @property
    def sources(self) -> tuple[int, ...]:
        return (self.source,)


@dataclass(frozen=True)
class Normalised:
    """Layer norm: the units of one input are divided by their root mean square."""

    source: int

    @property
    def sources(self) -> tuple[int, ...]:
        return (self.source,)


@dataclass(frozen=True)
class Masked:
    """Dropout: a unit is kept with probability `keep` and divided by it, otherwise zero."""

    source: int
    keep: float

    @property
    def sources(self) -> tuple[int, ...]:
        return (self.source,)


@dataclass(frozen=True)
class Added:
    """The sum of branches, unit by unit."""

    sources: tuple[int, ...]


@dataclass(frozen=True)
class Multiplied:
    """The product of two branches, unit by unit."""

    sources: tuple[int, int]


@dataclass(frozen=True)
class Joined:
    """The units of branches side by side, each with its share of all units."""

    sources: tuple[int, ...]
    shares: tuple[float, ...]


Node = Affine | Nonlinearity | Normalised | Masked | Added | Multiplied | Joined
Graph = tuple[Node, ...]


def check_size(operations: int) -> None:
    """Raise ValueError beyond `MOST` operations."""
    if operations > MOST:
        raise ValueError(
            f"a network has at most {MOST:,} operations; use fewer layers or repeat its parts less"
        )


class GraphBuilder:
    """Nodes as parts of a network append them."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []

    def add(self, node: Node) -> int:
        """Append a node, and give its index; ValueError beyond `MOST`."""
        check_size(len(self.nodes) + 1)
        self.nodes.append(node)
        return len(self.nodes)


def last_uses(graph: Graph) -> list[list[int]]:
    """For each node, the indices of what no later node needs, so that it can be dropped."""
    last = {source: i for i, node in enumerate(graph) for source in node.sources}
    out: list[list[int]] = [[] for _ in graph]
    for source, i in last.items():
        out[i].append(source)
    return out


@dataclass(frozen=True)
class _Units:
    """What is known of the units of a node: whether they are Gaussian with mean zero, whether
    their mean is zero, and the random units, by node, that unit i is made of."""

    gaussian: bool
    centred: bool
    roots: frozenset[int]


def check_graph(graph: Iterable[Node]) -> None:
    """Raise ValueError where the rules of infinite width do not hold."""
    units = [_Units(False, False, frozenset([INPUT]))]
    for node in graph:
        units.append(_units_of(node, units, len(units)))
    if len(units) == 1:
        raise ValueError("the network has no layers; give it an nngp.Dense at least")
    if not units[-1].gaussian:
        raise ValueError(
            "the outputs of this network are not Gaussian: it does not end in an affine map; add "
            "nngp.Dense(1.0, 0.0) at its end, which leaves the covariance as it is"
        )


def _units_of(node: Node, units: Sequence[_Units], index: int) -> _Units:
    own = [units[source] for source in node.sources]
    roots = frozenset[int]().union(*(one.roots for one in own))
    match node:
        case Affine():
            return _Units(True, True, frozenset([index]))
        case Nonlinearity(activation=phi):
            if not own[0].gaussian:
                raise ValueError(
                    f"activation '{phi.name}' needs Gaussian units, and what is before it is not "
                    "Gaussian; put an nngp.Dense before it"
                )
            return _Units(False, False, roots)
        case Normalised():
            if not own[0].gaussian:
                raise ValueError(
                    "nngp.LayerNorm needs Gaussian units of mean zero; put it behind an nngp.Dense"
                )
            return _Units(True, True, roots)
        case Masked():
            return _Units(False, own[0].centred, roots)
        case Added():
            _check_added(own)
            centred = all(one.centred for one in own)
            return _Units(all(one.gaussian for one in own), centred, roots)
        case Multiplied():
            if _overlap(own):
                raise ValueError(
                    "branches of nngp.Product must be independent, and two of them use the same "
                    "units; give all but one of them an nngp.Dense of their own"
                )
            return _Units(False, any(one.centred for one in own), roots)
        case Joined():
            return _Units(False, all(one.centred for one in own), roots)


def _check_added(own: Sequence[_Units]) -> None:
    if _overlap(own) or sum(not one.centred for one in own) > 1:
        raise ValueError(
            "branches that are added must have no covariance, and two of them have; let all but "
            "one of them end in an nngp.Dense of their own"
        )


def _overlap(own: Sequence[_Units]) -> bool:
    """Whether two branches are made of the same random units."""
    return sum(len(one.roots) for one in own) > len(frozenset[int]().union(*(o.roots for o in own)))
