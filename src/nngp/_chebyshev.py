"""Chebyshev interpolation on panels, by which smooth functions are stored.

The interval of a function is cut into panels; on each it is the polynomial through its values at
the Chebyshev points of the first kind. A panel is resolved when its last coefficients have decayed
to rounding.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from nngp._arrays import TINY, Array, Index


@cache
def points(count: int) -> Array:
    """Chebyshev points of the first kind on [-1, 1], ascending."""
    out = -np.cos(np.pi * (np.arange(count) + 0.5) / count)
    out.setflags(write=False)
    return out


@cache
def _transform(count: int) -> Array:
    angle = np.pi * (np.arange(count) + 0.5) / count
    matrix = np.cos(np.outer(np.arange(count), angle[::-1])) * (2.0 / count)
    matrix[0] *= 0.5
    return matrix


def coefficients(values: Array) -> Array:
    """Coefficients along the last axis from values at `points` along the last axis."""
    return values @ _transform(values.shape[-1]).T


def evaluate(coefs: Array, t: Array) -> Array:
    """Sum the series by Clenshaw's rule; `coefs` has shape t.shape + (count,), or (count,)."""
    second = first = 0.0 * t  # works for JAX as well
    for k in range(coefs.shape[-1] - 1, 0, -1):
        second, first = first, 2.0 * t * first - second + coefs[..., k]
    return t * first - second + coefs[..., 0]


def differentiate(coefs: Array) -> Array:
    """Coefficients of the derivative in t."""
    count = coefs.shape[-1]
    out = np.zeros_like(coefs)
    for k in range(count - 1, 0, -1):
        out[..., k - 1] = 2.0 * k * coefs[..., k]
        if k + 1 < count:
            out[..., k - 1] += out[..., k + 1]
    out[..., 0] *= 0.5
    return out


@dataclass(frozen=True)
class Piecewise:
    """Piecewise polynomial on consecutive panels; `coefs` has shape (panels, count)."""

    edges: Array
    coefs: Array

    def __call__(self, x: Array) -> Array:
        panel, t = self.locate(x)
        # Clenshaw, one gathered coefficient at a time: a gathered matrix would not fit the cache
        columns, twice = np.ascontiguousarray(self.coefs.T), 2.0 * t
        second, first = np.zeros_like(t), np.zeros_like(t)
        for column in columns[:0:-1]:
            second, first = first, twice * first - second + column[panel]
        return t * first - second + columns[0][panel]

    def derivative(self) -> "Piecewise":
        """The derivative, panel by panel (one-sided at the edges)."""
        half = 0.5 * np.diff(self.edges)[:, None]
        return Piecewise(self.edges, differentiate(self.coefs) / half)

    def locate(self, x: Array) -> tuple[Index, Array]:
        """The panel of each x, and its place there in [-1, 1]."""
        panel = np.clip(np.searchsorted(self.edges, x, "right") - 1, 0, len(self.edges) - 2)
        low, high = self.edges[panel], self.edges[panel + 1]
        return panel, np.clip((2.0 * x - low - high) / (high - low), -1.0, 1.0)


def tail(coefs: Array) -> Array:
    """Largest of the last three coefficients, an estimate of the truncation error."""
    return np.abs(coefs[..., -3:]).max(axis=-1)


def fit(
    function: Callable[[Array], Array],
    low: float,
    high: float,
    *,
    tol: float = 1e-14,
    count: int = 32,
    narrowest: float = 1e-9,
    size: float = 0.0,
    most: int = 256,
) -> tuple[Piecewise, float]:
    """Interpolate `function` on panels of [low, high], bisected until each is resolved.

    Returns the interpolant and its error. Both `tol` and the error are relative to the largest
    coefficient of a panel, or to `size` where that is larger. The function may vary fast near
    `low` only: no panel is narrower than an eighth of its distance from there, or `narrowest` of
    the interval. There are about `most` panels at most; then the error may be above `tol`.
    """
    pending, error = [(low, high)], 0.0
    done: list[tuple[float, float, Array]] = []
    while pending:
        a, b = pending.pop()
        coefs = coefficients(function(0.5 * (a + b) + 0.5 * (b - a) * points(count)))
        truncated = float(tail(coefs) / max(np.abs(coefs).max(), size, TINY))
        least = max(narrowest * (high - low), 0.125 * (a - low))
        if truncated <= tol or b - a <= least or len(done) + len(pending) >= most:
            done.append((a, b, coefs))
            error = max(error, truncated)
        else:
            middle = 0.5 * (a + b)
            pending += [(middle, b), (a, middle)]
    edges = np.array([done[0][0]] + [b for _, b, _ in done])
    return Piecewise(edges, np.array([c for _, _, c in done])), error
