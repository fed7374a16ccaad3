"""Sums Σ G dK/dθ through layers on top of an average: the chain rule, in host memory.

With k the kernel of the average, a = k(x, x), c = k / √(a a') and f the curve of the head,

    dK = df + f'(c) dc,    dc = dk / √(a a') - ½ c (da / a + da' / a')

so the average is contracted with G f'(c) / √(a a'), and its diagonal with what the last two terms
leave for every input. An input with itself has c = 1, whatever θ is.
"""

import threading

import numpy as np

from nngp._arrays import Array
from nngp.architecture import Headed
from nngp.curve import Profile
from nngp.gram.host.cosines import in_strips, set_diagonal
from nngp.gram.host.gradient import AverageGradient
from nngp.gram.host.matrix import HostMatrix, look_up, to_cosines
from nngp.gram.kernel_matrix import Gradient
from nngp.gram.sensitivities import HEAD_PREFIX, CurveSensitivities

OWN_ROWS = 64  # whose own values are differentiated at a time, as a block of all their pairs


class HeadGradient:
    """`GradientSums` of a `Headed` network: of the average's parameters by their names, of the
    head's with "head." before them."""

    def __init__(self, matrix: HostMatrix, average: AverageGradient, per_layer: bool) -> None:
        assert matrix.steps.head is not None
        assert isinstance(matrix.network, Headed)
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
