"""The column to predict: numbers or classes, decided aloud."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nngp.terminal.speech import DataError, UsageError, say
from nngp.terminal.tables import column_of
from nngp.terminal.task import Task

FEW_VALUES = 10  # different whole numbers up to which a target counts as classes


def known_rows(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """The rows whose target is not missing."""
    column = column_of(table, name)
    known = column.is_not_null()
    if column.dtype.is_float():
        known &= ~column.is_nan().fill_null(True)
    rows = table.filter(known)
    if rows.height == 0:
        raise DataError(f"column '{name}' is empty; there is nothing to learn from or compare with")
    if rows.height < table.height:
        say(f"{table.height - rows.height} row(s) without '{name}' are left out")
    return rows


def is_class(column: pl.Series, task: Task) -> bool:
    """Whether the target holds classes; says why, if it was asked to decide."""
    if task != Task.auto:
        return task == Task.classification
    out, why = False, "holds numbers"
    if not column.dtype.is_numeric():
        out, why = True, "is not numeric"
    elif column.dtype.is_integer() and 2 * column.n_unique() <= len(column):
        count = column.n_unique()
        if count <= FEW_VALUES:
            out, why = True, f"holds {count} whole numbers (--task regression if they are amounts)"
    say(f"the task is {'classification' if out else 'regression'}: column '{column.name}' {why}")
    return out


def as_labels(column: pl.Series) -> NDArray[Any]:
    """Class labels: whole numbers as such, anything else as text."""
    if column.dtype.is_float() and column.is_infinite().any():
        raise DataError(f"column '{column.name}' holds infinite values; remove those rows")
    if column.dtype.is_float() and (column == column.round()).all():
        column = column.cast(pl.Int64)
    if column.dtype.is_integer():
        return np.asarray(column.to_numpy())
    return np.array(column.cast(pl.String).to_list(), dtype=str)


def as_amounts(column: pl.Series) -> NDArray[np.float64]:
    """Numbers to regress on."""
    if not column.dtype.is_numeric():
        raise UsageError(
            f"regression needs numbers and column '{column.name}' holds {column.dtype}; use --task "
            "classification, or mend the column"
        )
    values = column.cast(pl.Float64).to_numpy()
    if not np.isfinite(values).all():
        raise DataError(f"column '{column.name}' holds infinite values; remove those rows")
    return np.asarray(values)
