"""The noise variance alone: of a search's choice, with more points, or of a network that the user
gave, with a scale of the outputs and a strength of whitening, by evidence.

Few points can be fitted more closely than many, so they understate the noise of measurements.
Classes of few points are hardly told apart, so they overstate the noise of classes. The kernel
matrix is computed once for all noises. Averages over transformations take many products, so a GPU
that the fit will use is worth it for them already.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from nngp._arrays import Array, Index
from nngp.architecture import Network
from nngp.errors import NotPositiveDefiniteError
from nngp.frames.scaling import InputScaling
from nngp.gram import TRIVIAL_SPLIT, KernelMatrix, kernel, kernel_diag
from nngp.linsolve import Engine, choose_engine
from nngp.linsolve.engines.engine import WholeMatrix
from nngp.linsolve.tiling import spans
from nngp.posterior.evidence.criteria import log_evidence
from nngp.posterior.evidence.dense_evidence import DenseEvidence, threaded_evidence
from nngp.selection.cost import noise_subset, noise_work
from nngp.selection.inputs import SearchInputs
from nngp.selection.maximise import BestTrial
from nngp.selection.objective import LEAST_NOISE, NoiseEvidence, Objective
from nngp.selection.problem import (
    MIN_POINTS,
    STARTS,
    Choice,
    Hyperparameters,
    SearchSettings,
    SelectionProblem,
    SelectionTable,
    averaged,
    row_noise,
    scaled_known_noise,
)
from nngp.selection.space import NOISE_BOUNDS, Space


def kernel_on(engine: str | Engine, network: Network, X: Array) -> Array:
    """The kernel matrix, computed on a GPU where that pays, and nothing else."""
    found = matrix_on_gpu(engine, network, X)
    return kernel(network, X) if found is None else _fetched(*found)


def matrix_on_gpu(
    engine: str | Engine, network: Network, X: Array
) -> tuple[Engine, KernelMatrix] | None:
    """A GPU and the kernel matrix that it would compute; None where it does not pay, or cannot."""
    chosen = choose_engine(engine, len(X))
    if chosen.name != "gpu":
        return None
    inputs = chosen.kernels.inputs(X)
    if not chosen.kernels.supports(network, inputs):
        return None
    return chosen, chosen.kernels.matrix(network, inputs, split=TRIVIAL_SPLIT)


def _fetched(engine: Engine, matrix: KernelMatrix) -> Array:
    n = len(matrix.left)
    out = np.empty((n, n))
    parts = spans(engine.edges(matrix))
    with engine.run() as run:
        for i, rows in enumerate(parts):
            for columns in parts[: i + 1]:
                tile = run.fetch(matrix.block(rows, columns))
                place = out[rows, columns]  # without the rows that fill up the last tile
                place[:] = tile[: place.shape[0], : place.shape[1]]
                if rows == columns:
                    place[:] = np.tril(place) + np.tril(place, -1).T
                else:
                    out[columns, rows] = place.T
    return out


def noise_evidence(
    engine: str | Engine, dense: DenseEvidence, network: Network, X: Array
) -> NoiseEvidence:
    """That of a network, on a GPU where that pays."""
    found = matrix_on_gpu(engine, network, X)
    whole = None if found is None else found[0].whole_matrix(found[1])
    if whole is not None:
        return partial(_of_whole, whole)
    return partial(dense.log_evidence_and_misfit, kernel(network, X))


def _of_whole(matrix: WholeMatrix, Y: Array, noise: Array) -> tuple[float, float]:
    log_det, misfit = matrix.log_det_and_misfit(noise, Y)
    return log_evidence(misfit, log_det, *Y.shape), misfit


NOISE_DOWN, CLASSES_DOWN, NOISE_UP = 1.0, 5.0, 3.0  # range of the logarithm


def refitted(
    found: BestTrial,
    objective: Objective,
    space: Space,
    make_evidence: Callable[[], NoiseEvidence],
    down: float,
    steps: int,
) -> BestTrial:
    """The setting with its best noise on the points of an objective; itself if none has a value."""
    clock, evidence = time.perf_counter(), make_evidence()
    scores: dict[float, tuple[float, float]] = {}

    def loss(theta: float) -> float:
        at = replace(found.setting, noise_var=float(np.exp(theta)))
        scores[theta] = objective.score_by(evidence, space, at)
        return -scores[theta][0]

    now = float(np.log(found.setting.noise_var))
    low, high = space.bounds[0]
    ends = max(low, now - down), min(high, now + NOISE_UP)
    minimize_scalar(loss, bounds=ends, method="bounded", options={"maxiter": steps})
    theta = max(scores, key=lambda one: scores[one][0])
    if not np.isfinite(scores[theta][0]):
        return found
    setting = replace(found.setting, noise_var=float(np.exp(theta)))
    cost = len(scores), time.perf_counter() - clock
    return BestTrial(*scores[theta], setting, found.candidate, *cost, "")


# Over the mean variance of a kernel whose scale is free. Of classes with much noise, rows left out
# say the opposite: the others have fewer of their class.
MIN_NOISE, MAX_NOISE, MAX_CLASS_NOISE = 1e-6, 100.0, 1.0
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
        low, high = MIN_NOISE * unit, (MAX_CLASS_NOISE if problem.classes else MAX_NOISE) * unit
    ends = np.log(low), max(np.log(high), np.log(low) + 1.0)
    found = minimize_scalar(
        lambda x: -fitted(x).log_evidence,
        bounds=ends,
        method="bounded",
        options={"maxiter": STEPS, "xatol": CLOSE},
    )
    return fitted(float(found.x))


def fixed_work(problem: SearchSettings, n: int) -> float:
    """Its work, in multiplications."""
    families, several = problem.invariance or (), len(problem.strengths)
    work = 0.0
    if several > 1:
        work = several * noise_work(problem, families, min(n, problem.size), EVALUATIONS)
    if problem.candidates[0].noise_var is None:
        work += noise_work(problem, families, n, EVALUATIONS)
    return work
