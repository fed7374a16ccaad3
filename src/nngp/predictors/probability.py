"""Class probabilities: the probability that an output is the largest, by quadrature.

Outputs at a test point are independent Gaussians of one variance, so
P(k is largest) = ∫ φ(t - m_k) Π_{j≠k} Φ(t - m_j) dt, in units of the deviation. The integrand is
entire and falls like a Gaussian, where the trapezoidal rule converges faster than any power of
its step.
"""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr

from nngp._arrays import Array, Index

REACH, STEP = 9.5, 0.125  # beyond the largest mean ± 9.5 the integrand is below 1e-19
CHUNK = 2_000_000  # numbers held at a time
MIN_PROBABILITY = 1e-12  # of a true class, in the loss: so one surprise does not decide


def largest_probability(mean: Array, variance: Array) -> Array:
    """P(output k is the largest) for means (m, classes) and variances (m,); rows sum to one.

    Examples
    --------
    >>> import numpy as np
    >>> largest_probability(np.array([[0.0, 0.0], [1.0, -1.0]]), np.array([1.0, 0.0])).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    nodes = np.arange(-REACH, REACH + STEP / 2, STEP)
    out = np.empty_like(mean)
    rows = max(1, CHUNK // (mean.shape[1] * len(nodes)))
    for start in range(0, len(mean), rows):
        part = slice(start, start + rows)
        out[part] = _integrate(mean[part], variance[part], nodes)
    return out


def best_variance_scale(mean: Array, variance: Array, labels: Index) -> float:
    """Factor on the variances for which the true classes have the largest mean log probability."""
    points = np.arange(len(labels))

    def loss(log_scale: float) -> float:
        table = largest_probability(mean, variance * float(np.exp(log_scale)))
        return -float(np.log(np.maximum(table[points, labels], MIN_PROBABILITY)).mean())

    found = minimize_scalar(loss, bounds=(-7.0, 7.0), method="bounded", options={"xatol": 0.01})
    return float(np.exp(found.x))


def _integrate(mean: Array, variance: Array, nodes: Array) -> Array:
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
