"""(K + noise) α = Y by Cholesky: the factor, and α.

Takes a kernel matrix, targets and noise; gives `CholeskySolution`, which `Posterior` reads.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from nngp._arrays import Array
from nngp._progress import Progress
from nngp.errors import NotPositiveDefiniteError, VarianceError
from nngp.gram import InputSet, KernelMatrix, KernelSplit, Shift, Tile, shift_of
from nngp.linsolve import (
    LIMIT,
    Engine,
    EngineRun,
    Factor,
    Forecast,
    backward,
    climb,
    factorise,
    forecast_factor,
    forward,
    merge_last,
    next_noise,
)
from nngp.linsolve.engines.engine import (
    FactorMemory,
    Handle,
    TileFunction,
    compiled,
)
from nngp.linsolve.tiling import Edges, flops, spans
from nngp.posterior.constant import Constant
from nngp.posterior.evidence.criteria import log_evidence
from nngp.posterior.noise import Noise
from nngp.posterior.setup import Resources, middle_of, with_ones
from nngp.posterior.solution import (
    Advance,
    Explained,
    Factored,
    JointMatrices,
    Rows,
    mean_from,
    no_factor,
    residual,
    tile_of_rows,
    tiles_on_host,
    total,
)


@dataclass(frozen=True)
class CholeskySolution(Factored):
    """The factor, and the weights α solved with it, as tiles (outputs, rows) of the engine."""

    factor: Factor
    split: KernelSplit
    noise: Noise
    constant: Constant | None
    alpha: Sequence[Tile]
    log_evidence: float
    failed_attempts: int
    seconds: dict[str, float]

    solver = "cholesky"

    @property
    def n(self) -> int:
        return self.factor.n

    @property
    def slices(self) -> list[slice]:
        return self.factor.slices

    @property
    def bytes(self) -> int:
        return self.factor.bytes

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"solver": self.solver}

    @property
    def summary(self) -> str:
        return f"log_evidence={self.log_evidence:.6g}"

    def factored(self, purpose: str) -> "CholeskySolution":
        return self

    def residual(self, engine: Engine, matrix: KernelMatrix, Y: Array) -> float:
        return residual(engine, matrix, self, Y)

    def rows_at_a_time(self, engine: Engine) -> int:
        return engine.rows_at_a_time(self.factor.n)

    def explained(self, run: EngineRun, cross: KernelMatrix, rows: Rows) -> Iterator[Explained]:
        blocks = [
            [run.chain(partial(cross.block, part, columns)) for columns in self.slices]
            for part in rows
        ]
        copies = [[partial(run.copy, tile) for tile in tiles] for tiles in blocks]
        means = [mean_from(run, self, tiles) for tiles in copies]
        solved = forward(run, self.factor, [partial(_call, tiles) for tiles in copies])
        # All sums are begun before one is waited for.
        squares = [_sum_over_tiles(run, row_squares, tiles) for tiles in solved]
        known = [self._known(run, tiles) for tiles in solved]
        for mean, explained, constant in zip(means, squares, known, strict=True):
            own = None if constant is None else run.fetch(constant)
            yield Explained(run.fetch(mean), run.fetch(explained), own)

    def _known(self, run: EngineRun, solved: Sequence[Handle]) -> Handle | None:
        """The posterior of the constant term at test points, if it is separate."""
        if self.constant is None:
            return None
        return _sum_over_tiles(run, times_vector, solved, self.constant.z)

    def joint(self, run: EngineRun, test: JointMatrices, rows: Rows, advance: Advance) -> Array:
        """Holds L⁻¹M* of all test points."""
        m = len(test.own.diagonal)
        out = np.empty((m, m))
        firsts = [partial(tile_of_rows, test.cross, part, self.slices) for part in rows]
        solved = forward(run, self.factor, firsts)
        deviation = np.zeros(m)
        if self.constant is not None:
            deviation = np.concatenate([self._deviation(run, tiles) for tiles in solved])
        for i, part in enumerate(rows):
            tiles = [
                run.chain(partial(test.own.block, part, other), solved[i], solved[j])
                for j, other in enumerate(rows[: i + 1])
            ]
            for other, handle in zip(rows, tiles, strict=False):
                tile = run.fetch(handle) + np.outer(deviation[part], deviation[other])
                out[part, other], out[other, part] = tile, tile.T
            lower = np.tril(out[part, part])
            out[part, part] = lower + np.tril(lower, -1).T
            advance(part)
        return out

    def _deviation(self, run: EngineRun, solved: Sequence[Tile]) -> Array:
        """The deviation that the constant leaves at each test point: √κ (1 - mᵀb)."""
        assert self.constant is not None
        known = run.fetch(_sum_over_tiles(run, times_vector, solved, self.constant.z))
        return np.sqrt(self.constant.variance) * (1.0 - known)

    def joint_bytes(self, m: int) -> float:
        return 8.0 * (m * (self.factor.n + m))

    def update_bytes(self, new: int) -> float:
        return 8.0 * (self.factor.n + new) * new

    def updated(
        self, matrix: KernelMatrix, inputs: InputSet, Y: Array, noise: Noise, resources: Resources
    ) -> tuple["CholeskySolution", Forecast]:
        """Extend the factor; factor again, with more noise, if the new rows leave no factor."""
        (n, d), outputs = inputs.shape, Y.shape[1]
        found = _extended_or_anew(self, matrix, Y, noise, resources)
        return found, forecast_factor(resources.engine, n, d, outputs, resources.memory)


def solve_by_cholesky(
    engine: Engine,
    matrix: KernelMatrix,
    edges: Edges,
    Y: Array,
    noise: Noise,
    progress: Progress | None = None,
) -> CholeskySolution:
    """Factor K + noise, up the noise ladder if need be, and solve for the targets."""
    progress = progress or Progress("factor", 1.0, None)
    memory = engine.factor_memory()
    middle = middle_of(Y)
    targets = with_ones(Y, middle, matrix.split)
    noise.check(matrix.split)
    filled = edges[-1] - len(Y)
    targets = np.pad(targets, ((0, filled), (0, 0)))

    def attempt(level: float) -> tuple[Factor, list[Tile]]:
        progress.begin(f"noise {level:.0e}")
        shift = noise.raised_to(level).shift(matrix.split)
        with engine.run() as run:
            first = partial(_kernel_tile, matrix, spans(edges), shift, memory)
            border = partial(_target_tile, run, spans(edges), targets)
            rows, log_det, z = factorise(run, first, edges, progress, border=border)
        return Factor(edges, rows, shift, log_det, filled), z

    start = time.perf_counter()
    try:
        (factor, z), level, failed = climb(attempt, noise.level)
    except NotPositiveDefiniteError as error:
        error.noise_var *= noise.unit
        error.args = (no_factor(engine, matrix, error.noise_var),)
        raise
    seconds = {"factor": time.perf_counter() - start}
    with engine.run() as run:
        used = noise.raised_to(level) if failed else noise
        return _finish(run, factor, matrix.split, used, z, middle, failed, seconds)


def _extended_or_anew(
    known: CholeskySolution, matrix: KernelMatrix, Y: Array, noise: Noise, resources: Resources
) -> CholeskySolution:
    engine, old, failed = resources.engine, known.factor, known.failed_attempts
    if matrix.split == known.split:
        # A last tile that was filled up has no place in the middle: it is recomputed.
        whole = len(old.rows) - (old.filled > 0)
        more = engine.edges(matrix, old.own_edges[whole], old.edges)
        edges = (*old.edges[:whole], *more)
        try:
            with resources.track("update", flops(edges, whole)) as progress:
                return _extend(engine, matrix, edges, Y, known, noise, progress)
        except NotPositiveDefiniteError as error:
            level = next_noise(noise.level)
            if level > LIMIT:
                error.args = (no_factor(engine, matrix, noise.least),)
                raise
            noise, failed = noise.raised_to(level), failed + 1
    edges = engine.edges(matrix)
    resources.check(4.0 * len(Y) ** 2, known.bytes, "factoring again")
    with resources.track("factor", flops(edges)) as progress:
        found = solve_by_cholesky(engine, matrix, edges, Y, noise, progress)
    return replace(found, failed_attempts=found.failed_attempts + failed)


def _extend(
    engine: Engine,
    matrix: KernelMatrix,
    edges: Edges,
    Y: Array,
    known: CholeskySolution,
    noise: Noise,
    progress: Progress,
) -> CholeskySolution:
    """The solution of more data: `known` solved the leading rows, and its tiles are kept."""
    shift, middle, start = noise.shift(known.split), middle_of(Y), time.perf_counter()
    with engine.run() as run:
        first = partial(_kernel_tile, matrix, spans(edges), shift, engine.factor_memory())
        kept = known.factor.rows[: -1 if known.factor.filled else None]
        rows, log_det, _ = factorise(run, first, edges, progress, kept)
        factor = Factor(edges, rows, shift, log_det, edges[-1] - len(Y))
        factor = merge_last(run, factor, engine.tile_size(factor.n))
        targets = np.pad(with_ones(Y, middle, known.split), ((0, factor.filled), (0, 0)))
        border = partial(_target_tile, run, factor.slices, targets)
        z = [run.wait(tile) for tile in forward(run, factor, [border])[0]]
        seconds = {"factor": time.perf_counter() - start}
        failed = known.failed_attempts
        return _finish(run, factor, known.split, noise, z, middle, failed, seconds)


def _finish(
    run: EngineRun,
    factor: Factor,
    split: KernelSplit,
    noise: Noise,
    z: list[Tile],
    middle: Array,
    failed: int,
    seconds: dict[str, float],
) -> CholeskySolution:
    """α = L⁻ᵀz, the constant, and the evidence."""
    start = time.perf_counter()
    alpha = [run.wait(tile) for tile in backward(run, factor, z)]
    constant = None
    if not split.is_trivial:
        z, alpha, constant = _keep_constant_apart(run, factor, split, z, alpha, middle)
    squares = [run.apply(sum_of_squares, tile) for tile in z]
    fit = sum(float(run.fetch(part)) for part in squares)
    evidence = _log_evidence(factor, split, constant, fit, len(middle))
    seconds = {**seconds, "solve": time.perf_counter() - start}
    return CholeskySolution(factor, split, noise, constant, alpha, evidence, failed, seconds)


def _log_evidence(
    factor: Factor, split: KernelSplit, constant: Constant | None, fit: float, outputs: int
) -> float:
    """log p(Y), from what was factored and the constant."""
    log_det = factor.log_det
    if constant is not None:
        fit, log_det = fit + constant.fit, log_det + constant.log_det
    found = log_evidence(fit, log_det, factor.n, outputs, split.scale)
    if not np.isfinite(found):
        raise VarianceError(
            f"the targets are too large beside the scale {split.scale:.0e} of this kernel: their "
            "squares overflow; rescale Y, or choose a network whose kernel is larger"
        )
    return found


def _keep_constant_apart(
    run: EngineRun,
    factor: Factor,
    split: KernelSplit,
    z: list[Tile],
    alpha: list[Tile],
    middle: Array,
) -> tuple[list[Tile], list[Tile], Constant]:
    """z and α of Y - μ, and the constant, from those of Y - middle with a last row for ones."""
    rows = [tiles_on_host(run, tiles) for tiles in (z, alpha)]
    z_ones, z_targets = rows[0][-1], rows[0][:-1]
    constant, apart = Constant.solve(split, float(z_ones @ z_ones), z_targets @ z_ones, middle)
    z, alpha = (run.columns(row[:-1] - apart[:, None] * row[-1], factor.edges) for row in rows)
    ones_z, ones_alpha = (run.columns(row[-1:], factor.edges) for row in rows)
    return z, alpha, replace(constant, z=ones_z, alpha=ones_alpha, n=factor.n)


def _kernel_tile(
    matrix: KernelMatrix,
    slices: list[slice],
    shift: Shift,
    memory: FactorMemory | None,
    i: int,
    j: int,
) -> Tile:
    out = None if memory is None else memory.tile(slices[i], slices[j])
    return matrix.block(slices[i], slices[j], shift=shift_of(shift, slices[i]), out=out)


def _target_tile(run: EngineRun, slices: list[slice], Y: Array, j: int) -> Tile:
    return run.put(Y[slices[j]].T.copy())


def _call(tiles: Sequence[Callable[[], Tile]], j: int) -> Tile:
    return tiles[j]()


def _sum_over_tiles(run: EngineRun, function: TileFunction, *tiles: Sequence[Handle]) -> Handle:
    """The sum of function(...) over tiles."""
    parts = [run.apply(function, *some) for some in zip(*tiles, strict=True)]
    return run.apply(partial(total, 0.0), *parts)


@compiled
def row_squares(tile: Tile) -> Tile:
    """The sum of squares of each row."""
    return (tile * tile).sum(axis=1)


@compiled
def sum_of_squares(tile: Tile) -> Tile:
    return (tile * tile).sum()


@compiled
def times_vector(rows: Tile, one: Tile) -> Tile:
    """Rows times a vector that is held as a tile of one row."""
    return rows @ one[0]
