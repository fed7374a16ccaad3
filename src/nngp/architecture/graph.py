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
from typing import Literal

from nngp.architecture.activation import Activation

INPUT = 0  # index of the input
MAX_NODES = 250_000  # nodes of a network: more take minutes to compute


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


@dataclass(frozen=True)
class Windowed:
    """Units at the positions of an image, from those in windows over another.

    `kind` says what becomes of the units of a window: "patch" puts them side by side, as the
    weights of a convolution see them; "mean" averages them. "image" turns a row of the data into
    an image, "flat" an image into units without positions. A window of None is the whole image.
    """

    source: int
    kind: Literal["image", "patch", "mean", "flat"]
    window: tuple[int, int] | None = None  # of an image its height and width
    stride: tuple[int, int] = (1, 1)
    padding: str = "valid"  # "same", "valid" or "circular"
    channels: int = 0  # of an image

    @property
    def sources(self) -> tuple[int, ...]:
        return (self.source,)


Node = Affine | Nonlinearity | Normalised | Masked | Added | Multiplied | Joined | Windowed
Graph = tuple[Node, ...]


def check_size(operations: int) -> None:
    """Raise ValueError beyond `MAX_NODES` operations."""
    if operations > MAX_NODES:
        raise ValueError(
            f"a network has at most {MAX_NODES:,} operations; use fewer layers or repeat its parts "
            "less"
        )


class GraphBuilder:
    """Nodes as parts of a network append them."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []

    def add(self, node: Node) -> int:
        """Append a node, and give its index; ValueError beyond `MAX_NODES`."""
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
    """Known properties of the units of a node: whether they are Gaussian with mean zero, whether
    their mean is zero, and the random units, by node, that unit i is made of."""

    gaussian: bool
    centred: bool
    roots: frozenset[int]
    flat: bool = False  # the positions of an image side by side: units that are not alike


def check_graph(graph: Iterable[Node]) -> None:
    """Raise ValueError where the rules of infinite width do not hold."""
    graph = tuple(graph)
    image_sizes(graph)
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
    if isinstance(node, Nonlinearity | Normalised | Multiplied) and any(one.flat for one in own):
        raise ValueError(
            "behind nngp.Flatten units have the variances of their positions, which differ; put an "
            "nngp.Dense behind it before any activation, layer norm or product"
        )
    match node:
        case Windowed(kind="flat"):
            return _Units(False, own[0].centred, roots, flat=True)
        case Windowed():
            return own[0]
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
            return _Units(False, own[0].centred, roots, own[0].flat)
        case Added():
            _check_added(own)
            centred = all(one.centred for one in own)
            flat = any(one.flat for one in own)
            return _Units(all(one.gaussian for one in own), centred, roots, flat)
        case Multiplied():
            if _overlap(own):
                raise ValueError(
                    "branches of nngp.Product must be independent, and two of them use the same "
                    "units; give all but one of them an nngp.Dense of their own"
                )
            return _Units(False, any(one.centred for one in own), roots)
        case Joined():
            flat = any(one.flat for one in own)
            return _Units(False, all(one.centred for one in own), roots, flat)


def _check_added(own: Sequence[_Units]) -> None:
    if _overlap(own) or sum(not one.centred for one in own) > 1:
        raise ValueError(
            "branches that are added must have no covariance, and two of them have; let all but "
            "one of them end in an nngp.Dense of their own"
        )


def _overlap(own: Sequence[_Units]) -> bool:
    """Whether two branches are made of the same random units."""
    return sum(len(one.roots) for one in own) > len(frozenset[int]().union(*(o.roots for o in own)))


Size = tuple[int, int]


def image_sizes(graph: Sequence[Node]) -> list[Size | None]:
    """Height and width behind every node, the input first; None where units have no positions.
    ValueError where parts do not fit their images."""
    sizes: list[Size | None] = [None]
    images = [node for node in graph if isinstance(node, Windowed) and node.kind == "image"]
    if len(images) > 1:
        raise ValueError("a network has one nngp.Image, at its beginning; remove the others")
    for node in graph:
        sizes.append(_size_behind(node, [sizes[one] for one in node.sources], graph))
        if images and INPUT in node.sources and node is not images[0]:
            raise ValueError(
                "a network with nngp.Image begins with it, so that all branches read the image; "
                "begin a dense branch with nngp.Flatten()"
            )
    return sizes


def _size_behind(node: Node, own: Sequence[Size | None], graph: Sequence[Node]) -> Size | None:
    first = own[0]
    if isinstance(node, Windowed):
        return _size_of_windows(node, first)
    if any(size != first for size in own):
        raise ValueError(
            f"branches that are joined have images of different sizes ({_sizes(own)}); give them "
            'equal strides and padding="same", or nngp.Flatten() and an nngp.Dense each'
        )
    if isinstance(node, Affine) and first is not None:
        before = graph[node.source - 1]
        if not (isinstance(before, Windowed) and before.kind == "patch"):
            raise ValueError(
                "nngp.Dense needs units without positions and what is before it is an image; put "
                "nngp.Flatten() or nngp.GlobalAvgPool() before it, or use nngp.Conv(1, ...)"
            )
    return first


def _size_of_windows(node: Windowed, before: Size | None) -> Size | None:
    if node.kind == "image":
        return node.window
    if before is None:
        raise ValueError(
            "nngp.Conv, pooling and nngp.Flatten need an image; begin the network with "
            "nngp.Image((height, width, channels)), and flatten it once"
        )
    if node.window is None:
        return None
    if node.padding == "valid" and any(k > n for k, n in zip(node.window, before, strict=True)):
        raise ValueError(
            f"a window of {_sizes([node.window])} is larger than the image there, "
            f'{_sizes([before])}; use a smaller window, or padding="same" in nngp.Conv'
        )
    if node.padding == "valid":
        steps = zip(before, node.window, node.stride, strict=True)
        height, width = ((n - k) // s + 1 for n, k, s in steps)
    else:
        height, width = (-(-n // s) for n, s in zip(before, node.stride, strict=True))
    return height, width


def _sizes(sizes: Sequence[Size | None]) -> str:
    return " and ".join("no image" if one is None else f"{one[0]} x {one[1]}" for one in sizes)
