"""The encoder of a table: learned in `fit`, saved with the model, applied in `predict`."""

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nngp._arrays import Array
from nngp.frames.amounts import AmountFormat, plain_numbers
from nngp.frames.calendar import ORDERS
from nngp.frames.category import MOST_LEVELS, CategoryEncoding
from nngp.frames.date import DateEncoding
from nngp.frames.number import NumberEncoding
from nngp.frames.table import IN_WORDS, Column, InputTable, Mask
from nngp.frames.texts import TextKind, kind_of_text, missing_texts, with_decimal_mark

Encoding = NumberEncoding | DateEncoding | CategoryEncoding
IDENTIFIER = 20  # rows from which a text column almost without repetition is an identifier
ALMOST = 0.9  # share of different texts from which there is almost no repetition
NAMED = 5  # columns that a remark names
SHOWN = 30  # names of columns in an error message


@dataclass(frozen=True)
class Columns:
    """How the columns of a table become inputs: an encoding for each column that is used.

    `names` are all columns of the training table. `left_out` says why some are not used, `merged`
    which of the others have more values than inputs, and `remarks` how the others are read. The
    columns of an array, which have no names, are `named` x0, x1, ... here only.
    """

    names: tuple[str, ...]
    encodings: tuple[Encoding, ...]
    left_out: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    named: bool = True

    @classmethod
    def learn(cls, table: InputTable) -> "Columns":
        """Learn the encoding of a training table, once; ValueError if no column can be used."""
        if not table.learned:
            table.learned.append(cls._learned_from(table))
        found: Columns = table.learned[0]
        return found

    @classmethod
    def _learned_from(cls, table: InputTable) -> "Columns":
        _check_rows(table)
        decimal = with_decimal_mark(table).decimal
        encodings: list[Encoding] = []
        left_out: list[str] = []
        merged: list[str] = []
        remarks: list[str] = []
        amounts: dict[AmountFormat, list[Column]] = {}
        for column in table.columns:
            found = kind_of_text(column, decimal) if column.is_text else TextKind(column.kind)
            reason = _reason_to_skip(column, found)
            if reason:
                left_out.append(f"column '{column.name}' is left out: {reason}")
                continue
            encoding = _learn(column, found)
            encodings.append(encoding)
            if isinstance(encoding, NumberEncoding) and column.is_text and _are_amounts(found):
                amounts.setdefault(encoding.format, []).append(column)
            if isinstance(encoding, CategoryEncoding):
                merged += encoding.merged(column)
            remarks += [*_reading(column, encoding, found), *_gaps(column, encoding)]
        if not encodings:
            raise ValueError(f"no column is left to learn from: {'; '.join(left_out[:5])}")
        remarks = [*(reading_of_amounts(some, how) for how, some in amounts.items()), *remarks]
        return cls(
            names=tuple(table.names),
            encodings=tuple(encodings),
            left_out=tuple(left_out),
            merged=tuple(merged),
            remarks=tuple(remarks),
            named=table.named,
        )

    def encode(self, table: InputTable) -> tuple[Array, list[str]]:
        """The inputs, (rows, features), and remarks on what training did not have.

        Columns are found by name, in any order; others are ignored.
        """
        self._check_names(table.names)
        _check_rows(table)
        table = with_decimal_mark(table)
        here = [e.for_table(table) if isinstance(e, NumberEncoding) else e for e in self.encodings]
        parts = [encoding.encode(table.column(encoding.name)) for encoding in here]
        remarks = [remark for _, more in parts for remark in more]
        others: dict[AmountFormat, list[Column]] = {}  # formats that training did not have
        for old, new in zip(self.encodings, here, strict=True):
            if isinstance(new, NumberEncoding) and new != old:
                others.setdefault(new.format, []).append(table.column(new.name))
        remarks += [reading_of_amounts(columns, format) for format, columns in others.items()]
        known = set(self.names)
        extra = [name for name in table.names if name not in known]
        if extra:
            remarks.append(f"columns that training did not have are ignored: {_listed(extra)}")
        return np.ascontiguousarray(np.hstack([part for part, _ in parts])), remarks

    def table_of_array(self, X: Array) -> InputTable:
        """The table whose columns an array holds in the order of training.

        Raises ValueError unless all columns that are used hold numbers.
        """
        other = [e.name for e in self.encodings if not isinstance(e, NumberEncoding)]
        if other or X.shape[1] != len(self.names):
            why = f"{_listed(other)} hold no numbers" if other else "an array has no names"
            raise ValueError(
                f"the model was fitted to a table with the columns {_listed(self.names)} and got "
                f"an array with {X.shape[1]} column(s); pass a data frame, because {why}"
            )
        return InputTable.of_array(X, self.names)

    @property
    def features(self) -> list[str]:
        """Names of the inputs."""
        return [name for encoding in self.encodings for name in encoding.features]

    @property
    def origins(self) -> list[str]:
        """The column that each of the inputs comes from."""
        return [encoding.name for encoding in self.encodings for _ in encoding.features]

    @property
    def numbers(self) -> dict[str, int]:
        """The columns of numbers, and the input that each is."""
        found, place = {}, 0
        for encoding in self.encodings:
            if isinstance(encoding, NumberEncoding) and not encoding.boolean:
                found[encoding.name] = place
            place += len(encoding.features)
        return found

    @property
    def groups(self) -> NDArray[np.int64]:
        """A number for each input; inputs that matter together, or not at all, have the same: those
        of a category, and sine and cosine of a cycle."""
        sizes = [size for encoding in self.encodings for size in encoding.blocks]
        return np.repeat(np.arange(len(sizes)), sizes)

    @property
    def mappable(self) -> Mask:
        """Which inputs are amounts, of which a monotone function may say more than they do."""
        return np.array([flag for encoding in self.encodings for flag in encoding.mappable])

    @property
    def kinds(self) -> dict[str, int]:
        """How many columns of each kind are used, and how many are not."""
        out = Counter(_kind_in_words(encoding) for encoding in self.encodings)
        left = len(self.names) - len(self.encodings)
        return dict(out) | ({"left out": left} if left else {})

    @property
    def cautions(self) -> tuple[str, ...]:
        """Sentences on what the inputs do not show of the table."""
        return (*self.left_out, *self.merged)

    @property
    def fills(self) -> Array:
        """The value of each input that stands for a missing one; NaN where it depends on none."""
        out = []
        for encoding in self.encodings:
            fill = np.nan if isinstance(encoding, CategoryEncoding) else encoding.fill
            out += [fill, *[np.nan] * (len(encoding.features) - 1)]
        return np.array(out)

    @property
    def used(self) -> list[str]:
        """Names of the columns that are used."""
        return [encoding.name for encoding in self.encodings]

    def check_saved(self) -> None:
        """Raise ValueError for columns that no table has."""
        if not self.used or not set(self.used) <= set(self.names):
            raise ValueError("an encoded column is not among the names")
        for names in (self.used, self.names):
            if len(set(names)) < len(names):
                raise ValueError("a column stands twice")

    def _check_names(self, names: Sequence[str]) -> None:
        """Raise ValueError that names all missing columns, with those that may have been meant."""
        there_are = set(names)
        missing = [name for name in self.used if name not in there_are]
        if not missing:
            return
        listed = ", ".join(f"'{name}'{_suggestion(name, names)}" for name in missing[:SHOWN])
        there = "there is no column" if len(missing) == 1 else "there are no columns"
        raise ValueError(
            f"{there} {listed}; the columns are: {', '.join(names[:SHOWN])}"
            + (", ..." if len(names) > SHOWN else "")
        )


def _kind_in_words(encoding: Encoding) -> str:
    if isinstance(encoding, NumberEncoding):
        return IN_WORDS["boolean" if encoding.boolean else "number"]
    return IN_WORDS["date" if isinstance(encoding, DateEncoding) else "category"]


def _check_rows(table: InputTable) -> None:
    if len(table) == 0:
        raise ValueError("the table has no rows (0 sample(s)); at least one is needed")


def _learn(column: Column, found: TextKind) -> Encoding:
    text = found if column.is_text else None
    if found.kind in ("number", "boolean"):
        return NumberEncoding.learn(column, text)
    if found.kind == "date":
        return DateEncoding.learn(column, text)
    return CategoryEncoding.learn(column)


def _reason_to_skip(column: Column, found: TextKind) -> str:
    """The reason to leave a column out, or an empty text."""
    values, missing = _values(column, found)
    if missing.all() or (column.is_text and missing_texts(column, among_values=True).all()):
        return "all its values are missing"
    if column.kind == "other":
        return f"it holds {IN_WORDS['other']}"
    known = values[~missing].tolist()
    count = len(set(known))
    if count == 1 and not missing.any():
        return "it is constant"
    if (
        found.kind in ("text", "category")
        and len(known) >= IDENTIFIER
        and count > ALMOST * len(known)
    ):
        almost = "" if count == len(known) else "almost "
        return f"{almost}each row has a text of its own, as identifiers do"
    return ""


def _values(column: Column, found: TextKind) -> tuple[Any, Any]:
    """Values that can be compared, and where they are missing."""
    if column.is_text:
        words = found.kind in ("text", "category")
        return column.texts, missing_texts(column, among_values=not words)
    return column.values, column.missing


def _reading(column: Column, encoding: Encoding, found: TextKind) -> list[str]:
    """Remarks on how a column is read, where that is more than taking numbers as they are."""
    name = column.name
    if isinstance(encoding, CategoryEncoding):
        count = len(encoding.levels)
        rest = f"one input for each of its {count} values"
        if encoding.rare:
            rest = f"one input for each of its {MOST_LEVELS} most frequent values, one for the rest"
        what = "holds categories" if column.kind == "category" else "is text"
        return [f"column '{name}' {what}: {rest}"]
    if isinstance(encoding, DateEncoding):
        cycles = "".join(f", time of {cycle}" for cycle in encoding.cycles)
        like = f" like '{example(column)}', read as {ORDERS[encoding.format.first]}"
        numeric = column.is_text and found.dates is not None and _is_ambiguous(example(column))
        return [f"column '{name}' holds dates{like if numeric else ''}: one input for days{cycles}"]
    return []


def _are_amounts(found: TextKind) -> bool:
    """Whether texts are numbers that are not written as programs do."""
    return found.kind == "number" and not found.plain


def _gaps(column: Column, encoding: Encoding) -> list[str]:
    """Remarks on missing values in training."""
    if isinstance(encoding, CategoryEncoding):
        return []
    text = column.is_text
    return encoding.gaps(missing_texts(column, among_values=True) if text else column.missing)


def reading_of_amounts(columns: Sequence[Column], format: AmountFormat) -> str:
    """A remark on columns with numbers in one format, which is not that of programs."""
    value = example(columns[0], marked=True)
    amount = format.parse(np.array([value], dtype=object))[0][0]
    names = ", ".join(f"'{column.name}'" for column in columns[:NAMED])
    more = f" and {len(columns) - NAMED} more" if len(columns) > NAMED else ""
    which = f"column {names} holds" if len(columns) == 1 else f"columns {names}{more} hold"
    return f"{which} amounts like '{value}', read as numbers ({amount:.15g})"


def example(column: Column, marked: bool = False) -> str:
    """A value of a column of text that is not missing; if `marked`, no plain number."""
    known = column.texts[~missing_texts(column, among_values=True)]
    with_marks = (text for text in known.tolist() if plain_numbers([text]) is None)
    return str(next(with_marks, known[0])) if marked else str(known[0])


def _is_ambiguous(date: str) -> bool:
    return not date[:4].isdigit() and not any(c.isalpha() for c in date[:6])


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:SHOWN])
    return shown + (", ..." if len(names) > SHOWN else "")


def _suggestion(name: str, names: Sequence[str]) -> str:
    lower = {other.strip().lower(): other for other in names}
    near = difflib.get_close_matches(name.strip().lower(), list(lower), n=1, cutoff=0.6)
    return f" (did you mean '{lower[near[0]]}'?)" if near else ""
