"""Nested values by dotted names: {"a": {"b": 1}} is {"a.b": 1}."""

from collections.abc import Iterator, Mapping
from typing import Any

from nngp.runs.key import canonical, plain


def flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Every value that is not itself a mapping with something in it, by its dotted name."""
    out: dict[str, Any] = {}
    for name, value in _leaves(values, ""):
        while name in out:  # {"a.b": 1, "a": {"b": 2}}
            name += "_"
        out[name] = value
    return out


def _leaves(values: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


class Where:
    """A condition on configurations: some of their values, by dotted or nested names."""

    def __init__(self, wanted: Mapping[str, Any] | None) -> None:
        values = flat(plain(wanted or {}, "where"))
        self._wanted = {name: canonical(value, f"where.{name}") for name, value in values.items()}

    def __call__(self, config: Mapping[str, Any]) -> bool:
        """Whether a configuration has all of these values."""
        if not self._wanted:
            return True
        values = flat(config)
        return all(
            name in values and canonical(values[name], name) == text
            for name, text in self._wanted.items()
        )
