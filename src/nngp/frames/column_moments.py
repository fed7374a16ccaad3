"""Mean, deviation and median of columns, of inputs and of targets: in units in which nothing
overflows."""

import numpy as np

from nngp._arrays import Array
from nngp._threads import by_columns


def moments(X: Array, weights: Array | None = None) -> tuple[Array, Array]:
    """Mean and standard deviation (zero if constant) of every column, without overflow."""
    found = by_columns(lambda some: _moments_of(some, weights), X)
    mean, spread = (np.concatenate(part) for part in zip(*found, strict=True))
    return mean, spread


def _moments_of(X: Array, weights: Array | None) -> tuple[Array, Array]:
    size = np.maximum(np.abs(X).max(axis=0), np.finfo(float).tiny)
    scaled = X / size
    if weights is None:
        mean, spread = scaled.mean(axis=0), scaled.std(axis=0)
    else:
        mean = np.average(scaled, axis=0, weights=weights)
        spread = np.sqrt(np.average((scaled - mean) ** 2, axis=0, weights=weights))
    constant = spread <= 16 * np.finfo(float).eps * len(X) ** 0.5
    spread = np.where(constant, 0.0, spread * size)
    # The reciprocal of a smaller spread overflows.
    return mean * size, np.where(spread < np.finfo(float).tiny, 0.0, spread)


def medians(X: Array) -> Array:
    """The median of every column."""
    return np.concatenate(by_columns(_medians_of, X))


def _medians_of(X: Array) -> Array:
    # Much faster where the numbers of a column lie side by side.
    return np.median(np.ascontiguousarray(X.T), axis=1)
