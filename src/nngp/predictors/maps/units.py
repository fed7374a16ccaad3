"""Center and unit of a column, which one wild value does not move, and how heavy its tails are."""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from nngp._arrays import Array

HEAVY = 50.0  # units from the center beyond which a column counts as heavy-tailed
QUARTILE = float(ndtri(0.75))  # of the standard normal distribution


class Units(NamedTuple):
    """Median, robust deviation (zero of a constant), and the largest distance in it."""

    center: float
    unit: float
    reach: float

    @property
    def is_heavy(self) -> bool:
        return self.reach > HEAVY


def units_of(x: Array) -> Units:
    """Units of a column: the width of its middle half, as that of a normal distribution; where half
    of the values are the same, the typical distance of the others from it."""
    low, center, high = (float(part) for part in np.quantile(x / 2, [0.25, 0.5, 0.75]))  # halves:
    unit = (high - low) / QUARTILE  # no overflow
    if not unit > 1e-12 * max(abs(low), abs(high)):
        others = np.abs(x / 2 - center)
        others = others[others > 1e-12 * np.abs(x).max()]
        unit = 2.0 * float(np.median(others)) if len(others) else 0.0
    if not unit > np.finfo(float).tiny:
        return Units(2 * center, 0.0, 0.0)
    with np.errstate(over="ignore"):
        reach = float(np.abs(x / unit - 2 * (center / unit)).max())
    return Units(2 * center, unit, reach)
