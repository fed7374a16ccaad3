"""(K + noise) α = Y by conjugate gradients: no factor, any size.

Variances need B⁻¹ times blocks of test points. Of mᵀB⁻¹m an x near B⁻¹m gives 2mᵀx - xᵀBx, which is
never more than it: so a variance is never too small, and its error is the square of that of x.

Where the kernel is split (`constant.py`), the ones are solved as one more target, and b is the
solution times a number that makes bᵀBb = 1ᵀb. For any x + tb the variance of K as a whole is at
most M(x,x) - 2mᵀ(x + tb) + (x + tb)ᵀB(x + tb) + g (1 - 1ᵀ(x + tb))². Its least value over t, with
r = m - Bx and β = 1ᵀb, is

    M(x,x) - xᵀ(m + r) - (bᵀr)²/β + κ (1 - 1ᵀx - bᵀr)²,

so the formula of `constant.py` holds with 1ᵀx + bᵀr for mᵀb, and the constant's share is never too
small either.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from typing import Any, NoReturn

import numpy as np

from nngp._arrays import Array
from nngp._digest import digest
from nngp._files import usable_folder
from nngp._progress import Progress, progress_for
from nngp._records import Share
from nngp.errors import NoFactorError, NotPositiveDefiniteError
from nngp.gram import InputSet, KernelMatrix, KernelSplit, Shift, Tile
from nngp.linsolve import (
    CG,
    CgPlan,
    Checkpoint,
    CpuEngine,
    Engine,
    EngineRun,
    Forecast,
    Iteration,
    Landmarks,
    climb,
    plan_cg,
)
from nngp.linsolve.cg.gradients import RowSolutions
from nngp.linsolve.tiling import Edges, cut, even_size, spans
from nngp.posterior.constant import Constant
from nngp.posterior.noise import Noise
from nngp.posterior.setup import Problem, Resources, middle_of, with_ones
from nngp.posterior.solution import (
    Advance,
    Explained,
    JointMatrices,
    Rows,
    Solution,
    means,
    no_factor,
    rows_on_host,
)

AT_ONCE = 4e8  # bytes of right-hand sides that are solved together


@dataclass(frozen=True)
class CGProblem(Problem):
    """A problem with the options of conjugate gradients."""

    options: CG

    def landmarks(self, split: KernelSplit, rank: int) -> Landmarks:
        """Kernel matrices of `rank` points, chosen at random."""
        rng = np.random.default_rng(self.options.seed)
        rows = np.sort(rng.choice(len(self.inputs), rank, replace=False))
        some = self.upload(self.inputs.take(rows))
        kernels = self.engine.kernels
        with self.engine.run():
            own = self.among(some, split)
            cross = kernels.matrix(self.network, self.inputs, some, split=split)
        return Landmarks(cross, own)

    def plan(self, matrix: KernelMatrix, outputs: int, noise: Noise) -> CgPlan:
        """The plan for this noise, or for the middle one of the rows'."""
        n, d = self.inputs.shape
        middle = float(np.median(noise.shift(matrix.split)))
        relative = middle / max(float(np.mean(matrix.diagonal)), 1e-300)
        memory = self.resources.memory
        products = self.network.products(d)
        return plan_cg(self.engine, n, d, outputs, self.options, relative, memory, products)

    def track(self, phase: str, work: float, *, quiet: bool = False) -> Progress:
        """Progress of a phase; `quiet` where a bar is being shown already."""
        wanted = self.resources.progress
        if quiet and not callable(wanted):
            wanted = False
        return Progress(phase, work, progress_for(wanted))

    def checkpoint(self, split: KernelSplit, shift: Shift, right: Array) -> Checkpoint | None:
        """The file of this very system, named by a digest of everything that it depends on."""
        options = self.options
        if options.checkpoint is None:
            return None
        how = (options.preconditioner, options.rank, options.seed)
        apart = astuple(split)
        key = digest(self.inputs, right, self.network.values, apart, shift, how)
        return Checkpoint(options.checkpoint, key, options.checkpoint_seconds)

    def begin(self, matrix: KernelMatrix, plan: CgPlan) -> Iteration:
        return Iteration.begin(self.engine, self.options, plan, matrix, self.track)


@dataclass(frozen=True)
class CGConvergence:
    """Iterations, residual and preconditioner of a solve."""

    iterations: int
    residual: Share  # the largest of a right-hand side, relative to it, computed again
    preconditioner: str
    rank: int
    kept: Share  # of the tiles


@dataclass
class CGSolution(Solution):
    """The targets solved for, as tiles (outputs, rows) of the engine; and how to solve for more."""

    problem: CGProblem
    edges: Edges
    split: KernelSplit
    noise: Noise
    constant: Constant | None
    alpha: Sequence[Tile]
    reached: CGConvergence
    failed_attempts: int
    seconds: dict[str, float]
    _iteration: Iteration | None = field(default=None, repr=False)

    solver = "cg"
    covariance_on_host = True

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_iteration": None}  # it is made again when it is needed

    @property
    def n(self) -> int:
        return self.edges[-1]

    @property
    def slices(self) -> list[slice]:
        return spans(self.edges)

    @property
    def bytes(self) -> int:
        return 0 if self._iteration is None else self._iteration.bytes

    @property
    def facts(self) -> Mapping[str, Any]:
        return {
            "solver": self.solver,
            "tolerance": self.problem.options.tolerance,
            "iterations": self.reached.iterations,
            "preconditioner": self.reached.preconditioner,
            "rank": self.reached.rank,
            "kept": self.reached.kept,
        }

    @property
    def summary(self) -> str:
        return "solver='cg'"

    def factored(self, purpose: str) -> NoReturn:
        raise NoFactorError(
            f"{purpose} needs a Cholesky factor, and this posterior was solved by conjugate "
            "gradients; condition with solver='cholesky'"
        )

    def residual(self, engine: Engine, matrix: KernelMatrix, Y: Array) -> float:
        return self.reached.residual

    def rows_at_a_time(self, engine: Engine) -> int:
        n, limits = self.edges[-1], [AT_ONCE]
        here = CpuEngine().free_memory()  # where right-hand sides are, whatever the engine
        limits += [limit / 32 for limit in (here, self.problem.resources.memory) if limit]
        most = max(1, int(min(limits) / (8 * n * engine.width)))
        return min(engine.rows_at_a_time(n), most)

    def explained(self, run: EngineRun, cross: KernelMatrix, rows: Rows) -> Iterator[Explained]:
        handles, start, stop = means(run, cross, self, rows), rows[0].start, rows[-1].stop
        engine = self.problem.engine
        most = self.rows_at_a_time(engine) * engine.width
        pieces = spans(cut(stop, even_size(stop - start, most), start))
        found = [self._forms(run, cross, piece) for piece in pieces]
        forms, known = (np.concatenate(column) for column in zip(*found, strict=True))
        for part, mean in zip(rows, handles, strict=True):
            own = slice(part.start - start, part.stop - start)
            constant = None if self.constant is None else known[own]
            yield Explained(run.fetch(mean), forms[own], constant)

    def _forms(self, run: EngineRun, cross: KernelMatrix, rows: slice) -> tuple[Array, Array]:
        """mᵀB⁻¹m of some test points, and mᵀb (nothing without a constant), from below."""
        M = rows_on_host(run, cross, rows, self.slices)
        found = self._solve(run, M)
        if self.constant is None:
            return found.forms(M), np.zeros(0)
        moved, known = self._by_constant(found.x, found.missed)
        return found.forms(M) + moved**2 / self.constant.beta, known

    def _by_constant(self, x: Array, missed: Array) -> tuple[Array, Array]:
        """bᵀr of some solutions, and 1ᵀx + bᵀr, which is mᵀb."""
        assert self.constant is not None
        moved = missed @ self.constant.vector
        return moved, x.sum(axis=1) + moved

    def joint(self, run: EngineRun, test: JointMatrices, rows: Rows, advance: Advance) -> Array:
        M = np.concatenate([rows_on_host(run, test.cross, part, self.slices) for part in rows])
        out, x, missed = np.empty((len(M), len(M))), np.empty_like(M), np.empty_like(M)
        for part in rows:
            out[part] = rows_on_host(run, test.own, part, rows)
            found = self._solve(run, M[part])
            x[part], missed[part] = found.x, found.missed
            advance(part)
        # As in `RowSolutions.forms`, the difference is never too small.
        out -= x @ (M + missed).T
        out = 0.5 * (out + out.T)
        if self.constant is not None:
            moved, known = self._by_constant(x, missed)
            deviation = np.sqrt(self.constant.variance) * (1.0 - known)
            out += np.outer(deviation, deviation) - np.outer(moved, moved) / self.constant.beta
        return out

    def joint_bytes(self, m: int) -> float:
        """Of M*, its solution and its residual, on this machine."""
        return 8.0 * (m * (3 * self.edges[-1] + m))

    def update_bytes(self, new: int) -> float:
        return 0.0  # the plan of the new solve says what it takes

    def updated(
        self, matrix: KernelMatrix, inputs: InputSet, Y: Array, noise: Noise, resources: Resources
    ) -> tuple["CGSolution", Forecast]:
        """Solve again, from where the old weights are."""
        self._iteration = None  # or both would be held; it is made again if this one is asked
        problem = replace(self.problem, inputs=inputs)
        return solve_by_cg(problem, matrix, Y, noise, near=self)

    def _solve(self, run: EngineRun, right: Array) -> RowSolutions:
        """Rows of B⁻¹ times these; product and preconditioner are made again if not kept."""
        if self._iteration is None:
            matrix = self.problem.matrix(self.split)
            plan = self.problem.plan(matrix, len(right), self.noise)
            self._iteration = self.problem.begin(matrix, plan)
        self._iteration.track = partial(self.problem.track, quiet=True)
        if not self._iteration.is_ready:
            landmarks = partial(self.problem.landmarks, self.split)
            self._iteration.prepare(run, self.noise.shift(self.split), landmarks)
        try:
            return self._iteration.solve(run, right)
        except NotPositiveDefiniteError as error:
            error.noise_var = self.noise.least
            raise _with_cause(error, self.problem, self._iteration.product.blocks) from None


def solve_by_cg(
    problem: CGProblem,
    matrix: KernelMatrix,
    Y: Array,
    noise: Noise,
    near: CGSolution | None = None,
) -> tuple[CGSolution, Forecast]:
    """Solve for the targets, with more noise if the matrix is not positive definite.

    `near` solved the leading rows: the iteration begins there.
    """
    split, middle = matrix.split, middle_of(Y)
    noise.check(split)
    if problem.options.checkpoint is not None:  # before there is work to lose
        usable_folder(problem.options.checkpoint, "checkpoint")
    right = np.ascontiguousarray(with_ones(Y, middle, split).T)
    start = None if near is None or near.split != split else _start(near, right.shape, middle)
    plan = problem.plan(matrix, Y.shape[1], noise)
    iteration = problem.begin(matrix, plan)

    def attempt(level: float) -> RowSolutions:
        shift = noise.raised_to(level).shift(split)
        with problem.engine.run() as run:
            iteration.prepare(run, shift, partial(problem.landmarks, split))
            checkpoint = problem.checkpoint(split, shift, right)
            return iteration.solve(run, right, start=start, checkpoint=checkpoint)

    try:
        solved, level, failed = climb(attempt, noise.level)
    except NotPositiveDefiniteError as error:
        error.noise_var *= noise.unit
        raise _with_cause(error, problem, matrix) from None
    constant, alpha = _keep_constant_apart(problem.engine, split, plan.edges, solved, middle)
    reached = CGConvergence(
        solved.iterations, solved.residual, plan.preconditioner, plan.rank, iteration.product.kept
    )
    used, seconds = noise.raised_to(level) if failed else noise, dict(iteration.seconds)
    solution = CGSolution(
        problem, plan.edges, split, used, constant, alpha, reached, failed, seconds, iteration
    )
    return solution, plan.forecast


def _with_cause(
    error: NotPositiveDefiniteError, problem: Problem, matrix: KernelMatrix
) -> NotPositiveDefiniteError:
    """The same error, with cause and remedy."""
    error.args = (no_factor(problem.engine, matrix, error.noise_var),)
    return error


def _start(near: CGSolution, shape: tuple[int, ...], middle: Array) -> Array:
    """The guess of `near` for the new right-hand sides: B⁻¹(Y - middle) from B⁻¹(Y - μ) and b."""
    out, known = np.zeros(shape), near.weights.T
    if near.constant is not None:
        b = near.constant.vector
        known = np.vstack([known + np.outer(near.constant.mean - middle, b), b])
    out[:, : known.shape[1]] = known
    return out


def _keep_constant_apart(
    engine: Engine, split: KernelSplit, edges: Edges, solved: RowSolutions, middle: Array
) -> tuple[Constant | None, list[Tile]]:
    """The constant, and α of Y - μ from that of Y - middle, with ones as the last row."""
    with engine.run() as run:
        if split.is_trivial:
            return None, run.columns(solved.x, edges)
        targets, b = solved.x[:-1], solved.x[-1]
        b = b * (b.sum() / (b.sum() - b @ solved.missed[-1]))
        # 1ᵀα is what the constant says it is, whatever b lacks.
        found, apart = Constant.solve(split, float(b.sum()), targets.sum(axis=1), middle)
        ones = run.columns(b[None], edges)
        alpha = run.columns(targets - np.outer(apart, b), edges)
    return Constant(split, found.beta, found.sums, (), ones), alpha
