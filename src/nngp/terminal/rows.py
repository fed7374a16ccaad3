"""What a table says of its rows beside inputs and target: their weights, the noise of each."""

from dataclasses import dataclass

import numpy as np

from nngp._arrays import Array, Index
from nngp.estimators.training_rows import as_copies
from nngp.frames import InputTable, learn_numbers
from nngp.terminal.options import FitOptions
from nngp.terminal.output import DataError, UsageError, print_message
from nngp.terminal.tables import column_of


@dataclass(frozen=True)
class FitRows:
    """Rows to learn from, with what `fit` is told of each of them."""

    table: InputTable
    told: dict[str, Array]  # keyword arguments of fit

    @property
    def fitted(self) -> Index:
        """The rows that the model has in the end: some weights are copies."""
        weights = self.told.get("sample_weight")
        return np.arange(len(self.table)) if weights is None else as_copies(weights)[0]


def aside(options: FitOptions) -> list[str]:
    """Columns that are no inputs, besides the target."""
    named = [*(options.drop or []), options.weights, options.noise_column]
    return [name for name in named if name is not None]


def check_aside(table: InputTable, options: FitOptions) -> None:
    """Raise UsageError unless each of these columns is there, and serves one purpose."""
    names = aside(options)
    for name in names:
        column_of(table, name)
    if options.target in names:
        purpose = "dropped" if options.target in (options.drop or []) else "anything else"
        raise UsageError(f"'{options.target}' is the target, so it cannot be {purpose}")
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice and twice[0] in (options.weights, options.noise_column):
        raise UsageError(f"column '{twice[0]}' is named for two purposes; leave one out")


def training_rows(table: InputTable, options: FitOptions, *, classes: bool) -> FitRows:
    """Read weights and noise; rows of weight 0 are left out, and that is said."""
    if classes and options.noise_column is not None:
        raise UsageError("--noise-column is for regression; leave it out")
    told = {}
    if options.noise_column is not None:
        told["noise_var"] = _amounts(table, options.noise_column, "variances of the noise")
    if options.weights is None:
        return FitRows(table, told)
    weights = _amounts(table, options.weights, "weights")
    counts = weights > 0
    if not counts.any():
        raise DataError(f"all weights in column '{options.weights}' are 0; nothing is left to fit")
    if not counts.all():
        print_message(f"{int((~counts).sum())} row(s) of weight 0 are left out")
    told = {name: values[counts] for name, values in told.items()}
    return FitRows(table.rows(counts), told | {"sample_weight": weights[counts]})


def _amounts(table: InputTable, name: str, what: str) -> Array:
    """The numbers of a column, none missing and none negative; DataError for others."""
    column = column_of(table, name)
    encoding = None if column.missing.all() else learn_numbers(column, table.decimal)
    if encoding is None:
        raise DataError(f"column '{name}' holds no numbers, and {what} must be; mend the column")
    values = encoding.read(column)
    lacking, negative = np.isnan(values), values < 0
    if lacking.any():
        raise DataError(
            f"column '{name}' lacks {int(lacking.sum())} value(s), and {what} are needed for every "
            "row; fill them in, or remove the rows"
        )
    if negative.any():
        raise DataError(
            f"column '{name}' holds {values[negative][0]:.6g}, and {what} must not be negative; "
            "mend the column"
        )
    return values
