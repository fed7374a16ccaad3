"""Where windows over an image take their covariances from: whole numbers only, no arrays of data.

A unit of a convolutional network has a position, so the covariance of two inputs is one number for
each pair of positions (p, p'). A convolution moves both by the same step: the offset p' - p stays.
So covariances are kept as planes, one for each offset d that the outputs depend on, and the plane
of d holds K(p, p + d) for every p. Offsets count modulo the size of the image, so a plane has as
many numbers as the image has positions, and all planes together are all pairs of positions once:
the plane of d holds the true offsets d (where p + d is inside) and d - size (behind the seam).

Both axes of an image are treated alike and one after the other, so everything here is about one
axis: `AxisWindow` says which entries of the planes before a window make an entry behind it, and
`plan_planes` which planes a network needs at its input. A network without pooling needs one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nngp._arrays import Index
from nngp.architecture.graph import INPUT, Graph, Windowed, image_sizes


class Axis(NamedTuple):
    """One axis of an image: its length, and the offsets whose planes are kept, modulo the length.
    Entries are ordered by plane, then by position; offset 0 comes first."""

    size: int
    offsets: tuple[int, ...] = (0,)

    @property
    def is_plain(self) -> bool:
        """Whether there is one plane, that of offset 0."""
        return self.offsets == (0,)

    @property
    def own(self) -> Index:
        """The position p of each entry."""
        return np.tile(np.arange(self.size), len(self.offsets))

    @property
    def partner(self) -> Index:
        """The position p' of each entry."""
        shifted = np.add.outer(np.array(self.offsets), np.arange(self.size))
        return (shifted % self.size).ravel()

    def restricted(self, offsets: tuple[int, ...]) -> Index:
        """The entries of some of the offsets."""
        starts = self.size * np.array([self.offsets.index(one) for one in offsets])
        return np.add.outer(starts, np.arange(self.size)).ravel()

    def shared(self, other: "Axis") -> "Axis":
        """The offsets that both have."""
        return Axis(self.size, tuple(one for one in self.offsets if one in other.offsets))


@dataclass(frozen=True)
class AxisWindow:
    """A window along one axis. `mean` averages positions of both inputs, each on its own;
    otherwise both inputs are seen through the window at one step of it."""

    size: int
    window: int
    stride: int
    padding: str
    mean: bool

    @classmethod
    def of(cls, node: Windowed, axis: int, size: int) -> "AxisWindow":
        window = size if node.window is None else node.window[axis]
        return cls(size, window, node.stride[axis], node.padding, node.kind == "mean")

    @property
    def low(self) -> int:
        """Positions beyond the first one that the first window covers."""
        if self.padding == "valid":
            return 0
        return max((self.out - 1) * self.stride + self.window - self.size, 0) // 2

    @property
    def high(self) -> int:
        """Positions beyond the last one that the last window covers."""
        return max((self.out - 1) * self.stride + self.window - self.size - self.low, 0)

    @property
    def out(self) -> int:
        """Number of windows."""
        if self.padding == "valid":
            return (self.size - self.window) // self.stride + 1
        return -(-self.size // self.stride)

    @property
    def weight(self) -> float:
        """One over the number of terms of the mean along this axis."""
        return float(self.window) ** (-2 if self.mean else -1)

    def needed(self, after: Iterable[int]) -> frozenset[int]:
        """The true offsets before the window that some true offsets behind it depend on."""
        moved = {self.stride * one for one in after}
        if self.mean:
            reach = range(1 - self.window, self.window)
            moved = {one + step for one in moved for step in reach}
        elif self.padding == "circular":
            moved = {one % self.size - k * self.size for one in moved for k in (0, 1)}
        return frozenset(one for one in moved if abs(one) < self.size)

    def behind(self, before: Axis) -> Axis:
        """The planes behind the window that those before it suffice for."""
        return _behind(self, before)

    def sources(self, before: Axis) -> NDArray[np.intp]:
        """For each term of the mean and each entry behind the window, the entry before it; -1 where
        that is outside the image."""
        return _sources(self, before)

    def _steps(self) -> list[tuple[int, int]]:
        """The steps of the window for p, and for p' relative to it."""
        if not self.mean:
            return [(k, 0) for k in range(self.window)]
        return [(a, b - a) for a in range(self.window) for b in range(self.window)]


@lru_cache(maxsize=256)
def _behind(window: AxisWindow, before: Axis) -> Axis:
    have = set(before.offsets)

    def known(offset: int) -> bool:
        return {one % window.size for one in window.needed([offset])} <= have

    found = [d for d in range(window.out) if known(d) or (d > 0 and known(d - window.out))]
    return Axis(window.out, tuple(found))


@lru_cache(maxsize=256)
def _sources(window: AxisWindow, before: Axis) -> NDArray[np.intp]:
    size, after = window.size, window.behind(before)
    p = window.stride * np.arange(window.out) - window.low
    d = np.array(after.offsets)[:, None]
    inside = np.arange(window.out) + d < window.out
    d = window.stride * np.where(inside, d, d - window.out)  # the true offset of each entry
    place = np.full(size, -1)
    place[list(before.offsets)] = np.arange(len(before.offsets))
    out = []
    for step, more in window._steps():
        here = np.broadcast_to(p + step, d.shape)
        there, plane = here + d + more, place[(d + more) % size]
        if window.padding == "circular" and not window.mean:
            seen = plane >= 0
        else:
            seen = (plane >= 0) & (here >= 0) & (here < size) & (there >= 0) & (there < size)
        out.append(np.where(seen, plane * size + here % size, -1).ravel())
    found = np.array(out)
    found.flags.writeable = False
    return found


class PlanePlan(NamedTuple):
    """The image at the input, its planes, and numbers of all planes that each node computes."""

    height: Axis
    width: Axis
    channels: int
    work: int

    @property
    def columns(self) -> int:
        """Numbers of an image."""
        return self.height.size * self.width.size * self.channels

    def check_columns(self, columns: int) -> None:
        """Raise ValueError where rows of so many columns are not the images of the network."""
        if columns != self.columns:
            h, w, c = self.height.size, self.width.size, self.channels
            raise ValueError(
                f"the network reads images of {h} x {w} x {c} = {self.columns} columns "
                f"(nngp.Image), and the inputs have {columns} columns"
            )

    @property
    def planes(self) -> int:
        """Planes at the input."""
        return len(self.height.offsets) * len(self.width.offsets)

    @property
    def numbers(self) -> int:
        """Numbers of a pair of inputs at the input."""
        return self.planes * self.height.size * self.width.size


@lru_cache(maxsize=256)
def plan_planes(graph: Graph) -> PlanePlan | None:
    """The planes that a network of images needs; None if it reads rows as they are."""
    images = [node for node in graph if isinstance(node, Windowed) and node.kind == "image"]
    if not images:
        return None
    sizes = image_sizes(graph)
    needs = [[{0}, {0}] for _ in sizes]
    for index in range(len(graph), INPUT, -1):
        node = graph[index - 1]
        for source in node.sources:
            for axis in (0, 1):
                needs[source][axis].update(_needed(node, needs[index][axis], sizes[source], axis))
    axes = [
        [_axis(size, need) for size, need in zip(own, need, strict=True)]
        for own, need in zip(sizes, needs, strict=True)
        if own is not None
    ]
    counts = [len(y.offsets) * y.size * len(x.offsets) * x.size for y, x in axes]
    height, width = axes[0]
    return PlanePlan(height, width, images[0].channels, sum(counts))


def _needed(
    node: object, after: set[int], size: tuple[int, int] | None, axis: int
) -> Iterable[int]:
    if size is None:
        return ()
    if not isinstance(node, Windowed) or node.kind == "image":
        return after
    window = AxisWindow.of(node, axis, size[axis])
    return window.needed([0] if node.window is None else after)


def _axis(size: int, true_offsets: Iterable[int]) -> Axis:
    return Axis(size, tuple(sorted({one % size for one in true_offsets})))
