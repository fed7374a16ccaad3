"""Columns of words: one input for each of the values."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nngp._arrays import Array
from nngp.predictors.columns import saved
from nngp.predictors.columns.missing import missing_texts
from nngp.predictors.columns.table import IN_WORDS, Column, Mask

MOST_LEVELS = 50  # values of a column that become inputs, the most frequent ones
NAMED = 3  # unknown values that a remark names


@dataclass(frozen=True)
class CategoryEncoding:
    """One input, 0 or 1, for each level; one more for a missing value if training had some, and
    one for all `other` values if training had too many."""

    name: str
    levels: tuple[str, ...]
    missing: bool = False
    other: bool = False

    @classmethod
    def learn(cls, column: Column) -> "CategoryEncoding":
        """Learn the levels of a column."""
        missing = missing_texts(column, among_values=False)
        counts = Counter(column.texts[~missing].tolist())
        common = sorted(counts, key=lambda level: (-counts[level], level))[:MOST_LEVELS]
        other = len(counts) > MOST_LEVELS
        return cls(column.name, tuple(sorted(common)), bool(missing.any()), other)

    def encode(self, column: Column) -> tuple[Array, list[str]]:
        """The inputs, and remarks on values that training did not have."""
        if column.kind == "other":
            raise ValueError(
                f"column '{self.name}' held text in training and now holds {IN_WORDS['other']}; "
                "mend the column"
            )
        missing, texts = missing_texts(column, among_values=False), column.texts
        place = {level: j for j, level in enumerate(self.levels)}
        index = np.array([place.get(text, -1) for text in texts.tolist()], dtype=int)
        index[missing] = len(self.levels) if self.missing else -1
        new = (index < 0) & ~missing
        if self.other:
            index[new] = len(self.features) - 1
        out = np.zeros((len(column), len(self.features)))
        rows = np.flatnonzero(index >= 0)
        out[rows, index[rows]] = 1.0
        return out, [*self._unknown(texts, new), *self._lacking(missing)]

    @property
    def features(self) -> list[str]:
        extra = ["(missing)"] * self.missing + ["(other)"] * self.other
        return [f"{self.name}={level}" for level in (*self.levels, *extra)]

    def _unknown(self, texts: NDArray[Any], new: Mask) -> list[str]:
        if self.other or not new.any():  # rare values of training are among the others
            return []
        values = list(dict.fromkeys(texts[new].tolist()))
        named = ", ".join(f"'{value}'" for value in values[:NAMED])
        more = ", ..." if len(values) > NAMED else ""
        return [
            f"column '{self.name}' has {int(new.sum())} value(s) that training did not: "
            f"{named}{more}; they count as none of the known ones"
        ]

    def _lacking(self, missing: Mask) -> list[str]:
        count = int(missing.sum())
        if self.missing or not count:
            return []
        return [f"column '{self.name}' lacks {count} value(s), which count as none of the known"]

    def as_dict(self) -> dict[str, Any]:
        return {
            "kind": "category",
            "name": self.name,
            "levels": list(self.levels),
            "missing": self.missing,
            "other": self.other,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "CategoryEncoding":
        levels = saved.different(saved.texts(values["levels"]))
        if levels != tuple(sorted(levels)):
            raise ValueError("the values of a category are not in order")
        return cls(
            saved.text(values["name"]),
            levels,
            saved.flag(values["missing"]),
            saved.flag(values["other"]),
        )
