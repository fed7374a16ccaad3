"""Mean and deviation of columns, of inputs and of targets: in units in which nothing overflows."""

import numpy as np

from nngp._arrays import Array


def moments(X: Array, weights: Array | None = None) -> tuple[Array, Array]:
    """Mean and standard deviation (zero if constant) of every column, without overflow."""
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
