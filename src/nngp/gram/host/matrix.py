"""Blocks of a kernel matrix in host memory, computed when they are asked for.

`Cosines` computes the cosines of any block of pairs from the data; `HostMatrix` turns them into
kernel values in place, strip by strip, while they are in the cache.
"""

import threading
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from nngp._arrays import EPS, Array
from nngp.architecture import Network
from nngp.curve import curve_at
from nngp.gram.host.equal_norm import CurveTransform
from nngp.gram.host.fill import TILE, strips
from nngp.gram.host.pairwise import PairwiseTransform
from nngp.gram.inputs import Inputs
from nngp.gram.kernel_matrix import Shift
from nngp.gram.plan import KernelPlan, make_plan, own_split, split_fits
from nngp.gram.split import TRIVIAL_SPLIT, KernelSplit


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


class HostMatrix:
    """`KernelMatrix` in host memory. A `plan` is that of inputs of which these are a part."""

    can_fill = False

    def __init__(
        self,
        architecture: Network,
        left: Inputs,
        right: Inputs | None = None,
        *,
        plan: KernelPlan | None = None,
        split: KernelSplit | None = TRIVIAL_SPLIT,
    ) -> None:
        self.symmetric, other = right is None, left if right is None else right
        self.architecture, self.left = architecture, left
        self.shape = len(left), len(other)
        self.plan = make_plan(architecture, left, other) if plan is None else plan
        self.split = own_split(architecture, self.plan) if split is None else split
        self.is_exact = split_fits(self.split, self.plan)
        self._transform = make_transform(self.plan, architecture, left, other, self.split)
        self._cosines = Cosines(left, other)

    @property
    def diagonal(self) -> Array:
        return self._transform.diagonal

    def block(
        self, rows: slice, columns: slice, *, shift: Shift = 0.0, out: Array | None = None
    ) -> Array:
        block = self._cosines.products(rows, columns, out)
        for part, strip in in_strips(block, rows, columns):
            self._cosines.scale(part, strip, columns)
            self._transform(part, strip, columns)
        if self.symmetric:
            set_diagonal(block, rows, columns, self.diagonal[rows] + shift)
        return block

    @property
    def nearest(self) -> float:
        """The smallest 1 - |c| met so far, if it is so small that it matters."""
        return self._transform.nearest

    def error(self) -> float:
        return self._transform.error()


class SameBlocks:
    """A block of each of several matrices of the same inputs, all from one product.

    Blocks have at most TILE rows and columns, and are overwritten by the next call of the same
    thread.
    """

    def __init__(self, matrices: Sequence[HostMatrix]) -> None:
        self.matrices, self.cosines = matrices, matrices[0]._cosines
        self._local = threading.local()

    def __call__(self, rows: slice, columns: slice) -> list[Array]:
        blocks = self._memory(rows, columns)
        shared = self.cosines.products(rows, columns, blocks[-1])
        for part, strip in in_strips(shared, rows, columns):
            self.cosines.scale(part, strip, columns)
            local = slice(strip.start - rows.start, strip.stop - rows.start)
            for matrix, block in zip(self.matrices, blocks, strict=True):
                if block is not shared:  # which is the last, and overwritten last
                    block[local] = part
                matrix._transform(block[local], strip, columns)
        for matrix, block in zip(self.matrices, blocks, strict=True):
            if matrix.symmetric:
                set_diagonal(block, rows, columns, matrix.diagonal[rows])
        return blocks

    def _memory(self, rows: slice, columns: slice) -> list[Array]:
        if not hasattr(self._local, "memory"):
            self._local.memory = [np.empty(TILE * TILE) for _ in self.matrices]
        shape = rows.stop - rows.start, columns.stop - columns.start
        return [flat[: shape[0] * shape[1]].reshape(shape) for flat in self._local.memory]


def set_diagonal(block: Array, rows: slice, columns: slice, values: Array) -> None:
    """Overwrite the entries whose row and column are the same point; `values` has one for each row
    of the block."""
    both = np.arange(max(rows.start, columns.start), min(rows.stop, columns.stop))
    block[both - rows.start, both - columns.start] = values[both - rows.start]


class Transform(Protocol):
    """Cosines to values of M, in place on blocks."""

    @property
    def diagonal(self) -> Array:
        """M(x, x) of the left inputs."""

    @property
    def nearest(self) -> float:
        """The smallest 1 - |c| met so far, if it is so small that it matters."""

    def met(self, gap: float) -> None:
        """Count a gap of 1 - |c| that another machine has met."""

    @property
    def noise(self) -> float:
        """The part of the error that is relative to K(x, x), whatever the pair."""

    def __call__(self, block: Array, rows: slice, columns: slice) -> None: ...

    def error(self) -> float:
        """Of the entries computed so far, relative to the diagonal."""


def make_transform(
    plan: KernelPlan, architecture: Network, left: Inputs, right: Inputs, split: KernelSplit
) -> Transform:
    """The transform that a plan asks for."""
    if plan.method == "curve" and plan.input_var is not None:
        curve = curve_at(architecture, plan.input_var)
        if split_fits(split, plan):
            return CurveTransform(curve, left, right, split)
        return ShiftedTransform(architecture, CurveTransform(curve, left, right), split)
    pairwise = PairwiseTransform(architecture, left, right)
    return pairwise if split.is_trivial else ShiftedTransform(architecture, pairwise, split)


class ShiftedTransform:
    """The M of a split made for inputs of another norm: K / scale - offset, plainly subtracted."""

    def __init__(self, architecture: Network, whole: Transform, split: KernelSplit) -> None:
        split.check_shift()
        self.architecture, self.whole, self.split = architecture, whole, split

    @property
    def diagonal(self) -> Array:
        return np.asarray(self.split.of_whole(self.whole.diagonal))

    @property
    def nearest(self) -> float:
        return self.whole.nearest

    def met(self, gap: float) -> None:
        self.whole.met(gap)

    def __call__(self, block: Array, rows: slice, columns: slice) -> None:
        self.whole(block, rows, columns)
        block[...] = self.split.of_whole(block)

    @property
    def noise(self) -> float:
        return self.whole.noise

    def error(self) -> float:
        rounding = self.split.shift_error(self.architecture.depth)
        return self.whole.error() + self.whole.noise * self.split.offset + rounding
