"""The posterior of eq. 8 and 9: what the process says once it has seen data."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nngp.architecture import Architecture
from nngp.errors import NotPositiveDefiniteError
from nngp.gram import Inputs, fits, inputs_diag, kernel_blocks, kernel_diag
from nngp.linsolve import LIMIT, Engine, Run, forecast_factor, inverse_rows, next_noise
from nngp.linsolve.tiling import cut, even_size, flops, spans
from nngp.posterior.draws import gaussian
from nngp.posterior.evidence import evidence_gradient
from nngp.posterior.failures import no_factor
from nngp.posterior.iterative import Iterative, needs_factor, solve_iteratively
from nngp.posterior.leave_one_out import density_gradient
from nngp.posterior.report import Report, describe, warn
from nngp.posterior.resources import Workplace, placed
from nngp.posterior.system import (
    Explained,
    System,
    check_shifted,
    extend,
    means,
    row_squares,
    solve,
)
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
        The log marginal likelihood, summed over outputs. It needs a factor (`NoFactorError`).
    report : Report
        What was done, how exactly, and how long it took.
    """

    def __init__(
        self,
        architecture: Architecture,
        inputs: Inputs,
        targets: Array,
        single: bool,
        place: Workplace,
        system: System | Iterative,
        report: Report,
    ) -> None:
        self.architecture, self.report = architecture, report
        self._inputs, self._targets, self._single = inputs, targets, single
        self._place, self._engine, self._system = place, place.engine, system

    @property
    def n(self) -> int:
        """Number of training points."""
        return len(self._inputs)

    @property
    def noise_var(self) -> float:
        return self._system.noise.variance

    @property
    def log_evidence(self) -> float:
        return self._factored("the log evidence").log_evidence

    def mean(self, Xs: ArrayLike) -> Array:
        """Posterior mean at test points (eq. 8): (m,) or (m, outputs), as Y was given."""

        def work(run: Run, blocks: Any, rows: list[slice]) -> Iterator[Array]:
            for handle in means(run, blocks, self._system, rows):
                yield run.fetch(handle)

        rows = self._engine.rows_at_a_time(self.n)
        return self._shaped(self._stream(Xs, work, 2.0 * self.n * self._inputs.shape[1], rows))

    def variance(self, Xs: ArrayLike, *, noise: bool = False) -> Array:
        """Posterior variance at test points (eq. 9), (m,): of the function, or with `noise` of an
        observation of it. All outputs share it."""

        def work(run: Run, blocks: Any, rows: list[slice]) -> Iterator[Array]:
            for part, found in self._explained(run, blocks, rows):
                yield self._left_over(blocks, part, found, noise)

        return self._stream(Xs, work, float(self.n) ** 2, self._rows_at_a_time)

    def predict(self, Xs: ArrayLike, *, noise: bool = False) -> tuple[Array, Array]:
        """`mean` and `variance` in one pass, which is cheaper than both."""

        def work(run: Run, blocks: Any, rows: list[slice]) -> Iterator[Array]:
            for part, found in self._explained(run, blocks, rows):
                variance = self._left_over(blocks, part, found, noise)
                yield np.column_stack([found.mean, variance])

        both = self._stream(Xs, work, float(self.n) ** 2, self._rows_at_a_time)
        return self._shaped(both[:, :-1]), both[:, -1].copy()

    def covariance(self, Xs: ArrayLike, *, noise: bool = False) -> Array:
        """Posterior covariance between test points, (m, m), exactly symmetric.

        Holds K* or L⁻¹K* for all of them at once: m (n + m) numbers, and without a factor, on this
        machine, m (3 n + m).
        """
        test = placed(self._engine, self._test_inputs(Xs))
        m = len(test)
        here = isinstance(self._system, Iterative)  # K*, what solves it, and what that misses
        numbers = m * ((3 if here else 1) * self.n + m)
        self._check(8.0 * numbers, f"the covariance of {m} test points", on_host=here)
        rows = spans(cut(m, self._rows_at_a_time))
        operations = m * (float(self.n) ** 2 + float(self.n) * m)
        with self._place.track("covariance", operations) as progress, self._engine.run() as run:

            def told(part: slice) -> None:
                progress.advance(operations * (part.stop - part.start) / m)

            where, split = self._engine.where, self._system.split
            cross = kernel_blocks(where, self.architecture, test, self._inputs, split=split)
            own = kernel_blocks(where, self.architecture, test, split=split)
            out = self._system.joint(run, cross, own, rows, told)
        out *= split.scale
        np.fill_diagonal(out, np.maximum(np.diagonal(out), 0.0) + self.noise_var * noise)
        self._check_norms(cross)
        return out

    def sample(self, Xs: ArrayLike, n: int = 1, seed: Any = None, *, noise: bool = False) -> Array:
        """`n` draws of the function (or of observations) at test points: (n, m), or (n, m,
        outputs) as Y was given. `seed` is anything that `numpy.random.default_rng` takes."""
        covariance = self.covariance(Xs, noise=noise)
        outputs = self._targets.shape[1]
        # Rounding in k** - |v|² is relative to k**, however little of it is left.
        split = self._system.split
        if split.is_trivial:
            prior = float(kernel_diag(self.architecture, Xs).max())
        else:
            prior = split.scale + float(np.diagonal(covariance).max())
        draws = gaussian(covariance, n * outputs, seed, prior)
        mean = np.asarray(self.mean(Xs)).reshape(len(covariance), outputs)
        out = mean + draws.reshape(n, outputs, len(covariance)).transpose(0, 2, 1)
        return out[:, :, 0] if self._single else out

    def evidence_gradient(
        self, *, per_layer: bool = False, per_input: bool = False
    ) -> dict[str, Any]:
        """Derivatives of `log_evidence` in weight_var, bias_var and noise_var.

        With `per_layer`, those in weight_var and bias_var have one entry a layer (depth + 1),
        from input to output; otherwise all layers move together. With `per_input` there is also
        "relevance", an entry for each of the d inputs: the derivative in a factor (now one) of
        the variance of the first layer's weights that leave that input. Needs a second array of
        the factor's size while it runs.
        """
        system = self._factored("the gradient of the evidence")
        self._check(system.bytes, "the gradient of the evidence")
        with self._place.track("evidence gradient", float(self.n) ** 3 * 2 / 3) as progress:
            return evidence_gradient(
                *self._whole, system, progress, per_layer=per_layer, per_input=per_input
            )

    @property
    def _whole(self) -> tuple[Engine, Architecture, Inputs]:
        """What a derivative of anything needs."""
        return self._engine, self.architecture, self._inputs

    @property
    def _rows_at_a_time(self) -> int:
        return self._system.rows_at_a_time(self._engine)

    def _factored(self, what: str) -> System:
        """The system, if it has a factor."""
        if isinstance(self._system, Iterative):
            raise needs_factor(what)
        return self._system

    def leave_one_out(self, *, noise: bool = False) -> LeaveOneOut:
        """Predictions for each training point from all the others, without refitting.

        From the diagonal of the inverse: mean y_i - α_i / [K⁻¹]_ii, variance of an observation
        1 / [K⁻¹]_ii; the noise is subtracted from it unless `noise`.
        """
        factor = self._factored("leave-one-out").factor
        group, count = min(self._engine.width, 8), len(factor.rows)
        tallest = int(np.diff(factor.edges).max())
        self._check(8.0 * group * tallest * self.n, "leave-one-out")
        precision = np.empty(self.n)
        operations = float(self.n) ** 3 / 3
        with self._place.track("leave one out", operations) as progress, self._engine.run() as run:
            for start in range(0, count, group):
                which = range(start, min(start + group, count))
                for i, row in zip(which, inverse_rows(run, factor, which), strict=True):
                    precision[factor.slices[i]] = _sum_squares(run, row)
                    progress.advance(operations / count)
        if self._system.constant is not None:
            precision = self._system.constant.precision(precision)
        mean = self._targets - self._system.weights / precision[:, None]
        variance = self._system.split.scale / precision
        if not noise:  # where noise is nearly all of it, the difference is rounding
            split = self._system.split
            prior: Any = split.prior
            if split.is_trivial:
                prior = inputs_diag(self.architecture, self._inputs)
            variance = np.clip(variance - self.noise_var, 0.0, prior)
        return LeaveOneOut(self._shaped(mean), variance)

    def leave_one_out_density(
        self, *, per_layer: bool = False, per_input: bool = False
    ) -> tuple[float, dict[str, Any]]:
        """The sum of the log densities that `leave_one_out` gives the targets, and its gradient.

        The derivatives are named as those of `evidence_gradient`. Holds five times the factor.
        """
        system = self._factored("the leave-one-out density")
        self._check(4.5 * system.bytes, "the gradient of the leave-one-out density")
        with self._place.track("leave-one-out gradient", float(self.n) ** 3 * 2) as progress:
            return density_gradient(
                *self._whole, system, progress, per_layer=per_layer, per_input=per_input
            )

    def update(self, X_new: ArrayLike, Y_new: ArrayLike) -> "Posterior":
        """Add data by extending the factor; the old part is not computed again. Without a factor
        all is solved anew, from where the old weights are.

        Changes this posterior and returns it; if anything fails, it stays as it was. If the new
        rows make the factorisation fail, the noise climbs the ladder and all is factored anew; so
        it is if new inputs are the first whose norm differs.
        """
        new = self._test_inputs(X_new, "X_new")
        targets, _ = as_targets(Y_new, len(new), "Y_new")
        if targets.shape[1] != self._targets.shape[1]:
            raise ValueError(
                f"Y_new has {targets.shape[1]} outputs and Y had {self._targets.shape[1]}"
            )
        inputs = self._inputs.joined(new)
        Y = np.concatenate([self._targets, targets])
        if not isinstance(self._system, Iterative):
            self._check(8.0 * len(inputs) * len(new), f"an update with {len(new)} points")
        with self._engine.run():
            where, split = self._engine.where, self._system.split
            blocks = kernel_blocks(where, self.architecture, inputs)
            if fits(split, blocks.plan):
                blocks = kernel_blocks(where, self.architecture, inputs, split=split)
        n, d = inputs.shape
        system: System | Iterative
        if isinstance(self._system, Iterative):
            old = self._system
            old.release()  # or both would be held; it is made again if the old one is asked
            problem = replace(old.problem, inputs=inputs)
            system, expected = solve_iteratively(problem, blocks, Y, old.noise, near=old)
        else:
            system = self._extended(self._system, blocks, Y)
            expected = forecast_factor(self._engine, n, d, Y.shape[1], self._place.memory)
        asked = self._system.noise.raised_to(self.report.noise_var_asked)
        report = describe(self._engine, blocks, system, Y, d, asked, expected)
        warn(report, stacklevel=3)
        self._inputs, self._targets, self._system, self.report = inputs, Y, system, report
        return self

    def _extended(self, known: System, blocks: Any, Y: Array) -> System:
        """The system with new rows; factored anew, with more noise, if they leave no factor."""
        engine, old = self._engine, known.factor
        noise, failed = known.noise, known.failed_attempts
        tile = engine.tile_size(len(Y))
        if blocks.split == known.split:
            edges = (*old.edges[:-1], *cut(len(Y), tile, old.n))
            try:
                with self._place.track("update", flops(edges, len(old.rows))) as progress:
                    return extend(engine, blocks, edges, Y, known, progress)
            except NotPositiveDefiniteError as error:
                stated = next_noise(noise.stated)
                if stated > LIMIT:
                    error.args = (no_factor(engine, blocks, noise.variance),)
                    raise
                noise, failed = noise.raised_to(stated), failed + 1
        edges = cut(len(Y), tile)
        self._check(4.0 * len(Y) ** 2, "factoring anew")
        with self._place.track("factor", flops(edges)) as progress:
            system = solve(engine, blocks, edges, Y, noise, progress)
        return replace(system, failed_attempts=system.failed_attempts + failed)

    def __repr__(self) -> str:
        last = "solver='cg'"
        if not isinstance(self._system, Iterative):
            last = f"log_evidence={self.log_evidence:.6g}"
        return (
            f"Posterior({self.architecture!r}, n={self.n}, noise_var={self.noise_var:.3g}, {last})"
        )

    def _stream(
        self,
        Xs: ArrayLike,
        work: Callable[[Run, Any, list[slice]], Iterator[Array]],
        operations: float,
        most: int,
    ) -> Array:
        """`work` on groups of test points, so that memory does not grow with their number."""
        test, engine = self._test_inputs(Xs), self._engine
        out: list[Array] = []
        with self._place.track("predict", operations * len(test)) as progress:
            for chunk in spans(cut(len(test), CHUNK)):
                part = placed(engine, _padded(test, chunk, engine))
                with engine.run() as run:
                    blocks = kernel_blocks(
                        engine.where,
                        self.architecture,
                        part,
                        self._inputs,
                        split=self._system.split,
                    )
                    size = even_size(len(part), min(most, -(-len(part) // run.width)))
                    rows = spans(cut(len(part), size))
                    done: list[Array] = []
                    for start in range(0, len(rows), run.width):
                        group = rows[start : start + run.width]
                        done.extend(work(run, blocks, group))
                        progress.advance(operations * (group[-1].stop - group[0].start))
                out.append(np.concatenate(done)[: chunk.stop - chunk.start])
        self._check_norms(blocks)
        return np.concatenate(out)

    def _check_norms(self, blocks: Any) -> None:
        check_shifted(blocks, self._system, self._targets, self.architecture.depth)

    def _explained(
        self, run: Run, blocks: Any, rows: list[slice]
    ) -> Iterator[tuple[slice, Explained]]:
        yield from zip(rows, self._system.explained(run, blocks, rows), strict=True)

    def _left_over(self, blocks: Any, part: slice, found: Explained, noise: bool) -> Array:
        left = blocks.diagonal[part] - found.variance
        if self._system.constant is not None and found.constant is not None:
            left += self._system.constant.variance * (1.0 - found.constant) ** 2
        return self._system.split.scale * np.maximum(left, 0.0) + self.noise_var * noise

    def _test_inputs(self, Xs: ArrayLike, name: str = "Xs") -> Inputs:
        self._inputs.check_unchanged()
        test = Inputs.of(Xs, name)
        wanted = self._inputs.shape[1]
        if test.X.shape[1] != wanted:
            hint = f"; for one point pass {name}[None]" if np.ndim(Xs) == 1 else ""
            raise ValueError(
                f"{name} has {test.X.shape[1]} features and the training inputs have {wanted}{hint}"
            )
        return test

    def _shaped(self, columns: Array) -> Array:
        return columns[:, 0].copy() if self._single else np.ascontiguousarray(columns)

    def _check(self, needed: float, what: str, *, on_host: bool = False) -> None:
        self._place.check(needed, self._system.bytes, what, on_host=on_host)


def _padded(test: Inputs, rows: slice, engine: Engine) -> Inputs:
    """Some rows; on a device filled up to a few sizes, as each new one would be compiled anew."""
    part = Inputs(test.X[rows], test.var[rows])
    if engine.where != "device":
        return part
    size = (
        max(64, 1 << (len(part) - 1).bit_length())
        if len(part) < 1024
        else -(-len(part) // 1024) * 1024
    )
    index = np.minimum(np.arange(size), len(part) - 1)
    return Inputs(part.X[index], part.var[index])


def _sum_squares(run: Run, row: list[Any]) -> Array:
    handles = [run.apply(row_squares, tile) for tile in row]
    return np.sum([run.fetch(handle) for handle in handles], axis=0)
