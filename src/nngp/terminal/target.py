"""The target column (its kind, numbers or classes, and its values) and the columns that describe
rows: weights, and the noise of each."""

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nngp._arrays import Array, Index
from nngp._records import from_plain, to_plain
from nngp.estimators.training_rows import as_copies
from nngp.frames import (
    Column,
    InputTable,
    NumberEncoding,
    TextKind,
    kind_of_text,
    learn_numbers,
    missing_texts,
    reading_of_amounts,
)
from nngp.terminal.options import FitOptions, TargetKind
from nngp.terminal.output import DataError, UsageError, print_message
from nngp.terminal.tables import column_of

Labels = NDArray[np.integer | np.str_]
FEW_VALUES = 10  # different whole numbers up to which a target counts as classes
LABELS = ("None",)  # a missing value among numbers, but a class among words
WHOLE = re.compile(r"[-+]?\d+")


@dataclass(frozen=True)
class Target:
    """The name of a target, and how it is read as numbers; None for a target of words."""

    name: str
    numbers: NumberEncoding | None

    def for_table(self, table: InputTable) -> "Target":
        """The target as numbers are written in this table; says so if training wrote others."""
        if self.numbers is None:
            return self
        here = self.numbers.for_table(table)
        if here != self.numbers:
            print_message(reading_of_amounts([table.column(self.name)], here.format))
        return replace(self, numbers=here)

    def known(self, table: InputTable) -> InputTable:
        """Rows whose target is not missing; says how many are dropped."""
        column = table.column(self.name)
        if self.numbers is not None:
            known = ~np.isnan(self.numbers.read(column))
        elif column.is_text:
            known = ~missing_texts(column, among_values=False, besides=LABELS)
        else:
            known = ~column.missing
        if not known.any():
            raise _empty(self.name)
        if not known.all():
            print_message(f"{int((~known).sum())} row(s) without '{self.name}' are dropped")
        return table.rows(known)

    def amounts(self, column: Column) -> Array:
        """Numbers to regress on."""
        if self.numbers is None:
            raise UsageError(
                f"regression needs numbers and column '{self.name}' holds words such as "
                f"'{column.texts[0]}'; use --task classification, or correct the column"
            )
        return self.numbers.read(column)

    def labels(self, column: Column) -> Labels:
        """Class labels: whole numbers as such, anything else as text."""
        if self.numbers is not None:
            values = self.numbers.read(column)
            if (values == np.round(values)).all():
                return values.astype(np.int64)
        return np.array(column.texts.tolist(), dtype=str)

    def as_notes(self) -> dict[str, Any]:
        """Plain values for the notes of a model."""
        numbers = None if self.numbers is None else to_plain(self.numbers)[0]
        return {"target": self.name, "target_numbers": numbers}

    @classmethod
    def from_notes(cls, notes: dict[str, Any]) -> "Target | None":
        """The target that a model's notes describe, if any."""
        name, numbers = notes.get("target"), notes.get("target_numbers")
        if not isinstance(name, str):
            return None
        return cls(name, None if numbers is None else from_plain(NumberEncoding, numbers, {}))


def learn_target(table: InputTable, name: str, task: TargetKind) -> tuple[Target, bool]:
    """Find out how to read a target, and whether it holds classes; prints the reasons."""
    column = column_of(table, name)
    found = _kind(column, table.decimal, task)
    if _is_empty(column, found):
        raise _empty(name)
    if found.kind != "number":
        _check_words(column, found, task)
        return Target(name, None), task != TargetKind.regression
    numbers = NumberEncoding.learn(column, found if column.is_text else None)
    values = numbers.read(column)
    _check_varies(column, values[~np.isnan(values)])
    if column.is_text and not found.plain:
        if task == TargetKind.classification:
            return Target(name, None), True
        print_message(reading_of_amounts([column], numbers.format))
    return Target(name, numbers), _are_classes(column, numbers, task)


def _check_varies(column: Column, values: NDArray[Any]) -> None:
    """Raise DataError for a target that is the same in every row."""
    if len(set(values.tolist())) == 1:
        value = f"{values[0]:.15g}" if values.dtype.kind == "f" else f"'{values[0]}'"
        raise DataError(
            f"column '{column.name}' is {value} in every row; there is nothing to learn"
        )


def _kind(column: Column, decimal: str | None, task: TargetKind) -> TextKind:
    """The kind of a target; numbers with mistakes are words where classes are asked for."""
    if not column.is_text:
        return TextKind(column.kind)
    try:
        return kind_of_text(column, decimal)
    except ValueError:
        if task == TargetKind.classification:
            return TextKind("text")
        raise


def _is_empty(column: Column, found: TextKind) -> bool:
    if not column.is_text:
        return bool(column.missing.all())
    words = found.kind in ("text", "category")
    besides = LABELS if words else ()
    return bool(missing_texts(column, among_values=not words, besides=besides).all())


def _empty(name: str) -> DataError:
    return DataError(f"column '{name}' is empty; there is nothing to learn from or compare with")


def _check_words(column: Column, found: TextKind, task: TargetKind) -> None:
    """Raise UsageError where the task is not classification, and the target hardly classes."""
    known = column.texts[~missing_texts(column, among_values=False, besides=LABELS)]
    _check_varies(column, known)
    if task == TargetKind.classification:
        return
    if found.kind in ("date", "other"):
        what = "dates" if found.kind == "date" else "neither numbers nor words"
        raise UsageError(
            f"column '{column.name}' holds {what}, which cannot be predicted; turn them into "
            "numbers first"
        )
    if task == TargetKind.auto:
        count = len(set(known.tolist()))
        if count > max(2, len(known) / 2):
            raise UsageError(
                f"column '{column.name}' holds {count} different words in {len(known)} rows, such "
                f"as '{known[0]}'; use --task classification if they are classes"
            )
        print_message(f"the task is classification: column '{column.name}' is not numeric")


def _are_classes(column: Column, numbers: NumberEncoding, task: TargetKind) -> bool:
    """Whether numbers are classes; prints the reason where the task is auto."""
    if task != TargetKind.auto:
        return task == TargetKind.classification
    values = numbers.read(column)
    values = values[~np.isnan(values)]
    count = len(np.unique(values))
    classes, reason = False, "holds numbers"
    if _are_whole(column) and count <= min(FEW_VALUES, len(values) / 2):
        classes = True
        reason = f"holds {count} whole numbers (--task regression if they are amounts)"
    name = "classification" if classes else "regression"
    print_message(f"the task is {name}: column '{column.name}' {reason}")
    return classes


def _are_whole(column: Column) -> bool:
    """Whether numbers are written without a decimal part."""
    if column.is_text:
        known = column.texts[~missing_texts(column, among_values=True)]
        return all(WHOLE.fullmatch(text) for text in known.tolist())
    known = column.known
    lost = column.missing.any()  # integers with gaps come as floats
    return known.dtype.kind in "iu" or bool(lost and (known == np.round(known)).all())


@dataclass(frozen=True)
class FitRows:
    """Rows to learn from, with the keyword arguments of `fit` that describe them."""

    table: InputTable
    arguments: dict[str, Array]  # of the estimator's fit

    @property
    def fitted(self) -> Index:
        """The rows that the model has in the end: some weights are copies."""
        weights = self.arguments.get("sample_weight")
        return np.arange(len(self.table)) if weights is None else as_copies(weights)[0]


def set_aside(options: FitOptions) -> list[str]:
    """Columns other than the target that are not inputs."""
    named = [*(options.drop or []), options.weights, options.noise_column]
    return [name for name in named if name is not None]


def check_set_aside(table: InputTable, options: FitOptions) -> None:
    """Raise UsageError unless each of these columns is there, and serves one purpose."""
    names = set_aside(options)
    for name in names:
        column_of(table, name)
    if options.target in names:
        purpose = "dropped" if options.target in (options.drop or []) else "anything else"
        raise UsageError(f"'{options.target}' is the target, so it cannot be {purpose}")
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice and twice[0] in (options.weights, options.noise_column):
        raise UsageError(f"column '{twice[0]}' is named for two purposes; remove one of them")


def training_rows(table: InputTable, options: FitOptions, *, classes: bool) -> FitRows:
    """Read weights and noise; rows of weight 0 are dropped, with a message."""
    if classes and options.noise_column is not None:
        raise UsageError("--noise-column is for regression; remove it")
    arguments = {}
    if options.noise_column is not None:
        arguments["noise_var"] = _amounts(table, options.noise_column, "variances of the noise")
    if options.weights is None:
        return FitRows(table, arguments)
    weights = _amounts(table, options.weights, "weights")
    counts = weights > 0
    if not counts.any():
        raise DataError(f"all weights in column '{options.weights}' are 0; nothing is left to fit")
    if not counts.all():
        print_message(f"{int((~counts).sum())} row(s) of weight 0 are dropped")
    arguments = {name: values[counts] for name, values in arguments.items()}
    return FitRows(table.rows(counts), arguments | {"sample_weight": weights[counts]})


def _amounts(table: InputTable, name: str, what: str) -> Array:
    """The numbers of a column, none missing and none negative; DataError for others."""
    column = column_of(table, name)
    encoding = None if column.missing.all() else learn_numbers(column, table.decimal)
    if encoding is None:
        raise DataError(f"column '{name}' holds no numbers, and {what} must be; correct the column")
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
            "correct the column"
        )
    return values
