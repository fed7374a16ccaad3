"""Rows of tables 1 and 2 as named columns, and as a CSV file."""

import csv
import os
from collections.abc import Iterable
from typing import Any

from nngp._files import replaced
from nngp.finite.cells import Found
from nngp.paper.grids.choice import Chosen
from nngp.paper.tables import AccuracyTable, Row, accuracy_of


def as_columns(row: Row) -> dict[str, Any]:
    """Plain values by column, None where there is none. Accuracies are fractions; differences and
    the standard error are points (hundredths). `nn` is a finite network, `nngp` an infinite one."""
    return {
        "dataset": row.dataset,
        "train": row.train,
        "activation": row.activation,
        "paper_nn": row.paper_finite and row.paper_finite.test_accuracy,
        "paper_nn_setting": row.paper_finite and row.paper_finite.setting,
        **_finite(row.finite),
        "paper_nngp": row.paper and row.paper.test_accuracy,
        "paper_nngp_setting": row.paper and row.paper.setting,
        "table_at_paper_setting": accuracy_of(row.lookup),
        "exact_at_paper_setting": accuracy_of(row.exact),
        **_infinite("nngp", row.chosen),
        "standard_error": row.standard_error,
        "difference": row.difference,
        "best_25_lowest": row.top and row.top[0],
        "best_25_highest": row.top and row.top[1],
        **_infinite("evidence", row.evidence),
        "evidence_gain": row.evidence_gain,
        "networks": row.networks,
        "networks_wanted": row.wanted,
        "seconds": row.seconds,
        "device": ", ".join(row.devices),
    }


def write_csv(tables: Iterable[AccuracyTable], path: str | os.PathLike[str]) -> int:
    """Write all rows of these tables into one file, in one step; gives the number of rows."""
    rows = [as_columns(row) for table in tables for row in table.rows]
    if not rows:
        raise ValueError("there are no rows to write; give at least one table")
    with replaced(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows({name: _short(value) for name, value in row.items()} for row in rows)
    return len(rows)


def _finite(found: Found | None) -> dict[str, Any]:
    names = ("nn", "nn_mse", "nn_setting", "nn_trials")
    if found is None:
        return dict.fromkeys(names)
    config, result = found.best.config, found.result
    setting = (
        f"{found.cell.depth}-{found.cell.width}-{config['weight_var']:.2f}-{config['bias_var']:.2f}"
    )
    values = (result["test_accuracy"], result["test_mse"], setting, found.trials)
    return dict(zip(names, values, strict=True))


def _infinite(name: str, chosen: Chosen | None) -> dict[str, Any]:
    return {
        name: chosen and chosen.test_accuracy,
        f"{name}_mse": chosen and chosen.test_mse,
        f"{name}_setting": chosen and chosen.setting,
    }


def _short(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value
