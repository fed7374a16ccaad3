"""Inputs of equal norm: every entry is one look-up in the curve, whatever the depth."""

import threading

import numpy as np

from nngp._arrays import Array, Index
from nngp.curve import NEAR, AngularCurve, Profile, Workspace
from nngp.gram.error_bounds import curve_error
from nngp.gram.host.fill import STRIP
from nngp.gram.inputs import Inputs
from nngp.gram.split import TRIVIAL_SPLIT, KernelSplit

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
    def nearest(self) -> float:
        """The smallest positive 1 - |c| met so far, if below 2^-16."""
        return min(self._gaps)

    def met(self, gap: float) -> None:
        """Count a gap of 1 - |c| that another machine has met."""
        self._gaps.append(gap)

    def _workspace(self, size: int) -> Workspace:
        work = getattr(self._local, "work", None)
        if work is None or work.floats.size < size:
            work = self._local.work = Workspace(max(size, STRIP))
        return work


class CurveTransform:
    """Cosines to values of K, or of the M of a split, in place on blocks."""

    def __init__(
        self, curve: AngularCurve, left: Inputs, right: Inputs, split: KernelSplit = TRIVIAL_SPLIT
    ) -> None:
        self.curve, self.split = curve, split
        profile = split.profile(curve)
        self.diagonal = np.full(len(left), profile.at_one)
        self._look_up = ProfileTransform(profile, left, right)

    def __call__(self, block: Array, rows: slice, columns: slice) -> None:
        self._look_up(block, rows, columns)

    @property
    def nearest(self) -> float:
        return self._look_up.nearest

    def met(self, gap: float) -> None:
        self._look_up.met(gap)

    @property
    def noise(self) -> float:
        return self.curve.error

    def error(self) -> float:
        return curve_error(self.curve, self._look_up.nearest, self.split)
