"""Networks trained for ever: the covariance of what their training leaves undecided.

The mean of networks trained for ever is the posterior mean under the tangent kernel Θ, with its
noise (`Posterior`). Their covariance is another: with w(x) = (Θ + noise)⁻¹ Θ(X, x), a network that
started as f₀ has become f₀(x) + w(x)ᵀ(Y - f₀(X)), and f₀ has the covariance K. So

    cov(x, x') = K(x, x') - w(x)ᵀK(X, x') - K(x, X) w(x') + w(x)ᵀ K(X, X) w(x').

Both kernels are split, Θ = s (M + g 11ᵀ) and K = s' (M' + g' 11ᵀ). With b = B⁻¹1 and κ of
`constant.py`, where B = M + noise/s is what was factored,

    w(x) = B⁻¹m(x) + κ (1 - bᵀm(x)) b,    1 - 1ᵀw(x) = (κ/g) (1 - bᵀm(x)),

so K's constant enters as g' (1 - 1ᵀw)², of which nothing is lost, and everything else in M'.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nngp._arrays import EPS, Array
from nngp.gram import Inputs, InputSet, KernelMatrix, KernelSplit
from nngp.linsolve import EngineRun
from nngp.linsolve.cg.product import KernelProduct
from nngp.linsolve.tiling import cut, spans
from nngp.posterior.posterior import Posterior
from nngp.posterior.predictive_gradient import Weights, prediction_weights
from nngp.posterior.setup import Problem
from nngp.posterior.solution import (
    Factored,
    check_shifted,
    check_shifted_variance,
    rows_on_host,
)

TEST_ROWS = 1024  # test points at a time: the kernel's tiles are computed once for all of them
ARRAYS = 5  # of test points times training points that are held


@dataclass(frozen=True)
class Converged:
    """Networks trained for ever: the posterior under Θ, and the kernel K at initialisation."""

    prior: Problem
    posterior: Posterior
    target_noise: float = 0.0  # variance of noise that each network's targets have

    def mean(self, test: Inputs) -> Array:
        """Means, (m, outputs)."""
        return self.posterior.mean(test).reshape(len(test), -1)

    def variance(self, test: Inputs) -> tuple[Array, float]:
        """Variances, and how far rounding may have moved one, in units of the kernel's scale."""
        out, rounding = np.empty(len(test)), 0.0
        operations = 2.0 * len(self.prior.inputs) ** 2 * len(test)
        with self.prior.resources.track("variance", 2 * operations) as progress:
            for rows in spans(cut(len(test), self._rows_at_a_time)):
                part = self.prior.upload(test.take(np.arange(rows.start, rows.stop)))
                weights, change, diagonal = self._change(part)
                left = diagonal + np.einsum("ij,ij->i", weights.w, change)
                left += self.split.offset * weights.unexplained**2
                left += self._noise * np.einsum("ij,ij->i", weights.w, weights.w)
                out[rows] = self.split.scale * np.maximum(left, 0.0)
                rounding = max(rounding, _rounding(weights.w))
                progress.advance(2 * operations * (rows.stop - rows.start) / len(test))
        return out, rounding

    def covariance(self, test: Inputs) -> tuple[Array, float]:
        """Covariance between test points; all of their weights are held at once."""
        m, n = len(test), len(self.prior.inputs)
        solution = self._factored
        needed = 8.0 * (ARRAYS * m * n + 3 * m * m)
        what = f"the covariance of {m} test points"
        self.prior.resources.check(needed, solution.bytes, what, on_host=True)
        part = self.prior.upload(test)
        weights, change, _ = self._change(part)
        crossed = self._cross(part)
        # w(Mw - 2m) = wMw - wm - mw for the diagonal; off it the two cross terms differ.
        out = weights.w @ (change + crossed).T - crossed @ weights.w.T
        with self.prior.engine.run() as run:
            own = self.prior.among(part, self.split)
            out += rows_on_host(run, own, slice(0, m), [slice(0, m)])
        out += self.split.offset * np.outer(weights.unexplained, weights.unexplained)
        out += self._noise * weights.w @ weights.w.T
        return self.split.scale * 0.5 * (out + out.T), _rounding(weights.w)

    @cached_property
    def matrix(self) -> KernelMatrix:
        """M' of the training inputs."""
        return self.prior.matrix()

    @property
    def split(self) -> KernelSplit:
        return self.matrix.split

    @property
    def _noise(self) -> float:
        """The noise of the targets in units of K's scale; raised where that of Θ had to be."""
        raised = max(self.target_noise, float(np.min(self.posterior.noise_var)))
        return (raised if self.target_noise else 0.0) / self.split.scale

    @property
    def _factored(self) -> Factored:
        return self.posterior.solution.factored("the covariance of trained networks")

    @property
    def _rows_at_a_time(self) -> int:
        free, n = self.prior.engine.free_memory(), len(self.prior.inputs)
        room = TEST_ROWS if free is None else int(free / 4 / (8 * ARRAYS * n))
        return max(1, min(TEST_ROWS, room))

    def _change(self, test: InputSet) -> tuple[Weights, Array, Array]:
        """w, M'w - 2m', and M'(x, x) of test points."""
        solution = self._factored
        with self.prior.engine.run() as run:
            weights = self._weights(run, test)
            cross = self.prior.to_rows(test, self.split)
            edges = solution.factor.own_edges
            change = KernelProduct(self.matrix, edges)(run, weights.w)
            change -= 2 * rows_on_host(run, cross, slice(0, len(test)), spans(edges))
        check_shifted_variance(cross, self.split, weights.w)
        return weights, change, cross.diagonal

    def _cross(self, test: InputSet) -> Array:
        with self.prior.engine.run() as run:
            cross = self.prior.to_rows(test, self.split)
            columns = spans(self._factored.factor.own_edges)
            return rows_on_host(run, cross, slice(0, len(test)), columns)

    def _weights(self, run: EngineRun, test: InputSet) -> Weights:
        solution, tangent = self._factored, self.posterior.problem
        cross = tangent.to_rows(test, solution.split)
        found = prediction_weights(run, tangent.engine, solution, cross)
        check_shifted(cross, solution, self.posterior.targets)
        return found


def _rounding(w: Array) -> float:
    """About how far rounding moves wᵀM'w, whose sums have as many terms as there are points."""
    return 16 * EPS * float(np.sqrt(w.shape[1]) * np.einsum("ij,ij->i", w, w).max())
