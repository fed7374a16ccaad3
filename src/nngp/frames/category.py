"""Columns of words: one input for each of the values.

Values beyond the most frequent ones share one input. Their names are not kept, only a mark of each,
so that a value that training did not have can be told from a rare one.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from nngp._arrays import Array
from nngp.frames.table import IN_WORDS, Column, Mask
from nngp.frames.texts import missing_texts

MOST_LEVELS = 50  # values of a column that become inputs, the most frequent ones
NAMED = 3  # unknown values that a remark names
MARK = 6  # bytes of a mark: two of 20,000 texts have the same one with probability 1e-6


@dataclass(frozen=True)
class CategoryEncoding:
    """One input, 0 or 1, for each level; one more for a missing value if training had some, and
    one for all other values if training had too many: `rare` has their marks."""

    name: str
    levels: tuple[str, ...]
    missing: bool = False
    rare: tuple[str, ...] = ()

    @classmethod
    def learn(cls, column: Column) -> "CategoryEncoding":
        """Learn the levels of a column."""
        missing = missing_texts(column, among_values=False)
        counts = Counter(column.texts[~missing].tolist())
        order = sorted(counts, key=lambda level: (-counts[level], level))
        common, rare = order[:MOST_LEVELS], order[MOST_LEVELS:]
        return cls(column.name, tuple(sorted(common)), bool(missing.any()), _marks(rare))

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
        if self.rare:
            index[new] = len(self.features) - 1
        out = np.zeros((len(column), len(self.features)))
        rows = np.flatnonzero(index >= 0)
        out[rows, index[rows]] = 1.0
        return out, [*self._unknown(texts[new].tolist()), *self._lacking(missing)]

    @property
    def features(self) -> list[str]:
        extra = ["(missing)"] * self.missing + ["(other)"] * bool(self.rare)
        return [f"{self.name}={level}" for level in (*self.levels, *extra)]

    @property
    def blocks(self) -> tuple[int, ...]:
        """One: whether the column matters is one question, whatever the number of its values."""
        return (len(self.features),)

    @property
    def mappable(self) -> tuple[bool, ...]:
        return (False,) * len(self.features)

    def merged(self, column: Column) -> list[str]:
        """A remark on values of training that share one input, if there are any."""
        if not self.rare:
            return []
        common = sum(text in set(self.levels) for text in column.texts.tolist())
        rows = len(column) - int(missing_texts(column, among_values=False).sum()) - common
        return [
            f"column '{self.name}' has {len(self.levels) + len(self.rare)} values: the "
            f"{len(self.rare)} rarest ({rows} row(s)) share one input; group the values if they "
            "matter"
        ]

    def _unknown(self, texts: list[str]) -> list[str]:
        values = list(dict.fromkeys(texts))
        if self.rare:
            rare = set(self.rare)
            values = [value for value in values if _mark(value) not in rare]
        if not values:
            return []
        count = sum(text in set(values) for text in texts)
        named = ", ".join(f"'{value}'" for value in values[:NAMED])
        more = ", ..." if len(values) > NAMED else ""
        how = "like the rare ones" if self.rare else "as none of the known ones"
        return [
            f"column '{self.name}' has {count} value(s) that training did not: "
            f"{named}{more}; they count {how}"
        ]

    def _lacking(self, missing: Mask) -> list[str]:
        count = int(missing.sum())
        if self.missing or not count:
            return []
        return [
            f"column '{self.name}' lacks {count} value(s), which count as none of the known ones"
        ]

    def check_saved(self) -> None:
        """Raise ValueError for levels or marks that are never learned."""
        if self.levels != tuple(sorted(set(self.levels))):
            raise ValueError("the values of a category are repeated, or not in order")
        hexadecimal = set("0123456789abcdef")
        wrong = any(len(mark) != 2 * MARK or set(mark) - hexadecimal for mark in self.rare)
        if wrong or len(set(self.rare)) < len(self.rare):
            raise ValueError("a mark of a rare value is none, or repeated")


def _marks(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({_mark(text) for text in texts}))


def _mark(text: str) -> str:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=MARK).hexdigest()
