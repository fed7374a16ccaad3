"""The linear system (K + noise) α = Y of one network on one data set: factored, then solved.

Takes kernel blocks, targets and noise; gives `System`: the factor, z = L⁻¹Y and α. It is what
`Posterior` reads and what `Sweep` computes for every network.
"""

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


def factor_kernel(
    engine: Engine,
    blocks: KernelBlocks,
    edges: tuple[int, ...],
    noise_var: float,
    progress: Progress,
    known: Factor | None = None,
    arena: Any = None,
) -> tuple[Factor, int]:
    """The factor of K + noise, up the ladder if need be, and how many attempts failed.

    With `known`, the factor of the leading rows, only the rows below are computed, at its noise.
    With `arena` the tiles go where those of an earlier factor were.
    """
    memory = arena or engine.arena()
    slices = spans(edges)

    def attempt(noise: float) -> Factor:
        progress.begin(f"noise {noise:.0e}")

        def first(i: int, j: int) -> Any:
            out = None if memory is None else memory.tile(slices[i], slices[j])
            return blocks.block(slices[i], slices[j], shift=noise, out=out)

        with engine.run() as run:
            kept = None if known is None else known.rows
            rows, log_det = factorise(run, first, edges, progress, kept)
            factor = Factor(edges, rows, noise, log_det)
            return factor if known is None else merge_last(run, factor, engine.tile_size(edges[-1]))

    if known is not None:
        return attempt(known.noise_var), 0
    factor, _, failed = climb(attempt, noise_var)
    return factor, failed


def solve_targets(engine: Engine, factor: Factor, Y: Array) -> System:
    """z = L⁻¹Y, α = L⁻ᵀz, and the evidence."""
    with engine.run() as run:
        firsts = partial(_targets, run, factor, Y)
        z = [run.wait(tile) for tile in forward(run, factor, [firsts])[0]]
        alpha = [run.wait(tile) for tile in backward(run, factor, z)]
        on_host = [np.asarray(tile) for tile in alpha]
        fit = sum(float(np.square(np.asarray(tile)).sum()) for tile in z)
    n, outputs = Y.shape
    evidence = -0.5 * (fit + outputs * (factor.log_det + n * np.log(2 * np.pi)))
    return System(factor, z, alpha, np.concatenate(on_host, axis=1).T, float(evidence))


def _targets(run: Run, factor: Factor, Y: Array, j: int) -> Any:
    return run.put(Y[factor.slices[j]].T.copy())


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
