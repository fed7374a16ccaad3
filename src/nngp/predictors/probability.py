"""Class probabilities: the probability that an output is the largest, by quadrature.

Outputs at a test point are independent Gaussians, so P(k is largest) = ∫ φ_k(t) Π_{j≠k} Φ_j(t) dt.
The integrand is entire and falls like a Gaussian, where the trapezoidal rule converges faster than
any power of its step.
"""

import numpy as np
from scipy.special import log_ndtr

from nngp._arrays import Array
from nngp._threads import in_threads

REACH, STEP = 9.5, 0.125  # in deviations: beyond, the integrand is below 1e-19
LARGEST_RATIO = 6.0  # of two deviations in a row: a smaller one is raised
CHUNK = 2**18  # numbers that a thread holds at a time
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
    rows = max(1, int(CHUNK * step / (2 * REACH * ratio * mean.shape[1])))
    parts = [slice(start, start + rows) for start in range(0, len(mean), rows)]
    found = in_threads(lambda part: integral(mean[part], variance[part], step), parts)
    return np.concatenate(found) if found else np.empty_like(mean)


def above_zero(table: Array) -> Array:
    """Probabilities of which none is below `FLOOR`; rows sum to one and keep their order."""
    classes = table.shape[1]
    return table if classes == 1 else (1.0 - classes * FLOOR) * table + FLOOR


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
