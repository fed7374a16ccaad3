"""Dates as people write them: ISO 8601, 31.12.2024, 12/31/2024, 31 Dec 2024, each with or without a
time of day."""

import datetime
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from nngp._records import Choice
from nngp.frames.table import Mask

MONTHS = ["january", "february", "march", "april", "may", "june"]
MONTHS += ["july", "august", "september", "october", "november", "december"]
UNKNOWN = "unknown"  # no text has shown whether day or month comes first
ORDERS = {"day": "day/month/year", "month": "month/day/year", UNKNOWN: "year-month-day"}
CENTURY = 69  # two-digit years from here on are of the twentieth century, as in POSIX
TIME = (
    r"(?:(?:[T ]|, ?)(?P<hour>\d{1,2}):(?P<minute>\d{2})"
    r"(?::(?P<second>\d{2})(?:[.,](?P<part>\d{1,9}))?)?"
    r" ?(?P<half>[AaPp][Mm])? ?(?P<zone>Z|UTC|GMT|[-+]\d{2}:?\d{2})?)?"
)
YEAR_FIRST = re.compile(
    r"(?P<year>\d{4})(?P<by>[-/.])(?P<month>\d{1,2})(?:(?P=by)(?P<day>\d{1,2}))?" + TIME
)
YEAR_LAST = re.compile(
    r"(?P<first>\d{1,2})(?P<by>[-/.])(?P<second_number>\d{1,2})(?P=by)(?P<year>\d{4}|\d{2})" + TIME
)
DAY_NAME = re.compile(
    r"(?P<day>\d{1,2})[-. /]+(?P<name>[A-Za-z]{3,9})[-., /]+(?P<year>\d{4})" + TIME
)
NAME_DAY = re.compile(r"(?P<name>[A-Za-z]{3,9})\.? (?P<day>\d{1,2}),? (?P<year>\d{4})" + TIME)


@dataclass(frozen=True)
class DateFormat:
    """Which of day and month comes first in dates such as 03/04/2024."""

    first: Annotated[str, Choice(*ORDERS)] = UNKNOWN

    def parse(self, texts: NDArray[Any]) -> tuple[NDArray[np.datetime64], Mask]:
        """The dates, in UTC, and where a text is one."""
        read = {text: self._date(text) for text in set(texts.tolist())}
        found = np.array([read[text] for text in texts.tolist()], dtype="datetime64[us]")
        return found, ~np.isnat(found)

    def _date(self, text: str) -> datetime.datetime | None:
        for pattern in (YEAR_FIRST, YEAR_LAST, DAY_NAME, NAME_DAY):
            found = pattern.fullmatch(text.strip())
            if found:
                if pattern is YEAR_LAST and self.first == UNKNOWN:
                    return None
                try:
                    return _moment(found.groupdict(), self.first == "day")
                except (ValueError, OverflowError):
                    return None
        return None


NO_ORDER = DateFormat()


def learn_dates(texts: NDArray[Any]) -> DateFormat | None:
    """The format of a column of dates, or None if not all texts are dates in one format."""
    first = _first_part(dict.fromkeys(texts.tolist()))
    if first is None:
        return None
    out = DateFormat(first)
    return out if out.parse(texts)[1].all() else None


def _first_part(texts: Iterable[str]) -> str | None:
    """Whether day or month comes first; None if a text is no date, or they contradict."""
    orders = set()
    usual = UNKNOWN
    for text in texts:
        found = YEAR_LAST.fullmatch(text.strip())
        if found:
            orders |= {"day"} if int(found["first"]) > 12 else set()
            orders |= {"month"} if int(found["second_number"]) > 12 else set()
            usual = "month" if found["by"] == "/" or usual == "month" else "day"
        elif not any(p.fullmatch(text.strip()) for p in (YEAR_FIRST, DAY_NAME, NAME_DAY)):
            return None
    if len(orders) > 1:
        return None
    return orders.pop() if orders else usual


def _moment(parts: dict[str, str | None], day_first: bool) -> datetime.datetime:
    """A moment in UTC from the parts of a match; ValueError if there is no such date."""
    day, month = parts.get("day") or "1", parts.get("month")
    if "first" in parts:
        pair = (parts["first"], parts["second_number"])
        day, month = pair if day_first else pair[::-1]  # type: ignore[assignment]
    date = datetime.datetime(_year(str(parts["year"])), _month(month, parts.get("name")), int(day))
    return date + _time(parts) - _offset(parts["zone"])


def _year(text: str) -> int:
    year = int(text)
    if len(text) == 4:
        return year
    return year + (1900 if year >= CENTURY else 2000)


def _month(number: str | None, name: str | None) -> int:
    if name is None:
        return int(number or 0)
    word = name.lower().replace("sept", "sep") if len(name) == 4 else name.lower()
    return [month[:3] if len(word) == 3 else month for month in MONTHS].index(word) + 1


def _time(parts: dict[str, str | None]) -> datetime.timedelta:
    hour, minute, second = (int(parts[name] or 0) for name in ("hour", "minute", "second"))
    half = (parts["half"] or "").lower()
    if half:
        if not 1 <= hour <= 12:
            raise ValueError("no such hour")
        hour = hour % 12 + (12 if half == "pm" else 0)
    if hour > 24 or minute > 59 or second > 60 or (hour == 24 and (minute or second)):
        raise ValueError("no such time")
    micro = int((parts["part"] or "0").ljust(6, "0")[:6])
    return datetime.timedelta(hours=hour, minutes=minute, seconds=second, microseconds=micro)


def _offset(zone: str | None) -> datetime.timedelta:
    if zone is None or zone in ("Z", "UTC", "GMT"):
        return datetime.timedelta(0)
    digits = zone[1:].replace(":", "")
    out = datetime.timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return -out if zone[0] == "-" else out
