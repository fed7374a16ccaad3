"""A network that the user gave: only noise and whitening are left to choose, by evidence."""

import numpy as np
from scipy.optimize import minimize_scalar

from nngp._arrays import Index
from nngp.architecture import Network
from nngp.errors import NotPositiveDefiniteError
from nngp.gram import kernel
from nngp.posterior.dense_evidence import log_evidence_and_misfit
from nngp.predictors.scaling import InputScaling
from nngp.predictors.selection.choice import Choice
from nngp.predictors.selection.inputs import SearchInputs
from nngp.predictors.selection.objective import LEAST_NOISE
from nngp.predictors.selection.problem import (
    MIN_POINTS,
    STARTS,
    Hyperparameters,
    SelectionProblem,
    averaged,
    row_noise,
    scaled_known_noise,
)
from nngp.predictors.selection.space import NOISE_BOUNDS
from nngp.predictors.selection.table import SelectionTable

STEPS = 30  # evaluations of the evidence
SECONDS = 5e-9  # for each entry of K of the points used, once and for each evaluation


def fixed_network(problem: SelectionProblem) -> Choice:
    """The network as it is, with the noise of the highest evidence on at most `size` points."""
    network = _network_of(problem)
    inputs, targets = SearchInputs(problem, np.arange(len(problem.X))), problem.targets[0]
    noise = problem.candidates[0].noise_var
    chooses = problem.criterion is not None and len(problem.X) >= MIN_POINTS
    if chooses and (noise is None or len(problem.strengths) > 1):
        found = _most_evident(problem, inputs)
    else:
        noise = max(STARTS[0].noise_var, targets.noise_floor) if noise is None else noise
        found = Hyperparameters(network, noise, inputs.base, targets)
    return Choice(found, [found], SelectionTable())


def _network_of(problem: SelectionProblem) -> Network:
    """The network that was given, with the invariance that was."""
    assert problem.network is not None
    return averaged(problem.network, problem.invariance or ())


def _most_evident(problem: SelectionProblem, inputs: SearchInputs) -> Hyperparameters:
    """The noise, and the strength of whitening, of the highest evidence."""
    rows = np.sort(problem.rng.permutation(len(problem.X))[: problem.size])
    scalings = [inputs.at_strength(one) for one in problem.strengths or (None,)]
    found = [(*_best_noise(problem, scaling, rows), scaling) for scaling in scalings]
    _, noise, scaling = max(found, key=lambda one: one[0])
    return Hyperparameters(_network_of(problem), noise, scaling, problem.targets[0])


def _best_noise(
    problem: SelectionProblem, scaling: InputScaling, rows: Index
) -> tuple[float, float]:
    """The highest evidence, and its noise."""
    targets, given = problem.targets[0], problem.candidates[0].noise_var
    network = _network_of(problem)
    K = np.tril(kernel(network, scaling(problem.X[rows])))
    Y = targets(problem.Y[rows])
    weights = None if problem.weights is None else problem.weights[rows]
    known = None if problem.known_noise is None else problem.known_noise[rows]
    beside = scaled_known_noise(known, problem.Y[rows], targets)
    # An average has a smaller variance than its network, and classes need no scale.
    any_scale = problem.classes and network.base is not network

    def loss(log_noise: float) -> float:
        noise = row_noise(float(np.exp(log_noise)), weights, beside)
        value, misfit = log_evidence_and_misfit(K, Y, np.broadcast_to(noise, len(rows)))
        if any_scale:
            value += 0.5 * (misfit - Y.size * (1 + np.log(max(misfit / Y.size, LEAST_NOISE))))
        return -value

    if given is not None:
        try:
            return -loss(np.log(max(given, LEAST_NOISE))), given
        except NotPositiveDefiniteError:  # the final fit raises such a noise
            return -np.inf, given
    low = np.log(max(NOISE_BOUNDS[0], targets.noise_floor))
    ends = low, max(np.log(NOISE_BOUNDS[1]), low + 1.0)
    found = minimize_scalar(loss, bounds=ends, method="bounded", options={"maxiter": STEPS})
    return -float(found.fun), float(np.exp(found.x))


def fixed_seconds(n: int, size: int) -> float:
    """About how long that takes."""
    used = min(n, size)
    return SECONDS * used**2 * (STEPS + used / 10)
