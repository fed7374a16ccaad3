"""Families of transformations from the plain values that their `as_dict` gave."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from nngp.architecture.invariances.family import Family
from nngp.architecture.invariances.images import (
    ColourOrder,
    Flips,
    QuarterTurns,
    Shifts,
    SmallTurns,
    colour_order,
    flips,
    rotations,
    shifts,
)
from nngp.architecture.invariances.symmetries import Permutations, Signs, permutations, signs


def family_from_dict(values: Mapping[str, Any]) -> Family:
    """Construct the family that `as_dict` described; ValueError for anything else."""
    own = dict(values)
    kind = own.pop("family", None)
    if not isinstance(kind, str) or kind not in _READERS:
        raise ValueError(f"{kind!r} is no family of transformations; there are {list(_READERS)}")
    names, read = _READERS[kind]
    if set(own) not in names:
        raise ValueError(f"the family {kind!r} has other entries than these: {sorted(own)}")
    return read(**{name: _number(value) for name, value in own.items()})


def _number(value: Any) -> Any:
    return float("inf") if value == "inf" else value


def _entries(*families: type[Family]) -> list[set[str]]:
    """The entries that each of these families has in a file."""
    return [{field.name for field in fields(one)} for one in families]  # type: ignore[arg-type]


# the name of a family -> the entries that it may have, and a function of them
_READERS: dict[str, tuple[list[set[str]], Any]] = {
    "flips": (_entries(Flips), flips),
    "shifts": (_entries(Shifts), shifts),
    "rotations": (_entries(QuarterTurns, SmallTurns), rotations),
    "colour_order": (_entries(ColourOrder), colour_order),
    "permutations": (_entries(Permutations), permutations),
    "signs": (_entries(Signs), signs),
}
