"""The name of a run: a hash of what it is.

Equal configurations have equal keys, on every platform and in every version of Python: the text
that is hashed is JSON in ASCII with sorted names and Python's shortest float repr. Equal numbers
count as equal, so 1 and 1.0 are one configuration, as are 0.0 and -0.0; True is not 1. NumPy
scalars and arrays count as the plain values they hold (a float32 as its exact value), tuples as
lists, and infinity as the word "inf". NaN equals nothing, so it can name nothing, and is refused.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any


def key_of(experiment: str, config: Mapping[str, Any]) -> str:
    """The key of a run: 64 hexadecimal digits."""
    return digest(experiment, plain(config, "config"), "config")


def digest(experiment: str, values: dict[str, Any], place: str) -> str:
    """The key of a configuration in plain values."""
    text = canonical([experiment, values], place)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def plain(value: Any, place: str) -> Any:
    """The value in terms of dict, list, str, int, float, bool and None; whatever is none of these
    and holds none is refused, with `place` in the sentence."""
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


def canonical(value: Any, place: str) -> str:
    """A plain value as the text by which it is compared."""
    return json.dumps(_comparable(value, place), sort_keys=True, separators=(",", ":"))


def _comparable(value: Any, place: str) -> Any:
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
    if not _encodable(text):
        raise ValueError(f"{place} holds half a character (a lone surrogate); mend the text")
    return text


def _name(name: Any, place: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"{place} has the name {name!r}, which is no text; names must be texts")
    return _text(name, f"a name in {place}")


def _encodable(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)
