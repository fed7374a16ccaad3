"""Inputs of equal norm: every entry is one look-up in the curve, whatever the depth."""

import threading

import numpy as np

from nngp._arrays import Array, Index
from nngp.curve import NEAR, Profile, Workspace
from nngp.gram.host.fill import STRIP
from nngp.gram.inputs import Inputs

PAIRS = 4096  # near pairs handled at a time


class ProfileTransform:
    """Cosines to values of a profile in place, for blocks of the product of two sets of inputs.

    Where |c| is within 2^-16 of 1, inner products have lost what matters: there 1 - |c| is taken
    anew, as half the squared distance of the two unit vectors, exact for duplicates.
    """

    def __init__(self, profile: Profile, left: Inputs, right: Inputs) -> None:
        self.profile, self.left, self.right = profile, left, right
        self.table = profile.fast
        self._gaps = [1.0]  # smallest positive 1 - |c| of each block with near pairs
        self._local = threading.local()

    def __call__(self, block: Array, rows: slice, columns: slice) -> None:
        flat = np.ascontiguousarray(block).reshape(-1)
        low, high = flat.min(), flat.max()
        near = None
        if max(high, -low) > 1 - NEAR:
            near = np.flatnonzero(np.abs(flat) > 1 - NEAR)
        self.table.apply(flat, self._workspace(flat.size), any_negative=low < 0)
        if near is not None:
            self._redo(flat, near, rows, columns)
        if not np.may_share_memory(flat, block):
            block[...] = flat.reshape(block.shape)

    def _redo(self, flat: Array, near: Index, rows: slice, columns: slice) -> None:
        width = columns.stop - columns.start
        i, j = near // width + rows.start, near % width + columns.start
        for start in range(0, len(near), PAIRS):
            part = slice(start, start + PAIRS)
            x, y = self.left.unit(i[part]), self.right.unit(j[part])
            negative = np.einsum("ij,ij->i", x, y) < 0
            gap = np.where(negative[:, None], x + y, x - y)
            m = 0.5 * np.einsum("ij,ij->i", gap, gap)
            flat[near[part]] = self.profile.at_signed(negative, m)
            self._gaps.append(float(m.min(where=m > 0, initial=1.0)))

    @property
    def smallest_gap(self) -> float:
        """The smallest positive 1 - |c| met so far, if below 2^-16."""
        return min(self._gaps)

    @property
    def noise(self) -> float:
        """None: the error of a curve is known, and its owner counts it."""
        return 0.0

    def _workspace(self, size: int) -> Workspace:
        work = getattr(self._local, "work", None)
        if work is None or work.floats.size < size:
            work = self._local.work = Workspace(max(size, STRIP))
        return work
