"""Resolution of targets and rows that repeat each other.

Targets that were rounded to a grid of spacing δ carry noise of variance δ²/12 that no model can
explain. Rows that occur twice with the same inputs agree in such targets, and the evidence takes
that for freedom from noise; so the noise of a fit is not let below it.
"""

import numpy as np
from numpy.typing import NDArray

from nngp._arrays import Array

LEAST_LEVELS = 4  # two or three values are classes, not a grid
MOST_LEVELS = 10_000  # deviations over spacing: the variance of finer grids is below 1e-9
STRICT, LOOSE = 2.0**-50, 2.0**-22  # rounding of float64 and float32 values, in units of them
ON_GRID = 0.01  # distance of a value from its grid, in units of the spacing
CERTAIN = 4.0  # standard errors


def spacing(y: Array) -> float:
    """Spacing of the grid that targets (n,) lie on; zero if there is none that matters.

    Values may carry rounding errors of float64 or float32, and any offset and unit.
    """
    size = float(np.abs(y).max(initial=0.0))
    if not 0 < size < np.inf:
        return 0.0
    values = np.unique(y / size)
    for rounding in (STRICT, LOOSE):
        least = max(float(values.std()) / MOST_LEVELS, 16 * rounding / ON_GRID)
        step = _common_step(values, rounding, least)
        if step > 0.0:
            return step * size
    return 0.0


def _common_step(values: Array, rounding: float, least: float) -> float:
    """The largest step, at least `least`, of which all differences are multiples; or zero."""
    gaps = np.diff(values)
    gaps = gaps[gaps > 4 * rounding]
    if len(gaps) < LEAST_LEVELS - 1:
        return 0.0
    step = float(gaps.min())
    while step >= least:  # Euclid's algorithm with rounding
        step = _refined(gaps, step)
        left = np.abs(gaps - np.rint(gaps / step) * step)
        left = left[left > ON_GRID * step]
        if len(left) == 0:
            return step if _is_grid(values, step) else 0.0
        step = float(left.min())
    return 0.0


def _refined(gaps: Array, step: float) -> float:
    """The step that fits the gaps best, of small gaps first: their multiples are certain."""
    for most in (4.0, 64.0, 1024.0):
        some = gaps[gaps < most * step]
        multiples = np.rint(some / step)
        close = np.abs(some - multiples * step) < ON_GRID * step
        if close.any():
            step = float(some[close] @ multiples[close] / (multiples[close] @ multiples[close]))
    return step


def _is_grid(values: Array, step: float) -> bool:
    multiples = np.rint((values - values[0]) / step)
    if multiples[-1] < LEAST_LEVELS - 1:
        return False
    slope, offset = np.polyfit(multiples, values, 1)
    return bool(np.abs(values - slope * multiples - offset).max() < 2 * ON_GRID * step)


def floor_is_refuted(residuals: Array, step: Array | float) -> bool:
    """Whether left-out residuals say that the targets were not rounded.

    Parameters
    ----------
    residuals : array, (n,)
        Of held-out points, in the units of `step`; only of rows whose inputs have no twin, since
        a twin predicts the rounding too.
    step : float or array, (n,)
        Spacing of the targets; that at each row where they were transformed.

    Notes
    -----
    The error of rounding to a grid is nearly uniform and nobody can predict it, so that the mean
    of min(r², δ²/4) is δ²/12 at least, with deviation δ²/√(180 n).
    """
    n = len(residuals)
    if n == 0 or np.min(step) <= 0.0:
        return False
    mean = float(np.minimum((residuals / step) ** 2, 0.25).mean())
    return mean < 1 / 12 - CERTAIN / np.sqrt(180.0 * n)


def has_twin(X: Array) -> NDArray[np.bool_]:
    """Which rows (n, d) occur more than once."""
    _, inverse, counts = np.unique(_keys(X), return_inverse=True, return_counts=True)
    return np.asarray(counts[inverse.ravel()] > 1)


def duplicate_rows(X: Array) -> int:
    """Number of rows that repeat an earlier one."""
    return len(X) - len(np.unique(_keys(X)))


def _keys(X: Array) -> NDArray[np.uint64]:
    """A number for each row; that two different rows of n share one has probability n² 2⁻⁶⁵."""
    bits = np.ascontiguousarray(X + 0.0, dtype=np.float64).view(np.uint64)  # -0 becomes 0
    rng = np.random.default_rng(20180430)
    keys = np.zeros(len(bits), dtype=np.uint64)
    for column in bits.T:
        keys = _mixed(keys ^ column) + rng.integers(2**63, dtype=np.uint64)
    return keys


def _mixed(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Bits that depend on all bits (Steele, Lea and Flood 2014)."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))
