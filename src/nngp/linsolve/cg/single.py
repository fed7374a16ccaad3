"""A float32 Cholesky factor as the preconditioner of a float64 solve.

It takes half the memory of the factor that a direct solve needs. Rounding to float32, 6e-8 of the
largest eigenvalue, must be less than the smallest one, so a little is added to the diagonal, and
ten times as much whenever the factorisation fails. CG then needs some iterations more; its
solution is that of the exact matrix.

On one H200 (`benchmarks/cg.py --repeat 2`, compiled) it wins where noise is small: 60,000 points at
noise 1e-6 take 3.0 s (with landmarks 7.4 s), and 200,000 points 78 s (two solves with landmarks did
not end in 280 s). At noise 1e-2 both take 2.7 s at 60,000 points, and landmarks win beyond.
"""

from functools import partial
from typing import Any

import numpy as np

from nngp._arrays import Array
from nngp._progress import Progress
from nngp.gram import KernelMatrix, Shift, shift_of
from nngp.linsolve.cholesky.factor import Factor, backward, climb, factorise, forward
from nngp.linsolve.engines.engine import Engine, EngineRun, Tile
from nngp.linsolve.tiling import Edges, spans

EPS = float(np.finfo(np.float32).eps)
MAX_DIAGONAL_SHIFT = 0.1  # of the diagonal: what may be added to it


class SingleFactor:
    """M + noise + a little, factored in float32 on `engine`, whose tiles are."""

    def __init__(
        self, engine: Engine, blocks: KernelMatrix, edges: Edges, noise: Shift, progress: Progress
    ) -> None:
        self._engine = engine
        self._slices = spans(edges)
        size = float(np.mean(blocks.diagonal))

        def attempt(more: float) -> Factor:
            first = partial(_first, blocks, self._slices, noise + more)
            with engine.run() as run:
                rows, log_det, _ = factorise(run, first, edges, progress)
            return Factor(edges, rows, noise + more, log_det)

        start = EPS * edges[-1] ** 0.5 * size
        self._factor, more, _ = climb(attempt, start, limit=MAX_DIAGONAL_SHIFT * size)
        self.shift = noise + more

    def __call__(self, run: EngineRun, vectors: Array) -> Array:
        """(P⁻¹ vectorsᵀ)ᵀ. Rows are scaled to length one: residuals may be small."""
        size = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
        scaled = vectors / np.where(size > 0, size, 1.0)
        with self._engine.run() as single:
            parts = single.columns(scaled, self._factor.edges)
            (half,) = forward(single, self._factor, [partial(_part, single, parts)])
            found = backward(single, self._factor, [single.wait(tile) for tile in half])
            out = np.concatenate([single.fetch(tile) for tile in found], axis=1)
        return out[:, : vectors.shape[1]] * size


def _first(blocks: KernelMatrix, slices: list[slice], shift: Shift, i: int, j: int) -> Tile:
    return blocks.block(slices[i], slices[j], shift=shift_of(shift, slices[i]))


def _part(run: EngineRun, parts: list[Any], j: int) -> Tile:
    return run.copy(parts[j])
