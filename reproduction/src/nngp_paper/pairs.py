"""Pairs of inputs of equal norm, ready for the look-up of any function of their cosine.

A curve is smooth in the logarithm of m = 1 - |c|, for c of either sign. So a pair is kept as its
place on a grid of log2 m: the cell, and how far into it. Each cell has a cubic of the deficit. With
512 cells to a factor of two the cubics are off by less than 3e-13 of the deficit. Where m < 2^-16,
the inner product has lost what matters: there m is half the squared distance of the unit vectors,
and the curve itself is asked.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from nngp.curves import AngularCurve
from nngp_paper.arrays import Array, Index

OCTAVES, CELLS = 16, 512  # factors of two of m that have cells, and cells of each
HALF = OCTAVES * CELLS  # cells of one sign
NEAR = 2.0**-OCTAVES
LAST = HALF - 1e-11  # place of m = NEAR, in the last cell of either sign
NODES = 0.5 - 0.5 * np.cos(np.pi * (np.arange(4) + 0.5) / 4)  # of a cubic, in its cell
AT_ONCE = 2**18  # pairs that are looked up, or placed, at a time
NEAR_AT_ONCE = 2**12


class Pairs:
    """All pairs of two sets of unit vectors."""

    def __init__(self, x: Array, y: Array) -> None:
        self.shape = len(x), len(y)
        self._places = np.empty(self.shape)
        near = []
        for rows in strips(0, len(x), len(y)):
            c = x[rows] @ y.T
            m = 1.0 - np.abs(c)
            i, j = np.nonzero(m < NEAR)
            near.append((i + rows.start, j))
            place = -CELLS * np.log2(np.maximum(m, NEAR))
            place = np.minimum(place, LAST)
            self._places[rows] = place + HALF * (c < 0)
        self._near = np.concatenate([i for i, _ in near]), np.concatenate([j for _, j in near])
        self._near_gaps = _gaps(x, y, *self._near)

    def look_up(self, curve: AngularCurve, cubics: Array, rows: slice, out: Array) -> None:
        """Write the deficits of the pairs of some rows to `out`; `cubics` are those of the
        curve."""
        for part in strips(rows.start, rows.stop, self.shape[1]):
            place = self._places[part]
            cell = place.astype(np.intp)
            x = place - cell
            value = cubics[3].take(cell)
            for k in (2, 1, 0):
                value *= x
                value += cubics[k].take(cell)
            out[part.start - rows.start : part.stop - rows.start] = value
        i, j = self._near
        first, last = np.searchsorted(i, (rows.start, rows.stop))
        some = slice(first, last)
        out[i[some] - rows.start, j[some]] = curve.deficit(one_minus=self._near_gaps[some])


class SortedPairs:
    """The same for functions that are piecewise linear in the cosine, as those of a look-up table:
    cosines in ascending order, some rows at a time, so that the search for a cell is short."""

    def __init__(self, x: Array, y: Array) -> None:
        self.shape = len(x), len(y)
        self._sorted: list[tuple[slice, NDArray[np.int32], Array]] = []
        for rows in strips(0, *self.shape):
            cosines = (x[rows] @ y.T).ravel()
            order = np.argsort(cosines).astype(np.int32)
            self._sorted.append((rows, order, cosines[order]))

    def interpolate(self, cosines: Array, values: Array) -> Iterator[Array]:
        """The function with these knots at all pairs, some rows at a time."""
        for rows, order, at in self._sorted:
            out = np.empty(len(order))
            out[order] = np.interp(at, cosines, values)
            yield out.reshape(rows.stop - rows.start, self.shape[1])


def cubics_of(curve: AngularCurve) -> Array:
    """Coefficients of the deficit in each cell, ascending: first for c >= 0, then for c < 0."""
    m = np.exp2(-(np.arange(HALF)[:, None] + NODES) / CELLS)
    values = curve.deficit(one_minus=np.concatenate([m, 2.0 - m]))
    return np.ascontiguousarray(np.linalg.inv(np.vander(NODES, increasing=True)) @ values.T)


def strips(start: int, stop: int, width: int) -> list[slice]:
    """The rows from `start` to `stop`, some at a time: few enough for the cache."""
    step = max(1, AT_ONCE // width)
    return [slice(s, min(s + step, stop)) for s in range(start, stop, step)]


def _gaps(x: Array, y: Array, i: Index, j: Index) -> Array:
    """1 - c of near pairs, from the difference or the sum of their vectors."""
    out = np.empty(len(i))
    for start in range(0, len(i), NEAR_AT_ONCE):
        part = slice(start, start + NEAR_AT_ONCE)
        left, right = x[i[part]], y[j[part]]
        negative = np.einsum("ij,ij->i", left, right) < 0
        between = np.where(negative[:, None], left + right, left - right)
        m = 0.5 * np.einsum("ij,ij->i", between, between)
        out[part] = np.where(negative, 2.0 - m, m)
    return out
