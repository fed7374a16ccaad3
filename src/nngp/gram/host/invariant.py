"""Kernel matrices of networks that are averaged over transformations, in host memory.

A block is the sum of blocks of the network's own kernel, one for each term of the orbit, between
inputs and transformed inputs. These are transformed when a block needs them: a transformation moves
numbers, and a product multiplies each of them by hundreds of others.
"""

from functools import cached_property
from typing import cast

import numpy as np

from nngp._arrays import Array
from nngp.architecture import Invariant
from nngp.architecture.invariances.orbit import OrbitTerm
from nngp.curve import NEAR, Profile, curve_at
from nngp.gram.host.matrix import HostMatrix, make_transform, set_diagonal
from nngp.gram.inputs import Inputs
from nngp.gram.kernel_matrix import Shift
from nngp.gram.orbit_inputs import cut, transformed_inputs
from nngp.gram.plan import KernelPlan, make_plan, own_split, split_fits
from nngp.gram.split import TRIVIAL_SPLIT, KernelSplit

ROWS = 1024  # whose own kernel values are computed at a time
PAIRWISE_ROWS = 32  # the same where a block of all their pairs is needed


class InvariantMatrix:
    """`KernelMatrix` of an `Invariant` network in host memory."""

    can_fill = False

    def __init__(
        self,
        network: Invariant,
        left: Inputs,
        right: Inputs | None = None,
        *,
        plan: KernelPlan | None = None,
        split: KernelSplit | None = TRIVIAL_SPLIT,
    ) -> None:
        self.symmetric, other = right is None, left if right is None else right
        self.architecture, self.left = network, left
        self.shape = len(left), len(other)
        self.plan = make_plan(network, left, other) if plan is None else plan
        self.split = own_split(network, self.plan) if split is None else split
        self.is_exact = split_fits(self.split, self.plan)
        self.orbit = network.orbit(left.shape[1])
        self.lefts, self.rights = (
            cast(list[Inputs], transformed_inputs(network, side)) for side in (left, other)
        )
        self._terms = self.orbit.terms()
        # It transforms no block: it knows the error, given the nearest pair of all blocks.
        self._errors = make_transform(self.plan, network.base, left, other, self.split)

    def block(
        self, rows: slice, columns: slice, *, shift: Shift = 0.0, out: Array | None = None
    ) -> Array:
        shape = rows.stop - rows.start, columns.stop - columns.start
        total = np.empty(shape) if out is None else out
        work = np.empty(shape)
        for k, term in enumerate(self._terms):
            part = self.term_block(term, rows, columns, out=work if k else total)
            part *= term.weight
            if k:
                total += part
        if self.symmetric:
            set_diagonal(total, rows, columns, self.diagonal[rows] + shift)
        return total

    def term_block(
        self, term: OrbitTerm, rows: slice, columns: slice, out: Array | None = None
    ) -> Array:
        """A block of one of the kernels that are averaged."""
        if term.is_same and self.symmetric:
            matrix = self._matrix(self.lefts[term.left], None)
            block = matrix.block(rows, columns, out=out)
        else:
            left, right = cut(self.lefts[term.left], rows), cut(self.rights[term.right], columns)
            moved = right if term.order.is_identity else Inputs(term.order(right.X), right.var)
            matrix = self._matrix(left, moved)
            here = slice(0, len(left)), slice(0, len(right))
            block = matrix.block(*here, out=out)
        if matrix.nearest < NEAR:
            self._errors.met(matrix.nearest)
        return block

    def _matrix(self, left: Inputs, right: Inputs | None) -> HostMatrix:
        return HostMatrix(self.architecture.base, left, right, plan=self.plan, split=self.split)

    @cached_property
    def diagonal(self) -> Array:
        of_rows, size = self._pair_by_pair, PAIRWISE_ROWS
        if self.plan.method == "curve" and self.plan.input_var is not None:
            of_rows, size = self._on_curve, ROWS
        rows = [slice(s, s + size) for s in range(0, len(self.left), size)]
        return np.concatenate([of_rows(part) for part in rows])

    def _on_curve(self, rows: slice) -> Array:
        """M(x, x) of some rows: a look-up for each term."""
        assert self.plan.input_var is not None
        curve = curve_at(self.architecture.base, self.plan.input_var)
        profile = (self.split if self.is_exact else TRIVIAL_SPLIT).profile(curve)
        total = np.zeros(len(self.left.var[rows]))
        units = [one.unit(rows) for one in self.lefts]
        for term in self._terms:
            if term.is_same:
                total += term.weight * profile.at_one
            else:
                values = _paired(profile, units[term.left], term.order(units[term.right]))
                total += term.weight * values
        return total if self.is_exact else np.asarray(self.split.of_whole(total))

    def _pair_by_pair(self, rows: slice) -> Array:
        """M(x, x) of some rows, from blocks of all their pairs."""
        sides = [cut(one, rows) for one in self.lefts]
        total = np.zeros(len(sides[0]))
        for term in self._terms:
            left, right = sides[term.left], sides[term.right]
            if term.is_same:
                total += term.weight * self._matrix(left, None).diagonal
            else:
                matrix = self._matrix(left, Inputs(term.order(right.X), right.var))
                everything = slice(0, len(left))
                total += term.weight * matrix.block(everything, everything).diagonal()
        return total

    @property
    def nearest(self) -> float:
        """The smallest 1 - |c| met so far, if it is so small that it matters."""
        return self._errors.nearest

    def error(self) -> float:
        return self._errors.error()


def _paired(profile: Profile, x: Array, y: Array) -> Array:
    """A profile at the cosines of unit vectors, row by row; from differences where they are near,
    as in `equal_norm`."""
    c = np.einsum("ij,ij->i", x, y)
    negative, m = c < 0, 1.0 - np.abs(c)
    near = m < NEAR
    if near.any():
        sign = np.where(negative[near], -1.0, 1.0)[:, None]
        gap = x[near] - sign * y[near]
        m[near] = 0.5 * np.einsum("ij,ij->i", gap, gap)
    return np.asarray(profile.at_signed(negative, m))
