"""Networks that could be the best on a larger training set, by what smaller sets have shown.

The best network of a training set was never far behind on the next smaller one. Its shortfall there
is its validation error over the least, minus one. The bound is the largest shortfall of all
neighbouring pairs of training sets whose grids are complete. If the pairs are exchangeable, the
best network of the next set is within the bound of m pairs with probability m / (m + 1).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nngp_paper.grids.arrays import Grids
from nngp_paper.grids.choice import Chosen, by_validation


@dataclass(frozen=True)
class Candidates:
    """Networks within a bound of the best on the training set of `train` points, the best first.
    `bound` is the largest shortfall of `pairs` pairs of training sets; None where no pair of
    complete grids is known, and all networks are candidates."""

    train: int
    networks: Sequence[Chosen]
    bound: float | None
    pairs: int


def candidates(grids: Grids, size: int, activation: str) -> Candidates | None:
    """Candidates for a training set, by the next smaller one with networks of the activation; None
    if there is none."""
    smaller = [train for train in _sizes(grids, activation) if train < size]
    if not smaller:
        return None
    found = by_validation(grids.of(smaller[-1], activation), None)
    known = shortfalls(grids, smaller, activation)
    if not found or not known:
        return Candidates(smaller[-1], found, None, 0)
    bound = max(known.values())
    most = (1 - found[0].val_accuracy) * (1 + bound)
    near = [one for one in found if 1 - one.val_accuracy <= most + 1e-12]
    return Candidates(smaller[-1], near, bound, len(known))


def shortfalls(grids: Grids, sizes: Sequence[int], activation: str) -> dict[tuple[int, int], float]:
    """For each neighbouring pair of complete rows: how far behind the network that is the best on
    the larger set was on the smaller one."""
    complete = [size for size in sizes if grids.row_complete(size, activation)]
    found = {}
    for small, large in pairwise(complete):
        best, later = (by_validation(grids.of(size, activation)) for size in (small, large))
        if best and later and (error := 1 - best[0].val_accuracy) > 0:
            found[small, large] = (1 - _accuracy(grids, small, activation, later[0])) / error - 1
    return {pair: value for pair, value in found.items() if np.isfinite(value)}


def _accuracy(grids: Grids, train: int, activation: str, network: Chosen) -> float:
    """The validation accuracy of a network on another training set."""
    grid = grids.by_name[train, activation, network.depth]
    row = int(np.flatnonzero(grid.weight_vars == network.weight_var)[0])
    column = int(np.flatnonzero(grid.bias_vars == network.bias_var)[0])
    return float(grid.scores["val_accuracy"][row, column])


def _sizes(grids: Grids, activation: str) -> list[int]:
    return sorted({train for train, name, _ in grids.by_name if name == activation})
