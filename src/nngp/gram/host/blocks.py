"""Blocks of K, computed when they are asked for: the matrix itself need not exist.

`Cosines` gives the cosines of any block of pairs from the data; `Blocks` makes kernel values of
them in place, strip by strip, while they are in the cache.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nngp.architecture import Architecture
from nngp.covariance import LookupTable, default_table
from nngp.curve import curve_at
from nngp.gram.host.equal_norm import CurveTransform
from nngp.gram.host.fill import strips
from nngp.gram.host.lookup import LookupTransform
from nngp.gram.host.pairwise import PairwiseTransform
from nngp.gram.inputs import EQUAL, Inputs
from nngp.gram.plan import KernelPlan, make_plan
from nngp.gram.split import TRIVIAL_SPLIT, KernelSplit

Array = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)


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


class StoredCosines:
    """Blocks of cosines that were computed before, by where they begin."""

    def __init__(self, stored: dict[tuple[int, int], Any]) -> None:
        self.stored = stored

    def products(self, rows: slice, columns: slice, out: Array | None = None) -> Array:
        """A copy of a stored block."""
        block: Array = self.stored[rows.start, columns.start]
        if out is None:
            return block.copy()
        np.copyto(out, block)
        return out

    def scale(self, part: Array, rows: slice, columns: slice) -> None:
        """Stored cosines are cosines already."""


class Blocks:
    """K(left, right) of one network; `right` None means left, with the exact diagonal.

    `cosines` may be a store of them. With `split` the blocks are those of its M; None is the split
    that suits the inputs. A `plan` is that of inputs of which these are a part.
    """

    def __init__(
        self,
        architecture: Architecture,
        left: Inputs,
        right: Inputs | None = None,
        *,
        method: str = "auto",
        table: LookupTable | None = None,
        cosines: Cosines | StoredCosines | None = None,
        split: KernelSplit | None = TRIVIAL_SPLIT,
        plan: KernelPlan | None = None,
    ) -> None:
        self.symmetric, other = right is None, left if right is None else right
        self.architecture, self.left, self.right = architecture, left, other
        self.shape = len(left), len(other)
        self.plan = make_plan(architecture, left, other, method) if plan is None else plan
        if table is not None and self.plan.method != "lookup":
            raise ValueError("a table is used only with method='lookup'")
        self.split = own_split(architecture, self.plan) if split is None else split
        self._transform = _transform(self.plan, architecture, left, other, table, self.split)
        self._cosines = Cosines(left, other) if cosines is None else cosines

    @property
    def diagonal(self) -> Array:
        """K(x, x) of the left inputs, or M(x, x)."""
        return self._transform.diagonal

    @property
    def is_exact(self) -> bool:
        """Whether the split is that of these inputs, so that nothing large is subtracted."""
        return fits(self.split, self.plan)

    def block(
        self, rows: slice, columns: slice, *, shift: float = 0.0, out: Array | None = None
    ) -> Array:
        """K of these rows and columns, with `shift` on its diagonal; in `out` if given."""
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
        return float(self._transform.nearest)

    def error(self) -> float:
        """Largest error of the entries computed so far, relative to the diagonal."""
        return self._transform.error()


def set_diagonal(block: Array, rows: slice, columns: slice, values: Array) -> None:
    """Where row and column are the same point; `values` are those of all rows of the block."""
    both = np.arange(max(rows.start, columns.start), min(rows.stop, columns.stop))
    block[both - rows.start, both - columns.start] = values[both - rows.start]


def _transform(
    plan: KernelPlan,
    architecture: Architecture,
    left: Inputs,
    right: Inputs,
    table: LookupTable | None,
    split: KernelSplit,
) -> Any:
    if plan.method == "curve" and plan.input_var is not None:
        curve = curve_at(architecture, plan.input_var)
        if fits(split, plan):
            return CurveTransform(curve, left, right, split)
        return ShiftedTransform(architecture, CurveTransform(curve, left, right), split)
    if plan.method == "pairwise" or plan.input_var is None:
        pairwise = PairwiseTransform(architecture, left, right)
        return pairwise if split.is_trivial else ShiftedTransform(architecture, pairwise, split)
    chosen = default_table(architecture.activation) if table is None else table
    return LookupTransform(architecture, plan.input_var, chosen, len(left))


def own_split(architecture: Architecture, plan: KernelPlan) -> KernelSplit:
    """The split that suits these inputs."""
    if plan.method != "curve" or plan.input_var is None:
        return TRIVIAL_SPLIT
    return KernelSplit.of(curve_at(architecture, plan.input_var))


def fits(split: KernelSplit, plan: KernelPlan) -> bool:
    """Whether the plan's own curve gives the M of a split: the inputs have its norm."""
    if split.input_var is None or plan.input_var is None:
        return split.is_trivial
    return abs(plan.input_var - split.input_var) <= EQUAL * split.input_var


class ShiftedTransform:
    """The M of a split made for inputs of another norm: K / scale - offset, plainly subtracted."""

    def __init__(self, architecture: Architecture, whole: Any, split: KernelSplit) -> None:
        split.check_shift()
        self.architecture, self.whole, self.split = architecture, whole, split

    @property
    def diagonal(self) -> Array:
        return np.asarray(self.split.of_whole(self.whole.diagonal))

    @property
    def nearest(self) -> float:
        return float(self.whole.nearest)

    def met(self, gap: float) -> None:
        """As that of the whole kernel."""
        self.whole.met(gap)

    def __call__(self, block: Array, rows: slice, columns: slice) -> None:
        self.whole(block, rows, columns)
        block[...] = self.split.of_whole(block)

    def error(self) -> float:
        """Of the entries computed so far, relative to the scale."""
        rounding = self.split.shift_error(self.architecture.depth)
        return self.whole.error() + self.whole.noise * self.split.offset + rounding
