"""A network that the user gave: noise, a scale of the outputs and whitening are left to choose, by
evidence."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from nngp._arrays import Index
from nngp.architecture import Network
from nngp.errors import NotPositiveDefiniteError
from nngp.frames.scaling import InputScaling
from nngp.gram import kernel_diag
from nngp.posterior.dense_evidence import DenseEvidence, threaded_evidence
from nngp.selection.choice import Choice
from nngp.selection.cost import noise_subset, noise_work
from nngp.selection.inputs import SearchInputs
from nngp.selection.noise_evidence import noise_evidence
from nngp.selection.objective import LEAST_NOISE
from nngp.selection.problem import (
    MIN_POINTS,
    STARTS,
    Hyperparameters,
    SearchSettings,
    SelectionProblem,
    averaged,
    row_noise,
    scaled_known_noise,
)
from nngp.selection.space import NOISE_BOUNDS
from nngp.selection.table import SelectionTable

# Over the mean variance of a kernel whose scale is free. Of classes with much noise, rows left out
# say the opposite: the others have fewer of their class.
LEAST, MOST, MOST_OF_CLASSES = 1e-6, 100.0, 1.0
STEPS, EVALUATIONS = 30, 12  # of the evidence, at most and mostly
CLOSE = 0.03  # to the logarithm of the best noise
SOME = 500  # rows that the mean variance is taken of


def fixed_network(problem: SelectionProblem) -> Choice:
    """The network as it is, with noise and scale of the highest evidence on some points."""
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
    """Noise, scale of the outputs and strength of whitening of the highest evidence."""
    n = len(problem.X)
    order = problem.rng.permutation(n)
    scaling = _best_scaling(problem, inputs, np.sort(order[: problem.size]))
    rows = np.sort(order[: noise_subset(problem, problem.invariance or (), n)])
    best = _best_noise(problem, scaling, rows)
    targets = problem.targets[0].shrunk(np.sqrt(best.scale))
    return Hyperparameters(_network_of(problem), best.noise_var, scaling, targets)


def _best_scaling(problem: SelectionProblem, inputs: SearchInputs, rows: Index) -> InputScaling:
    """The scaling with the strength of whitening of the highest evidence, each at its best
    noise."""
    if len(problem.strengths) < 2:
        return inputs.at_strength(problem.strengths[0] if problem.strengths else None)
    scalings = [inputs.at_strength(one) for one in problem.strengths]
    return max(scalings, key=lambda one: _best_noise(problem, one, rows).log_evidence)


class _Fitted(NamedTuple):
    """Noise beside a kernel, and the factor by which targets have a larger variance than it."""

    log_evidence: float
    noise_var: float
    scale: float


def _best_noise(problem: SelectionProblem, scaling: InputScaling, rows: Index) -> _Fitted:
    """The noise of the highest evidence, with its scale."""
    with threaded_evidence(len(rows)) as dense:
        return _best_noise_by(dense, problem, scaling, rows)


def _best_noise_by(
    dense: DenseEvidence, problem: SelectionProblem, scaling: InputScaling, rows: Index
) -> _Fitted:
    """The same by one evaluator. What was given keeps the scale at one: noise in units of the
    targets, of all rows or known for each."""
    targets, given = problem.targets[0], problem.candidates[0].noise_var
    X, network = scaling(problem.X[rows]), _network_of(problem)
    evidence = noise_evidence(problem.engine, dense, network, X)
    Y = targets(problem.Y[rows])
    weights = None if problem.weights is None else problem.weights[rows]
    known = None if problem.known_noise is None else problem.known_noise[rows]
    beside = scaled_known_noise(known, problem.Y[rows], targets)
    is_free = given is None and known is None and problem.scale_is_free

    def fitted(log_noise: float) -> _Fitted:
        noise_var = float(np.exp(log_noise))
        noise = np.broadcast_to(row_noise(noise_var, weights, beside), len(rows))
        value, misfit = evidence(Y, noise)
        if not is_free:
            return _Fitted(value, noise_var, 1.0)
        # Of targets over the root of s: the misfit over s, and the logarithm of the Jacobian.
        scale = max(misfit / Y.size, targets.noise_floor / noise_var, LEAST_NOISE)
        moved = 0.5 * (misfit - misfit / scale - Y.size * np.log(scale))
        return _Fitted(value + moved, noise_var, scale)

    if given is not None:
        try:
            return fitted(np.log(max(given, LEAST_NOISE)))._replace(noise_var=given)
        except NotPositiveDefiniteError:  # the final fit raises such a noise
            return _Fitted(-np.inf, given, 1.0)
    low, high = max(NOISE_BOUNDS[0], targets.noise_floor), NOISE_BOUNDS[1]
    if is_free:  # then noise is relative to the kernel, and the scale respects the floor
        unit = float(kernel_diag(network, X[:: -(-len(X) // SOME)]).mean())
        low, high = LEAST * unit, (MOST_OF_CLASSES if problem.classes else MOST) * unit
    ends = np.log(low), max(np.log(high), np.log(low) + 1.0)
    found = minimize_scalar(
        lambda x: -fitted(x).log_evidence,
        bounds=ends,
        method="bounded",
        options={"maxiter": STEPS, "xatol": CLOSE},
    )
    return fitted(float(found.x))


def fixed_work(problem: SearchSettings, n: int) -> float:
    """What that takes, in multiplications."""
    families, several = problem.invariance or (), len(problem.strengths)
    work = 0.0
    if several > 1:
        work = several * noise_work(problem, families, min(n, problem.size), EVALUATIONS)
    if problem.candidates[0].noise_var is None:
        work += noise_work(problem, families, n, EVALUATIONS)
    return work
