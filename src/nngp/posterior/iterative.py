"""The linear system (K + noise) α = Y solved by conjugate gradients: no factor, any size.

What `System` is to a Cholesky factor, `Iterative` is to an iteration: `Posterior` reads means off
α, and asks for B⁻¹ times blocks of test points where it wants variances. Of mᵀB⁻¹m an x near B⁻¹m
gives 2mᵀx - xᵀBx, which is never more than it: so a variance is never too small, and its error is
the square of that of x. Where the kernel is split (`constant`), B is that of M, and the ones are
solved as one more target.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nngp._digest import digest
from nngp._files import usable_folder
from nngp.architecture import Architecture
from nngp.errors import NoFactorError, NotPositiveDefiniteError
from nngp.gram import Inputs, KernelSplit, kernel_blocks
from nngp.linsolve import (
    CG,
    CgPlan,
    Checkpoint,
    CpuEngine,
    Engine,
    Forecast,
    Iteration,
    Landmarks,
    Progress,
    Run,
    climb,
    plan_cg,
    progress_for,
)
from nngp.linsolve.cg.gradients import Solution
from nngp.linsolve.tiling import Edges, spans
from nngp.posterior.constant import Constant
from nngp.posterior.failures import no_factor
from nngp.posterior.noise import Noise
from nngp.posterior.resources import Workplace, placed
from nngp.posterior.system import Explained, KernelBlocks, Solved, check_noise, middle_of, with_ones

Array = NDArray[np.float64]
AT_ONCE = 4e8  # bytes of right-hand sides that are solved together


def needs_factor(what: str) -> NoFactorError:
    return NoFactorError(
        f"{what} needs a Cholesky factor, and this posterior was solved by conjugate gradients; "
        "condition with solver='cholesky'"
    )


@dataclass(frozen=True)
class Problem:
    """A network, its inputs, where it is solved and how."""

    architecture: Architecture
    inputs: Inputs
    place: Workplace
    options: CG

    @property
    def engine(self) -> Engine:
        return self.place.engine

    def blocks(self, split: KernelSplit | None, right: Inputs | None = None) -> Any:
        with self.engine.run():  # device arrays made here are the engine's
            where = self.engine.where
            return kernel_blocks(where, self.architecture, self.inputs, right, split=split)

    def landmarks(self, split: KernelSplit, rank: int) -> Landmarks:
        """Kernel blocks of `rank` points, chosen at random."""
        rng = np.random.default_rng(self.options.seed)
        rows = np.sort(rng.choice(len(self.inputs), rank, replace=False))
        some = placed(self.engine, self.inputs.take(rows))
        with self.engine.run():
            own = kernel_blocks(self.engine.where, self.architecture, some, split=split)
        return Landmarks(self.blocks(split, some), own)

    def plan(self, blocks: KernelBlocks, outputs: int, noise: Noise) -> CgPlan:
        n, d = self.inputs.shape
        relative = (
            noise.variance / blocks.split.scale / max(float(np.mean(blocks.diagonal)), 1e-300)
        )
        memory = self.place.memory
        return plan_cg(self.engine, n, d, outputs, self.options, relative, memory)

    def track(self, phase: str, work: float, expected: float, *, quiet: bool = False) -> Progress:
        """Progress of a phase; `quiet` where a bar is being shown already."""
        asked = self.place.progress
        wanted = False if quiet and not callable(asked) else asked
        return Progress(phase, work, progress_for(wanted, expected), expected)

    def key(self, split: KernelSplit, shift: float, right: Array) -> str:
        """Of everything that a checkpoint depends on."""
        asked = self.options
        how = (asked.preconditioner, asked.rank, asked.seed)
        apart = split.scale, split.offset, split.input_var
        return digest(self.inputs, right, self.architecture.values, apart, shift, how)


@dataclass(frozen=True)
class Reached:
    """How the targets were solved for."""

    iterations: int
    residual: float  # the largest of a right-hand side, relative to it, computed anew
    preconditioner: str
    rank: int
    kept: float  # share of the tiles


@dataclass
class Iterative(Solved):
    """The targets solved for, as tiles (outputs, rows) of the engine; and how to solve for more."""

    problem: Problem
    edges: Edges
    split: KernelSplit
    noise: Noise
    constant: Constant | None  # None where M is K itself
    alpha: Sequence[Any]
    reached: Reached
    failed_attempts: int
    seconds: dict[str, float]
    _iteration: Iteration | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_iteration": None}  # it is made again where it is wanted

    @property
    def slices(self) -> list[slice]:
        """The index range of every tile."""
        return spans(self.edges)

    @property
    def bytes(self) -> int:
        return 0 if self._iteration is None else self._iteration.bytes

    def release(self) -> None:
        """Let go of kept tiles and the preconditioner."""
        self._iteration = None

    @property
    def rate(self) -> float:
        """Unknown: what an iteration does is not a factorisation's arithmetic."""
        return 0.0

    @property
    def facts(self) -> dict[str, Any]:
        """What the report says of this solver alone."""
        return {
            "solver": "cg",
            "tolerance": self.problem.options.tolerance,
            "iterations": self.reached.iterations,
            "preconditioner": self.reached.preconditioner,
            "rank": self.reached.rank,
            "kept": self.reached.kept,
        }

    def missed(self, engine: Engine, blocks: KernelBlocks, Y: Array) -> float:
        """The residual, as `report` has it."""
        return self.reached.residual

    def rows_at_a_time(self, engine: Engine) -> int:
        """Test points whose variance is computed in one block."""
        n, limits = self.edges[-1], [AT_ONCE]
        here = CpuEngine().free_memory()  # where right-hand sides are, whatever the engine
        limits += [limit / 32 for limit in (here, self.problem.place.memory) if limit]
        most = max(1, int(min(limits) / (8 * n * engine.width)))
        return min(engine.rows_at_a_time(n), most)

    def explained(
        self, run: Run, blocks: KernelBlocks, rows: Sequence[slice]
    ) -> Iterator[Explained]:
        """For each block of test points, given K of them and the data."""
        cross = [self._rows(run, blocks, part) for part in rows]
        right = np.concatenate(cross)
        forms = self._solve(run, right).forms(right)
        for M, form in zip(cross, np.split(forms, _ends(cross)), strict=True):
            known = None if self.constant is None else M @ self.constant.vector
            yield Explained(M @ self.weights + self.mean, form, known)

    def joint(
        self,
        run: Run,
        cross: KernelBlocks,
        own: KernelBlocks,
        rows: Sequence[slice],
        told: Any,
    ) -> Array:
        """What the data leave of M between test points, (m, m)."""
        M = np.concatenate([self._rows(run, cross, part) for part in rows])
        out, x, missed = np.empty((len(M), len(M))), np.empty_like(M), np.empty_like(M)
        for part in rows:
            tiles = [run.chain(partial(own.block, part, other)) for other in rows]
            out[part] = np.concatenate([run.fetch(tile) for tile in tiles], axis=1)
            found = self._solve(run, M[part])
            x[part], missed[part] = found.x, found.missed
            told(part)
        # As in `Solution.forms`, what is left is never too small.
        out -= x @ (M + missed).T
        out = 0.5 * (out + out.T)
        if self.constant is not None:
            doubt = np.sqrt(self.constant.variance) * (1.0 - M @ self.constant.vector)
            out += np.outer(doubt, doubt)
        return out

    def _rows(self, run: Run, blocks: KernelBlocks, rows: slice) -> Array:
        """Some rows of M on the host."""
        tiles = [run.chain(partial(blocks.block, rows, columns)) for columns in self.slices]
        return np.concatenate([run.fetch(tile) for tile in tiles], axis=1)

    def _solve(self, run: Run, right: Array) -> Solution:
        """Rows of B⁻¹ times these; what that takes is made again if it was not kept."""
        if self._iteration is None:
            blocks = self.problem.blocks(self.split)
            plan = self.problem.plan(blocks, len(right), self.noise)
            self._iteration = _begin(self.problem, blocks, plan)
        self._iteration.track = partial(self.problem.track, quiet=True)
        if not self._iteration.is_ready:
            landmarks = partial(self.problem.landmarks, self.split)
            self._iteration.prepare(run, self.noise.variance / self.split.scale, landmarks)
        try:
            return self._iteration.solve(run, right)
        except NotPositiveDefiniteError as error:
            error.noise_var = self.noise.variance
            raise _explained(error, self.problem, self._iteration.product.blocks) from None


def _ends(parts: list[Array]) -> Array:
    return np.cumsum([len(part) for part in parts])[:-1]


def _begin(problem: Problem, blocks: KernelBlocks, plan: CgPlan) -> Iteration:
    return Iteration.begin(problem.engine, problem.options, plan, blocks, problem.track)


def solve_iteratively(
    problem: Problem, blocks: KernelBlocks, Y: Array, noise: Noise, near: Iterative | None = None
) -> tuple[Iterative, Forecast]:
    """Solve for the targets, with more noise if the matrix is not positive definite.

    `near` solved the leading rows: the iteration begins there.
    """
    split, middle = blocks.split, middle_of(Y)
    check_noise(noise, split)
    if problem.options.checkpoint is not None:  # before there is work to lose
        usable_folder(problem.options.checkpoint, "checkpoint")
    right = np.ascontiguousarray(with_ones(Y, middle, split).T)
    start = None if near is None or near.split != split else _start(near, right.shape, middle)
    plan = problem.plan(blocks, Y.shape[1], noise)
    iteration = _begin(problem, blocks, plan)

    def attempt(stated: float) -> Any:
        shift = stated * noise.unit / split.scale
        with problem.engine.run() as run:
            iteration.prepare(run, shift, partial(problem.landmarks, split))
            kept = _checkpoint(problem, split, shift, right)
            return iteration.solve(run, right, start=start, checkpoint=kept)

    try:
        solution, stated, failed = climb(attempt, noise.stated)
    except NotPositiveDefiniteError as error:
        error.noise_var *= noise.unit
        raise _explained(error, problem, blocks) from None
    constant, alpha = _split_up(problem.engine, split, plan.edges, solution.x, right, middle)
    reached = Reached(
        solution.iterations,
        solution.residual,
        plan.preconditioner,
        plan.rank,
        iteration.product.kept,
    )
    used, seconds = noise.raised_to(stated), dict(iteration.seconds)
    system = Iterative(
        problem, plan.edges, split, used, constant, alpha, reached, failed, seconds, iteration
    )
    return system, plan.forecast


def _explained(
    error: NotPositiveDefiniteError, problem: Problem, blocks: Any
) -> NotPositiveDefiniteError:
    """The same error, with cause and remedy."""
    error.args = (no_factor(problem.engine, blocks, error.noise_var),)
    return error


def _checkpoint(
    problem: Problem, split: KernelSplit, shift: float, right: Array
) -> Checkpoint | None:
    options = problem.options
    if options.checkpoint is None:
        return None
    key = problem.key(split, shift, right)
    return Checkpoint(options.checkpoint, key, options.checkpoint_seconds)


def _start(near: Iterative, shape: tuple[int, ...], middle: Array) -> Array:
    """What `near` makes of the new right-hand sides: B⁻¹(Y - middle) from B⁻¹(Y - μ) and b."""
    out, known = np.zeros(shape), near.weights.T
    if near.constant is not None:
        b = near.constant.vector
        known = np.vstack([known + np.outer(near.constant.mean - middle, b), b])
    out[:, : known.shape[1]] = known
    return out


def _split_up(
    engine: Engine, split: KernelSplit, edges: Edges, x: Array, right: Array, middle: Array
) -> tuple[Constant | None, list[Any]]:
    """The constant, and α of Y - μ from that of Y - middle, with ones as the last row."""
    with engine.run() as run:
        if split.is_trivial:
            return None, run.columns(x, edges)
        targets, b = x[:-1], x[-1]
        found, apart = Constant.solve(split, float(b.sum()), right[:-1] @ b, middle)
        ones = run.columns(b[None], edges)
        alpha = run.columns(targets - np.outer(apart, b), edges)
    return Constant(split, found.beta, found.sums, (), ones), alpha
