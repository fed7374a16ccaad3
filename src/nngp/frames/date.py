"""Columns of dates: days since 1970, and where they are in the year, the week and the day.

A part that repeats is the sine and cosine of its phase, so that December is close to January. It is
an input only where the training data span it more than once.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from nngp._arrays import Array
from nngp._records import Choice, Range
from nngp.frames.calendar import NO_ORDER, ORDERS, DateFormat
from nngp.frames.number import MANY_MISSING, lacking
from nngp.frames.table import IN_WORDS, Column, Mask
from nngp.frames.texts import TextKind, missing_texts

SPANS = {"year": 548.0, "week": 14.0, "day": 2.0}  # days from which a cycle is an input
LAST_DAY = 1e8  # that microseconds since 1970 reach
MONDAY = 3.0  # days from Monday to 1 January 1970, a Thursday


@dataclass(frozen=True)
class DateEncoding:
    """A column of dates as a number of days and the phases of some cycles."""

    name: str
    fill: Annotated[float, Range(-LAST_DAY, LAST_DAY)]
    indicator: bool = False
    cycles: tuple[Annotated[str, Choice(*SPANS)], ...] = ()
    format: DateFormat = NO_ORDER

    @classmethod
    def learn(cls, column: Column, found: TextKind | None = None) -> "DateEncoding":
        """Learn from a column of dates, or of text that was found to hold dates."""
        format = (found.dates if found else None) or NO_ORDER
        days = cls(column.name, 0.0, format=format).read(column)
        missing = np.isnan(days)
        known = days[~missing]
        indicator = int(missing.sum()) >= MANY_MISSING
        return cls(column.name, float(np.median(known)), indicator, _cycles(known), format)

    def read(self, column: Column) -> Array:
        """Days since 1970, NaN where missing; ValueError if there is anything but dates."""
        if column.is_text:
            column = self._read_texts(column)
        if column.kind != "date":
            raise ValueError(
                f"column '{self.name}' held dates in training and now holds "
                f"{IN_WORDS[column.kind]}; mend the column"
            )
        return column.numbers()

    def encode(self, column: Column) -> tuple[Array, list[str]]:
        """The inputs, and remarks on missing values that no input shows."""
        days = self.read(column)
        missing = np.isnan(days)
        filled = np.where(missing, self.fill, days)
        parts = [filled]
        for cycle in self.cycles:
            phase = 2 * np.pi * PHASES[cycle](filled)
            parts += [np.where(missing, 0.0, wave(phase)) for wave in (np.sin, np.cos)]
        if self.indicator:
            parts.append(missing.astype(float))
        return np.column_stack(parts), [] if self.indicator else self.gaps(missing)

    def gaps(self, missing: Mask) -> list[str]:
        """A remark on missing values, if there are any."""
        stands = str(np.datetime64(round(self.fill), "D"))
        return lacking(self.name, missing, stands, self.indicator)

    @property
    def features(self) -> list[str]:
        waves = [f"{self.name} ({w} of {c})" for c in self.cycles for w in ("sine", "cosine")]
        return [self.name, *waves, *([f"{self.name} (missing)"] if self.indicator else [])]

    @property
    def blocks(self) -> tuple[int, ...]:
        """Days, sine and cosine of each cycle together, and whether a date is missing."""
        return (1, *[2] * len(self.cycles), *[1] * self.indicator)

    @property
    def mappable(self) -> tuple[bool, ...]:
        """Days only: 9999-12-31 and the like stand for no date."""
        return (True, *[False] * (len(self.features) - 1))

    def _read_texts(self, column: Column) -> Column:
        missing, texts = missing_texts(column, among_values=True), column.texts
        dates = np.full(len(column), np.datetime64("NaT", "us"), dtype="datetime64[us]")
        dates[~missing], right = self.format.parse(texts[~missing])
        if not right.all():
            raise ValueError(
                f"column '{self.name}' held dates in training and now holds "
                f"'{texts[~missing][~right][0]}', which is no date as {ORDERS[self.format.first]}; "
                "mend the value, or leave the cell empty"
            )
        return Column(self.name, "date", dates, missing)

    def check_saved(self) -> None:
        """Raise ValueError for cycles that stand twice."""
        if len(set(self.cycles)) < len(self.cycles):
            raise ValueError("a cycle of its dates stands twice")


def _cycles(days: Array) -> tuple[str, ...]:
    """The cycles that the days span, without the time of day where all have the same."""
    span = float(np.ptp(days))
    one_time = np.ptp(days % 1.0) == 0
    return tuple(c for c, least in SPANS.items() if span > least and not (c == "day" and one_time))


def _phase_of_year(days: Array) -> Array:
    whole = np.floor(days).astype(np.int64).astype("datetime64[D]")
    years = whole.astype("datetime64[Y]").astype(np.int64)
    start, end = _days(years), _days(years + 1)
    return (days - start) / (end - start)


def _days(years: NDArray[np.int64]) -> Array:
    """Days from 1970 to the begin of years, which are counted from there as well."""
    begins = years.astype("datetime64[Y]").astype("datetime64[D]")
    return begins.astype(np.int64).astype(np.float64)


PHASES = {
    "year": _phase_of_year,
    "week": lambda days: (days + MONDAY) % 7.0 / 7.0,
    "day": lambda days: days % 1.0,
}
