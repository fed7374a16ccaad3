"""The target column: its known rows, its kind (numbers or classes), its values."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nngp.terminal.options import TargetKind
from nngp.terminal.output import DataError, UsageError, print_message
from nngp.terminal.tables import column_of
from nngp.terminal.words import kind_of

Labels = NDArray[np.integer | np.str_]
FEW_VALUES = 10  # different whole numbers up to which a target counts as classes


def known_rows(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """Rows whose target is not missing."""
    column = column_of(table, name)
    known = column.is_not_null()
    if column.dtype.is_float():
        known &= ~column.is_nan().fill_null(True)
    rows = table.filter(known)
    if rows.height == 0:
        raise DataError(f"column '{name}' is empty; there is nothing to learn from or compare with")
    if rows.height < table.height:
        print_message(f"{table.height - rows.height} row(s) without '{name}' are left out")
    return rows


def is_class(column: pl.Series, kind: TargetKind) -> bool:
    """Whether the target holds classes; prints the reason where `kind` is auto."""
    if kind != TargetKind.auto:
        return kind == TargetKind.classification
    classes, reason = False, "holds numbers"
    if not column.dtype.is_numeric():
        classes, reason = True, "is not numeric"
    elif column.dtype.is_integer() and column.n_unique() <= min(FEW_VALUES, len(column) / 2):
        classes, count = True, column.n_unique()
        reason = f"holds {count} whole numbers (--task regression if they are amounts)"
    task = "classification" if classes else "regression"
    print_message(f"the task is {task}: column '{column.name}' {reason}")
    return classes


def as_labels(column: pl.Series) -> Labels:
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
            f"regression needs numbers and column '{column.name}' holds {kind_of(column.dtype)}; "
            "use --task classification, or mend the column"
        )
    values = column.cast(pl.Float64).to_numpy()
    if not np.isfinite(values).all():
        raise DataError(f"column '{column.name}' holds infinite values; remove those rows")
    return np.asarray(values)
