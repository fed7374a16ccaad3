"""Derivatives of predictions in the test points.

With the weights α of the mean, w(x) of `prediction_weights`, and derivatives of the kernel,

    d mean      Σ_j α_j dK(x, x_j)
    d variance  dK(x, x) - 2 Σ_j w_j(x) dK(x, x_j),

in which the constant that a split keeps apart has no part but in w.
"""

import numpy as np

from nngp._arrays import Array
from nngp.gram import InputGradient, Inputs
from nngp.posterior.prediction_weights import prediction_weights
from nngp.posterior.setup import Problem
from nngp.posterior.solution import Solution

ROWS = 1024  # test points at a time
ARRAYS = 4  # of test points times training points that are held


def rows_at_a_time(problem: Problem, n: int) -> int:
    """Test points of one block, with the memory that is free now."""
    free = problem.engine.free_memory()
    room = ROWS if free is None else int(free / 4 / (8 * ARRAYS * n))
    return max(1, min(ROWS, room))


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
