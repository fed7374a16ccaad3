"""Model selection on a validation grid, as in the paper (appendix D)."""

from itertools import product

import numpy as np

from nngp._progress import Progress, progress_for
from nngp.architecture import Architecture
from nngp.architecture.ranges import BIAS_VAR_RANGE, GRID_SIZE, WEIGHT_VAR_RANGE
from nngp.errors import VarianceError
from nngp.posterior import Sweep
from nngp.predictors.selection.choice import Choice
from nngp.predictors.selection.cost import network_work
from nngp.predictors.selection.inputs import SearchInputs, Setting
from nngp.predictors.selection.problem import (
    CHOOSE,
    Candidate,
    Hyperparameters,
    SearchSettings,
    SelectionProblem,
)
from nngp.predictors.selection.table import SelectionRow, SelectionTable

GRID_DEPTHS = (1, 2, 3, 5, 7, 10, 20, 50, 100)
GRID_WEIGHTS = np.linspace(*WEIGHT_VAR_RANGE, GRID_SIZE)
GRID_BIASES = np.linspace(*BIAS_VAR_RANGE, GRID_SIZE)
GRID_NOISE = 1e-10  # the paper's, unless one is given


def grid_search(problem: SelectionProblem) -> Choice:
    """Return the network of the grid that is best on a held-out fifth of the points.

    If the budget is smaller than the grid, networks are taken from it at equal steps. The grid has
    one noise, no maps, and the default transform of the targets.
    """
    order = problem.rng.permutation(len(problem.X))
    searched = SearchInputs(problem, order)
    inputs, strength = searched.base, searched.strength
    order, targets = order[: problem.size], problem.targets[0]
    X, Y, noise = inputs(problem.X), targets(problem.Y), problem.candidates[0].noise_var
    size = max(1, len(order) // 5)
    train, held = order[size:], order[:size]
    noise = GRID_NOISE if noise is None else noise
    sweep = Sweep(X[train], Y[train], X[held], Y[held], noise_var=noise, engine=problem.engine)
    networks = _networks(problem)
    table, ranked = SelectionTable(), []
    bar = progress_for(problem.progress)
    with Progress(f"{CHOOSE} (validation grid)", len(networks), bar) as tracker:
        for result in sweep.run(networks):
            assert isinstance(result.architecture, Architecture)
            at = Setting(
                result.architecture,
                result.noise_var,
                whitening=strength,
                invariance=problem.invariance or (),
            )
            score = result.accuracy if problem.classes else -result.mse
            scores = score, result.log_evidence + targets.log_jacobian(problem.Y[train])
            table.rows.append(SelectionRow("grid", len(train), *scores, 1, result.seconds, at))
            # The paper ranks by accuracy; ties are settled by the squared error.
            if not result.error:
                ranked.append((result.accuracy if problem.classes else 0.0, -result.mse, at))
            tracker.advance(1)
    if not ranked:
        raise VarianceError(
            "none of the networks of the grid could be computed on these data; rescale the inputs "
            "or use selection='evidence'"
        )
    order_of_merit = sorted(ranked, key=lambda rank: rank[:2], reverse=True)
    settings = [rank[2] for rank in order_of_merit[: problem.networks]]
    table.chosen = settings[0]
    found = [Hyperparameters(at.network, at.noise_var, inputs, targets) for at in settings]
    return Choice(found[0], found, table)


def grid_work(problem: SearchSettings, n: int) -> float:
    """Work of the search on n points."""
    return len(_networks(problem)) * network_work(problem.candidates, min(n, problem.size))


def _networks(problem: SearchSettings) -> list[Architecture]:
    networks = [net for candidate in problem.candidates for net in _grid(candidate)]
    budget = problem.budget
    if budget is None or budget >= len(networks):
        return networks
    return [networks[i] for i in np.linspace(0, len(networks) - 1, budget).astype(int)]


def _grid(candidate: Candidate) -> list[Architecture]:
    weights, biases = candidate.weight_var, candidate.bias_var
    pairs = product(
        GRID_WEIGHTS.tolist() if weights is None else [weights],
        GRID_BIASES.tolist() if biases is None else [biases],
    )
    return [Architecture(candidate.depth, candidate.activation, *pair) for pair in pairs]
