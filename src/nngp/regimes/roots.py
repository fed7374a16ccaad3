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


def solve(function: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """x with function(x) = 0 between `low` and `high`, to rounding, elementwise."""
    a, b = np.array(low), np.array(high)
    fa, fb = function(a), function(b)
    step = np.full_like(a, 0.5)
    for _ in range(MOST_STEPS):
        if not a.size or np.all((np.abs(b - a) <= 4 * EPS * _size(a, b)) | (fa == 0) | (fb == 0)):
            break
        x = a + step * (b - a)
        fx = function(x)
        same = np.sign(fx) == np.sign(fa)
        c, fc = np.where(same, a, b), np.where(same, fa, fb)
        b, fb = np.where(same, b, a), np.where(same, fb, fa)
        a, fa = x, fx
        step = _next_step((a, b, c), (fa, fb, fc))
    return np.where(np.abs(fa) <= np.abs(fb), a, b)


def _size(a: Array, b: Array) -> Array:
    return np.maximum(np.maximum(np.abs(a), np.abs(b)), 1.0)


def _next_step(x: tuple[Array, Array, Array], f: tuple[Array, Array, Array]) -> Array:
    """Where between a and b to look next, as a fraction."""
    (a, b, c), (fa, fb, fc) = x, f
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        place, height = (a - b) / (c - b), (fa - fb) / (fc - fb)
        smooth = (height**2 < place) & ((1 - height) ** 2 < 1 - place)
        quadratic = fa / (fb - fa) * fc / (fb - fc)
        quadratic += (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        least = 2 * EPS * _size(a, b) / np.abs(b - a)
    step = np.where(smooth & np.isfinite(quadratic), quadratic, 0.5)
    least = np.minimum(np.where(np.isfinite(least), least, 0.5), 0.5)
    return np.clip(step, least, 1 - least)
