"""Class probabilities: the probability that an output is the largest, by quadrature.

Outputs at a test point are independent Gaussians, so P(k is largest) = ∫ φ_k(t) Π_{j≠k} Φ_j(t) dt.
The integrand is entire and falls like a Gaussian, where the trapezoidal rule converges faster than
any power of its step.

With one variance for all outputs, a class enters by its mean alone. For many classes both factors
are tabulated on a lattice of means and interpolated, so that the work does not grow with the
product of classes and nodes.
"""

from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr

from nngp._arrays import Array
from nngp._threads import in_threads

REACH, STEP = 9.5, 0.125  # in deviations: beyond, the integrand is below 1e-19
LARGEST_RATIO = 6.0  # of two deviations in a row: a smaller one is raised
CHUNK = 2**18  # numbers that a thread holds at a time
MANY_CLASSES = 64  # above, factors are interpolated, which changes no probability by 1e-15
DENSITY, ORDER = 16, 12  # of the lattice: points in a deviation, and points interpolated between
FLOOR = 1e-12  # least probability of a class: nothing is impossible, and no logarithm infinite


def largest_probability(mean: Array, variance: Array, step: float = STEP) -> Array:
    """P(output k is the largest) for means (m, classes); rows sum to one.

    Variances are (m,), one for all outputs, or (m, classes). `step` is that of the quadrature, in
    deviations: 0.5 gives errors of some 1e-4, 0.125 of 1e-12, for ten classes.

    Examples
    --------
    >>> import numpy as np
    >>> largest_probability(np.array([[0.0, 0.0], [1.0, -1.0]]), np.array([1.0, 0.0])).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    integral, ratio = _of_one_variance, 1.0
    if variance.ndim == 2:
        integral, ratio = _of_variances, LARGEST_RATIO
    numbers = 2 * REACH * ratio / step
    if variance.ndim == 1 and mean.shape[1] > MANY_CLASSES:
        integral, numbers = _interpolated, ORDER
    rows = max(1, int(CHUNK / (numbers * mean.shape[1])))
    parts = [slice(start, start + rows) for start in range(0, len(mean), rows)]
    found = in_threads(lambda part: integral(mean[part], variance[part], step), parts)
    return np.concatenate(found) if found else np.empty_like(mean)


def above_zero(table: Array) -> Array:
    """Probabilities of which none is below `FLOOR`; rows sum to one and keep their order."""
    classes = table.shape[1]
    return table if classes == 1 else (1.0 - classes * FLOOR) * table + FLOOR


def _of_one_variance(mean: Array, variance: Array, step: float) -> Array:
    gap = _nodes(step) - _below(mean, variance)[:, :, None]
    log_cdf = log_ndtr(gap)
    others = log_cdf.sum(axis=1, keepdims=True) - log_cdf
    density = np.exp(others - 0.5 * gap * gap).sum(axis=2)
    return density / density.sum(axis=1, keepdims=True)


def _interpolated(mean: Array, variance: Array, step: float) -> Array:
    """As `_of_one_variance`, by Lagrange polynomials between points of a lattice of means."""
    log_cdf, hazard = _tables(step)
    place = DENSITY * (np.maximum(_below(mean, variance), -2 * REACH) + 2 * REACH)
    first = np.floor(place)  # lies in the middle of the points interpolated between
    x = place - first + (ORDER // 2 - 1)
    at = first.astype(np.intp) + len(log_cdf) * np.arange(len(mean))[:, None]
    weights, right = [np.ones_like(x)], np.ones_like(x)
    for i in range(1, ORDER):  # products of x - j over j < i, then over j > i
        weights.append(weights[-1] * (x - (i - 1)) / i)
    for i in range(ORDER - 2, -1, -1):
        right = right * (x - (i + 1)) / (i + 1 - ORDER)
        weights[i] *= right
    numbers = np.zeros(len(mean) * len(log_cdf))  # of classes at points of the lattice
    for i, weight in enumerate(weights):
        numbers += np.bincount((at + i).ravel(), weight.ravel(), len(numbers))
    product = np.exp(numbers.reshape(len(mean), -1) @ log_cdf)
    table = (product @ hazard.T).ravel()
    density = sum(weight * table[at + i] for i, weight in enumerate(weights))
    density = np.maximum(density, 0.0)  # a vanishing one may be negative by rounding
    return density / density.sum(axis=1, keepdims=True)


@lru_cache(maxsize=4)
def _tables(step: float) -> tuple[Array, Array]:
    """log Φ_j and φ_j / Φ_j at the nodes, for means on the lattice: (means, nodes)."""
    reach = int(2 * REACH * DENSITY)
    lattice = np.arange(-reach - ORDER // 2 + 1, ORDER // 2 + 1) / DENSITY
    gap = _nodes(step) - lattice[:, None]
    log_cdf = log_ndtr(gap)
    return log_cdf, np.exp(-0.5 * gap * gap - log_cdf)


def _nodes(step: float) -> Array:
    return np.arange(-REACH, REACH + step / 2, step)


def _below(mean: Array, variance: Array) -> Array:
    """Means less the largest of their row, in deviations."""
    below = mean - mean.max(axis=1, keepdims=True)
    # Without variance the largest mean has probability one; ties share it.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scaled = np.maximum(below / np.sqrt(variance)[:, None], -1e9)
    return np.where(below == 0, 0.0, scaled)


def _of_variances(mean: Array, variance: Array, step: float) -> Array:
    """As `_of_one_variance`, in units of the smallest deviation of each row."""
    deviation = np.sqrt(variance)
    deviation = np.maximum(deviation, deviation.max(axis=1, keepdims=True) / LARGEST_RATIO)
    unit = deviation.min(axis=1, keepdims=True)
    below = mean - mean.max(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        below = np.where(below == 0, 0.0, np.maximum(below / unit, -1e9))
        spread = np.where(unit > 0, deviation / unit, 1.0)
    low = (below - REACH * spread).max(axis=1)
    high = (below + REACH * spread).max(axis=1)
    count = int(np.ceil((high - low).max() / step)) + 1
    nodes = low[:, None, None] + step * np.arange(count)
    gap = (nodes - below[:, :, None]) / spread[:, :, None]
    log_cdf = log_ndtr(gap)
    others = log_cdf.sum(axis=1, keepdims=True) - log_cdf
    density = np.exp(others - 0.5 * gap * gap).sum(axis=2) / spread
    return density / density.sum(axis=1, keepdims=True)
