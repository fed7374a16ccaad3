"""What of the paper is to be reproduced: a data set, training sizes, networks and their grid."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from nngp.datasets.catalogue import IMAGE_SETS

DEPTHS = (1, 2, 3, 5, 7, 10, 20, 50, 100)  # app. D
ACTIVATIONS = ("relu", "tanh")  # the paper's
BEYOND = ("gelu", "erf")  # ours
WEIGHT_VARS, BIAS_VARS, GRID = (0.1, 5.0), (0.0, 2.0), 30  # app. D
SIZES = (100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 45_000, 50_000)  # app. D, table 2


@dataclass(frozen=True)
class Scope:
    """One data set and what is asked of it; `grid` values of each of the two variances."""

    dataset: str
    sizes: tuple[int, ...]
    depths: tuple[int, ...] = DEPTHS
    activations: tuple[str, ...] = ACTIVATIONS + BEYOND
    grid: int = GRID
    data: Path | None = None
    engine: str = "auto"

    @cached_property
    def weight_vars(self) -> tuple[float, ...]:
        """The grid's weight variances."""
        return values(WEIGHT_VARS, self.grid)

    @cached_property
    def bias_vars(self) -> tuple[float, ...]:
        """The grid's bias variances."""
        return values(BIAS_VARS, self.grid)


def values(ends: tuple[float, float], count: int) -> tuple[float, ...]:
    """Evenly spaced, as short decimals: they are names of runs as well as numbers."""
    return tuple(float(value) for value in np.linspace(*ends, count).round(4))


def default_sizes(dataset: str) -> tuple[int, ...]:
    """The sizes of the paper's table that the data set has; its largest is all there is."""
    entry = IMAGE_SETS[dataset]
    most = entry.train - entry.validation
    below = tuple(size for size in SIZES if size < most and size not in (45_000, 50_000))
    return (*below, most)
