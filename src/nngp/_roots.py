"""Roots of many scalar functions at once, each between two points of opposite sign."""

from collections.abc import Callable

import numpy as np
from scipy.optimize.elementwise import find_root

from nngp._arrays import EPS, Array, Index

MOST_STEPS = 200


def find_roots(
    function: Callable[[Array], Array], low: Array, high: Array, *, smallest: float = 1.0
) -> Array:
    """Solve function(x) = 0 between `low` and `high`, elementwise.

    Stops at rounding of x, relative to the larger of x and `smallest`, or where the function is
    below rounding of numbers near 1, whose difference it is taken to be. Without a change of sign
    it gives the end with the smaller value.
    """
    x = np.array(low, dtype=float)
    if not x.size:
        return x

    def at(some: Array, index: Index) -> Array:  # SciPy asks for those that are left
        x.flat[index] = some
        return np.asarray(function(x)).flat[index]

    found = find_root(
        at,
        (low, high),
        args=(np.arange(x.size).reshape(x.shape),),
        tolerances={"xatol": 4 * EPS * smallest, "xrtol": 4 * EPS, "fatol": EPS, "frtol": 0.0},
        maxiter=MOST_STEPS,
    )
    ends, (f_low, f_high) = found.bracket, found.f_bracket
    nearer = np.where(np.abs(f_low) <= np.abs(f_high), *ends)
    return np.asarray(np.where(np.isnan(found.x), nearer, found.x))
