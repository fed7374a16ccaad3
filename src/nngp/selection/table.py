"""Table of the networks tried: `selection_` of the estimators."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nngp.selection.families import name_of
from nngp.selection.inputs import HyperparameterPoint


class SelectionRow(NamedTuple):
    """One ascent."""

    stage: str
    n: int  # points it was computed on
    score: float
    log_evidence: float  # of the targets in their own units
    evaluations: int
    seconds: float
    setting: HyperparameterPoint
    maps: int = 0  # columns that have a map
    transform: str = "identity"  # of the targets


@dataclass
class SelectionTable:
    """Rows in the order in which they were tried, and the setting that was chosen."""

    rows: list[SelectionRow] = field(default_factory=list)
    chosen: HyperparameterPoint | None = None

    def columns(self) -> dict[str, NDArray[Any]]:
        """Equally long arrays by name, as `pandas.DataFrame` takes them; none without rows."""
        records = [self._record(row) for row in self.rows]
        unused = [name for name in ("whitening", "invariance") if not _has(records, name)]
        for record in records:
            for name in unused:
                del record[name]
        names = list(records[0]) if records else []
        return {name: as_column([record[name] for record in records]) for name in names}

    def _record(self, row: SelectionRow) -> dict[str, object]:
        net = row.setting.base
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
            "noise_var": row.setting.noise_var,
            "maps": row.maps,
            "target_transform": row.transform,
            "whitening": row.setting.whitening,
            "invariance": name_of(row.setting.invariance),
            "chosen": row.setting is self.chosen,
        }


def _has(records: list[dict[str, object]], name: str) -> bool:
    return any(record[name] for record in records)


def as_column(values: Sequence[object]) -> NDArray[Any]:
    """Array of the values; one variance per layer stays together as a tuple."""
    if any(isinstance(value, tuple | list) for value in values):
        out = np.empty(len(values), dtype=object)
        out[:] = [tuple(value) if isinstance(value, list) else value for value in values]
        return out
    return np.asarray(values)
