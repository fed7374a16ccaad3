"""Texts that stand for a missing value."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nngp.frames.table import Column, Mask

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
