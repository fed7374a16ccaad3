"""Blocks of a kernel matrix in host memory, computed when they are asked for."""

from collections.abc import Sequence

import numpy as np

from nngp._arrays import Array
from nngp.architecture import Network
from nngp.architecture.invariances.orbit import OrbitTerm
from nngp.curve import NEAR, Profile, Workspace
from nngp.gram.head import AverageNorms
from nngp.gram.host.cosines import in_strips, set_diagonal
from nngp.gram.host.terms import Term, moved_sides, whole
from nngp.gram.inputs import Inputs
from nngp.gram.kernel_matrix import Shift
from nngp.gram.orbit_inputs import cut, transformed_inputs
from nngp.gram.plan import KernelPlan
from nngp.gram.split import TRIVIAL_SPLIT, KernelSplit
from nngp.gram.steps import BlockMatrix, KernelSteps

ROWS = 1024  # whose own kernel values are computed at a time
PAIRWISE_ROWS = 32  # the same where a block of all their pairs is needed


class HostMatrix(BlockMatrix[Inputs]):
    """`KernelMatrix` in host memory. A `plan` is that of inputs of which these are a part."""

    def __init__(
        self,
        network: Network,
        left: Inputs,
        right: Inputs | None = None,
        *,
        plan: KernelPlan | None = None,
        split: KernelSplit | None = TRIVIAL_SPLIT,
    ) -> None:
        other = left if right is None else right
        super().__init__(KernelSteps.of(network, left, other, plan, split), left, right)
        self.lefts, self.rights = (transformed_inputs(network, side) for side in (left, other))
        self.terms = self.steps.orbit.terms()
        self.plain = Term(self.steps, left, other)  # of the inputs as they are
        self._gaps = [1.0]

    @property
    def is_plain(self) -> bool:
        """Whether blocks are those of the network's own kernel, without further steps."""
        return self.network is self.steps.base and self.is_exact

    def block(
        self, rows: slice, columns: slice, *, shift: Shift = 0.0, out: Array | None = None
    ) -> Array:
        total = self.average_block(rows, columns, out)
        self._last_steps(total, rows, columns)
        if self.symmetric:
            set_diagonal(total, rows, columns, self.diagonal[rows] + shift)
        return total

    def average_block(self, rows: slice, columns: slice, out: Array | None = None) -> Array:
        """The sum of the terms, whose values of an input with itself are those of equal rows."""
        first, *others = self.terms
        total = self.term_block(first, rows, columns, out)
        if first.weight != 1.0:
            total *= first.weight
        work = np.empty_like(total) if others else None
        for term in others:
            part = self.term_block(term, rows, columns, work)
            part *= term.weight
            total += part
        return total

    def term_block(
        self, term: OrbitTerm, rows: slice, columns: slice, out: Array | None = None
    ) -> Array:
        """A block of one of the kernels that are averaged."""
        left, right = self.lefts[term.left], self.rights[term.right]
        if term.order.is_identity and left is self.left and right is self.right:
            return self.plain.block(rows, columns, out)
        moved = Term(self.steps, *moved_sides(term, left, right, rows, columns))
        block = moved.block(whole(moved.left), whole(moved.right), out)
        if moved.transform.smallest_gap < NEAR:
            self.record_gap(moved.transform.smallest_gap)
        return block

    def _last_steps(self, average: Array, rows: slice, columns: slice) -> None:
        """From the average to M, in place."""
        if self.steps.head is None and self.is_exact:
            return
        for part, strip in in_strips(average, rows, columns):
            if self.steps.head is None:
                part[...] = self.split.of_whole(part)
            elif self.norms is not None:
                to_cosines(part, self.norms, strip, columns)
                look_up(self.steps.head.profile, part)

    def _diagonal_of_terms(self, inputs: Inputs) -> Array:
        size = PAIRWISE_ROWS if self.steps.profile is None else ROWS
        versions = transformed_inputs(self.network, inputs)
        parts = [slice(s, s + size) for s in range(0, len(inputs), size)]
        return np.concatenate(
            [self._own_values([cut(v, rows) for v in versions]) for rows in parts]
        )

    def _own_values(self, versions: Sequence[Inputs]) -> Array:
        """The sum of the terms for inputs and their own transformations: a look-up for each, or a
        block of all their pairs."""
        total = np.zeros(len(versions[0]))
        for term in self.terms:
            left, right = versions[term.left], versions[term.right]
            if term.is_same:
                values = self.steps.own_values(left.var)
            elif self.steps.profile is not None:
                every = slice(None)
                values = _paired(
                    self.steps.profile, left.unit(every), term.order(right.unit(every))
                )
            else:
                all_pairs = Term(self.steps, left, Inputs(term.order(right.X), right.var))
                values = all_pairs.block(whole(left), whole(left)).diagonal()
            total += term.weight * values
        return total

    def record_gap(self, gap: float) -> None:
        """Take note of a pair with this 1 - |c|."""
        self._gaps.append(gap)

    @property
    def smallest_gap(self) -> float:
        return min(*self._gaps, self.plain.transform.smallest_gap)

    @property
    def _error_of_terms(self) -> float:
        return self.plain.transform.noise


def to_cosines(average: Array, norms: AverageNorms, rows: slice, columns: slice) -> None:
    """A strip of the average scaled to norm one, in place."""
    average *= norms.left[rows][:, None]
    average *= norms.right[columns]
    np.clip(average, -1.0, 1.0, out=average)


def look_up(profile: Profile, cosines: Array) -> None:
    """Cosines to values of a profile, in place. There is nothing else to take 1 - |c| from."""
    flat = np.ascontiguousarray(cosines).reshape(-1)
    near = np.flatnonzero(np.abs(flat) > 1 - NEAR)
    c = flat[near]
    profile.fast.apply(flat, Workspace(flat.size), any_negative=bool((flat < 0).any()))
    flat[near] = profile.at_signed(c < 0, 1.0 - np.abs(c))
    if not np.may_share_memory(flat, cosines):
        cosines[...] = flat.reshape(cosines.shape)


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
