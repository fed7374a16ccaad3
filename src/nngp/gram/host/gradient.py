"""Sums Σ G_ij dK_ij/dθ over blocks of pairs, in host memory.

Takes a matrix G block by block (the evidence's, say), in units of a split: scale G, and the sum of
all entries of that apart. θ are the variances of the network, and the parameters of families of
transformations: an average is K = Σ v_u K_u over orders u, so its derivative in a parameter is
Σ dv_u/dθ K_u, and the sums Σ G K_u are all that is needed. Layers on top are done by
`head_gradient`.
"""

import threading
from collections.abc import Sequence

import numpy as np

from nngp._arrays import Array
from nngp.architecture.invariances.orbit import OrbitTerm
from nngp.curve import Profile
from nngp.gram.host.cosines import Cosines, in_strips, set_diagonal
from nngp.gram.host.equal_norm import ProfileTransform
from nngp.gram.host.matrix import HostMatrix
from nngp.gram.host.pair_gradient import PairwiseGradient
from nngp.gram.host.terms import moved_sides, whole
from nngp.gram.inputs import Inputs
from nngp.gram.kernel_matrix import Gradient
from nngp.gram.sensitivities import CurveSensitivities, by_name, with_families


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
            own = self._matrix.lefts[term.left].var[rows]
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
