"""Roots of many scalar functions at once, each between two points of opposite sign.

Takes a function of an array and two arrays; gives an array. Chandrupatla's method: inverse
quadratic interpolation where it is safe, bisection otherwise; every step keeps a bracket.
"""

from collections.abc import Callable

import numpy as np

from nngp._arrays import EPS, Array

MOST_STEPS = 200


def find_roots(
    function: Callable[[Array], Array], low: Array, high: Array, *, smallest: float = 1.0
) -> Array:
    """Solve function(x) = 0 between `low` and `high`, elementwise.

    Stops at rounding of x, relative to the larger of x and `smallest`, or where the function is
    below rounding of numbers near 1, whose difference it is taken to be.
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
    """The next point, as a fraction of the way from a to b, at least `least` from either end."""
    (a, b, c), (fa, fb, fc) = x, f
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        place, height = (a - b) / (c - b), (fa - fb) / (fc - fb)
        smooth = (height**2 < place) & ((1 - height) ** 2 < 1 - place)
        quadratic = fa / (fb - fa) * fc / (fb - fc)
        quadratic += (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        margin = np.minimum(least / np.abs(b - a), 0.5)
    step = np.where(smooth & np.isfinite(quadratic), quadratic, 0.5)
    return np.clip(step, margin, 1 - margin)
