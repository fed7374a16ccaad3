"""Columns of numbers, true and false included."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nngp._arrays import Array
from nngp.frames.amounts import MARKS, PLAIN, AmountFormat, possible_marks
from nngp.frames.table import IN_WORDS, Column, InputTable, Mask
from nngp.frames.texts import FALSE, TRUE, TextKind, kind_of_text, missing_texts

MANY_MISSING = 5  # rows from which it is an input of its own that a value is missing


@dataclass(frozen=True)
class NumberEncoding:
    """A column of numbers as one input; `fill`, the training median, stands for missing ones.

    With `indicator` a second input says where a value is missing.
    """

    name: str
    fill: float
    indicator: bool = False
    boolean: bool = False
    format: AmountFormat = PLAIN

    @classmethod
    def learn(cls, column: Column, found: TextKind | None = None) -> "NumberEncoding":
        """Learn from a column of numbers, or of text that was found to hold numbers."""
        boolean = (found.kind if found else column.kind) == "boolean"
        format = (found.amounts if found else None) or PLAIN
        out = cls(column.name, 0.0, False, boolean, format)
        values = out.read(column)
        missing = np.isnan(values)
        fill = float(np.median(values[~missing]))
        return cls(column.name, fill, int(missing.sum()) >= MANY_MISSING, boolean, format)

    def for_table(self, table: InputTable) -> "NumberEncoding":
        """The encoding with the decimal mark that this table's numbers have, whatever training had.

        Raises ValueError where the table leaves the mark open, the numbers depend on it, and that
        of training is not the one that they would be read with by themselves.
        """
        column = table.column(self.name)
        if not column.is_text:
            return self
        texts = np.unique(column.texts[~missing_texts(column, among_values=True)])
        marks = possible_marks(texts.tolist())
        found = marks[0] if len(marks) == 1 else table.decimal or MARKS[0]
        if not marks or found == self.format.decimal:
            return self
        other = replace(self.format, decimal=found)
        (ours, read), (theirs, _) = self.format.parse(texts), other.parse(texts)
        differ = np.flatnonzero(read & (ours != theirs))
        if len(marks) == 2 and len(differ) == 0:
            return self
        if len(marks) == 2 and not table.certain:
            i = differ[0]
            raise ValueError(
                f"column '{self.name}' holds '{texts[i]}', which is {ours[i]:.15g} with the "
                f"decimal mark of training ('{self.format.decimal}') and {theirs[i]:.15g} with "
                f"'{found}', and nothing else in the table shows which is meant; convert the "
                "column to numbers"
            )
        return replace(self, format=other)

    def read(self, column: Column) -> Array:
        """The numbers of a column, NaN where missing; ValueError if there is anything else."""
        if column.is_text:
            values = self._read_texts(column)
        elif column.kind in ("number", "boolean"):
            values = column.numbers()
        else:
            raise ValueError(
                f"column '{self.name}' held numbers in training and now holds "
                f"{IN_WORDS[column.kind]}; mend the column"
            )
        if np.isinf(values).any():
            raise ValueError(f"column '{self.name}' holds infinite values; replace or remove them")
        return values

    def encode(self, column: Column) -> tuple[Array, list[str]]:
        """The inputs, and remarks on missing values that no input shows."""
        values = self.read(column)
        missing = np.isnan(values)
        filled = np.where(missing, self.fill, values)
        parts = [filled, missing.astype(float)] if self.indicator else [filled]
        return np.column_stack(parts), [] if self.indicator else self.gaps(missing)

    def gaps(self, missing: Mask) -> list[str]:
        """A remark on missing values, if there are any."""
        return lacking(self.name, missing, f"{self.fill:.6g}", self.indicator)

    @property
    def features(self) -> list[str]:
        return [self.name, f"{self.name} (missing)"] if self.indicator else [self.name]

    @property
    def blocks(self) -> tuple[int, ...]:
        """Of one input each: that a value is missing may matter where the value does not."""
        return (1,) * len(self.features)

    @property
    def mappable(self) -> tuple[bool, ...]:
        return (not self.boolean, False)[: len(self.features)]

    def _read_texts(self, column: Column) -> Array:
        missing, texts = missing_texts(column, among_values=True), column.texts
        out = np.full(len(column), np.nan)
        known = texts[~missing]
        truth = [text in TRUE for text in known.tolist()]
        if self.boolean and all(t or text in FALSE for t, text in zip(truth, known, strict=True)):
            out[~missing] = truth
            return out
        out[~missing], right = self.format.parse(known)
        if not right.all():
            raise ValueError(
                f"column '{self.name}' held numbers in training and now holds "
                f"'{known[~right][0]}'; mend the value, or leave the cell empty"
            )
        return out


def learn_numbers(column: Column, decimal: str | None = None) -> NumberEncoding | None:
    """The encoding of a column of numbers; None if it holds anything else."""
    if not column.is_text:
        return NumberEncoding.learn(column) if column.kind in ("number", "boolean") else None
    found = kind_of_text(column, decimal)
    return NumberEncoding.learn(column, found) if found.kind in ("number", "boolean") else None


def lacking(name: str, missing: Mask, fill: str, indicator: bool) -> list[str]:
    """A remark on missing values and what stands for them, if there are any."""
    count = int(missing.sum())
    shown = ", and an input shows where" if indicator else ""
    sentence = f"column '{name}' lacks {count} value(s); the training median {fill} stands for them"
    return [sentence + shown] if count else []


def fill_gaps(
    X: Array, medians: Array | None, names: Sequence[str] | None
) -> tuple[Array, list[str]]:
    """Numbers with the training medians in place of NaN, and remarks on them."""
    missing = np.isnan(X)
    gaps = np.flatnonzero(missing.any(axis=0)).tolist()
    if medians is None or len(gaps) == 0:
        return X, []
    called = [f"x{j}" if names is None else str(names[j]) for j in gaps]
    columns = zip(called, gaps, strict=True)
    remarks = [r for c, j in columns for r in lacking(c, missing[:, j], f"{medians[j]:.6g}", False)]
    return np.where(missing, medians, X), remarks
