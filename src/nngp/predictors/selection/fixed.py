"""A network that the user gave: only the noise is left to choose, by evidence."""

import numpy as np
from scipy.optimize import minimize_scalar

from nngp.gram import kernel
from nngp.posterior.dense_evidence import log_evidence_of
from nngp.predictors.selection.choice import Choice
from nngp.predictors.selection.inputs import SearchInputs
from nngp.predictors.selection.problem import (
    MIN_POINTS,
    STARTS,
    Hyperparameters,
    SelectionProblem,
    row_noise,
    scaled_known_noise,
)
from nngp.predictors.selection.space import NOISE_BOUNDS
from nngp.predictors.selection.table import SelectionTable

STEPS = 30  # evaluations of the evidence
SECONDS = 5e-9  # for each entry of K of the points used, once and for each evaluation


def fixed_network(problem: SelectionProblem) -> Choice:
    """The network as it is, with the noise of the highest evidence on at most `size` points."""
    assert problem.network is not None
    inputs, targets = SearchInputs(problem, np.arange(len(problem.X))).base, problem.targets[0]
    noise = problem.candidates[0].noise_var
    if noise is None and (problem.criterion is None or len(problem.X) < MIN_POINTS):
        noise = max(STARTS[0].noise_var, targets.noise_floor)
    if noise is None:
        noise = _best_noise(problem, inputs(problem.X))
    found = Hyperparameters(problem.network, noise, inputs, targets)
    return Choice(found, [found], SelectionTable())


def _best_noise(problem: SelectionProblem, X: np.ndarray) -> float:
    assert problem.network is not None
    targets = problem.targets[0]
    rows = np.sort(problem.rng.permutation(len(X))[: problem.size])
    K, Y = np.tril(kernel(problem.network, X[rows])), targets(problem.Y[rows])
    weights = None if problem.weights is None else problem.weights[rows]
    known = None if problem.known_noise is None else problem.known_noise[rows]
    beside = scaled_known_noise(known, problem.Y[rows], targets)

    def loss(log_noise: float) -> float:
        noise = row_noise(float(np.exp(log_noise)), weights, beside)
        return -log_evidence_of(K, Y, np.broadcast_to(noise, len(rows)))

    low = np.log(max(NOISE_BOUNDS[0], targets.noise_floor))
    ends = low, max(np.log(NOISE_BOUNDS[1]), low + 1.0)
    found = minimize_scalar(loss, bounds=ends, method="bounded", options={"maxiter": STEPS})
    return float(np.exp(found.x))


def fixed_seconds(n: int, size: int) -> float:
    """About how long that takes."""
    used = min(n, size)
    return SECONDS * used**2 * (STEPS + used / 10)
