"""Angles and roots at the ends of their range, without loss of digits.

Near correlation 1 nothing is computed from c. Every function here takes m = 1 - |c|, which keeps
its relative precision however small it is. Those that JAX shares take the array namespace `xp`.
"""

from math import factorial

import numpy as np

from nngp._arrays import TINY as TINY, Array, Floats, Namespace  # TINY: for other folders


def sine2(xp: Namespace, corr: Floats, m: Floats = None) -> Floats:
    """1 - c² without cancellation, 0 outside [-1, 1]; from m = 1 - |c| where that is known."""
    if m is not None:
        return m * (2.0 - m)
    return xp.maximum((1.0 - corr) * (1.0 + corr), 0.0)


def arcsine(xp: Namespace, corr: Floats, m: Floats = None) -> Floats:
    """arcsin of c clipped to [-1, 1]; from m = 1 - |c| where that is known."""
    if m is not None:
        return xp.sign(corr) * (0.5 * xp.pi - 2.0 * xp.arcsin(xp.sqrt(0.5 * m)))
    return xp.arcsin(xp.clip(corr, -1.0, 1.0))


def inverse(xp: Namespace, x: Floats) -> Floats:
    """1/x of x >= 0, large but finite at 0."""
    x = xp.asarray(x)
    return 1.0 / xp.maximum(x, xp.sqrt(xp.asarray(xp.finfo(x.dtype).tiny, dtype=x.dtype)))


def correlation(xp: Namespace, cov: Floats, var1: Floats, var2: Floats) -> Floats:
    """cov / sqrt(var1 var2) in [-1, 1]; 0 where a variance is zero."""
    scale = xp.sqrt(var1) * xp.sqrt(var2)
    return xp.clip(xp.where(scale > 0, cov / xp.where(scale > 0, scale, 1.0), 0.0), -1.0, 1.0)


def angle(m: Array) -> Array:
    """The angle in [0, π/2] whose cosine is 1 - m."""
    return 2.0 * np.arcsin(np.sqrt(0.5 * m))


def _switched_series(theta: Array, direct: Array, terms: list[float]) -> Array:
    # The closed expressions lose all digits as theta**3 or theta**5 vanishes: sum the Taylor
    # series there instead. Below 0.8, 14 terms reach rounding.
    square = np.square(np.where(theta < 0.8, theta, 0.0))
    total = np.zeros_like(theta)
    for term in reversed(terms):
        total = total * square + term
    return np.where(theta < 0.8, theta * total, direct)


def gap1(theta: Array) -> Array:
    """sin t - t cos t, which is t³/3 + ..., to relative precision."""
    terms = [(-1) ** k * (1 / factorial(2 * k + 1) - 1 / factorial(2 * k)) for k in range(14)]
    return _switched_series(theta, np.sin(theta) - theta * np.cos(theta), terms)


def gap2(theta: Array) -> Array:
    """3 sin t cos t - t (1 + 2 cos² t), which is -4t⁵/15 + ..., to relative precision."""
    terms = [0.0, 0.0] + [
        (-1) ** k * 2 ** (2 * k) * (3 / factorial(2 * k + 1) - 1 / factorial(2 * k))
        for k in range(2, 16)
    ]
    cos = np.cos(theta)
    return _switched_series(theta, 3 * np.sin(theta) * cos - theta * (1 + 2 * cos**2), terms)


def gap3(theta: Array) -> Array:
    """sin t (15 - 11 sin² t) - t (9 cos t + 6 cos³ t), of order t⁷, to relative precision."""
    terms = [0.0, 0.0, 0.0] + [
        (-1) ** k
        * (
            (6.75 + 2.75 * 3 ** (2 * k + 1)) / factorial(2 * k + 1)
            - (13.5 + 1.5 * 3 ** (2 * k)) / factorial(2 * k)
        )
        for k in range(3, 18)
    ]
    sin, cos = np.sin(theta), np.cos(theta)
    direct = sin * (15 - 11 * sin**2) - theta * (9 * cos + 6 * cos**3)
    return _switched_series(theta, direct, terms)
