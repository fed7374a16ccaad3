"""Numbers as people write them: "$1,234.50", "12 %", "1.234,56 €", "(1 200)".

A column has one decimal mark and one unit. Which of point and comma is the decimal mark follows
from the values wherever one of them says so: "1,5" and "1.234,56" have a decimal comma, "1,234.5"
a decimal point. "1,234" alone leaves it open.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from nngp._arrays import Array
from nngp._records import Choice
from nngp.frames.table import Mask

MARKS = (".", ",")
LONGEST = 60  # characters of a number
CODES = (
    "USD EUR GBP JPY CHF CNY INR AUD CAD NZD SEK NOK DKK ISK PLN CZK HUF RON BRL MXN ZAR RUB TRY "
    "KRW SGD HKD"
)
UNIT = rf"%|(?:US|AU|CA|NZ|HK|A|C|R)?\$|[€£¥₹₽₩₺₴₪₫₱฿¢]|{'|'.join(CODES.split())}"
BLANKS = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2212": "-", "\u2019": "'"})
AMOUNT = re.compile(
    rf"(?P<sign>[-+]?) *(?P<before>{UNIT})? *(?P<inner>[-+]?) *"
    rf"(?P<body>[\d.,' ]*\d[\d.,]*(?:[eE][-+]?\d+)?) *(?P<after>{UNIT})?"
)


def _pattern(group: str, decimal: str) -> re.Pattern[str]:
    """Digits, in groups of three or not (or as in India), then a decimal part."""
    grouped = rf"[1-9]\d{{0,2}}(?P<by>[{group}' ])\d{{3}}(?:(?P=by)\d{{3}})*"
    indian = rf"[1-9]\d?(?:{group}\d{{2}})+{group}\d{{3}}"
    exponent = r"(?:[eE][-+]?\d+)?"
    whole = rf"(?:{grouped}|{indian}|\d+)(?:{decimal}\d*)?{exponent}"
    return re.compile(rf"(?:{whole}|{decimal}\d+{exponent})")


PATTERNS = {".": _pattern(",", r"\."), ",": _pattern(r"\.", ",")}


@dataclass(frozen=True)
class AmountFormat:
    """The decimal mark of a column of numbers in text, and the unit beside them, or none."""

    decimal: Annotated[str, Choice(*MARKS)] = "."
    unit: str = ""

    def check_saved(self) -> None:
        """Raise ValueError for a unit that no number has beside it."""
        if not is_unit(self.unit):
            raise ValueError(f"{self.unit!r} is no unit of numbers")

    def parse(self, texts: NDArray[Any]) -> tuple[Array, Mask]:
        """The numbers, and where a text is one."""
        if self == AmountFormat():
            found = plain_numbers(texts.tolist())
            if found is not None:
                return found, np.ones(len(texts), dtype=bool)
        read = {text: self._number(text) for text in set(texts.tolist())}
        values = [read[text] for text in texts.tolist()]
        found = np.array([np.nan if value is None else value for value in values], dtype=float)
        return found, np.array([value is not None for value in values], dtype=bool)

    def _number(self, text: str) -> float | None:
        parts = _split(text)
        if parts is None or not PATTERNS[self.decimal].fullmatch(parts[1]):
            return None
        sign, body, unit = parts
        if unit != self.unit and (unit or self.unit == "%"):
            return None
        digits = "".join(c for c in body if c not in ".,' " or c == self.decimal)
        return sign * float(digits.replace(",", "."))


PLAIN = AmountFormat()


def plain_numbers(words: Sequence[str]) -> Array | None:
    """Numbers as Python writes them; None if a text is anything else."""
    try:
        found = np.array([float(word) for word in words], dtype=np.float64)
    except ValueError:
        return None
    return None if any("_" in word for word in words) else found


def learn_amounts(texts: NDArray[Any], decimal: str | None) -> AmountFormat | None:
    """The format of a column of numbers, or None if not all texts are numbers in one format.

    `decimal` is the mark to assume where the texts leave it open.
    """
    different = list(dict.fromkeys(texts.tolist()))
    marks = possible_marks(different)
    units = {unit_of(text) for text in different} if marks else set()
    if not marks or len(units - {""}) > 1 or {"", "%"} <= units:
        return None
    return AmountFormat(decimal if decimal in marks else marks[0], max(units))


def possible_marks(texts: Sequence[str]) -> tuple[str, ...]:
    """The decimal marks with which all texts are numbers."""
    plain = plain_numbers(texts) is not None  # the quick way to a decimal point
    return tuple(m for m in MARKS if (plain and m == ".") or all(_fits(t, m) for t in texts))


def _fits(text: str, mark: str) -> bool:
    part = _split(text)
    return part is not None and PATTERNS[mark].fullmatch(part[1]) is not None


def is_unit(text: str) -> bool:
    """Whether a text is a unit that numbers may have beside them; none is one, too."""
    return not text or re.fullmatch(UNIT, text) is not None


def unit_of(text: str) -> str:
    """The unit beside a number in text, or none."""
    parts = _split(text)
    return parts[2] if parts else ""


def _split(text: str) -> tuple[float, str, str] | None:
    """Sign, digits with their marks, and unit of a text that may be a number."""
    if len(text) > LONGEST:
        return None
    text = text.translate(BLANKS).strip()
    if text.startswith("(") and text.endswith(")"):  # accountants write losses so
        inside = _split(text[1:-1])
        return None if inside is None or inside[0] < 0 else (-1.0, *inside[1:])
    found = AMOUNT.fullmatch(text)
    if found is None:
        return None
    sign, before, inner, body, after = found.groups()
    if (sign and inner) or (before and after):
        return None
    return (-1.0 if "-" in (sign, inner) else 1.0), body.strip(), before or after or ""
