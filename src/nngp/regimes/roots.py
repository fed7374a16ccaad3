"""Roots of many functions at once, each between two points where its sign differs.

Takes a function of an array and two arrays; gives an array. Chandrupatla's method: inverse
quadratic steps where they can be trusted, bisection elsewhere, and the bracket is never lost.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)
MOST_STEPS = 200


def solve(
    function: Callable[[Array], Array], low: Array, high: Array, *, smallest: float = 1.0
) -> Array:
    """x with function(x) = 0 between `low` and `high`, elementwise.

    To rounding: of x, relative to it or to `smallest` if that is larger, or of values near 1
    from which the function is a difference.
    """
    a, b = np.array(low), np.array(high)
    fa, fb = function(a), function(b)
    step = np.full_like(a, 0.5)
    for _ in range(MOST_STEPS):
        size = np.maximum(np.maximum(np.abs(a), np.abs(b)), smallest)
        if np.all((np.abs(b - a) <= 4 * EPS * size) | (np.minimum(np.abs(fa), np.abs(fb)) <= EPS)):
            break
        x = a + step * (b - a)
        fx = function(x)
        same = np.sign(fx) == np.sign(fa)
        c, fc = np.where(same, a, b), np.where(same, fa, fb)
        b, fb = np.where(same, b, a), np.where(same, fb, fa)
        a, fa = x, fx
        step = _next_step((a, b, c), (fa, fb, fc), 2 * EPS * size)
    return np.where(np.abs(fa) <= np.abs(fb), a, b)


def _next_step(x: tuple[Array, Array, Array], f: tuple[Array, Array, Array], least: Array) -> Array:
    """Where between a and b to look next, as a fraction; at least `least` from either."""
    (a, b, c), (fa, fb, fc) = x, f
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        place, height = (a - b) / (c - b), (fa - fb) / (fc - fb)
        smooth = (height**2 < place) & ((1 - height) ** 2 < 1 - place)
        quadratic = fa / (fb - fa) * fc / (fb - fc)
        quadratic += (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        margin = np.minimum(least / np.abs(b - a), 0.5)
    step = np.where(smooth & np.isfinite(quadratic), quadratic, 0.5)
    return np.clip(step, margin, 1 - margin)
