"""Where correlations go: the stable fixed point of e -> gain · D(e), with e = 1 - c.

Takes an activation, variances and the gain of each; gives e* > 0 and the slope of phi there. D is
concave with D(0) = 0, so gain · D(e)/e falls from chi_1 > 1 through 1 once.
"""

import numpy as np
from numpy.typing import NDArray

from nngp.architecture import Activation
from nngp.regimes.deficits import CLOSE, FAR, Deficits, far_deficits, near_deficits
from nngp.regimes.roots import solve

Array = NDArray[np.float64]
SMALLEST = 1e-30  # of e*
ROUNDING = 1e-13
RANGES = (
    (FAR, 1.0, far_deficits),
    (CLOSE, FAR, near_deficits),
    (SMALLEST, CLOSE, near_deficits),
)


def attractors(activation: Activation, q: Array, gain: Array) -> tuple[Array, Array]:
    """e* and E[phi'(u) phi'(v)] at correlation 1 - e*."""
    e, slope, left = np.empty_like(q), np.empty_like(q), np.arange(len(q))
    for low, high, deficits_at in RANGES:
        if not left.size:
            break
        deficits = deficits_at(activation, q[left])
        above = gain[left] * deficits(np.full(len(left), low)) >= low
        here = above | (low == SMALLEST)
        found, deficits = left[here], deficits.only(here)
        e[found] = _root(deficits, gain[found], low, high)
        slope[found] = deficits.slope(e[found])
        left = left[~here]
    return e, slope


def slopes(activation: Activation, q: Array, corr: float) -> Array:
    """E[phi'(u) phi'(v)] at one correlation below 1."""
    deficits_at = far_deficits if abs(corr) <= 1 - FAR else near_deficits
    return deficits_at(activation, q).slope(np.full_like(q, 1 - corr))


def _root(deficits: Deficits, gain: Array, low: float, high: float) -> Array:
    """e in [low, high] with gain · D(e) = e; in sqrt(e), where D is smooth even with kinks."""

    def excess(root_e: Array) -> Array:
        return gain * deficits(root_e**2) / root_e**2 - 1

    start, end = np.full_like(gain, np.sqrt(low)), np.full_like(gain, np.sqrt(high))
    root = solve(excess, start, end, smallest=np.sqrt(low))
    root = np.where(excess(start) <= 0, start, root)  # at c = 1 but for noise of phi
    # Without bias and mean, zero correlation is itself the fixed point, up to rounding.
    return np.where(excess(end) >= -ROUNDING, end, root) ** 2
