"""Blocks of a kernel matrix in host memory, computed when they are asked for.

Inner products come from BLAS; they become cosines and kernel values in place, strip by strip, while
they are in the cache. Where all inputs share one norm, a value is one look-up in the curve,
whatever the depth (`ProfileTransform`); otherwise the walk runs on the strip (`pairwise`).
"""

import threading
from collections.abc import Sequence
from typing import Protocol, cast

import numpy as np

from nngp._arrays import Array, Index
from nngp.architecture import Network
from nngp.architecture.invariances.orbit import OrbitTerm
from nngp.curve import NEAR, Profile, Workspace
from nngp.gram.host.images import ImageTerm
from nngp.gram.host.pairwise import PairwiseTransform
from nngp.gram.host.tiles import STRIP, TILE, Cosines, in_strips, set_diagonal
from nngp.gram.inputs import Inputs, cut, transformed_inputs
from nngp.gram.kernel_matrix import Shift
from nngp.gram.plan import KernelPlan
from nngp.gram.split import TRIVIAL_SPLIT, KernelSplit
from nngp.gram.steps import AverageNorms, BlockMatrix, KernelSteps

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


class Transform(Protocol):
    """The profile of a kernel matrix: cosines to kernel values, in place on blocks."""

    @property
    def smallest_gap(self) -> float:
        """The smallest 1 - |c| met so far, if it is so small that it matters."""

    @property
    def noise(self) -> float:
        """The error of a value beside that of a curve and that of rounding, relative to K(x, x)."""

    def __call__(self, block: Array, rows: slice, columns: slice) -> None: ...


def make_transform(steps: KernelSteps, left: Inputs, right: Inputs) -> Transform:
    """The profile that the steps ask for, between these inputs."""
    if steps.profile is None:
        return PairwiseTransform(steps.base, left, right)
    return ProfileTransform(steps.profile, left, right)


class Term:
    """Values of the network's own kernel between two sets of inputs."""

    def __init__(self, steps: KernelSteps, left: Inputs, right: Inputs) -> None:
        self.left, self.right = left, right
        self.cosines = Cosines(left, right)
        self.transform = make_transform(steps, left, right)

    def block(self, rows: slice, columns: slice, out: Array | None = None) -> Array:
        """The values of these rows and columns."""
        block = self.cosines.products(rows, columns, out)
        for part, strip in in_strips(block, rows, columns):
            self.values(part, strip, columns)
        return block

    def paired(self) -> Array:
        """The value of each left input with the right input of the same number."""
        return self.block(whole(self.left), whole(self.right)).diagonal()

    def values(self, products: Array, rows: slice, columns: slice) -> None:
        """From inner products, in place on a strip."""
        self.cosines.scale(products, rows, columns)
        self.transform(products, rows, columns)


def moved_sides(
    term: OrbitTerm, left: Inputs, right: Inputs, rows: slice, columns: slice
) -> tuple[Inputs, Inputs]:
    """The inputs of a block of a term, with the columns of the right ones in the term's order.

    They are moved when a block needs them: that moves numbers, and a product multiplies each of
    them by hundreds of others.
    """
    others = cut(right, columns)
    if not term.order.is_identity:
        others = Inputs(term.order(others.X), others.var)
    return cut(left, rows), others


def whole(inputs: Inputs) -> slice:
    """All rows."""
    return slice(0, len(inputs))


DIAGONAL_ROWS = 1024  # whose own kernel values are computed at a time
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
        images: type[ImageTerm] = ImageTerm,
    ) -> None:
        other, self._images = left if right is None else right, images
        super().__init__(KernelSteps.of(network, left, other, plan, split), left, right)
        self._below = cast(HostMatrix | None, self.covariance)
        self.lefts, self.rights = (transformed_inputs(network, side) for side in (left, other))
        self.terms = self.steps.orbit.terms()
        self.plain = self._term(left, other)  # of the inputs as they are
        self._gaps, self._nearest = [1.0], [1.0]

    def _of_same_inputs(self, network: Network) -> "HostMatrix":
        return HostMatrix(
            network,
            self.left,
            None if self.symmetric else self.right,
            plan=self.plan,
            images=self._images,
        )

    def _term(self, left: Inputs, right: Inputs) -> Term | ImageTerm:
        """The values of the network's own kernel between these inputs."""
        if self.steps.base.planes is None:
            return Term(self.steps, left, right)
        return self._images(self.steps.base, left, right)

    @property
    def is_plain(self) -> bool:
        """Whether blocks are those of the network's own kernel, without further steps."""
        return isinstance(self.plain, Term) and self.network is self.steps.base and self.is_exact

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
        moved = self._term(*moved_sides(term, left, right, rows, columns))
        block = moved.block(whole(moved.left), whole(moved.right), out)
        if moved.transform.smallest_gap < NEAR:
            self.record_gap(moved.transform.smallest_gap)
        return block

    def _last_steps(self, average: Array, rows: slice, columns: slice) -> None:
        """From the average to M, in place."""
        if self.steps.head is None and self.is_exact:
            return
        if self._below is not None:
            self._through_head(average, self._below.average_block(rows, columns), rows, columns)
            return
        for part, strip in in_strips(average, rows, columns):
            if self.steps.head is None:
                part[...] = self.split.of_whole(part)
            elif self.norms is not None:
                to_cosines(part, self.norms, strip, columns)
                look_up(self.steps.head.profile, part)

    def _through_head(self, tangent: Array, average: Array, rows: slice, columns: slice) -> None:
        """Θ = Θ_head(c) + k_head'(c) Θ_G / √(a a') from Θ_G and k_G of the average, in place."""
        head, norms = self.steps.head, self.norms
        assert head is not None
        assert norms is not None
        strips = zip(
            in_strips(tangent, rows, columns), in_strips(average, rows, columns), strict=True
        )
        for (part, strip), (c, _) in strips:
            to_cosines(c, norms, strip, columns)
            if self.symmetric:  # what is on the diagonal is known
                set_diagonal(c, strip, columns, np.zeros(len(c)))
            self._nearest.append(1.0 - float(np.abs(c).max()))
            part *= norms.left[strip][:, None]
            part *= norms.right[columns]
            part *= head.slope(c)
            look_up(head.profile, c)
            part += c

    def _average_of(self, inputs: Inputs) -> Array:
        transform = self.plain.transform
        if self.symmetric and self.is_plain and isinstance(transform, PairwiseTransform):
            return transform.diagonal  # its variances were needed for the walk
        return super()._average_of(inputs)

    def _diagonal_of_terms(self, inputs: Inputs) -> Array:
        size = PAIRWISE_ROWS if self.steps.profile is None else DIAGONAL_ROWS
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
                values = self.steps.own_values(left)
            elif self.steps.profile is not None:
                every = slice(None)
                values = _paired(
                    self.steps.profile, left.unit(every), term.order(right.unit(every))
                )
            else:
                moved = self._term(left, Inputs(term.order(right.X), right.var))
                values = moved.paired()
            total += term.weight * values
        return total

    def record_gap(self, gap: float) -> None:
        """Take note of a pair with this 1 - |c|."""
        self._gaps.append(gap)

    @property
    def smallest_gap(self) -> float:
        below = 1.0 if self._below is None else self._below.smallest_gap
        return min(*self._gaps, self.plain.transform.smallest_gap, below)

    @property
    def nearest_cosine(self) -> float:
        return min(self._nearest)

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
    as in `ProfileTransform`."""
    c = np.einsum("ij,ij->i", x, y)
    negative, m = c < 0, 1.0 - np.abs(c)
    near = m < NEAR
    if near.any():
        sign = np.where(negative[near], -1.0, 1.0)[:, None]
        gap = x[near] - sign * y[near]
        m[near] = 0.5 * np.einsum("ij,ij->i", gap, gap)
    return np.asarray(profile.at_signed(negative, m))


class SharedProductBlocks:
    """A block of each of several plain matrices of the same inputs, all from one product.

    Blocks have at most TILE rows and columns, and are overwritten by the next call of the same
    thread.
    """

    def __init__(self, matrices: Sequence[HostMatrix]) -> None:
        self._matrices = matrices
        self._terms = [one.plain for one in matrices if isinstance(one.plain, Term)]
        self._cosines = self._terms[0].cosines
        self._local = threading.local()

    def __call__(self, rows: slice, columns: slice) -> list[Array]:
        blocks = self._memory(rows, columns)
        shared = self._cosines.products(rows, columns, blocks[-1])
        for part, strip in in_strips(shared, rows, columns):
            self._cosines.scale(part, strip, columns)
            local = slice(strip.start - rows.start, strip.stop - rows.start)
            for term, block in zip(self._terms, blocks, strict=True):
                if block is not shared:  # which is the last, and overwritten last
                    block[local] = part
                term.transform(block[local], strip, columns)
        for matrix, block in zip(self._matrices, blocks, strict=True):
            if matrix.symmetric:
                set_diagonal(block, rows, columns, matrix.diagonal[rows])
        return blocks

    def _memory(self, rows: slice, columns: slice) -> list[Array]:
        if not hasattr(self._local, "memory"):
            self._local.memory = [np.empty(TILE * TILE) for _ in self._matrices]
        shape = rows.stop - rows.start, columns.stop - columns.start
        return [flat[: shape[0] * shape[1]].reshape(shape) for flat in self._local.memory]
