"""One run: its configuration, its result, and where and when it was done."""

import json
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

from nngp.runs.key import Json

STATUSES = ("pending", "running", "done", "failed")
PACKAGES = ("nngp", "numpy", "scipy", "sklearn", "jax", "jaxlib", "optax")


@dataclass(frozen=True)
class Run:
    """A row of the store. Times are ISO 8601 in UTC; `seconds` is how long the work took, `jitter`
    the noise that was added to factor a kernel, `owner` who claimed it last, `attempts` how often
    it was claimed."""

    key: str
    experiment: str
    config: dict[str, Json]
    status: str
    result: dict[str, Json] | None
    error: str | None
    versions: dict[str, str]
    device: str
    seconds: float | None
    jitter: float | None
    started: str | None
    finished: str | None
    owner: str | None
    attempts: int


def run_from_row(row: Sequence[Json]) -> Run:
    """A run from the values of its row, in the order of the fields."""
    key, experiment, config, status, result, error, versions, *rest = row
    return Run(
        key,
        experiment,
        json.loads(config),
        status,
        None if result is None else json.loads(result),
        error,
        dict(_versions(versions)),
        *rest,
    )


@lru_cache(maxsize=64)  # thousands of rows share a few values
def _versions(text: str | None) -> tuple[tuple[str, str], ...]:
    return () if text is None else tuple(json.loads(text).items())


def utc_text(seconds: float) -> str:
    """Seconds since 1970 as a date and time."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def current_versions() -> dict[str, str]:
    """Versions of Python and of the packages that are loaded."""
    loaded = {name: sys.modules[name] for name in PACKAGES if name in sys.modules}
    found = {name: str(module.__version__) for name, module in loaded.items()}
    return {"python": platform.python_version(), **found}


def without_lists(result: dict[str, Json]) -> dict[str, Json]:
    """A result without its lists (learning curves), and without mappings that hold nothing else."""
    short = {}
    for name, value in result.items():
        if isinstance(value, dict):
            inside = without_lists(value)
            if inside or not value:
                short[name] = inside
        elif not isinstance(value, list):
            short[name] = value
    return short


def flat(values: Mapping[str, Json]) -> dict[str, Json]:
    """Nested values by dotted names: {"a": {"b": 1}} becomes {"a.b": 1}."""
    out: dict[str, Json] = {}
    for name, value in _leaves(values, ""):
        while name in out:  # {"a.b": 1, "a": {"b": 2}}
            name += "_"
        out[name] = value
    return out


def _leaves(values: Mapping[str, Json], prefix: str) -> Iterator[tuple[str, Json]]:
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
