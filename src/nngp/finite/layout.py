"""How many units each node of a network of finite width has. Needs no JAX.

Takes a graph, the widths of hidden layers, the number of features and of outputs; gives a
`UnitLayout`, the constant that programs of finite networks are compiled for.

Units that are passed on, added or multiplied are as many on both sides, and units side by side have
their shares. So nodes form groups, in which the units of one node fix those of all others; only an
affine map begins a new group. A hidden layer is such a group, and its width the number of units of
its largest node.

Units of an image are its channels. Where windows put the positions of several side by side, there
are that many times as many; they count for no width.

Two groups are special, since a network of infinite width has infinitely many units everywhere:

- An affine map takes inputs as they are. Where inputs are masked, added, multiplied or joined, they
  are repeated to fill the width, which is rounded up to whole copies.
- An output that is an affine map, or a sum of such maps that nothing else reads, has n_out units.
  Any other output is a hidden layer, of which the first n_out units are given.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from math import ceil, prod

from nngp.architecture.graph import (
    INPUT,
    Added,
    Affine,
    Graph,
    Joined,
    Masked,
    Node,
    Normalised,
    Windowed,
    image_sizes,
)

FINEST = 10**6  # largest denominator of a share: a third is one, and not its nearest float


@dataclass(frozen=True)
class UnitLayout:
    """A graph with the units of its nodes. It holds no variances: these are arguments of programs,
    so that networks which differ in them share one."""

    graph: Graph  # with variances of 1 and 0
    units: tuple[int, ...]  # of the input, repeated if it is, and of each node
    features: int
    n_out: int

    @cached_property
    def affine(self) -> tuple[int, ...]:
        """Indices of the affine maps, in the order of computation."""
        return tuple(i for i, node in enumerate(self.graph, 1) if isinstance(node, Affine))

    @cached_property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """Fan-in and fan-out of each affine map."""
        return tuple((self._fan_in(i), self.units[i]) for i in self.affine)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Features, then the fan-out of each affine map; from inputs to outputs in a chain."""
        return self.features, *(fan_out for _, fan_out in self.shapes)

    @cached_property
    def positions(self) -> tuple[tuple[int, ...], ...]:
        """Height and width of the image at each node, the input first; nothing for plain units."""
        return tuple(size or () for size in image_sizes(self.graph))

    @property
    def n_weights(self) -> int:
        """Weights and biases of one network."""
        return sum((fan_in + 1) * fan_out for fan_in, fan_out in self.shapes)

    @property
    def row(self) -> int:
        """Numbers that one input becomes: units of the input and behind each affine map. What is
        computed unit by unit is not kept."""
        of_maps = (self.units[i] * prod(self.positions[i]) for i in self.affine)
        return self.features + sum(of_maps)

    @property
    def copies(self) -> int:
        """How often inputs are repeated for nodes that are not affine maps."""
        return self.units[INPUT] // self.features

    @property
    def has_masks(self) -> bool:
        """Whether there is dropout."""
        return any(isinstance(node, Masked) for node in self.graph)

    def inexact_shares(self) -> Iterator[tuple[tuple[float, ...], tuple[int, ...]]]:
        """Shares, with the units that stand for them, where whole units cannot have them."""
        for node in self.graph:
            if isinstance(node, Joined):
                units = tuple(self.units[source] for source in node.sources)
                shares = [Fraction(one, sum(units)) for one in units]
                if shares != [_exact(share) for share in node.shares]:
                    yield node.shares, units

    def _fan_in(self, index: int) -> int:
        (source,) = self.graph[index - 1].sources
        return self.features if source == INPUT else self.units[source]


@lru_cache(maxsize=256)
def lay_out(graph: Graph, width: int | tuple[int, ...], features: int, n_out: int) -> UnitLayout:
    """Count the units of every node; raise ValueError where that is impossible."""
    groups = _Groups(graph)
    units = [0] * (len(graph) + 1)
    for members, base in _bases(groups, _as_widths(groups, width), features, n_out):
        _count(groups, members, base, units)
    layout = UnitLayout(tuple(map(_bare, graph)), tuple(units), features, n_out)
    _check(layout)
    return layout


def _bare(node: Node) -> Node:
    return replace(node, weight_var=1.0, bias_var=0.0) if isinstance(node, Affine) else node


@lru_cache(maxsize=256)
def hidden_layers(graph: Graph) -> int:
    """How many hidden layers a graph has, each with a width of its own."""
    return len(_Groups(graph).hidden)


class _Groups:
    """Groups of nodes, and for each node its share of its group's units up to a factor."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.group, self.ratio = [INPUT], [Fraction(1)]
        self.sizes = image_sizes(graph)
        self.wide = [Fraction(1)]  # what windows have multiplied the units by
        self.members = {INPUT: [INPUT]}
        for node in graph:
            self._add(node)

    @property
    def hidden(self) -> list[int]:
        """Groups that are hidden layers, in the order of their first node."""
        nodes = (self.graph[one - 1] for one in self.members[INPUT] if one != INPUT)
        lone_input = [INPUT] if all(isinstance(node, Windowed) for node in nodes) else []
        ends = [self.output] if self.output is not None else []
        return [one for one in self.members if one not in lone_input + ends]

    @cached_property
    def output(self) -> int | None:
        """The group of the outputs, unless they are units of a hidden layer."""
        last = self.group[-1]
        plain = all(
            one != INPUT and isinstance(self.graph[one - 1], Affine | Added)
            for one in self.members[last]
        )
        read = (s for node in self.graph if isinstance(node, Affine) for s in node.sources)
        return last if plain and all(self.group[source] != last for source in read) else None

    def joins(self, index: int) -> bool:
        """Whether a node puts branches side by side."""
        node = None if index == INPUT else self.graph[index - 1]
        return isinstance(node, Joined) and len(node.sources) > 1

    def _add(self, node: Node) -> None:
        index = len(self.group)
        if isinstance(node, Affine):
            self.group.append(index)
            self.ratio.append(Fraction(1))
            self.wide.append(Fraction(1))
            self.members[index] = [index]
            return
        sources = node.sources
        more = self._widening(node) if isinstance(node, Windowed) else Fraction(1)
        self.wide.append(self.wide[sources[0]] * more)
        wanted = node.shares if isinstance(node, Joined) else (1.0,) * len(sources)
        shares = [_exact(share) for share in wanted]
        self.group.append(self.group[sources[0]])
        self.ratio.append(self.ratio[sources[0]] / shares[0] * more)
        self.members[self.group[index]].append(index)
        for source, share in zip(sources[1:], shares[1:], strict=True):
            self._unite(index, source, share)

    def _widening(self, node: Windowed) -> Fraction:
        """How many times as many units there are behind windows."""
        before = self.sizes[node.source]
        if node.kind == "image":
            assert node.window is not None
            return Fraction(1, prod(node.window))
        if node.kind == "flat":
            return Fraction(prod(before or ()))
        return Fraction(prod(node.window or ()) if node.kind == "patch" else 1)

    def _unite(self, index: int, source: int, share: Fraction) -> None:
        """Let the source have this share of the units of the node `index`."""
        wanted = self.ratio[index] * share
        kept, moved = self.group[index], self.group[source]
        if kept == moved:
            if self.ratio[source] != wanted:
                raise ValueError(
                    "branches of this network begin at the same units and cannot have the shares "
                    "of an nngp.Concat too; give the branches an nngp.Dense of their own"
                )
            return
        if moved < kept:  # a group is named after its first node
            self._move(kept, moved, self.ratio[source] / wanted)
        else:
            self._move(moved, kept, wanted / self.ratio[source])

    def _move(self, old: int, new: int, factor: Fraction) -> None:
        for one in self.members.pop(old):
            self.group[one] = new
            self.ratio[one] *= factor
            self.members[new].append(one)


def _as_widths(groups: _Groups, width: int | tuple[int, ...]) -> dict[int, int]:
    """The width of each hidden layer."""
    widths = (width,) * len(groups.hidden) if isinstance(width, int) else width
    return dict(zip(groups.hidden, widths, strict=True))


def _bases(
    groups: _Groups, widths: dict[int, int], features: int, n_out: int
) -> Iterator[tuple[Sequence[int], Fraction]]:
    """The members of each group, and the number of units of a node with ratio 1."""
    for group, members in groups.members.items():
        if group not in widths:
            yield members, Fraction(features if group == INPUT else n_out)
            continue
        base = widths[group] / max(groups.ratio[one] / groups.wide[one] for one in members)
        if group == INPUT:
            share = groups.ratio[INPUT]
            base = ceil(base * share / features) * features / share
        yield members, base


def _count(groups: _Groups, members: Sequence[int], base: Fraction, units: list[int]) -> None:
    """Round to whole units. What is joined has as many as its branches together, so that equal
    shares stay equal at any width."""
    sizes: dict[Fraction, int] = {}

    # Branches come before what they make together, and what decides before what adapts.
    def turn(one: int) -> tuple[Fraction, bool, bool]:
        return groups.ratio[one], one != INPUT, not groups.joins(one)

    for one in sorted(members, key=turn):
        ratio = groups.ratio[one]
        size = sizes.get(ratio, round(ratio * base))
        if groups.joins(one):
            size = sum(sizes[groups.ratio[source]] for source in groups.graph[one - 1].sources)
        if sizes.setdefault(ratio, size) != size:
            raise ValueError(
                "the shares of an nngp.Concat cannot be rounded to whole units that fit all "
                "branches; take a width of which all shares are whole"
            )
    for one in members:
        units[one] = sizes[groups.ratio[one]]


def _exact(share: float) -> Fraction:
    return Fraction(share).limit_denominator(FINEST)


def _check(layout: UnitLayout) -> None:
    """Raise ValueError where a node has too few units."""
    for node, units in zip(layout.graph, layout.units[1:], strict=True):
        if units == 0:
            raise ValueError("a branch of nngp.Concat has no unit at this width; take a larger one")
        if isinstance(node, Normalised) and units < 2:
            raise ValueError(
                "layer norm subtracts the mean of the units, so one unit alone is always 0; take a "
                "larger width"
            )
    if layout.units[-1] < layout.n_out:
        raise ValueError(
            f"the outputs of this network are units of a hidden layer, which has "
            f"{layout.units[-1]}; take a larger width or fewer than {layout.n_out} outputs, or "
            "add nngp.Dense(1.0, 0.0) at its end"
        )
