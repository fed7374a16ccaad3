"""The content of a column of text: numbers, true and false, dates, or words.

Texts that stand for a missing value.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nngp.frames.amounts import (
    PLAIN,
    AmountFormat,
    learn_amounts,
    plain_numbers,
    possible_marks,
    unit_of,
)
from nngp.frames.calendar import DateFormat, learn_dates
from nngp.frames.table import Column, InputTable, Kind, Mask

# In any column; the list of pandas, and "?" of the UCI tables.
ALWAYS = frozenset(
    {"", "?", "NA", "N/A", "n/a", "<NA>", "#NA", "#N/A"}
    | {"NaN", "nan", "-NaN", "-nan", "NULL", "null", "None"}
)
# Only among numbers, dates and booleans: in a column of text each of these may mean something.
AMONG_VALUES = frozenset(
    {"-", "--", "–", "—", ".", "..", "n.a.", "N.A.", "#n/a"}
    | {"na", "Na", "NAN", "Nan", "none", "NONE", "Null", "nil"}
)


def missing_texts(column: Column, *, among_values: bool, besides: Iterable[str] = ()) -> Mask:
    """Where a column of text is missing; texts in `besides` count as values."""
    marks = (ALWAYS | AMONG_VALUES if among_values else ALWAYS) - set(besides)
    return column.missing | is_any_of(column.texts, marks)


def is_any_of(texts: NDArray[Any], marks: frozenset[str]) -> Mask:
    """Which of the texts are among the marks."""
    return np.array([text in marks for text in texts.tolist()], dtype=bool)


TRUE, FALSE = frozenset(["true", "True", "TRUE"]), frozenset(["false", "False", "FALSE"])
MAX_MISTAKE_SHARE = (
    0.2  # share of other texts up to which a column is taken for numbers with mistakes
)


@dataclass(frozen=True)
class TextKind:
    """The kind of values that texts stand for, and how to read them."""

    kind: Kind
    amounts: AmountFormat | None = None
    dates: DateFormat | None = None
    plain: bool = False  # numbers as programs write them


def kind_of_text(column: Column, decimal: str | None = None) -> TextKind:
    """The kind of a column of text, judged by all its values that are not missing.

    Raises ValueError for numbers or dates with a few other texts among them.
    """
    if column.kind == "category":
        return TextKind("category")
    texts = column.texts[~column.missing]
    texts = texts[~is_any_of(texts, ALWAYS)]
    values = texts[~is_any_of(texts, AMONG_VALUES)]
    if len(values) == 0:
        return TextKind("text")
    if all(text in TRUE or text in FALSE for text in values.tolist()):
        return TextKind("boolean")
    if decimal != "," and plain_numbers(values.tolist()) is not None:
        return TextKind("number", PLAIN, plain=True)
    amounts = learn_amounts(values, decimal)
    if amounts is not None:
        return TextKind("number", amounts, plain=plain_numbers(values.tolist()) is not None)
    dates = learn_dates(values)
    if dates is not None:
        return TextKind("date", dates=dates)
    _check_one_format(column.name, list(dict.fromkeys(values.tolist())))
    _check_not_nearly(column.name, values)
    return TextKind("text")


def with_decimal_mark(table: InputTable, usual: str | None = None) -> InputTable:
    """The table with the decimal mark of the numbers in its texts, unless it has one already.

    Where no number shows it, it is `usual`, unless that would make groups of digits of 1.234.
    """
    if table.decimal is not None:
        return table
    marks, has_points = set(), False
    for column in table.columns:
        if column.kind == "text":
            texts = column.texts[~column.missing]
            values = texts[~is_any_of(texts, ALWAYS | AMONG_VALUES)].tolist()
            possible = possible_marks(values) if values else ()
            marks |= set(possible) if len(possible) == 1 else set()
            has_points |= len(possible) == 2 and any("." in value for value in values)
    if len(marks) == 1:
        return replace(table, decimal=marks.pop(), certain=True)
    return replace(table, decimal=None if marks or has_points else usual)


def _check_one_format(name: str, texts: list[str]) -> None:
    """Raise ValueError for numbers in several units, or with several decimal marks."""
    formats: dict[tuple[tuple[str, ...], str], str] = {}
    for text in texts:
        marks, unit = possible_marks([text]), unit_of(text)
        if not marks:
            return
        formats.setdefault((marks if len(marks) == 1 else (), unit), text)
    first, *others = formats.values()
    other = others[0] if others else first
    raise ValueError(
        f"column '{name}' holds numbers in different formats, such as '{first}' and '{other}'; "
        "write all in one"
    )


def _check_not_nearly(name: str, texts: NDArray[Any]) -> None:
    """Raise ValueError for numbers or dates with a few mistakes: all would become categories."""
    for what, right in (("numbers", _numbers(texts)), ("dates", _dates(texts))):
        wrong = texts[~right]
        if 0 < len(wrong) <= MAX_MISTAKE_SHARE * len(texts):
            raise ValueError(
                f"column '{name}' holds {what} but for '{wrong[0]}' ({len(wrong)} value(s)); "
                "replace it, or leave the cell empty"
            )


def _numbers(texts: NDArray[Any]) -> NDArray[np.bool_]:
    """Where texts are numbers, in the format that fits most of them."""
    formats = [
        learn_amounts(np.array([text], dtype=object), mark) for text, mark in _samples(texts)
    ]
    fits = [format.parse(texts)[1] for format in set(formats) if format is not None]
    return max(fits, key=np.sum, default=np.zeros(len(texts), dtype=bool))


def _samples(texts: NDArray[Any]) -> list[tuple[str, str]]:
    return [(text, mark) for text in dict.fromkeys(texts[:50].tolist()) for mark in (".", ",")]


def _dates(texts: NDArray[Any]) -> NDArray[np.bool_]:
    fits = [DateFormat(first).parse(texts)[1] for first in ("day", "month")]
    return max(fits, key=np.sum)
