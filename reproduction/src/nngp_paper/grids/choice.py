"""Choosing networks from grids: by validation, as the paper does, or by the evidence.

Nothing is ever chosen by its test scores; the highest of them is only reported as a bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nngp_paper.arrays import Array, Index, Mask
from nngp_paper.grids.arrays import SCORES, Grid


@dataclass(frozen=True)
class Chosen:
    """A network of a grid and its scores."""

    depth: int
    weight_var: float
    bias_var: float
    val_accuracy: float
    val_mse: float
    test_accuracy: float
    test_mse: float
    log_evidence: float
    noise_var: float

    @property
    def setting(self) -> str:
        """Depth, weight and bias variance, as the paper writes them."""
        return f"{self.depth}-{self.weight_var:.2f}-{self.bias_var:.2f}"


def by_validation(grids: Sequence[Grid], count: int | None = 1) -> list[Chosen]:
    """The `count` networks of largest validation accuracy (fewer if the grids have fewer; all if it
    is None), the best first; ties go to the lower validation error."""
    accuracy, error = _all(grids, "val_accuracy"), _all(grids, "val_mse")
    return _take(grids, np.lexsort((error, -accuracy)), np.isfinite(accuracy), count)


def by_error(grids: Sequence[Grid]) -> list[Chosen]:
    """The network of smallest validation error; none if the grids have none."""
    error = _all(grids, "val_mse")
    return _take(grids, np.argsort(error, kind="stable"), np.isfinite(error), 1)


def by_evidence(grids: Sequence[Grid]) -> Chosen | None:
    """The network under which the training set is the most probable; None if there is none."""
    evidence = _all(grids, "log_evidence")
    found = _take(grids, np.argsort(-evidence, kind="stable"), np.isfinite(evidence), 1)
    return found[0] if found else None


def highest(grids: Sequence[Grid], score: str) -> float:
    """The largest value of a score in the grids, which must hold one."""
    return float(np.nanmax(_all(grids, score)))


def _take(grids: Sequence[Grid], order: Index, known: Mask, count: int | None) -> list[Chosen]:
    places = order[known[order]][:count]
    edges = np.cumsum([0, *(grid.tried.size for grid in grids)])
    owners = np.searchsorted(edges, places, side="right") - 1
    return [
        _chosen(grids[owner], int(place - edges[owner]))
        for owner, place in zip(owners, places, strict=True)
    ]


def _chosen(grid: Grid, place: int) -> Chosen:
    row, column = divmod(place, len(grid.bias_vars))
    return Chosen(
        grid.depth,
        float(grid.weight_vars[row]),
        float(grid.bias_vars[column]),
        *(float(grid.scores[score][row, column]) for score in SCORES),
    )


def _all(grids: Sequence[Grid], score: str) -> Array:
    return np.concatenate([np.empty(0), *(grid.scores[score].ravel() for grid in grids)])
