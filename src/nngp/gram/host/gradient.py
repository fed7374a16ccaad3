"""Sums Σ G_ij dK_ij/dθ over blocks of pairs, for θ the weight and bias variances: equal norms.

Takes a matrix G block by block (the evidence's, say), in units of a split: scale G, and the sum of
all entries of that apart. Gives its product with the derivatives of the kernel, which are look-ups,
like the kernel: dK = dv 11ᵀ - dD, and what multiplies dv is the sum. Other norms are done by
`pair_gradient`.
"""

import threading

import numpy as np

from nngp._arrays import Array
from nngp.gram.host.equal_norm import ProfileTransform
from nngp.gram.host.matrix import Cosines, in_strips, set_diagonal
from nngp.gram.inputs import Inputs
from nngp.gram.kernel_matrix import Gradient
from nngp.gram.sensitivities import CurveSensitivities


class CurveGradient:
    """`GradientSums` of equal-norm inputs: one look-up for each variance that can move. With
    `right` those of the kernel between two sets of inputs, which has no diagonal."""

    def __init__(
        self, sensitivities: CurveSensitivities, inputs: Inputs, right: Inputs | None = None
    ) -> None:
        self._symmetric, other = right is None, inputs if right is None else right
        self._sensitivities, self._cosines = sensitivities, Cosines(inputs, other)
        profiles = sensitivities.profiles
        self._transforms = [ProfileTransform(profile, inputs, other) for profile in profiles]
        self._total, self._lock = np.zeros(len(profiles)), threading.Lock()

    def contract(self, G: Array, rows: slice, columns: slice) -> None:
        out = self.sums(G, rows, columns)
        with self._lock:
            self._total += out

    def sums(self, G: Array, rows: slice, columns: slice) -> Array:
        """Σ G dK/dθ / scale over one block, by profile."""
        block = self._cosines.block(rows, columns)
        out = np.zeros_like(self._total)
        parts = zip(in_strips(block, rows, columns), in_strips(G, rows, columns), strict=True)
        for (cosines, strip), (weights, _) in parts:
            for k, transform in enumerate(self._transforms):
                values = cosines.copy()
                transform(values, strip, columns)
                if self._symmetric:
                    at_one = np.full(len(values), transform.profile.at_one)
                    set_diagonal(values, strip, columns, at_one)
                out[k] += np.vdot(weights, values)
        return out

    def result(self, sum_of_all: float) -> Gradient:
        return self._sensitivities.by_parameter(self._total, sum_of_all)
