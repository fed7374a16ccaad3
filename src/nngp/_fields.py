"""Plain values of a saved file, each checked for its type and range where it is read.

What JSON gives may be anything: a text for a number, True for 1, a number that float64 does not
hold. `Fields` gives values of one type each, and a sentence that names the value otherwise.
"""

import json
import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar, get_type_hints

MOST = 2**53  # of a count: whole numbers up to here are floats, too
NESTED = 50  # mappings and lists in each other
Record = TypeVar("Record")


class Fields:
    """A mapping of plain values; `fail` makes the error to raise from the cause."""

    def __init__(self, values: object, place: str, fail: Callable[[str], Exception]) -> None:
        self.place, self.fail = place, fail
        if not isinstance(values, dict) or not all(isinstance(name, str) for name in values):
            raise fail(f"{place} is {_shown(values)}, expected names and values")
        self.values: dict[str, Any] = values

    def wrong(self, name: str, expected: str) -> Exception:
        """The error about a value that was read."""
        return self.fail(f"{self.place}.{name} is {_shown(self[name])}, expected {expected}")

    def __getitem__(self, name: str) -> Any:
        if name not in self.values:
            raise self.fail(f"{self.place} has no value {name!r}")
        return self.values[name]

    def fields(self, name: str) -> "Fields":
        """A mapping in this one."""
        return Fields(self[name], f"{self.place}.{name}", self.fail)

    def number(
        self, name: str, low: float = -math.inf, high: float = math.inf, *, above: bool = False
    ) -> float:
        """A finite number from `low` (or `above` it) to `high`."""
        value = as_number(self[name])
        if not (
            math.isfinite(value) and (low < value if above else low <= value) and value <= high
        ):
            least = f" {'above' if above else 'from'} {low:g}" if low > -math.inf else ""
            raise self.wrong(name, f"a finite number{least}")
        return value

    def whole(self, name: str, low: int = 0, high: int = MOST) -> int:
        """A whole number from `low` to `high`."""
        value = self[name]
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.wrong(name, f"a whole number from {low} to {high}")
        return value

    def flag(self, name: str) -> bool:
        """True or False."""
        value = self[name]
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def text(self, name: str, choices: Sequence[str] | None = None) -> str:
        """A text, one of the choices if there are any."""
        value = self[name]
        if not isinstance(value, str) or (choices is not None and value not in choices):
            raise self.wrong(name, "a text" if choices is None else f"one of {', '.join(choices)}")
        return value

    def list(self, name: str, kind: type, count: int | None = None) -> list[Any]:
        """A list of values of one type, so many of them if a count is given."""
        value = self[name]
        right = isinstance(value, list) and all(type(part) is kind for part in value)
        if not right or (count is not None and len(value) != count):
            raise self.wrong(name, f"a list of {'' if count is None else count} {kind.__name__}")
        return list(value)

    def record(self, kind: type[Record]) -> Record:
        """A dataclass of numbers, texts and mappings of numbers from its fields by name. "inf"
        stands for infinity; whole numbers are not negative, and no number is NaN."""
        hints = get_type_hints(kind)
        return kind(**{name: self._value(name, hint) for name, hint in hints.items()})

    def _value(self, name: str, hint: Any) -> Any:
        if hint is int:
            return self.whole(name)
        if hint is str:
            return self.text(name)
        if hint is float:
            return self._float(name)
        if hint == float | None:
            return None if self[name] is None else self._float(name)
        inner = self.fields(name)  # a mapping of numbers
        return {key: inner._value(key, hint.__args__[1]) for key in inner.values}

    def _float(self, name: str) -> float:
        value = math.inf if self[name] == "inf" else as_number(self[name])
        if math.isnan(value):
            raise self.wrong(name, "a number")
        return value


def parse_json(text: bytes) -> Any:
    """The value of a JSON text. Raises ValueError if it is none, or nested too deeply."""
    try:
        return json.loads(text, parse_constant=_no_number)
    except RecursionError:
        if _nesting(text) > NESTED:
            raise ValueError("its plain values are nested too deeply") from None
        raise  # the caller's own recursion


def _nesting(text: bytes) -> int:
    depth = most = 0
    for byte in text:
        depth += (byte in b"[{") - (byte in b"]}")
        most = max(most, depth)
    return most


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"its plain values hold {word}")


def as_number(value: object) -> float:
    """A number as a float; NaN for anything else, and for numbers that no float holds."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
