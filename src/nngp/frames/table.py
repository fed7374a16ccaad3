"""A table: named columns, each a NumPy array of one kind with a mask of missing values."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nngp._arrays import Array, Index

Kind = Literal["number", "boolean", "date", "text", "category", "other"]
Mask = NDArray[np.bool_]
IN_WORDS: dict[Kind, str] = {
    "number": "numbers",
    "boolean": "true and false",
    "date": "dates",
    "text": "text",
    "category": "categories",
    "other": "neither numbers, text nor dates",
}


@dataclass(frozen=True)
class Column:
    """Values of one kind: numbers of any type, bool, datetime64[us], or str in an object array.

    Where `missing` is true the value has no meaning. Categories are text that is never read as
    numbers or dates.
    """

    name: str
    kind: Kind
    values: NDArray[Any]
    missing: Mask

    @classmethod
    def of_texts(cls, name: str, texts: Iterable[str]) -> "Column":
        """A column of text without missing values."""
        values = np.array(list(texts), dtype=object)
        return cls(name, "text", values, np.zeros(len(values), dtype=bool))

    def __len__(self) -> int:
        return len(self.values)

    @property
    def known(self) -> NDArray[Any]:
        """The values that are not missing."""
        return self.values[~self.missing]

    @property
    def is_text(self) -> bool:
        return self.kind in ("text", "category")

    def rows(self, wanted: Mask | Index) -> "Column":
        """The rows where `wanted` is true, or of these numbers."""
        return replace(self, values=self.values[wanted], missing=self.missing[wanted])

    def numbers(self) -> Array:
        """Numbers, booleans and dates (in days since 1970) as float64; NaN where missing."""
        out = np.full(len(self), np.nan)
        known = self.known
        if self.kind == "date":
            known = known.astype("datetime64[us]").astype(np.int64) / 86_400_000_000
        out[~self.missing] = known.astype(np.float64)
        return out

    @cached_property
    def texts(self) -> NDArray[Any]:
        """Values as text without surrounding blanks, empty where missing; 3.0 is '3'."""
        out = np.full(len(self), "", dtype=object)
        out[~self.missing] = [_as_text(value) for value in self.known.tolist()]
        return out


@dataclass(frozen=True)
class InputTable:
    """Columns of equal length and different names.

    `decimal` is the decimal mark of numbers in text where a column alone leaves it open, as
    "1,234" does; None if nothing is known of it. It is `certain` if other numbers show it, or the
    user named it, and a guess otherwise. An array's columns are not `named`: they are called x0,
    x1, ... as scikit-learn does.
    """

    columns: tuple[Column, ...]
    decimal: str | None = None
    certain: bool = False
    named: bool = True
    # What was learned from this table: the command shows it before a fit takes it.
    learned: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)

    @classmethod
    def of_array(cls, X: Array, names: Sequence[str] | None = None) -> "InputTable":
        """The table whose columns are those of an array of numbers; NaN is a missing value."""
        called = [f"x{j}" for j in range(X.shape[1])] if names is None else names
        columns = zip(called, X.T, strict=True)
        found = tuple(Column(name, "number", v, np.isnan(v)) for name, v in columns)
        return cls(found, named=names is not None)

    def __post_init__(self) -> None:
        twice = [name for name, count in Counter(self.names).items() if count > 1]
        if twice:
            raise ValueError(f"the table has more than one column '{twice[0]}'; rename one of them")
        if len({len(column) for column in self.columns}) > 1:
            raise ValueError("the columns of the table differ in length; make them equally long")

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def column(self, name: str) -> Column:
        """The column of that name; KeyError if there is none."""
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}

    def rows(self, wanted: Mask | Index) -> "InputTable":
        """The rows where `wanted` is true, or of these numbers."""
        return replace(self, columns=tuple(column.rows(wanted) for column in self.columns))

    def without(self, names: Iterable[str]) -> "InputTable":
        """All columns but those."""
        dropped = set(names)
        kept = tuple(column for column in self.columns if column.name not in dropped)
        return replace(self, columns=kept)


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()
