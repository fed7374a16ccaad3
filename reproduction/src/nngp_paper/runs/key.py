"""Keys of runs: a hash of the experiment's name and the configuration.

Equal configurations have equal keys, on every platform and in every version of Python: the text
that is hashed is JSON in ASCII with sorted names and Python's shortest float repr. Equal numbers
count as equal, so 1 and 1.0 are one configuration, as are 0.0 and -0.0; True is not 1. NumPy
scalars and arrays count as the plain values they hold (a float32 as its exact value), tuples as
lists, and infinity as the word "inf". NaN equals nothing, so it is refused in a configuration.
"""

import hashlib
import json
import math
from collections.abc import Mapping
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
    text = canonical([experiment, plain(config, "config")], "config")
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def plain(value: object, name: str) -> Json:
    """Convert a value to dict, list, str, int, float, bool and None; `name` is for the TypeError
    about anything that has no such form."""
    try:
        return json.loads(json.dumps(value, default=_as_plain))
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{name} cannot be stored ({error}); give numbers, texts, lists and mappings"
        ) from None


def canonical(value: Json, name: str) -> str:
    """The text by which plain values are compared."""
    return json.dumps(_comparable(value, name), sort_keys=True, separators=(",", ":"))


def flat(values: Mapping[str, Json]) -> dict[str, Json]:
    """Nested values by dotted names: {"a": {"b": 1}} becomes {"a.b": 1}.

    Examples
    --------
    >>> from nngp_paper.runs import flat
    >>> flat({"optimizer": {"rate": 0.1, "decay": 0.0}, "width": 64})
    {'optimizer.rate': 0.1, 'optimizer.decay': 0.0, 'width': 64}
    """
    out: dict[str, Json] = {}
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            out |= {f"{name}.{inner}": part for inner, part in flat(value).items()}
        else:
            out[name] = value
    return out


def _as_plain(value: Any) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):  # arrays and scalars of NumPy and JAX
        return value.tolist()
    raise TypeError(f"there is a {type(value).__name__} in it")


def _comparable(value: Json, name: str) -> Json:
    if isinstance(value, dict):
        return {inner: _comparable(part, f"{name}.{inner}") for inner, part in value.items()}
    if isinstance(value, list):
        return [_comparable(part, name) for part in value]
    if not isinstance(value, float):
        return value
    if math.isnan(value):
        raise ValueError(f"{name} is NaN, which equals nothing; give a number, or None")
    if math.isinf(value):
        return str(value)
    return int(value) if value.is_integer() else value
