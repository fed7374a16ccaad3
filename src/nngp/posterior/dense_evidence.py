"""Evidence, or leave-one-out density, with its gradient at one setting: what a search calls.

For up to some thousand points in memory. Nothing is forecast, planned or reported: the kernel and
the way back are those of `gram/host/lower_triangle.py`, and the linear algebra is dense.
"""

import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from nngp import _machine
from nngp._arrays import Array
from nngp.architecture import Network
from nngp.errors import NotPositiveDefiniteError
from nngp.gram import EvaluationArrays, LowerTriangle
from nngp.linsolve import dense
from nngp.linsolve.engines import blas

THREADED, MOST_THREADS = 800, 8  # points from which threads pay, and how many do


class DenseValue(NamedTuple):
    """The criterion, the log evidence, and the derivatives of the criterion, summed over outputs.

    Without a gradient they are empty.
    """

    value: float
    log_evidence: float
    weight_vars: Array = np.empty(0)  # of each layer
    bias_vars: Array = np.empty(0)
    noise: Array = np.empty(0)  # of each row
    inputs: Array = np.empty((0, 0))  # of every scaled input, (n, d)
    left_out: tuple[Array, Array] | None = None  # means and variances without each point


@contextmanager
def threaded_evidence(points: int) -> Iterator["DenseEvidence"]:
    """An evaluator for up to so many points, whose threads end with the block."""
    workers = min(_machine.threads(), MOST_THREADS)
    if points < THREADED or workers < 2:
        yield DenseEvidence()
        return
    with ThreadPoolExecutor(workers, initializer=_machine.limit_this_thread) as pool:
        yield DenseEvidence(pool)


class DenseEvidence:
    """The evidence of networks on small data. `pool` computes strips of large ones in threads."""

    def __init__(self, pool: Executor | None = None) -> None:
        self.pool, self._of_thread = pool, threading.local()

    @property
    def workspace(self) -> EvaluationArrays:
        """Memory of the calling thread, which has one evaluation under way at a time."""
        if not hasattr(self._of_thread, "workspace"):
            self._of_thread.workspace = EvaluationArrays()
        found: EvaluationArrays = self._of_thread.workspace
        return found

    def evaluate(
        self,
        network: Network,
        X: Array,
        Y: Array,
        noise: Array,
        *,
        criterion: str = "evidence",
        weights: Array | None = None,
        gradient: bool = True,
    ) -> DenseValue:
        """Evaluate at a setting; `noise` has a variance for each row.

        With `weights` each point's leave-one-out density counts so often. Raises
        NotPositiveDefiniteError, or VarianceError where a variance leaves float64.
        """
        kernel = LowerTriangle(network, X, self.pool, self.workspace)
        K = kernel.matrix()
        K.flat[:: len(K) + 1] = kernel.diagonal + noise
        factor, alpha, log_evidence = self._solve(K, Y)
        if criterion == "evidence" and not gradient:
            return DenseValue(log_evidence, log_evidence)
        precision = self._inverse(factor)
        if criterion == "evidence":
            outputs, value, left_out = Y.shape[1], log_evidence, None

            def slope(rows: slice) -> Array:
                G = alpha[rows] @ alpha[: rows.stop].T
                G -= outputs * precision[rows, : rows.stop]
                return G
        else:
            dense.mirror(precision)
            value, left_out, whole = _left_out(alpha, precision, weights, gradient, self.pool)
            if whole is None:
                return DenseValue(value, log_evidence, left_out=left_out)
            matrix = whole

            def slope(rows: slice) -> Array:
                return 2.0 * matrix[rows, : rows.stop]

        by_kernel = kernel.backward(slope)
        return DenseValue(
            value,
            log_evidence,
            by_kernel.weight_vars,
            by_kernel.bias_vars,
            by_kernel.diagonal,
            by_kernel.inputs,
            left_out,
        )

    def log_evidence_of(self, K: Array, Y: Array, noise: Array) -> float:
        """The log evidence, given the lower triangle of a kernel matrix, which is left as it is."""
        return self._solve(_noisy(K, noise), Y)[2]

    def log_evidence_and_misfit(self, K: Array, Y: Array, noise: Array) -> tuple[float, float]:
        """The same, and Y·(K + noise)⁻¹Y, summed over outputs."""
        _, alpha, log_evidence = self._solve(_noisy(K, noise), Y)
        return log_evidence, float(np.vdot(Y, alpha))

    def left_out_of(self, K: Array, Y: Array, noise: Array) -> tuple[Array, Array]:
        """Leave-one-out residuals and variances of noisy targets, given the lower triangle of a
        kernel matrix, which is left as it is."""
        factor, alpha, _ = self._solve(_noisy(K, noise), Y)
        return _left_out(alpha, self._inverse(factor), None, False, None)[1]

    def _solve(self, K: Array, Y: Array) -> tuple[Array, Array, float]:
        """The lower factor in place, K⁻¹Y and the log evidence."""
        factor = dense.factor(K, self.pool)
        rows = np.array(Y.T, order="C")
        alpha = blas.trsm(factor, blas.trsm(factor, rows), transposed=False).T.copy()
        n, outputs = Y.shape
        log_det = 2.0 * float(np.log(factor.diagonal()).sum())
        value = float(np.vdot(Y, alpha)) + outputs * (log_det + n * np.log(2 * np.pi))
        return factor, alpha, -0.5 * value

    def _inverse(self, factor: Array) -> Array:
        """Its lower triangle, in place or in memory of its own."""
        out = None
        if self.pool is not None:
            out = self.workspace.array(factor.shape, "inverse")
        return dense.inverse(factor, self.pool, out)


def inverse_of(K: Array) -> Array:
    """The inverse of a positive definite matrix, in place of it; symmetric to the bit."""
    return dense.mirror(dense.inverse(dense.factor(K)))


def _noisy(K: Array, noise: Array) -> Array:
    system = K.copy()
    system.flat[:: len(K) + 1] += noise
    return system


def _left_out(
    alpha: Array, P: Array, weights: Array | None, gradient: bool, pool: Executor | None
) -> tuple[float, tuple[Array, Array], Array | None]:
    """The leave-one-out density, residuals and variances, and its derivative in K (see
    `leave_one_out`)."""
    p, outputs = P.diagonal().copy(), alpha.shape[1]
    if not (p > 0).all():
        raise NotPositiveDefiniteError("the inverse of the kernel matrix lost its digits")
    w = np.ones(len(p)) if weights is None else weights
    squares = (alpha**2).sum(axis=1)
    value = 0.5 * float(w @ (outputs * np.log(p / (2 * np.pi)) - squares / p))
    left_out = alpha / p[:, None], 1.0 / p
    if not gradient:
        return value, left_out, None
    c = 0.5 * w * (outputs / p + squares / p**2)
    d = -(w / p)[:, None] * alpha
    u = P @ d
    G = dense.product(P * -c, P, pool)
    G -= 0.5 * (u @ alpha.T + alpha @ u.T)
    return value, left_out, G
