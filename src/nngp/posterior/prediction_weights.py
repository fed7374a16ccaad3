"""The weights w(x) = (K + noise)⁻¹ K(X, x) with which targets enter a prediction, on the host."""

from functools import partial
from typing import NamedTuple

import numpy as np

from nngp._arrays import Array
from nngp.gram import KernelMatrix
from nngp.linsolve import Engine, EngineRun, backward, forward
from nngp.linsolve.tiling import cut, spans
from nngp.posterior.solution import Factored, tile_of_rows, tiles_on_host


class Weights(NamedTuple):
    """w(x) of some test points, (m, n), and 1 - 1ᵀw(x)."""

    w: Array
    unexplained: Array


def prediction_weights(
    run: EngineRun, engine: Engine, solution: Factored, cross: KernelMatrix
) -> Weights:
    """The weights of test points, from M between them and the data."""
    w = _solve(run, solution, cross, solution.rows_at_a_time(engine))
    unknown = 1.0 - w.sum(axis=1)  # 1 - bᵀm(x)
    constant = solution.constant
    if constant is None:
        return Weights(w, unknown)
    w += np.outer(constant.variance * unknown, constant.vector)
    return Weights(w, unknown * (solution.split.scale / constant.weight))


def _solve(run: EngineRun, solution: Factored, cross: KernelMatrix, at_once: int) -> Array:
    """B⁻¹m(x) of all test points, as rows on the host."""
    rows = spans(cut(len(cross.left), at_once))
    found: list[Array] = []
    for start in range(0, len(rows), run.width):
        firsts = [
            partial(tile_of_rows, cross, part, solution.slices)
            for part in rows[start : start + run.width]
        ]
        for tiles in forward(run, solution.factor, firsts):
            found.append(tiles_on_host(run, backward(run, solution.factor, tiles)))
    return np.concatenate(found)[:, : solution.n]
