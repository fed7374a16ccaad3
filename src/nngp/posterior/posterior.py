"""The posterior of eq. 8 and 9: what the process says once it has seen data."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nngp.architecture import Architecture
from nngp.gram import Inputs, kernel_blocks
from nngp.linsolve import (
    Engine,
    NotPositiveDefiniteError,
    Run,
    forward,
    inverse_rows,
    next_noise,
)
from nngp.linsolve.cholesky import cut, spans
from nngp.posterior.draws import gaussian
from nngp.posterior.evidence import evidence_gradient
from nngp.posterior.report import Report
from nngp.posterior.system import System, extend, means, solve
from nngp.posterior.targets import as_targets

Array = NDArray[np.float64]
CHUNK = 16_384  # test points whose norms and the like are prepared at a time


class LeaveOneOut(NamedTuple):
    """What each training point would be predicted as, had it not been seen."""

    mean: Array
    variance: Array


class Posterior:
    """A network of infinite width, conditioned on data. Made by `nngp.condition`.

    Attributes
    ----------
    architecture : Architecture
    noise_var : float
        The noise that was used; more than asked for if the ladder was climbed.
    log_evidence : float
        The log marginal likelihood, summed over outputs.
    report : Report
        What was done, how exactly, and how long it took.
    """

    def __init__(
        self,
        architecture: Architecture,
        inputs: Inputs,
        targets: Array,
        single: bool,
        engine: Engine,
        system: System,
        report: Report,
    ) -> None:
        self.architecture, self.report = architecture, report
        self._inputs, self._targets, self._single = inputs, targets, single
        self._engine, self._system = engine, system

    @property
    def n(self) -> int:
        """Number of training points."""
        return len(self._inputs)

    @property
    def noise_var(self) -> float:
        return self._system.factor.noise_var

    @property
    def log_evidence(self) -> float:
        return self._system.log_evidence

    def mean(self, Xs: ArrayLike) -> Array:
        """Posterior mean at test points (eq. 8): (m,) or (m, outputs), as Y was given."""

        def work(run: Run, blocks: Any, rows: list[slice]) -> Iterator[Array]:
            for promise in means(run, blocks, self._system, rows):
                yield promise()

        return self._shaped(self._stream(Xs, work))

    def variance(self, Xs: ArrayLike, *, noise: bool = False) -> Array:
        """Posterior variance at test points (eq. 9), one number a point: of the function, or with
        `noise` of an observation of it."""

        def work(run: Run, blocks: Any, rows: list[slice]) -> Iterator[Array]:
            for part, solved in self._solved(run, blocks, rows):
                yield self._left_over(run, blocks, part, solved, noise)

        return self._stream(Xs, work)

    def predict(self, Xs: ArrayLike, *, noise: bool = False) -> tuple[Array, Array]:
        """Mean and variance in one pass."""

        def work(run: Run, blocks: Any, rows: list[slice]) -> Iterator[Array]:
            for part, solved in self._solved(run, blocks, rows):
                pairs = zip(solved, self._system.z, strict=True)
                mean = np.asarray(sum(v @ z.T for v, z in pairs))
                variance = self._left_over(run, blocks, part, solved, noise)
                yield np.column_stack([mean, variance])

        both = self._stream(Xs, work)
        return self._shaped(both[:, :-1]), both[:, -1].copy()

    def covariance(self, Xs: ArrayLike, *, noise: bool = False) -> Array:
        """Posterior covariance between test points, (m, m)."""
        test = self._test_inputs(Xs)
        m = len(test)
        self._check_memory(8 * m * (self.n + m), f"the covariance of {m} test points")
        cross = kernel_blocks(self._engine.where, self.architecture, test, self._inputs)
        own = kernel_blocks(self._engine.where, self.architecture, test)
        out = np.empty((m, m))
        rows = spans(cut(m, self._engine.rows_at_a_time(self.n)))
        with self._engine.run() as run:
            firsts = [partial(self._cross, cross, part) for part in rows]
            solved = forward(run, self._system.factor, firsts)
            handles = {
                (i, j): run.chain(
                    partial(own.block, rows[i], rows[j], shift=self.noise_var * noise),
                    solved[i],
                    solved[j],
                )
                for i in range(len(rows))
                for j in range(i + 1)
            }
            for (i, j), handle in handles.items():
                tile = np.asarray(run.wait(handle))
                out[rows[i], rows[j]], out[rows[j], rows[i]] = tile, tile.T
        lower = np.tril(out)
        out = lower + np.tril(lower, -1).T
        np.fill_diagonal(out, np.maximum(np.diagonal(out), self.noise_var * noise))
        return out

    def sample(self, Xs: ArrayLike, n: int = 1, seed: Any = None, *, noise: bool = False) -> Array:
        """`n` draws of the function (or observations) at test points: (n, m) or (n, m, outputs)."""
        covariance = self.covariance(Xs, noise=noise)
        outputs = self._targets.shape[1]
        draws = gaussian(covariance, n * outputs, seed).reshape(n, outputs, -1)
        mean = np.asarray(self.mean(Xs)).reshape(len(covariance), outputs)
        out = mean + draws.transpose(0, 2, 1)
        return out[:, :, 0] if self._single else out

    def evidence_gradient(self, *, per_layer: bool = False) -> dict[str, Any]:
        """Derivatives of `log_evidence` in weight_var, bias_var and noise_var.

        With `per_layer`, those in weight_var and bias_var have one entry a layer (depth + 1),
        from input to output; otherwise all layers move together. Needs a second array of the
        factor's size while it runs.
        """
        self._check_memory(self._system.factor.bytes, "the gradient of the evidence")
        return evidence_gradient(
            self._engine,
            self.architecture,
            self._inputs,
            self._system,
            per_layer=per_layer,
        )

    def leave_one_out(self, *, noise: bool = False) -> LeaveOneOut:
        """Predictions for each training point from all the others, without refitting.

        From the diagonal of the inverse: mean y_i - α_i / [K⁻¹]_ii, variance of an observation
        1 / [K⁻¹]_ii; the noise is subtracted from it unless `noise`.
        """
        factor = self._system.factor
        count = len(factor.rows)
        precision = np.empty(self.n)
        with self._engine.run() as run:
            for start in range(0, count, run.width):
                which = range(start, min(start + run.width, count))
                for i, row in zip(which, inverse_rows(run, factor, which), strict=True):
                    precision[factor.slices[i]] = _sum_squares(run, row)
        mean = self._targets - self._system.weights / precision[:, None]
        variance = np.maximum(1.0 / precision - self.noise_var * (not noise), 0.0)
        return LeaveOneOut(self._shaped(mean), variance)

    def update(self, X_new: ArrayLike, Y_new: ArrayLike) -> "Posterior":
        """Add data by extending the factor; the old part is not computed again.

        Changes this posterior and returns it; if anything fails, it stays as it was. If the new
        rows make the factorisation fail, the noise climbs the ladder and all is factored anew.
        """
        new = self._test_inputs(X_new, "X_new")
        targets, _ = as_targets(Y_new, len(new), "Y_new")
        if targets.shape[1] != self._targets.shape[1]:
            raise ValueError(
                f"Y_new has {targets.shape[1]} outputs and Y had {self._targets.shape[1]}"
            )
        inputs = Inputs(
            np.concatenate([self._inputs.X, new.X]), np.concatenate([self._inputs.var, new.var])
        )
        Y = np.concatenate([self._targets, targets])
        blocks = kernel_blocks(self._engine.where, self.architecture, inputs)
        tile, old = self._engine.tile_size(len(inputs)), self._system.factor
        try:
            edges = (*old.edges[:-1], *cut(len(inputs), tile, old.n))
            system = extend(self._engine, blocks, edges, Y, self._system)
        except NotPositiveDefiniteError:
            noise, failed = next_noise(old.noise_var), self._system.failed_attempts + 1
            system = solve(self._engine, blocks, cut(len(inputs), tile), Y, noise)
            system = replace(system, failed_attempts=system.failed_attempts + failed)
        self._inputs, self._targets, self._system = inputs, Y, system
        self.report.n, self.report.noise_var = len(inputs), system.factor.noise_var
        self.report.failed_attempts = system.failed_attempts
        self.report.factor_bytes = system.factor.bytes
        return self

    def __repr__(self) -> str:
        return (
            f"Posterior({self.architecture!r}, n={self.n}, noise_var={self.noise_var:.3g}, "
            f"log_evidence={self.log_evidence:.6g})"
        )

    def _stream(
        self, Xs: ArrayLike, work: Callable[[Run, Any, list[slice]], Iterator[Array]]
    ) -> Array:
        """`work` on groups of test points, so that memory does not grow with their number."""
        test = self._test_inputs(Xs)
        out: list[Array] = []
        for chunk in spans(cut(len(test), CHUNK)):
            part = Inputs(test.X[chunk], test.var[chunk])
            blocks = kernel_blocks(self._engine.where, self.architecture, part, self._inputs)
            with self._engine.run() as run:
                size = min(self._engine.rows_at_a_time(self.n), -(-len(part) // run.width))
                rows = spans(cut(len(part), -(-len(part) // -(-len(part) // size))))
                for start in range(0, len(rows), run.width):
                    out.extend(work(run, blocks, rows[start : start + run.width]))
        return np.concatenate(out)

    def _solved(
        self, run: Run, blocks: Any, rows: list[slice]
    ) -> Iterator[tuple[slice, list[Any]]]:
        """For each block of test points, L⁻¹K* transposed, in tiles."""
        firsts = [partial(self._cross, blocks, part) for part in rows]
        for part, row in zip(rows, forward(run, self._system.factor, firsts), strict=True):
            yield part, [run.wait(tile) for tile in row]

    def _cross(self, blocks: Any, rows: slice, j: int) -> Any:
        return blocks.block(rows, self._system.factor.slices[j])

    def _left_over(
        self, run: Run, blocks: Any, part: slice, solved: list[Any], noise: bool
    ) -> Array:
        prior = blocks.diagonal[part]
        return np.maximum(prior - _sum_squares(run, solved), 0.0) + self.noise_var * noise

    def _test_inputs(self, Xs: ArrayLike, name: str = "Xs") -> Inputs:
        test = Inputs.of(Xs, name)
        wanted = self._inputs.X.shape[1]
        if test.X.shape[1] != wanted:
            raise ValueError(
                f"{name} has {test.X.shape[1]} features and the training inputs have {wanted}"
            )
        return test

    def _shaped(self, columns: Array) -> Array:
        return columns[:, 0].copy() if self._single else np.ascontiguousarray(columns)

    def _check_memory(self, needed: int, what: str) -> None:
        free = self._engine.free_memory()
        if free is not None and needed > free:
            raise MemoryError(
                f"{what} needs {needed / 1e9:.2f} GB and {free / 1e9:.2f} GB are free; use fewer "
                "points at a time"
            )


def _sum_squares(run: Run, row: list[Any]) -> Array:
    handles = [run.apply(lambda tile: (tile * tile).sum(axis=1), tile) for tile in row]
    return np.sum([np.asarray(run.wait(handle)) for handle in handles], axis=0)
