"""Arguments of a store, refused with a sentence where they cannot be."""

import math
from collections.abc import Iterable
from typing import Any

from nngp.runs.key import plain


def checked_text(value: Any, name: str, empty: bool = False) -> str:
    """A text that says something, unless it may be `empty`."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text, got a {type(value).__name__}")
    if not value and not empty:
        raise ValueError(f"{name} must not be empty")
    return str(plain(value, name))


def checked_count(value: Any) -> int:
    """A whole number from 1."""
    number = plain(value, "count")
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise ValueError(f"count must be a whole number of at least 1, got {value!r}")
    return number


def checked_amount(value: Any, name: str) -> float:
    """A number that is finite and not negative."""
    number = plain(value, name)
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if not math.isfinite(number) or number < 0:
        raise ValueError(f"{name} must be finite and not negative, got {value!r}")
    return float(number)


def wanted_keys(keys: Iterable[str] | None) -> frozenset[str] | None:
    """Keys as a set; None means all."""
    if isinstance(keys, str):
        raise TypeError("keys must be a list of keys, got a text; put it into a list")
    return None if keys is None else frozenset(keys)
