"""Model selection: the network and noise that explain the training data best.

`choose` takes a `SelectionProblem` (scaled data, candidate networks, limits) and returns the chosen
`Hyperparameters` with a table of everything tried. The evidence and the leave-one-out density are
maximised in stages (`stages`), each a set of L-BFGS ascents (`climb`) of an `objective` over a
`space` of logarithms; the paper's validation grid is in `grid`.
"""

from nngp.predictors.selection.grid import grid_search, grid_seconds
from nngp.predictors.selection.problem import (
    MIN_POINTS,
    STARTS,
    Hyperparameters,
    SearchSettings,
    SelectionProblem,
)
from nngp.predictors.selection.stages import staged_search, staged_seconds
from nngp.predictors.selection.table import SelectionTable


def choice_seconds(problem: SearchSettings, n: int) -> float:
    """About how long `choose` takes for n points."""
    if problem.criterion is None or n < MIN_POINTS:
        return 0.0
    return (grid_seconds if problem.criterion == "grid" else staged_seconds)(problem, n)


def choose(problem: SelectionProblem) -> tuple[Hyperparameters, SelectionTable]:
    """Return the chosen hyper-parameters and the table of all that were tried."""
    if problem.criterion is None or len(problem.X) < MIN_POINTS:
        return problem.candidates[0].starting_at(STARTS[0]), SelectionTable()
    return grid_search(problem) if problem.criterion == "grid" else staged_search(problem)
