"""Inputs of equal norm: every entry is one look-up in the curve, whatever the depth."""

import threading

import numpy as np
from numpy.typing import NDArray

from nngp._safe import TINY
from nngp.curve import NEAR, AngularCurve, Workspace
from nngp.gram.tiles import STRIP

Array = NDArray[np.float64]
PAIRS = 4096  # near pairs handled at a time
EPS = float(np.finfo(np.float64).eps)


class CurveTransform:
    """Cosines to kernel values in place, for blocks of the product of two sets of unit vectors.

    Where |c| is within 2^-16 of 1, inner products have lost what matters: there 1 - |c| is taken
    anew, as half the squared distance of the two unit vectors, exact for duplicates.
    """

    def __init__(self, curve: AngularCurve, left: Array, right: Array) -> None:
        self.curve, self.left, self.right = curve, left, right
        self.table = curve.fast
        self.diagonal = curve.variance
        self._nearest: list[float] = []
        self._local = threading.local()

    def __call__(self, block: Array, rows: slice, columns: slice) -> None:
        flat = np.ascontiguousarray(block).reshape(-1)
        low, high = flat.min(), flat.max()
        near = None
        if max(high, -low) > 1 - NEAR:
            near = np.flatnonzero(np.abs(flat) > 1 - NEAR)
        self.table.apply(flat, self._workspace(), any_negative=low < 0)
        if near is not None:
            self._redo(flat, near, rows, columns)
        block[...] = flat.reshape(block.shape)

    def _redo(self, flat: Array, near: NDArray[np.intp], rows: slice, columns: slice) -> None:
        width = columns.stop - columns.start
        i, j = near // width + rows.start, near % width + columns.start
        for start in range(0, len(near), PAIRS):
            part = slice(start, start + PAIRS)
            x, y = self.left[i[part]], self.right[j[part]]
            negative = np.einsum("ij,ij->i", x, y) < 0
            gap = np.where(negative[:, None], x + y, x - y)
            m = 0.5 * np.einsum("ij,ij->i", gap, gap)
            flat[near[part]] = self.curve.at_signed(negative, m)
            self._nearest.append(float(m.min(where=m > 0, initial=1.0)))

    def error(self) -> float:
        """Of the entries computed so far, relative to the variance.

        Rounding moves a cosine by some eps, and 1 - |c| of near pairs by sqrt of it times eps;
        as the deficit D is concave, that moves K by at most D(m) times the relative change of m.
        """
        gaps = [(NEAR, 4 * EPS / NEAR)] + [(m, 4 * EPS / m**0.5) for m in self._nearest]
        moved = [float(self.curve.deficit(one_minus=m)) * change for m, change in gaps]
        return self.curve.error + max(moved) / max(self.curve.variance, TINY)

    def _workspace(self) -> Workspace:
        if not hasattr(self._local, "work"):
            self._local.work = Workspace(STRIP)
        return self._local.work
