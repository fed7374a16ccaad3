"""Values from a model file, each checked: ValueError for one that no encoder writes."""

import math
from collections.abc import Sequence
from typing import Any

from nngp._fields import as_number


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no text")
    return value


def texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is no list of texts")
    return tuple(text(part) for part in value)


def different(values: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(values)) < len(values):
        raise ValueError("names are repeated")
    return values


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is neither true nor false")
    return value


def number(value: Any, largest: float = math.inf) -> float:
    found = as_number(value)
    if not math.isfinite(found) or abs(found) > largest:
        raise ValueError(f"{value!r} is no finite number, or too large")
    return found


def choice(value: Any, choices: Sequence[str]) -> str:
    if value not in choices:
        raise ValueError(f"{value!r} is none of {', '.join(choices)}")
    return text(value)
