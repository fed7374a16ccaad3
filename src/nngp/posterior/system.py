"""The linear system (K + noise) α = Y of one network on one data set: factored, then solved.

Takes kernel blocks, targets and noise; gives `System`: the factor, z = L⁻¹Y and α. It is what
`Posterior` reads and what `Sweep` computes for every network.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nngp.linsolve import (
    Engine,
    Factor,
    NotPositiveDefiniteError,
    Progress,
    Run,
    backward,
    climb,
    factorise,
    forward,
    merge_last,
)
from nngp.linsolve.cholesky import flops, spans
from nngp.posterior.explain import no_factor

Array = NDArray[np.float64]
CHECKED_ROWS = 64  # of K, computed anew for the residual


class KernelBlocks(Protocol):
    """Blocks of K on an engine (`gram.Blocks`, `gram.DeviceBlocks`)."""

    plan: Any
    diagonal: Array

    def block(self, rows: slice, columns: slice, *, shift: float = 0.0, out: Any = None) -> Any: ...

    def error(self) -> float: ...


@dataclass(frozen=True)
class System:
    """The factor, and the targets solved with it, as tiles (outputs, rows) of the engine."""

    factor: Factor
    z: Sequence[Any]
    alpha: Sequence[Any]
    log_evidence: float
    failed_attempts: int
    seconds: dict[str, float]  # by phase

    @cached_property
    def weights(self) -> Array:
        """α on the host, (n, outputs)."""
        return np.concatenate([np.asarray(tile) for tile in self.alpha], axis=1).T

    @property
    def rate(self) -> float:
        """Operations a second that the factorisation had, its kernel tiles included."""
        return flops(self.factor.edges) / max(self.seconds["factor"], 1e-9)


def solve(
    engine: Engine,
    blocks: KernelBlocks,
    edges: tuple[int, ...],
    Y: Array,
    noise_var: float,
    progress: Progress | None = None,
    arena: Any = None,
) -> System:
    """Factor K + noise, up the ladder if need be, and solve for the targets.

    With `arena` the tiles go where those of an earlier factor were.
    """
    progress = progress or Progress("factor", 1.0, None)
    memory = arena or engine.arena()

    def attempt(noise: float) -> tuple[Factor, list[Any]]:
        progress.begin(f"noise {noise:.0e}")
        with engine.run() as run:
            first = partial(_kernel_tile, blocks, spans(edges), noise, memory)
            border = partial(_target_tile, run, spans(edges), Y)
            rows, log_det, z = factorise(run, first, edges, progress, border=border)
        return Factor(edges, rows, noise, log_det), z

    start = time.perf_counter()
    try:
        (factor, z), _, failed = climb(attempt, noise_var)
    except NotPositiveDefiniteError as error:
        error.args = (no_factor(blocks, error.noise_var),)
        raise
    seconds = {"factor": time.perf_counter() - start}
    with engine.run() as run:
        return _finish(run, factor, z, failed, seconds)


def extend(
    engine: Engine,
    blocks: KernelBlocks,
    edges: tuple[int, ...],
    Y: Array,
    known: System,
    progress: Progress,
) -> System:
    """The system of more data: `known` solved the leading rows, and its tiles are kept."""
    noise, start = known.factor.noise_var, time.perf_counter()
    with engine.run() as run:
        first = partial(_kernel_tile, blocks, spans(edges), noise, engine.arena())
        rows, log_det, _ = factorise(run, first, edges, progress, known.factor.rows)
        factor = Factor(edges, rows, noise, log_det)
        factor = merge_last(run, factor, engine.tile_size(factor.n))
        row = forward(run, factor, [partial(_target_tile, run, factor.slices, Y)])[0]
        z = [run.wait(tile) for tile in row]
        seconds = {"factor": time.perf_counter() - start}
        return _finish(run, factor, z, known.failed_attempts, seconds)


def _finish(
    run: Run, factor: Factor, z: list[Any], failed: int, seconds: dict[str, float]
) -> System:
    """α = L⁻ᵀz, and the evidence."""
    start = time.perf_counter()
    alpha = [run.wait(tile) for tile in backward(run, factor, z)]
    squares = [run.apply(_sum_of_squares, tile) for tile in z]
    fit = sum(float(run.fetch(part)) for part in squares)
    outputs = z[0].shape[0]
    evidence = -0.5 * (fit + outputs * (factor.log_det + factor.n * np.log(2 * np.pi)))
    seconds = {**seconds, "solve": time.perf_counter() - start}
    return System(factor, z, alpha, float(evidence), failed, seconds)


def _kernel_tile(
    blocks: KernelBlocks, slices: list[slice], noise: float, memory: Any, i: int, j: int
) -> Any:
    out = None if memory is None else memory.tile(slices[i], slices[j])
    return blocks.block(slices[i], slices[j], shift=noise, out=out)


def _target_tile(run: Run, slices: list[slice], Y: Array, j: int) -> Any:
    return run.put(Y[slices[j]].T.copy())


def _sum_of_squares(tile: Any) -> Any:
    return (tile * tile).sum()


def means(run: Run, blocks: KernelBlocks, system: System, rows: Sequence[slice]) -> list[Any]:
    """K* α for each block of rows, as handles."""

    def product(part: slice) -> Any:
        total: Any = 0.0
        for columns, weights in zip(system.factor.slices, system.alpha, strict=True):
            total = total + blocks.block(part, columns) @ weights.T
        return total

    return [run.apply(product, part) for part in rows]


def residual(engine: Engine, blocks: KernelBlocks, system: System, targets: Array) -> float:
    """max |(K + noise) α - Y| over some rows of K computed anew, relative to max |Y|."""
    n, factor = len(targets), system.factor
    count = min(CHECKED_ROWS, n)
    start = int(np.random.default_rng(0).integers(0, n - count + 1))
    rows = slice(start, start + count)
    with engine.run() as run:
        handles = [
            run.apply(_fitted, blocks, rows, columns, factor.noise_var, alpha)
            for columns, alpha in zip(factor.slices, system.alpha, strict=True)
        ]
        fitted = np.sum([run.fetch(handle) for handle in handles], axis=0)
    largest = float(np.abs(targets).max())
    return float(np.abs(fitted - targets[rows]).max()) / (largest if largest > 0 else 1.0)


def _fitted(blocks: KernelBlocks, rows: slice, columns: slice, shift: float, alpha: Any) -> Any:
    return blocks.block(rows, columns, shift=shift) @ alpha.T
