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
from nngp.gram import EvaluationArrays, KernelGradient, LowerTriangle
from nngp.linsolve import dense
from nngp.linsolve.engines import blas
from nngp.posterior.evidence.criteria import (
    HeldOut,
    evidence_slope,
    held_out,
    held_out_density,
    held_out_rates,
    held_out_slope,
    log_evidence,
)

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
    held_out: HeldOut | None = None  # predictions of each point from all the others


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
        factor, alpha, evidence = self._solve(K, Y)
        if criterion == "evidence" and not gradient:
            return DenseValue(evidence, evidence)
        P = self._inverse(factor)
        if criterion == "evidence":
            outputs = Y.shape[1]

            def slope(rows: slice) -> Array:
                minus_inverse = -outputs * P[rows, : rows.stop]
                return evidence_slope(alpha[rows], alpha[: rows.stop].T, minus_inverse)

            return _with_slopes(evidence, evidence, kernel.backward(slope))
        found, p = _held_out(alpha, P), P.diagonal().copy()
        value = held_out_density(alpha, p, weights)
        if not gradient:
            return DenseValue(value, evidence, held_out=found)
        C, d = held_out_rates(alpha, p, weights)
        dense.mirror(P)
        whole = held_out_slope(dense.product(P * -C, P, self.pool), P @ d, alpha)

        def slope_of_density(rows: slice) -> Array:
            return whole[rows, : rows.stop].copy()

        return _with_slopes(value, evidence, kernel.backward(slope_of_density), found)

    def log_evidence_of(self, K: Array, Y: Array, noise: Array) -> float:
        """The log evidence, given the lower triangle of a kernel matrix, which is left as it is."""
        return self._solve(_noisy(K, noise), Y)[2]

    def log_evidence_and_misfit(self, K: Array, Y: Array, noise: Array) -> tuple[float, float]:
        """The same, and Y·(K + noise)⁻¹Y, summed over outputs."""
        _, alpha, evidence = self._solve(_noisy(K, noise), Y)
        return evidence, float(np.vdot(Y, alpha))

    def held_out_of(self, K: Array, Y: Array, noise: Array) -> HeldOut:
        """Leave-one-out predictions of noisy targets, given the lower triangle of a kernel matrix,
        which is left as it is."""
        factor, alpha, _ = self._solve(_noisy(K, noise), Y)
        return _held_out(alpha, self._inverse(factor))

    def _solve(self, K: Array, Y: Array) -> tuple[Array, Array, float]:
        """The lower factor in place, K⁻¹Y and the log evidence."""
        factor = dense.factor(K, self.pool)
        rows = np.array(Y.T, order="C")
        alpha = blas.trsm(factor, blas.trsm(factor, rows), transposed=False).T.copy()
        n, outputs = Y.shape
        log_det = 2.0 * float(np.log(factor.diagonal()).sum())
        return factor, alpha, log_evidence(float(np.vdot(Y, alpha)), log_det, n, outputs)

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


def _held_out(alpha: Array, P: Array) -> HeldOut:
    """Leave-one-out predictions, from the diagonal of the inverse P."""
    precision = P.diagonal()
    if not (precision > 0).all():
        raise NotPositiveDefiniteError("the inverse of the kernel matrix lost its digits")
    return held_out(alpha, precision)


def _with_slopes(
    value: float, evidence: float, slopes: KernelGradient, found: HeldOut | None = None
) -> DenseValue:
    """The value of a criterion with its derivatives."""
    by_network = slopes.weight_vars, slopes.bias_vars
    return DenseValue(value, evidence, *by_network, slopes.diagonal, slopes.inputs, found)
