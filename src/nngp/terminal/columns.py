"""Mixed columns as numbers, with scikit-learn's transformers, and remarks on what was done.

Numbers that are missing become the column's median (`SimpleImputer`); text becomes one column for
each value, a missing one included (`OneHotEncoder`). What was learned is a plain dictionary, kept
in the model's file, and the transformers are made from it again.
"""

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from nngp._arrays import Array
from nngp.terminal.output import DataError, UsageError
from nngp.terminal.tables import column_of
from nngp.terminal.words import kind_of

IDENTIFIER = 20  # rows from which a text column without repetition is taken for an identifier


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers; `fill` stands for those that are missing."""

    name: str
    fill: float

    @classmethod
    def learn(cls, column: pl.Series) -> "NumberColumn":
        imputer = SimpleImputer(strategy="median").fit(_numbers(column)[:, None])
        return cls(column.name, float(imputer.statistics_[0]))

    def encode(self, column: pl.Series) -> Array:
        try:
            values = _numbers(column)[:, None]
        except (pl.exceptions.PolarsError, TypeError, ValueError):
            now = kind_of(column.dtype)
            raise DataError(
                f"column '{self.name}' held numbers in training and now holds {now}"
            ) from None
        imputer = SimpleImputer(strategy="constant", fill_value=self.fill, keep_empty_features=True)
        return np.asarray(imputer.fit_transform(values))

    @property
    def features(self) -> list[str]:
        return [self.name]


@dataclass(frozen=True)
class TextColumn:
    """A column of text, whose categories are inputs of their own; None is a missing value."""

    name: str
    categories: list[str | None]

    @classmethod
    def learn(cls, column: pl.Series) -> "TextColumn":
        encoder = OneHotEncoder(sparse_output=False).fit(_texts(column)[:, None])
        return cls(column.name, list(encoder.categories_[0]))

    def encode(self, column: pl.Series) -> Array:
        known = np.array(self.categories, dtype=object)
        encoder = OneHotEncoder(categories=[known], handle_unknown="ignore", sparse_output=False)
        encoder.fit(known[:1, None])
        return np.asarray(encoder.transform(_texts(column)[:, None]))

    @property
    def features(self) -> list[str]:
        return [f"{self.name}={'(missing)' if c is None else c}" for c in self.categories]


@dataclass(frozen=True)
class Columns:
    """The inputs of a table as numbers: the encoding of each column."""

    numbers: list[NumberColumn]
    texts: list[TextColumn]
    remarks: list[str] = field(default_factory=list)

    @classmethod
    def learn(cls, table: pl.DataFrame) -> "Columns":
        """Learn the encoding of a training table without its target."""
        out = cls([], [], [])
        for column in table:
            reason = _reason_to_skip(column)
            if reason:
                out.remarks.append(f"column '{column.name}' is left out: {reason}")
            elif _is_number(column):
                out.numbers.append(NumberColumn.learn(column))
            else:
                out.texts.append(TextColumn.learn(column))
        if not out.numbers and not out.texts:
            reasons = "; ".join(out.remarks[:5])
            raise DataError(f"no column is left to learn from: {reasons}")
        out.remarks.extend(_missing(table, out))
        out.remarks.extend(
            f"column '{c.name}' is text: one input for each of its {len(c.categories)} values"
            for c in out.texts
        )
        return out

    def encode(self, table: pl.DataFrame) -> tuple[Array, list[str]]:
        """The inputs as numbers, and remarks on values never seen in training."""
        try:
            parts = [c.encode(column_of(table, c.name)) for c in self._every]
        except UsageError as missing:
            raise DataError(str(missing)) from None
        remarks = _missing(table, self)
        for column, part in zip(self.texts, parts[len(self.numbers) :], strict=True):
            unknown = int((part.sum(axis=1) == 0).sum())
            if unknown:
                remarks.append(
                    f"column '{column.name}' has {unknown} value(s) that training did not; they "
                    "count as none of the known ones"
                )
        return np.column_stack(parts), remarks

    @property
    def features(self) -> list[str]:
        """Names of the encoded inputs."""
        return [name for column in self._every for name in column.features]

    @property
    def _every(self) -> list[NumberColumn | TextColumn]:
        return [*self.numbers, *self.texts]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Columns":
        numbers = [NumberColumn(**row) for row in values["numbers"]]
        return cls(numbers, [TextColumn(**row) for row in values["texts"]], values["remarks"])


def _is_number(column: pl.Series) -> bool:
    return column.dtype.is_numeric() or column.dtype == pl.Boolean


def _numbers(column: pl.Series) -> Array:
    values = column.cast(pl.Float64).to_numpy()
    if np.isinf(values).any():
        raise DataError(f"column '{column.name}' holds infinite values; replace or remove them")
    return np.asarray(values)


def _texts(column: pl.Series) -> NDArray[Any]:
    return np.array(column.cast(pl.String).to_list(), dtype=object)


def _check_not_nearly_numeric(column: pl.Series) -> None:
    """Raise DataError for numbers with a few texts among them: all would become categories."""
    known = column.cast(pl.String).drop_nulls()
    odd = known.filter(known.cast(pl.Float64, strict=False).is_null())
    if 0 < len(odd) <= 0.2 * len(known):
        raise DataError(
            f"column '{column.name}' holds numbers but for {odd[0]!r} ({len(odd)} value(s)); "
            "replace it, or leave the cell empty"
        )


def _reason_to_skip(column: pl.Series) -> str:
    """The reason to leave a column out, or an empty text."""
    known = column.drop_nulls()
    if known.dtype.is_float():
        known = known.drop_nans()
    if len(known) == 0:
        return "all its values are missing"
    if column.dtype.is_temporal():
        return "dates and times are not understood; turn them into numbers first"
    if column.dtype.is_nested() or column.dtype in (pl.Object, pl.Binary):
        return f"it holds {kind_of(column.dtype)}, neither numbers nor text"
    if known.n_unique() == 1 and len(known) == len(column):
        return "it is constant"
    if not _is_number(column):
        _check_not_nearly_numeric(column)
    if not _is_number(column) and known.n_unique() == len(known) and len(known) >= IDENTIFIER:
        return "each row has a text of its own, as identifiers do"
    return ""


def _missing(table: pl.DataFrame, columns: Columns) -> list[str]:
    """Remarks on missing numbers."""
    out = []
    for column in columns.numbers:
        count = int(np.isnan(_numbers(column_of(table, column.name))).sum())
        if count:
            out.append(
                f"column '{column.name}' lacks {count} value(s); the training median "
                f"{column.fill:.6g} stands for them"
            )
    return out
