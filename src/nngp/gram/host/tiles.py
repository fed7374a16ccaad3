"""Tiles of pairs: cosines of any block, strips that fit the cache, and matrices filled by tiles.

Each thread does whole tiles with a single-threaded BLAS, so that nothing waits for anything and no
call is large (the OpenBLAS in the NumPy wheels crashes on X @ X.T beyond 15,500 rows). Of a
symmetric matrix the lower tiles are computed, and mirrored while they are in the cache.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from nngp import _machine
from nngp._arrays import EPS, Array
from nngp.gram.inputs import Inputs

TILE = 640
STRIP = 32_768  # numbers transformed at a time: the temporaries fit the L2 cache


def fill(
    rows: int, columns: int, block: Callable[[slice, slice], Array], *, symmetric: bool
) -> Array:
    """The matrix whose blocks `block` computes."""
    (out,) = fill_several(rows, columns, lambda *tile: [block(*tile)], 1, symmetric=symmetric)
    return out


def fill_several(
    rows: int,
    columns: int,
    blocks: Callable[[slice, slice], Sequence[Array]],
    count: int,
    *,
    symmetric: bool,
) -> list[Array]:
    """Matrices of one shape; `blocks` computes the same block of each."""
    matrices = allocate(rows, columns, count)

    def job(tile: tuple[slice, slice]) -> None:
        for out, part in zip(matrices, blocks(*tile), strict=True):
            _put(part, out, tile, symmetric)

    tiles = [
        (down, across)
        for down in _slices(rows)
        for across in _slices(down.stop if symmetric else columns)
    ]
    workers, limit = _machine.threads(), _machine.limit_this_thread
    with _machine.single_threaded_blas(), ThreadPoolExecutor(workers, initializer=limit) as pool:
        list(pool.map(job, tiles))
    return matrices


def _put(part: Array, out: Array, tile: tuple[slice, slice], symmetric: bool) -> None:
    """Write a block to its place and, of a symmetric matrix, to its mirror image."""
    if symmetric and tile[0] == tile[1]:  # so far only up to the order of its sums
        part = np.tril(part) + np.tril(part, -1).T
    elif symmetric:
        out[tile[1], tile[0]] = part.T
    out[tile] = part


def _slices(size: int) -> list[slice]:
    return [slice(start, min(start + TILE, size)) for start in range(0, size, TILE)]


def strips(rows: slice, columns: slice) -> list[slice]:
    """`rows` in pieces whose block over `columns` has at most STRIP numbers."""
    height = max(1, STRIP // (columns.stop - columns.start))
    return [slice(s, min(s + height, rows.stop)) for s in range(rows.start, rows.stop, height)]


def allocate(rows: int, columns: int, count: int) -> list[Array]:
    """Allocate matrices, or raise MemoryError if they do not fit."""
    needed, free = count * rows * columns * 8, _machine.available_memory()
    if free is not None and needed > free:
        what = f"a {rows} x {columns} kernel matrix takes"
        if count > 1:
            what = f"{count} kernel matrices of {rows} x {columns} take"
        raise MemoryError(
            f"{what} {needed / 1e9:.1f} GB and {free / 1e9:.1f} GB are free; use at most "
            f"{int((free / 8 / count) ** 0.5)} points at a time"
        )
    return [np.empty((rows, columns)) for _ in range(count)]


class Cosines:
    """Cosines between two sets of inputs, any block of them."""

    def __init__(self, left: Inputs, right: Inputs) -> None:
        self.left, self.right = left, right
        both = np.concatenate([left.inverse_norm, right.inverse_norm])
        # One factor for all, where norms agree to rounding: half the work of scaling.
        agree = np.ptp(both) <= 8 * EPS * both[0] and 1e-150 < both[0] < 1e150
        self._scale = both[0] ** 2 if agree else None

    def block(self, rows: slice, columns: slice, out: Array | None = None) -> Array:
        """The cosines of these rows with these columns."""
        block = self.products(rows, columns, out)
        for part, strip in in_strips(block, rows, columns):
            self.scale(part, strip, columns)
        return block

    def products(self, rows: slice, columns: slice, out: Array | None = None) -> Array:
        """Inner products, not yet divided by the norms."""
        return np.matmul(self.left.X[rows], self.right.X[columns].T, out=out)

    def scale(self, part: Array, rows: slice, columns: slice) -> None:
        """Products to cosines, in place."""
        if self._scale is not None:
            part *= self._scale
        else:
            part *= self.left.inverse_norm[rows][:, None]
            part *= self.right.inverse_norm[columns]


def in_strips(block: Array, rows: slice, columns: slice) -> Iterator[tuple[Array, slice]]:
    """The block in pieces that fit the cache, with their rows."""
    for strip in strips(rows, columns):
        yield block[strip.start - rows.start : strip.stop - rows.start], strip


def set_diagonal(block: Array, rows: slice, columns: slice, values: Array) -> None:
    """Overwrite the entries whose row and column are the same point; `values` has one for each row
    of the block."""
    both = np.arange(max(rows.start, columns.start), min(rows.stop, columns.stop))
    block[both - rows.start, both - columns.start] = values[both - rows.start]
