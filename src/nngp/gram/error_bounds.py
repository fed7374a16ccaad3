"""Bounds on the error of kernel entries, from the nearest pair of inputs in a matrix."""

import numpy as np

from nngp._arrays import EPS, TINY, Array
from nngp.architecture import Network
from nngp.curve import NEAR, AngularCurve, curve_at
from nngp.gram.split import TRIVIAL_SPLIT, KernelSplit

FAR_ENOUGH = 1e-6  # 1 - c of pairs that rounding cannot harm by more than 1e-9


def curve_error(curve: AngularCurve, nearest: float, split: KernelSplit = TRIVIAL_SPLIT) -> float:
    """Of the entries of a matrix whose nearest pair of inputs has 1 - |c| = nearest.

    Rounding moves a cosine by some eps, and 1 - |c| of near pairs by sqrt of it times eps;
    as the deficit D is concave, that moves K by at most D(m) times the relative change of m.
    """
    gaps = [(NEAR, 4 * EPS / NEAR), (nearest, 4 * EPS / nearest**0.5)]
    moved = [(float(curve.deficit(one_minus=m)) - curve.jump) * change for m, change in gaps]
    if split.is_trivial:
        return curve.error + max(moved) / max(curve.variance, TINY)
    return curve.deficit_error + max(moved) / split.scale


def pairwise_error(architecture: Network, input_var: Array, nearest: float) -> float:
    """Of the entries of a matrix whose nearest pair of inputs has 1 - |c| = nearest.

    Correlations are carried with an absolute error of some eps. For the nearest pair that moves
    K by at most D(m) eps / m in a network of equal norms, which stands in for this one at the
    smallest, the middle and the largest norm.
    """
    rounding = 4 * EPS * (len(architecture.graph) + 1)
    if nearest > FAR_ENOUGH:
        return rounding + 4 * EPS / FAR_ENOUGH
    middle = np.quantile(input_var, [0.0, 0.5, 1.0], method="nearest")
    curves = [curve_at(architecture, float(v)) for v in middle if v > 0]
    moved = [
        (float(c.deficit(one_minus=nearest)) - c.jump) / c.variance * 4 * EPS / nearest
        for c in curves
    ]
    return rounding + min(max(moved, default=0.0), 2.0)
