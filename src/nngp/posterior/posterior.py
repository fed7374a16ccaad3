"""The posterior of eq. 8 and 9: what the process says once it has seen data."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nngp._arrays import Array
from nngp._html import facts_table, panel
from nngp._machine import single_threaded_blas
from nngp._numbers import whole_number
from nngp.architecture import Network
from nngp.gram import (
    Gradient,
    Inputs,
    InputSet,
    KernelMatrix,
    Shift,
    kernel_diag,
)
from nngp.linsolve import EngineRun, inverse_rows
from nngp.linsolve.engines.engine import Handle
from nngp.linsolve.tiling import cut, spans
from nngp.posterior.by_cholesky import row_squares
from nngp.posterior.draws import draws_around
from nngp.posterior.evidence.criteria import held_out
from nngp.posterior.evidence.tiled_gradients import density_gradient, evidence_gradient
from nngp.posterior.noise import as_observation_noise
from nngp.posterior.predictive_gradient import predictive_gradient, rows_at_a_time
from nngp.posterior.report import Report, describe, warn
from nngp.posterior.setup import Problem, as_targets
from nngp.posterior.solution import Explained, JointMatrices, Solution, check_shifted, means

CHUNK = 16_384  # test points whose norms and the like are prepared at a time
Work = Callable[[EngineRun, KernelMatrix, list[slice]], Iterator[Array]]  # on blocks of test points


class LeaveOneOut(NamedTuple):
    """Predictions for each training point from all the others."""

    mean: Array
    variance: Array


class PredictiveGradient(NamedTuple):
    """Derivatives of predictions in the test points: of the mean, (m, d, outputs) or (m, d) as Y
    was given, and of the variance, (m, d)."""

    mean: Array
    variance: Array | None


class Posterior:
    """A network of infinite width, conditioned on data. Made by `nngp.condition`.

    Attributes
    ----------
    network : Network
    inputs, targets
        The training data; the targets as (n, outputs), and `single` if they were given as a vector.
    noise_var : float or array (n,)
        The noise that was used, by row if it was given by row; more than asked for if the ladder
        was climbed.
    log_evidence : float
        The log marginal likelihood, summed over outputs. It needs a factor (`NoFactorError`).
    report : Report
        What was done, how exactly, and how long it took.

    Examples
    --------
    >>> import numpy as np, nngp
    >>> X = np.linspace(-1, 1, 20)[:, None]
    >>> net = nngp.Architecture(2, "erf", 4.0, 0.5)
    >>> posterior = nngp.condition(net, X, np.sin(3 * X[:, 0]), noise_var=1e-4)
    >>> posterior.n, round(posterior.log_evidence, 1)
    (20, 18.7)
    >>> posterior.report.solver, posterior.report.residual < 1e-8
    ('cholesky', True)
    """

    def __init__(
        self,
        problem: Problem,
        targets: Array,
        single: bool,
        solution: Solution,
        report: Report,
    ) -> None:
        self.problem, self.solution, self.report = problem, solution, report
        self.targets, self.single = targets, single

    @property
    def network(self) -> Network:
        return self.problem.network

    @property
    def inputs(self) -> InputSet:
        return self.problem.inputs

    @property
    def n(self) -> int:
        """Number of training points."""
        return len(self.inputs)

    @property
    def noise_var(self) -> Shift:
        return self.solution.noise.variance

    @property
    def log_evidence(self) -> float:
        return self.solution.factored("the log evidence").log_evidence

    @single_threaded_blas()
    def mean(self, Xs: ArrayLike) -> Array:
        """Posterior mean at test points (eq. 8): (m,) or (m, outputs), as Y was given.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> X = np.linspace(-1, 1, 20)[:, None]
        >>> net = nngp.Architecture(2, "erf", 4.0, 0.5)
        >>> posterior = nngp.condition(net, X, np.sin(3 * X[:, 0]), noise_var=1e-4)
        >>> posterior.mean([[0.25], [0.5]]).round(2).tolist()  # sin(0.75), sin(1.5)
        [0.68, 1.0]
        """

        def work(run: EngineRun, cross: KernelMatrix, rows: list[slice]) -> Iterator[Array]:
            for handle in means(run, cross, self.solution, rows):
                yield run.fetch(handle)

        test = self._test_inputs(Xs)
        return self._shaped(self._stream(test, work, 2.0 * self.n * self.inputs.shape[1]))

    @single_threaded_blas()
    def variance(self, Xs: ArrayLike, *, noise: bool | ArrayLike = False) -> Array:
        """Posterior variance at test points (eq. 9), (m,): of the function, or with `noise` of an
        observation of it. All outputs share it.

        `noise` is True for observations with the noise of the training data, or the variance of
        the noise of new observations: one number, or one for each test point. Where the training
        data have noise by row, True does not say which, and numbers must be passed.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> X = np.linspace(-1, 1, 20)[:, None]
        >>> net = nngp.Architecture(2, "erf", 4.0, 0.5)
        >>> posterior = nngp.condition(net, X, np.sin(3 * X[:, 0]), noise_var=1e-4)
        >>> posterior.variance([[0.0], [2.0]]).round(4).tolist()
        [0.0001, 0.0862]
        >>> posterior.variance([[0.0], [2.0]], noise=True).round(4).tolist()
        [0.0002, 0.0863]
        """
        test = self._test_inputs(Xs)
        added = self._observation_noise(noise, len(test))

        def work(run: EngineRun, cross: KernelMatrix, rows: list[slice]) -> Iterator[Array]:
            for part, found in self._explained(run, cross, rows):
                yield self._remaining_variance(cross, part, found)

        return self._stream(test, work, float(self.n) ** 2) + added

    @single_threaded_blas()
    def predict(self, Xs: ArrayLike, *, noise: bool | ArrayLike = False) -> tuple[Array, Array]:
        """`mean` and `variance` in one pass, which is cheaper than both; the same numbers.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> X = np.linspace(-1, 1, 20)[:, None]
        >>> net = nngp.Architecture(2, "erf", 4.0, 0.5)
        >>> posterior = nngp.condition(net, X, np.sin(3 * X[:, 0]), noise_var=1e-4)
        >>> mean, variance = posterior.predict([[0.5], [2.0]])
        >>> mean.shape, variance.shape
        ((2,), (2,))
        """
        test = self._test_inputs(Xs)
        added = self._observation_noise(noise, len(test))

        def work(run: EngineRun, cross: KernelMatrix, rows: list[slice]) -> Iterator[Array]:
            for part, found in self._explained(run, cross, rows):
                variance = self._remaining_variance(cross, part, found)
                yield np.column_stack([found.mean, variance])

        both = self._stream(test, work, float(self.n) ** 2)
        return self._shaped(both[:, :-1]), both[:, -1] + added

    @single_threaded_blas()
    def predict_gradient(self, Xs: ArrayLike, *, variance: bool = True) -> PredictiveGradient:
        """Derivatives of `mean` and `variance` in the test points.

        They are exact derivatives of the kernel, with respect to norm and direction (at infinite
        depth, where inputs have one norm, along their sphere). Computed on this machine, a block
        at a time. The variance needs a factor; with variance=False it is None.

        Where a test point is a training point, a kernel that has no derivative there (the tangent
        kernel of relu) gives the mean of both sides. A kernel of relu has one, but no second
        derivative: a gradient of a gradient does not exist there. Where the variance is 0 its
        derivative is that of the formula, which rounding may make any small number.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> X = np.linspace(-1, 1, 20)[:, None]
        >>> net = nngp.Architecture(2, "erf", 4.0, 0.5)
        >>> posterior = nngp.condition(net, X, np.sin(3 * X[:, 0]), noise_var=1e-4)
        >>> mean, variance = posterior.predict_gradient([[0.25], [1.5]])
        >>> round(float(mean[0, 0]), 1), bool(variance[1, 0] > 0)  # 3 cos(0.75) = 2.2
        (2.2, True)
        """
        test, solution = self._test_inputs(Xs), self.solution
        if variance:
            solution.factored("the derivative of the variance")
        with self.problem.resources.track("gradient", float(len(test))) as progress:
            found = []
            for rows in spans(cut(len(test), rows_at_a_time(self.problem, self.n))):
                part = test.take(np.arange(rows.start, rows.stop))
                found.append(predictive_gradient(self.problem, solution, part, variance))
                progress.advance(float(len(part)))
        mean = np.concatenate([part[0] for part in found])
        of_variance = np.concatenate([part[1] for part in found]) if variance else None
        return PredictiveGradient(mean[..., 0].copy() if self.single else mean, of_variance)

    @single_threaded_blas()
    def covariance(self, Xs: ArrayLike, *, noise: bool | ArrayLike = False) -> Array:
        """Posterior covariance between test points, (m, m), exactly symmetric; with `noise`, which
        is that of `variance`, on its diagonal.

        Holds K* or L⁻¹K* for all of them at once: m (n + m) numbers, and without a factor, on this
        machine, m (3 n + m).

        Examples
        --------
        >>> import numpy as np, nngp
        >>> X = np.linspace(-1, 1, 20)[:, None]
        >>> net = nngp.Architecture(2, "erf", 4.0, 0.5)
        >>> posterior = nngp.condition(net, X, np.sin(3 * X[:, 0]), noise_var=1e-4)
        >>> covariance = posterior.covariance([[1.5], [2.5]])
        >>> round(float(covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])), 2)
        0.87
        """
        solution, problem = self.solution, self.problem
        test = problem.upload(self._test_inputs(Xs))
        added = self._observation_noise(noise, len(test))
        m, on_host = len(test), solution.covariance_on_host
        self._check(solution.joint_bytes(m), f"the covariance of {m} test points", on_host=on_host)
        rows = spans(cut(m, solution.rows_at_a_time(self.problem.engine)))
        operations = m * (float(self.n) ** 2 + float(self.n) * m)
        tracked = problem.resources.track("covariance", operations)
        with tracked as progress, problem.engine.run() as run:

            def advance(part: slice) -> None:
                progress.advance(operations * (part.stop - part.start) / m)

            matrices = JointMatrices(
                problem.to_rows(test, solution.split), problem.among(test, solution.split)
            )
            out = solution.joint(run, matrices, rows, advance)
        out *= solution.split.scale
        np.fill_diagonal(out, np.maximum(np.diagonal(out), 0.0) + added)
        self._check_norms(matrices.cross)
        return out

    @single_threaded_blas()
    def sample(
        self, Xs: ArrayLike, n: int = 1, seed: Any = None, *, noise: bool | ArrayLike = False
    ) -> Array:
        """`n` draws of the function (or of observations, with `noise` as in `variance`) at test
        points: (n, m), or (n, m, outputs) as Y was given. `seed` is anything that
        `numpy.random.default_rng` takes.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> X = np.linspace(-1, 1, 20)[:, None]
        >>> net = nngp.Architecture(2, "erf", 4.0, 0.5)
        >>> posterior = nngp.condition(net, X, np.sin(3 * X[:, 0]), noise_var=1e-4)
        >>> posterior.sample([[0.0], [0.5], [2.0]], n=4, seed=0).shape
        (4, 3)
        """
        count = whole_number("n", n, least=0)
        covariance = self.covariance(Xs, noise=noise)
        # Rounding in k** - |v|² is relative to k**, however little of it is left.
        split = self.solution.split
        if split.is_trivial:
            prior = float(kernel_diag(self.network, Xs).max())
        else:
            prior = split.scale * (1.0 + split.kept) + float(np.diagonal(covariance).max())
        return draws_around(self.mean(Xs), covariance, count, seed, prior, single=self.single)

    @single_threaded_blas()
    def evidence_gradient(self, *, per_layer: bool = False, per_input: bool = False) -> Gradient:
        """Derivatives of `log_evidence` in weight_var, bias_var and noise_var (one for each of the
        n rows where the noise was given by row), at the noise that was used.

        With `per_layer`, those in weight_var and bias_var have one entry a layer (depth + 1),
        from input to output; otherwise all layers move together. With `per_input` there is also
        "relevance", an entry for each of the d inputs: the derivative in a factor (now one) of
        the variance of the first layer's weights that leave that input. Parameters of activations
        (`nngp.Activation(fn, params=...)`) have entries by their names, good to about 1e-8 of the
        log evidence. Needs a second array of the factor's size while it runs.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> X = np.linspace(-1, 1, 20)[:, None]
        >>> net = nngp.Architecture(2, "erf", 4.0, 0.5)
        >>> posterior = nngp.condition(net, X, np.sin(3 * X[:, 0]), noise_var=1e-4)
        >>> gradient = posterior.evidence_gradient()
        >>> sorted(gradient), bool(gradient["noise_var"] < 0)  # less noise would be likelier
        (['bias_var', 'noise_var', 'weight_var'], True)
        """
        factored = self.solution.factored("the gradient of the evidence")
        self._check(factored.bytes, "the gradient of the evidence")
        operations = float(self.n) ** 3 * 2 / 3
        with self.problem.resources.track("evidence gradient", operations) as progress:
            return evidence_gradient(
                self.problem, factored, progress, per_layer=per_layer, per_input=per_input
            )

    @single_threaded_blas()
    def leave_one_out(self, *, noise: bool = False) -> LeaveOneOut:
        """Predictions for each training point from all the others, without refitting.

        From the diagonal of the inverse: mean y_i - α_i / [K⁻¹]_ii, variance of an observation
        1 / [K⁻¹]_ii; the noise is subtracted from it unless `noise`.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> X = np.linspace(-1, 1, 20)[:, None]
        >>> net = nngp.Architecture(2, "erf", 4.0, 0.5)
        >>> posterior = nngp.condition(net, X, np.sin(3 * X[:, 0]), noise_var=1e-4)
        >>> mean, variance = posterior.leave_one_out()
        >>> bool(np.abs(mean - np.sin(3 * X[:, 0])).max() < 0.1)
        True
        """
        factor = self.solution.factored("leave-one-out").factor
        group, count = min(self.problem.engine.width, 8), len(factor.rows)
        tallest = int(np.diff(factor.edges).max())
        self._check(8.0 * group * tallest * self.n, "leave-one-out")
        precision = np.empty(factor.edges[-1])
        operations = float(self.n) ** 3 / 3
        with (
            self.problem.resources.track("leave one out", operations) as progress,
            self.problem.engine.run() as run,
        ):
            for start in range(0, count, group):
                which = range(start, min(start + group, count))
                for i, row in zip(which, inverse_rows(run, factor, which), strict=True):
                    precision[factor.slices[i]] = _sum_squares(run, row)
                    progress.advance(operations / count)
        solution, precision = self.solution, precision[: self.n]
        if solution.constant is not None:
            solution.constant.check_held_out()
            precision = solution.constant.precision(precision)
        residuals, variance = held_out(solution.weights, precision, solution.split.scale)
        if not noise:  # where noise is nearly all of it, the difference is rounding
            split = solution.split
            own = self.problem.matrix(split).diagonal
            prior = split.scale * own + split.constant
            variance = np.clip(variance - self.noise_var, 0.0, prior)
        return LeaveOneOut(self._shaped(self.targets - residuals), variance)

    @single_threaded_blas()
    def leave_one_out_density(
        self, *, per_layer: bool = False, per_input: bool = False
    ) -> tuple[float, Gradient]:
        """The sum of the log densities that `leave_one_out` gives the targets, and its gradient.

        The derivatives are named as those of `evidence_gradient`. Holds five times the factor.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> X = np.linspace(-1, 1, 20)[:, None]
        >>> net = nngp.Architecture(2, "erf", 4.0, 0.5)
        >>> posterior = nngp.condition(net, X, np.sin(3 * X[:, 0]), noise_var=1e-4)
        >>> value, gradient = posterior.leave_one_out_density()
        >>> sorted(gradient)
        ['bias_var', 'noise_var', 'weight_var']
        """
        factored = self.solution.factored("the leave-one-out density")
        self._check(4.5 * factored.bytes, "the gradient of the leave-one-out density")
        operations = float(self.n) ** 3 * 2
        with self.problem.resources.track("leave-one-out gradient", operations) as progress:
            return density_gradient(
                self.problem, factored, progress, per_layer=per_layer, per_input=per_input
            )

    @single_threaded_blas()
    def update(
        self, X_new: ArrayLike, Y_new: ArrayLike, noise_var: ArrayLike | None = None
    ) -> "Posterior":
        """Add data by extending the factor; the old part is not computed again. Without a factor
        all is solved again, from where the old weights are.

        `noise_var` is the noise of the new rows, one number or one a row, in the units of that of
        the others. It must be given where theirs was given by row. Where all share one, new rows
        have the same by default; with `noise_var` the noise is by row from then on.

        Changes this posterior and returns it; if anything fails, it stays as it was. If the new
        rows make the factorisation fail, the noise climbs the ladder and all is factored again; so
        it is if new inputs are the first whose norm differs.

        Examples
        --------
        >>> import numpy as np, nngp
        >>> X = np.linspace(-1, 1, 20)[:, None]
        >>> net = nngp.Architecture(2, "erf", 4.0, 0.5)
        >>> posterior = nngp.condition(net, X, np.sin(3 * X[:, 0]), noise_var=1e-4)
        >>> posterior.update([[2.0]], [np.sin(6.0)]).n
        21
        >>> posterior.mean([[2.0]]).round(2).tolist()
        [-0.28]
        """
        new = self._test_inputs(X_new, "X_new")
        targets, _ = as_targets(Y_new, len(new), "Y_new")
        if targets.shape[1] != self.targets.shape[1]:
            raise ValueError(
                f"Y_new has {targets.shape[1]} outputs and Y had {self.targets.shape[1]}"
            )
        noise = self.solution.noise.followed_by(noise_var, self.n, len(new))
        inputs = self.inputs.joined(new)
        Y = np.concatenate([self.targets, targets])
        if needed := self.solution.update_bytes(len(new)):
            self._check(needed, f"an update with {len(new)} points")
        problem = replace(self.problem, inputs=inputs)
        matrix = problem.matrix(self.solution.split)
        if not matrix.is_exact:  # the new inputs are the first of another norm
            matrix = problem.matrix()
        noise.check(matrix.split)
        solution, expected = self.solution.updated(matrix, inputs, Y, noise, problem.resources)
        report = describe(self.problem.engine, matrix, solution, Y, inputs.shape[1], expected)
        warn(report, self.network, stacklevel=4)
        self.problem, self.targets = problem, Y
        self.solution, self.report = solution, report
        return self

    def __repr__(self) -> str:
        noise = self.solution.noise
        least, largest = f"{noise.least:.3g}", f"{noise.largest:.3g}"
        shown = f"{least} to {largest}" if noise.is_by_row else least
        known = f"n={self.n}, noise_var={shown}, {self.solution.summary}"
        return f"Posterior({self.network!r}, {known})"

    def _repr_html_(self) -> str:
        """Data, evidence and network, for notebooks."""
        facts = dict(self.report.summary)
        if self.report.solver == "cholesky":
            facts["log evidence"] = self.log_evidence
        network = self.network._repr_html_()
        return panel("Posterior", facts_table(facts), ("network", network))

    def _stream(self, test: Inputs, work: Work, operations: float) -> Array:
        """`work` on groups of test points, so that memory does not grow with their number. They
        are the same for all work, and so are means, to the bit."""
        problem = self.problem
        out: list[Array] = []
        with problem.resources.track("predict", operations * len(test)) as progress:
            for chunk in spans(cut(len(test), CHUNK)):
                m = chunk.stop - chunk.start
                filled, size, at_once = problem.engine.test_blocks(m, self.n)
                part = problem.upload(_filled(test, chunk, filled))
                with problem.engine.run() as run:
                    cross = problem.to_rows(part, self.solution.split)
                    rows = spans(cut(len(part), size))
                    done: list[Array] = []
                    for start in range(0, len(rows), at_once):
                        group = rows[start : start + at_once]
                        done.extend(work(run, cross, group))
                        progress.advance(operations * (group[-1].stop - group[0].start))
                out.append(np.concatenate(done)[:m])
        self._check_norms(cross)
        return np.concatenate(out)

    def _check_norms(self, cross: KernelMatrix) -> None:
        check_shifted(cross, self.solution, self.targets)

    def _explained(
        self, run: EngineRun, cross: KernelMatrix, rows: list[slice]
    ) -> Iterator[tuple[slice, Explained]]:
        yield from zip(rows, self.solution.explained(run, cross, rows), strict=True)

    def _remaining_variance(self, cross: KernelMatrix, part: slice, found: Explained) -> Array:
        left = cross.diagonal[part] - found.variance
        if self.solution.constant is not None and found.constant is not None:
            left += self.solution.constant.variance * (1.0 - found.constant) ** 2
        return self.solution.split.scale * np.maximum(left, 0.0)

    def _observation_noise(self, noise: bool | ArrayLike, m: int) -> Shift:
        """The variance that observations at m test points have beside that of the function."""
        if isinstance(noise, bool | np.bool_):
            if noise and self.solution.noise.is_by_row:
                raise ValueError(
                    "noise_var was given by row, so noise=True does not say what new observations "
                    "have; pass their variances: noise= one number, or one for each test point"
                )
            return self.solution.noise.least if noise else 0.0
        return as_observation_noise(noise, m)

    def _test_inputs(self, Xs: ArrayLike, name: str = "Xs") -> Inputs:
        return self.problem.test_inputs(Xs, name)

    def _shaped(self, columns: Array) -> Array:
        return columns[:, 0].copy() if self.single else np.ascontiguousarray(columns)

    def _check(self, needed: float, what: str, *, on_host: bool = False) -> None:
        self.problem.resources.check(needed, self.solution.bytes, what, on_host=on_host)


def _filled(test: Inputs, rows: slice, size: int) -> Inputs:
    """Some rows, and the last of them again until there are `size`."""
    part = Inputs(test.X[rows], test.var[rows])
    if size == len(part):
        return part
    index = np.minimum(np.arange(size), len(part) - 1)
    return Inputs(part.X[index], part.var[index])


def _sum_squares(run: EngineRun, row: list[Handle]) -> Array:
    # On the host: each row has another number of tiles, and on a device each would be a program.
    handles = [run.apply(row_squares, tile) for tile in row]
    return np.sum([run.fetch(handle) for handle in handles], axis=0)
