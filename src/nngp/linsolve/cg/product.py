"""A symmetric matrix times vectors, from its lower tiles: each is used for both of its halves.

Vectors are the rows of a host array (s, n), and tiles of them (s, rows) are what travels. Tiles of
the matrix are kept as far as memory allows, the others recomputed for every product. Not more
than a group of them is under way at a time, and their products are summed where they are.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from nngp._arrays import Array
from nngp.gram import KernelMatrix
from nngp.linsolve.engines.engine import EngineRun, Handle, compiled
from nngp.linsolve.tiling import Edges, in_groups, spans

UNDER_WAY = 2**28  # bytes of products that wait to be summed
GROUP = 64  # tiles under way at most


class KernelProduct:
    """M times vectors. `room` is how many bytes of tiles may be kept."""

    def __init__(self, blocks: KernelMatrix, edges: Edges, room: float = 0.0) -> None:
        self.blocks, self.edges, self.slices = blocks, edges, spans(edges)
        self._kept: dict[tuple[int, int], Handle] = {}
        self._to_keep = _first_that_fit(edges, room)

    @property
    def tiles(self) -> list[tuple[int, int]]:
        """The lower ones."""
        return [(i, j) for i in range(len(self.slices)) for j in range(i + 1)]

    @property
    def kept(self) -> float:
        """The share of tiles that are kept."""
        return len(self._to_keep) / len(self.tiles)

    @property
    def kept_bytes(self) -> int:
        return 8 * sum(_numbers(self.edges, i, j) for i, j in self._to_keep)

    def keep(self, run: EngineRun, told: Callable[[float], None] = lambda share: None) -> None:
        """Compute the tiles that are kept."""
        missing = [tile for tile in self._to_keep if tile not in self._kept]
        for some in in_groups(missing, 2 * run.width):
            found = [run.chain(self._first(i, j)) for i, j in some]
            self._kept |= dict(zip(some, (run.wait(handle) for handle in found), strict=True))
            told(len(some) / len(self.tiles))

    def __call__(self, run: EngineRun, vectors: Array) -> Array:
        """(M vectorsᵀ)ᵀ."""
        count, parts = len(vectors), run.columns(vectors, self.edges)
        totals: list[Handle] = [run.zeros(count, s.stop - s.start) for s in self.slices]
        size = 16 * count * max(s.stop - s.start for s in self.slices)
        before: set[int] = set()
        for some in in_groups(self.tiles, max(2 * run.width, min(GROUP, UNDER_WAY // size))):
            touched = self._add(run, parts, totals, some)
            for i in before:  # while this group is being worked on
                run.wait(totals[i])
            before = touched
        return np.concatenate([run.fetch(total) for total in totals], axis=1)

    def _add(
        self,
        run: EngineRun,
        parts: list[Handle],
        totals: list[Handle],
        some: Sequence[tuple[int, int]],
    ) -> set[int]:
        """Add the products of some tiles; gives which totals they went to."""
        found: dict[int, list[tuple[int, Handle]]] = {}
        for i, j in some:
            if i == j:
                found.setdefault(i, []).append((0, self._do(run, i, j, _own, parts[i])))
            else:
                both = self._do(run, i, j, _both, parts[i], parts[j])
                found.setdefault(i, []).append((0, both))
                found.setdefault(j, []).append((1, both))
        for i, products in found.items():
            which, handles = zip(*products, strict=True)
            totals[i] = run.apply(partial(_sum, which), totals[i], *handles)
        return set(found)

    def _do(self, run: EngineRun, i: int, j: int, then: Any, *beside: Handle) -> Handle:
        if (i, j) in self._kept:
            return run.apply(then, self._kept[i, j], *beside)
        return run.chain(self._first(i, j), then=then, beside=beside)

    def _first(self, i: int, j: int) -> Callable[[], Any]:
        return partial(self.blocks.block, self.slices[i], self.slices[j])


@compiled
def _both(tile: Any, upper: Any, left: Any) -> Any:
    """The tile's part of the product's rows, and that of its mirror image."""
    return (tile @ left.T).T, upper @ tile


@compiled
def _own(tile: Any, part: Any) -> Any:
    return (part @ tile,)


def _sum(which: tuple[int, ...], total: Any, *products: Any) -> Any:
    return sum((product[k] for k, product in zip(which, products, strict=True)), total)


def _numbers(edges: Edges, i: int, j: int) -> int:
    return (edges[i + 1] - edges[i]) * (edges[j + 1] - edges[j])


def _first_that_fit(edges: Edges, room: float) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    left = room
    for i in range(len(edges) - 1):
        for j in range(i + 1):
            left -= 8 * _numbers(edges, i, j)
            if left < 0:
                return out
            out.append((i, j))
    return out
