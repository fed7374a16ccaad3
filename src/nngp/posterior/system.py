"""The linear system (K + noise) α = Y of one network on one data set: factored, then solved.

Takes kernel blocks, targets and noise; gives `System`: the factor, z = L⁻¹Y and α. It is what
`Posterior` reads and what `Sweep` computes for every network.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nngp.linsolve import (
    Engine,
    Factor,
    Progress,
    Run,
    backward,
    climb,
    factorise,
    forward,
    merge_last,
)
from nngp.linsolve.cholesky import spans

Array = NDArray[np.float64]


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
    weights: Array  # α on the host, (n, outputs)
    log_evidence: float
    failed_attempts: int
    seconds: dict[str, float]  # by phase


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
    (factor, z), _, failed = climb(attempt, noise_var)
    seconds = {"factor": time.perf_counter() - start}
    with engine.run() as run:
        return _finish(run, factor, z, failed, seconds)


def extend(
    engine: Engine, blocks: KernelBlocks, edges: tuple[int, ...], Y: Array, known: System
) -> System:
    """The system of more data: `known` solved the leading rows, and its tiles are kept."""
    noise = known.factor.noise_var
    with engine.run() as run:
        first = partial(_kernel_tile, blocks, spans(edges), noise, engine.arena())
        quiet = Progress("update", 1.0, None)
        rows, log_det, _ = factorise(run, first, edges, quiet, known.factor.rows)
        factor = Factor(edges, rows, noise, log_det)
        factor = merge_last(run, factor, engine.tile_size(factor.n))
        row = forward(run, factor, [partial(_target_tile, run, factor.slices, Y)])[0]
        z = [run.wait(tile) for tile in row]
        return _finish(run, factor, z, known.failed_attempts, {})


def _finish(
    run: Run, factor: Factor, z: list[Any], failed: int, seconds: dict[str, float]
) -> System:
    """α = L⁻ᵀz, and the evidence."""
    start = time.perf_counter()
    alpha = [run.wait(tile) for tile in backward(run, factor, z)]
    weights = np.concatenate([np.asarray(tile) for tile in alpha], axis=1).T
    fit = sum(float(np.square(np.asarray(tile)).sum()) for tile in z)
    n, outputs = weights.shape
    evidence = -0.5 * (fit + outputs * (factor.log_det + n * np.log(2 * np.pi)))
    seconds = {**seconds, "solve": time.perf_counter() - start}
    return System(factor, z, alpha, weights, float(evidence), failed, seconds)


def _kernel_tile(
    blocks: KernelBlocks, slices: list[slice], noise: float, memory: Any, i: int, j: int
) -> Any:
    out = None if memory is None else memory.tile(slices[i], slices[j])
    return blocks.block(slices[i], slices[j], shift=noise, out=out)


def _target_tile(run: Run, slices: list[slice], Y: Array, j: int) -> Any:
    return run.put(Y[slices[j]].T.copy())


def means(
    run: Run, blocks: KernelBlocks, system: System, rows: Sequence[slice]
) -> list[Callable[[], Array]]:
    """K* α for each block of rows, as promises."""

    def product(part: slice) -> Any:
        total: Any = 0.0
        for columns, weights in zip(system.factor.slices, system.alpha, strict=True):
            total = total + blocks.block(part, columns) @ weights.T
        return total

    handles = [run.apply(product, part) for part in rows]
    return [partial(_fetch, run, handle) for handle in handles]


def _fetch(run: Run, handle: Any) -> Array:
    return np.asarray(run.wait(handle))
