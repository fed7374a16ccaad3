"""Table of the networks tried: `selection_` of the estimators."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nngp.predictors.selection.problem import Hyperparameters


class SelectionRow(NamedTuple):
    """One ascent, or one network of the grid."""

    stage: str
    n: int  # points it was computed on
    score: float
    log_evidence: float  # of the scaled targets
    evaluations: int
    seconds: float
    hyperparameters: Hyperparameters


@dataclass
class SelectionTable:
    """Rows in the order in which they were tried."""

    rows: list[SelectionRow] = field(default_factory=list)

    def columns(
        self, chosen: Hyperparameters, in_units: Callable[[float, int], float]
    ) -> dict[str, NDArray[Any]]:
        """Equally long arrays by name, as `pandas.DataFrame` takes them; none without rows.

        `in_units` brings the log density of so many scaled targets to the units of the data.
        """
        records = [_record(row, chosen) for row in self.rows]
        for row, record in zip(self.rows, records, strict=True):
            record["log_evidence"] = in_units(row.log_evidence, row.n)
        names = list(records[0]) if records else []
        return {name: as_column([record[name] for record in records]) for name in names}


def _record(row: SelectionRow, chosen: Hyperparameters) -> dict[str, object]:
    net = row.hyperparameters.architecture
    return {
        "stage": row.stage,
        "n": row.n,
        "score": row.score,
        "log_evidence": row.log_evidence,
        "evaluations": row.evaluations,
        "seconds": row.seconds,
        "activation": net.activation.name,
        "depth": net.depth,
        "weight_var": net.weight_var,
        "bias_var": net.bias_var,
        "noise_var": row.hyperparameters.noise_var,
        "chosen": row.hyperparameters is chosen,
    }


def as_column(values: Sequence[object]) -> NDArray[Any]:
    """Array of the values; one variance per layer stays together as a tuple."""
    if any(isinstance(value, tuple | list) for value in values):
        out = np.empty(len(values), dtype=object)
        out[:] = [tuple(value) if isinstance(value, list) else value for value in values]
        return out
    return np.asarray(values)
