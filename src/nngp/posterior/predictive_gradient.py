"""Weights of the targets in predictions, and derivatives of predictions in the test points.

With the weights α of the mean, w(x) = (K + noise)⁻¹ K(X, x) with which targets enter a prediction
(`prediction_weights`), and derivatives of the kernel,

    d mean      Σ_j α_j dK(x, x_j)
    d variance  dK(x, x) - 2 Σ_j w_j(x) dK(x, x_j),

in which the constant that a split keeps apart has no part but in w.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from nngp._arrays import Array
from nngp.gram import InputGradient, Inputs, KernelMatrix
from nngp.linsolve import Engine, EngineRun, backward, forward
from nngp.linsolve.tiling import cut, spans
from nngp.posterior.setup import Problem
from nngp.posterior.solution import Factored, Solution, tile_of_rows, tiles_on_host

TEST_ROWS = 1024  # test points at a time
ARRAYS = 4  # of test points times training points that are held


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


def rows_at_a_time(problem: Problem, n: int) -> int:
    """Test points of one block, with the memory that is free now."""
    free = problem.engine.free_memory()
    room = TEST_ROWS if free is None else int(free / 4 / (8 * ARRAYS * n))
    return max(1, min(TEST_ROWS, room))


def predictive_gradient(
    problem: Problem, solution: Solution, test: Inputs, variance: bool
) -> tuple[Array, Array]:
    """The derivatives of the mean, (m, d, outputs), and of the variance, (m, d)."""
    train, split = problem.inputs, solution.split
    if not isinstance(train, Inputs):
        raise TypeError(
            "gradients of predictions are computed from training inputs in this machine's memory; "
            "condition on an array or a .npy file"
        )
    gradient = InputGradient(problem.network, test, train, split)
    weights = [column[None] for column in solution.weights.T]
    if variance:
        factored, at = solution.factored("the derivative of the variance"), problem.upload(test)
        with problem.engine.run() as run:
            cross = problem.to_rows(at, split)
            weights.append(prediction_weights(run, problem.engine, factored, cross).w)
    found = gradient.contract(weights)
    if not variance:
        return np.stack(found, axis=2), np.empty(0)
    return np.stack(found[:-1], axis=2), split.scale * (gradient.own() - 2 * found[-1])
