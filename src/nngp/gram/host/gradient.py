"""Sums Σ G_ij dK_ij/dθ over blocks of pairs, in host memory.

Takes a matrix G block by block (the evidence's, say), in units of a split: scale G, and the sum of
all entries of that apart. θ are the variances of the network, and the parameters of families of
transformations: an average is K = Σ v_u K_u over orders u, so its derivative in a parameter is
Σ dv_u/dθ K_u, and the sums Σ G K_u are all that is needed.

Layers on top of an average follow by the chain rule. With k the kernel of the average,
a = k(x, x), c = k / √(a a') and f the curve of the head,

    dK = df + f'(c) dc,    dc = dk / √(a a') - ½ c (da / a + da' / a')

so the average is contracted with G f'(c) / √(a a'), and its diagonal with what the last two terms
leave for every input. An input with itself has c = 1, whatever θ is.
"""

import threading
from collections.abc import Sequence

import numpy as np

from nngp._arrays import Array
from nngp.architecture import WithHead
from nngp.architecture.invariances.orbit import OrbitTerm
from nngp.curve import Profile
from nngp.gram.host.matrix import (
    HostMatrix,
    ProfileTransform,
    look_up,
    moved_sides,
    to_cosines,
    whole,
)
from nngp.gram.host.pair_gradient import PairwiseGradient
from nngp.gram.host.tiles import Cosines, in_strips, set_diagonal
from nngp.gram.inputs import Inputs, cut
from nngp.gram.kernel_matrix import Gradient
from nngp.gram.sensitivities import HEAD_PREFIX, CurveSensitivities, by_name, with_families


class AverageGradient:
    """`GradientSums` of a network or an average of one, the same for all matrices that G is
    contracted with: of inputs with themselves."""

    def __init__(
        self, matrix: HostMatrix, sensitivities: CurveSensitivities | None, per_layer: bool
    ) -> None:
        self._matrix, self._sensitivities, self._per_layer = matrix, sensitivities, per_layer
        orbit = matrix.steps.orbit
        self._terms = orbit.terms(every=bool(orbit.slopes))
        self._by_order = np.zeros(len(orbit.orders))
        self._in_variances: Array | float = 0.0
        self._lock = threading.Lock()
        self._same: dict[int, PairwiseGradient] = {}  # of each row function
        if sensitivities is None:
            self._same = {k: self._pairs(one) for k, one in enumerate(matrix.lefts)}

    def contract(self, G: Array, rows: slice, columns: slice) -> None:
        G = np.asarray(G)
        slopes = self._matrix.steps.orbit.slopes
        by_order, in_variances = np.zeros_like(self._by_order), np.zeros(1)
        for term in self._terms:
            if term.weight > 0:
                found = self._of_term(term, G, rows, columns)
                in_variances = in_variances + term.weight * found
            if slopes:
                values = self._term_block(term, rows, columns)
                by_order[term.place] += term.share * np.vdot(G, values)
        with self._lock:
            self._by_order += by_order
            self._in_variances = self._in_variances + in_variances

    def _term_block(self, term: OrbitTerm, rows: slice, columns: slice) -> Array:
        block = self._matrix.term_block(term, rows, columns)
        if term.is_same:
            own = cut(self._matrix.lefts[term.left], rows)
            set_diagonal(block, rows, columns, self._matrix.steps.own_values(own))
        return block if self._matrix.is_exact else np.asarray(self._matrix.split.of_whole(block))

    def _of_term(self, term: OrbitTerm, G: Array, rows: slice, columns: slice) -> Array:
        """Sums over one block for the weight variances, then the bias variances; zero where they
        are kept elsewhere."""
        left, right = self._matrix.lefts[term.left], self._matrix.rights[term.right]
        if term.is_same and self._sensitivities is None:
            self._same[term.left].contract(term.weight * G, rows, columns)
            return np.zeros(1)
        if term.is_same and self._sensitivities is not None:
            profiles = self._sensitivities.profiles
            return curve_sums(profiles, left, left, G, rows, columns, symmetric=True)
        left, right = moved_sides(term, left, right, rows, columns)
        here = whole(left), whole(right)
        if self._sensitivities is not None:
            return curve_sums(self._sensitivities.profiles, left, right, G, *here, symmetric=False)
        pairs = self._pairs(left.joined(right))  # it knows one set of inputs
        pairs.contract(G, here[0], slice(len(left), len(left) + len(right)))
        return _flat(pairs.result(0.0))

    def _pairs(self, inputs: Inputs) -> PairwiseGradient:
        steps = self._matrix.steps
        return PairwiseGradient(steps.base, inputs, self._per_layer, False, steps.split)

    def result(self, sum_of_all: float) -> Gradient:
        total = np.asarray(self._in_variances)
        if self._sensitivities is not None:
            out = self._sensitivities.by_parameter(total, sum_of_all)
        else:
            total = total + sum(_flat(one.result(0.0)) for one in self._same.values())
            out = by_name(total, self._per_layer)
        return with_families(out, self._matrix.steps.orbit, self._by_order)


def _flat(found: Gradient) -> Array:
    """The sums for the weight variances, then the bias variances."""
    return np.concatenate([np.atleast_1d(found[name]) for name in ("weight_var", "bias_var")])


def curve_sums(
    profiles: Sequence[Profile],
    left: Inputs,
    right: Inputs,
    G: Array,
    rows: slice,
    columns: slice,
    *,
    symmetric: bool,
) -> Array:
    """Σ G f over one block for every profile f: a look-up for each variance that can move."""
    transforms = [ProfileTransform(profile, left, right) for profile in profiles]
    block, out = Cosines(left, right).block(rows, columns), np.zeros(len(profiles))
    parts = zip(in_strips(block, rows, columns), in_strips(G, rows, columns), strict=True)
    for (cosines, strip), (weights, _) in parts:
        for k, transform in enumerate(transforms):
            values = cosines.copy()
            transform(values, strip, columns)
            if symmetric:
                at_one = np.full(len(values), transform.profile.at_one)
                set_diagonal(values, strip, columns, at_one)
            out[k] += np.vdot(weights, values)
    return out


OWN_ROWS = 64  # whose own values are differentiated at a time, as a block of all their pairs


class HeadGradient:
    """`GradientSums` of a `WithHead` network: of the average's parameters by their names, of the
    head's with "head." before them."""

    def __init__(self, matrix: HostMatrix, average: AverageGradient, per_layer: bool) -> None:
        assert matrix.steps.head is not None
        assert isinstance(matrix.network, WithHead)
        assert matrix.norms is not None
        self._matrix, self._average, self._norms = matrix, average, matrix.norms
        self._curve = matrix.steps.head.curve
        self._of_head = CurveSensitivities.of(matrix.network.head, 1.0, per_layer, matrix.split)
        self._in_head = np.zeros(len(self._of_head.profiles))
        self._in_diagonal = np.zeros(len(matrix.left))
        self._lock = threading.Lock()

    def contract(self, G: Array, rows: slice, columns: slice) -> None:
        G = np.array(G)  # from a device too
        cosines = self._matrix.average_block(rows, columns)
        in_head, in_diagonal = np.zeros_like(self._in_head), np.zeros_like(self._in_diagonal)
        parts = zip(in_strips(cosines, rows, columns), in_strips(G, rows, columns), strict=True)
        for (c, strip), (weights, _) in parts:
            to_cosines(c, self._norms, strip, columns)
            set_diagonal(c, strip, columns, np.ones(len(c)))
            for k, profile in enumerate(self._of_head.profiles):
                in_head[k] += np.vdot(weights, _values(profile, c, strip, columns))
            self._through(weights, c, strip, columns, in_diagonal)
        with self._lock:
            self._in_head += in_head
            self._in_diagonal += in_diagonal
        self._average.contract(G, rows, columns)

    def _through(
        self, G: Array, cosines: Array, rows: slice, columns: slice, in_diagonal: Array
    ) -> None:
        """G to what the average is contracted with, in place; and what reaches its diagonal."""
        norms = self._norms
        set_diagonal(G, rows, columns, np.zeros(len(G)))
        G *= self._curve.derivative(cosines) / self._matrix.split.scale
        turned = G * cosines
        in_diagonal[rows] -= 0.5 * turned.sum(axis=1) * norms.left[rows] ** 2
        in_diagonal[columns] -= 0.5 * turned.sum(axis=0) * norms.right[columns] ** 2
        G *= norms.left[rows][:, None]
        G *= norms.right[columns]

    def result(self, sum_of_all: float) -> Gradient:
        in_diagonal, self._in_diagonal = self._in_diagonal, np.zeros_like(self._in_diagonal)
        for start in range(0, len(in_diagonal), OWN_ROWS):
            rows = slice(start, min(start + OWN_ROWS, len(in_diagonal)))
            self._average.contract(np.diag(in_diagonal[rows]), rows, rows)
        head = self._of_head.by_parameter(self._in_head, sum_of_all)
        of_head = {HEAD_PREFIX + name: value for name, value in head.items()}
        return {**self._average.result(0.0), **of_head}


def _values(profile: Profile, cosines: Array, rows: slice, columns: slice) -> Array:
    """A profile at a strip of cosines; that of an input with itself is the value at one."""
    out = cosines.copy()
    look_up(profile, out)
    set_diagonal(out, rows, columns, np.full(len(out), profile.at_one))
    return out
