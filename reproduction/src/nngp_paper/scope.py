"""The ranges of sizes, depths and variances, and the part of them to reproduce.

The variances are those of the paper's app. D, the sizes those of its tables. The paper does not
list the depths that it tried: here they are those of the infinite networks in its tables.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from nngp_paper.datasets.catalogue import IMAGE_SETS, ImageSet
from nngp_paper.ranges import BIAS_VAR_RANGE, GRID_SIZE, WEIGHT_VAR_RANGE, evenly_spaced

QUICK = "digits"  # the data set for a first look: less of everything by default
DEPTHS = (1, 2, 3, 5, 7, 10, 20, 50, 100)
ACTIVATIONS = ("relu", "tanh")  # the paper's
MORE_ACTIVATIONS = ("gelu", "erf", "silu")  # not in the paper
STEP = 3  # every third value of both variances for these
# Activations without a closed form whose variance grows without bound beyond a weight variance: a
# curve takes minutes there. Deeper than this, only smaller weight variances are tried.
SLOW = {"silu": (5, 2.0)}
SIZES = (100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 45_000, 50_000)


@dataclass(frozen=True)
class Scope:
    """One data set, training sizes and networks; `grid` values of each of the two variances, and
    `relative_grid` values (by default as many) where noise is relative to the kernel's scale.

    Examples
    --------
    >>> from nngp_paper.scope import Scope
    >>> scope = Scope("digits", sizes=(100, 1000), depths=(1, 3), grid=3)
    >>> [round(value, 2) for value in scope.weight_vars], scope.held_out
    ([0.1, 2.55, 5.0], {'validation': 297, 'test': 500})
    """

    dataset: str
    sizes: tuple[int, ...]
    depths: tuple[int, ...] = DEPTHS
    activations: tuple[str, ...] = ACTIVATIONS + MORE_ACTIVATIONS
    grid: int = GRID_SIZE
    data: Path | None = None
    engine: str = "auto"
    relative_grid: int | None = None

    @cached_property
    def weight_vars(self) -> tuple[float, ...]:
        """The grid's weight variances."""
        return evenly_spaced(WEIGHT_VAR_RANGE, self.grid)

    @cached_property
    def bias_vars(self) -> tuple[float, ...]:
        """The grid's bias variances."""
        return evenly_spaced(BIAS_VAR_RANGE, self.grid)

    @property
    def paper_activations(self) -> tuple[str, ...]:
        """The paper's activations in the scope; all of the scope if it has none of the paper's."""
        return tuple(n for n in ACTIVATIONS if n in self.activations) or self.activations

    def step(self, activation: str) -> int:
        """The step through the grid's values: 1 for the paper's activations; 3 for others beside
        these, or less where so few values would be left."""
        return 1 if activation in self.paper_activations else max(1, min(STEP, self.grid // STEP))

    def weight_vars_of(self, activation: str, depth: int) -> tuple[float, ...]:
        """The weight variances that are tried with an activation at a depth."""
        shallow, most = SLOW.get(activation, (depth, math.inf))
        values = self.weight_vars[:: self.step(activation)]
        return tuple(value for value in values if depth <= shallow or value <= most)

    def bias_vars_of(self, activation: str) -> tuple[float, ...]:
        """The bias variances that are tried with an activation."""
        return self.bias_vars[:: self.step(activation)]

    def networks(self, activation: str, depth: int) -> int:
        """Number of networks of one depth."""
        return len(self.weight_vars_of(activation, depth)) * len(self.bias_vars_of(activation))

    @property
    def relative(self) -> "Scope":
        """The scope of the grids with relative noise."""
        return replace(self, grid=self.relative_grid or self.grid)

    @property
    def images(self) -> ImageSet:
        """The catalogue's entry of the data set."""
        return IMAGE_SETS[self.dataset]

    @property
    def held_out(self) -> dict[str, int]:
        """Numbers of validation and test points, as they stand in configurations of runs."""
        return {"validation": self.images.validation, "test": self.images.test}


def default_sizes(dataset: str) -> tuple[int, ...]:
    """The sizes of the paper's table that the data set has; the largest is the whole set.

    Examples
    --------
    >>> from nngp_paper.scope import default_sizes
    >>> default_sizes("mnist")
    (100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000)
    """
    most = IMAGE_SETS[dataset].most_training
    below = tuple(size for size in SIZES if size < most and size not in (45_000, 50_000))
    return (*below, most)
