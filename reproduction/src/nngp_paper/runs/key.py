"""Keys of runs: a hash of the experiment's name and the configuration.

Equal configurations have equal keys, on every platform and in every version of Python: the text
that is hashed is JSON in ASCII with sorted names and Python's shortest float repr. Equal numbers
count as equal, so 1 and 1.0 are one configuration, as are 0.0 and -0.0; True is not 1. NumPy
scalars and arrays count as the plain values they hold (a float32 as its exact value), tuples as
lists, and infinity as the word "inf". NaN equals nothing, so it is refused in a configuration.

The arguments of a store are checked here, too.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

Json = Any  # a plain value: dict, list, str, int, float, bool or None
Config = Mapping[str, Any]


def key_of(experiment: str, config: Config) -> str:
    """The key of a run: 64 hexadecimal digits.

    Examples
    --------
    >>> import math
    >>> from nngp_paper.runs import key_of
    >>> key = key_of("width", {"width": 64, "depth": math.inf})
    >>> len(key), key == key_of("width", {"depth": math.inf, "width": 64.0})
    (64, True)
    """
    return plain_key(experiment, plain(config, "config"), "config")


def plain_key(experiment: str, config: dict[str, Json], place: str) -> str:
    """The key of a run whose configuration is made of plain values."""
    text = canonical([experiment, config], place)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def plain(value: object, place: str) -> Json:
    """Convert a value to dict, list, str, int, float, bool and None. Raises TypeError, with `place`
    in the message, for anything that has no such form."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value, place)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, Mapping):
        return {_name(name, place): plain(part, f"{place}.{name}") for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part, place) for part in value]
    if hasattr(value, "tolist"):  # arrays and scalars of NumPy and JAX
        return plain(value.tolist(), place)
    raise TypeError(
        f"{place} is a {type(value).__name__}, which cannot be stored; give a number, text, a list "
        "or a mapping"
    )


def canonical(value: Json, place: str) -> str:
    """The text by which plain values are compared."""
    return json.dumps(_comparable(value, place), sort_keys=True, separators=(",", ":"))


def _comparable(value: Json, place: str) -> Json:
    if isinstance(value, dict):
        return {name: _comparable(part, f"{place}.{name}") for name, part in value.items()}
    if isinstance(value, list):
        return [_comparable(part, place) for part in value]
    if not isinstance(value, float):
        return value
    if math.isnan(value):
        raise ValueError(f"{place} is NaN, which equals nothing; give a number, or None")
    if math.isinf(value):
        return str(value)
    return int(value) if value.is_integer() else value


def _text(value: str, place: str) -> str:
    text = str.__str__(value)  # of a text that is also an Enum: its value
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError(f"{place} holds half a character (a lone surrogate); mend the text")
    return text


def _name(name: object, place: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"{place} has the name {name!r}, which is no text; names must be texts")
    return _text(name, f"a name in {place}")


def checked_text(value: object, name: str, *, empty: bool = False) -> str:
    """A text, which must not be empty unless `empty`."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text, got a {type(value).__name__}")
    if not value and not empty:
        raise ValueError(f"{name} must not be empty")
    return _text(value, name)


def checked_count(value: object) -> int:
    """A whole number from 1."""
    number = plain(value, "count")
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise ValueError(f"count must be a whole number of at least 1, got {value!r}")
    return number


def checked_amount(value: object, name: str) -> float:
    """A number that is finite and not negative."""
    number = plain(value, name)
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if not math.isfinite(number) or number < 0:
        raise ValueError(f"{name} must be finite and not negative, got {value!r}")
    return float(number)


def checked_keys(keys: Iterable[str] | None) -> frozenset[str] | None:
    """Keys as a set; None stands for all runs."""
    if isinstance(keys, str):
        raise TypeError("keys must be a list of keys, got a text; put it into a list")
    return None if keys is None else frozenset(keys)
