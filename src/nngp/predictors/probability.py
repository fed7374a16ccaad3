"""Class probabilities from Gaussian outputs, by quadrature.

The outputs at a test point are independent Gaussians. Two maps to probabilities:

- P(k is largest) = ∫ φ_k(t) Π_{j≠k} Φ_j(t) dt. The integrand is entire and falls like a Gaussian,
  where the trapezoidal rule converges faster than any power of its step.
- E[softmax_k], by the trapezoidal rule for two classes (their difference is one Gaussian), and by
  Sobol's points for more: fixed points, so the same numbers every time, with an error of some 1e-3.
"""

from functools import lru_cache

import numpy as np
from scipy.special import expit, log_ndtr, ndtri

from nngp._arrays import Array

REACH, STEP = 9.5, 0.125  # in deviations: beyond, the integrand is below 1e-19
LARGEST_RATIO = 6.0  # of two deviations in a row: a smaller one is raised
CHUNK = 2_000_000  # numbers held at a time
FLOOR = 1e-12  # least probability of a class: nothing is impossible, and no logarithm infinite
SOFTMAX_POINTS = 1024  # a power of two


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
    out = np.empty_like(mean)
    integral, ratio = _of_one_variance, 1.0
    if variance.ndim == 2:
        integral, ratio = _of_variances, LARGEST_RATIO
    rows = max(1, int(CHUNK * step / (2 * REACH * ratio * mean.shape[1])))
    for start in range(0, len(mean), rows):
        part = slice(start, start + rows)
        out[part] = integral(mean[part], variance[part], step)
    return out


def mean_softmax(mean: Array, variance: Array, points: int = SOFTMAX_POINTS) -> Array:
    """E[softmax] of independent Gaussians with means and variances (m, classes); rows sum to one.

    Examples
    --------
    >>> import numpy as np
    >>> mean_softmax(np.array([[0.0, 0.0]]), np.array([[1.0, 4.0]])).round(6).tolist()
    [[0.5, 0.5]]
    """
    classes = mean.shape[1]
    if classes == 2:
        second = _mean_logistic(mean[:, 1] - mean[:, 0], variance.sum(axis=1))
        return np.column_stack([1.0 - second, second])
    normal, deviation = _normal_points(classes, points), np.sqrt(variance)
    out = np.empty_like(mean)
    rows = max(1, CHUNK // (classes * points))
    for start in range(0, len(mean), rows):
        part = slice(start, start + rows)
        drawn = mean[part, :, None] + deviation[part, :, None] * normal
        drawn -= drawn.max(axis=1, keepdims=True)
        np.exp(drawn, out=drawn)
        drawn /= drawn.sum(axis=1, keepdims=True)
        out[part] = drawn.mean(axis=2)
    return out / out.sum(axis=1, keepdims=True)


def above_zero(table: Array) -> Array:
    """Probabilities of which none is below `FLOOR`; rows sum to one and keep their order."""
    classes = table.shape[1]
    return table if classes == 1 else (1.0 - classes * FLOOR) * table + FLOOR


@lru_cache(maxsize=8)
def _normal_points(dimensions: int, points: int) -> Array:
    """Normal deviates at Sobol's points, (dimensions, points), in the middle of their cells."""
    from scipy.stats.qmc import Sobol  # takes a while to import

    uniform = Sobol(dimensions, scramble=False).random_base2(points.bit_length() - 1)
    # Unscrambled points lie on multiples of 1/points, each once in every dimension.
    return np.ascontiguousarray(ndtri(uniform + 0.5 / points).T)


def _mean_logistic(mean: Array, variance: Array) -> Array:
    """E[1 / (1 + exp(-d))] for d of that mean and variance."""
    nodes = np.arange(-8.5, 8.5, 1 / 32)
    weights = np.exp(-0.5 * nodes * nodes)
    weights /= weights.sum()
    out = np.empty_like(mean)
    rows = CHUNK // len(nodes)
    for start in range(0, len(mean), rows):
        part = slice(start, start + rows)
        drawn = mean[part, None] + np.sqrt(variance[part, None]) * nodes
        out[part] = expit(drawn) @ weights
    return out


def _of_one_variance(mean: Array, variance: Array, step: float) -> Array:
    nodes = np.arange(-REACH, REACH + step / 2, step)
    below = mean - mean.max(axis=1, keepdims=True)
    deviation = np.sqrt(variance)[:, None]
    # Without variance the largest mean has probability one; ties share it.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        below = np.where(below == 0, 0.0, np.maximum(below / deviation, -1e9))
    gap = nodes - below[:, :, None]
    log_cdf = log_ndtr(gap)
    others = log_cdf.sum(axis=1, keepdims=True) - log_cdf
    density = np.exp(others - 0.5 * gap * gap).sum(axis=2)
    return density / density.sum(axis=1, keepdims=True)


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
