"""The ranges of the paper's grids over the two variances (app. D)."""

import numpy as np

WEIGHT_VAR_RANGE, BIAS_VAR_RANGE = (0.1, 5.0), (0.0, 2.0)
GRID_SIZE = 30  # values of each variance


def evenly_spaced(ends: tuple[float, float], count: int) -> tuple[float, ...]:
    """Evenly spaced numbers as short decimals: they are part of the names of runs."""
    return tuple(float(value) for value in np.linspace(*ends, count).round(4))
