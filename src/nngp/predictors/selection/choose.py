"""Model selection by the criterion that the user named."""

from nngp.predictors.selection.grid import grid_search
from nngp.predictors.selection.problem import STARTS, Hyperparameters, SelectionProblem
from nngp.predictors.selection.stages import staged_search
from nngp.predictors.selection.table import SelectionTable

MIN_POINTS = 5  # with fewer the default network is used


def choose(problem: SelectionProblem) -> tuple[Hyperparameters, SelectionTable]:
    """Return the chosen hyper-parameters and the table of all that were tried."""
    if problem.criterion is None or len(problem.X) < MIN_POINTS:
        return problem.candidates[0].starting_at(STARTS[0]), SelectionTable()
    if problem.criterion == "grid":
        return grid_search(problem)
    return staged_search(problem)
