"""Fixed points of the correlation map: the stable one of e -> gain · D(e), with e = 1 - c.

Takes an activation, variances and the gain of each; gives e* > 0 and the slope of phi there. D is
concave with D(0) = 0, so gain · D(e)/e falls from chi_1 > 1 through 1 once.
"""

import numpy as np

from nngp._arrays import Array
from nngp._roots import find_roots
from nngp.architecture import Activation
from nngp.regimes.deficits import CLOSE, FAR, Deficits, far_deficits, near_deficits

SMALLEST = 1e-30  # of e*
ROUNDING = 1e-13
RANGES = (
    (FAR, 1.0, far_deficits),
    (CLOSE, FAR, near_deficits),
    (SMALLEST, CLOSE, near_deficits),
)


def stable_correlations(activation: Activation, q: Array, gain: Array) -> tuple[Array, Array]:
    """The fixed point e* and E[phi'(u) phi'(v)] at correlation 1 - e*."""
    e, slope, pending = np.empty_like(q), np.empty_like(q), np.arange(len(q))
    for low, high, deficits_at in RANGES:
        if not pending.size:
            break
        deficits = deficits_at(activation, q[pending])
        above = gain[pending] * deficits(np.full(len(pending), low)) >= low
        here = above | (low == SMALLEST)
        found, deficits = pending[here], deficits.only(here)
        e[found] = _root(deficits, gain[found], low, high)
        slope[found] = deficits.slope(e[found])
        pending = pending[~here]
    return e, slope


def slopes(activation: Activation, q: Array, corr: float) -> Array:
    """E[phi'(u) phi'(v)] at one correlation below 1."""
    deficits_at = far_deficits if abs(corr) <= 1 - FAR else near_deficits
    return deficits_at(activation, q).slope(np.full_like(q, 1 - corr))


def _root(deficits: Deficits, gain: Array, low: float, high: float) -> Array:
    """Solve gain · D(e) = e in [low, high], in sqrt(e), where D is smooth even with kinks."""

    def excess(root_e: Array) -> Array:
        return gain * deficits(root_e**2) / root_e**2 - 1

    start, end = np.full_like(gain, np.sqrt(low)), np.full_like(gain, np.sqrt(high))
    root = find_roots(excess, start, end, smallest=np.sqrt(low))
    root = np.where(excess(start) <= 0, start, root)  # c* is 1 within noise of phi
    # Without bias and mean, zero correlation is itself the fixed point, up to rounding.
    return np.where(excess(end) >= -ROUNDING, end, root) ** 2
