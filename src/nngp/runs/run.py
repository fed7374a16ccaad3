"""One run: what it was to be, what came of it, and where."""

import json
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

STATUSES = ("pending", "running", "done", "failed")
PACKAGES = ("nngp", "numpy", "scipy", "sklearn", "jax", "jaxlib", "optax")


@dataclass(frozen=True)
class Run:
    """A row of the store. Times are ISO 8601 in UTC; `seconds` is what the work took, `jitter` the
    noise that was added to factor a kernel, `owner` who claimed it last, `attempts` how often it
    was claimed."""

    key: str
    experiment: str
    config: dict[str, Any]
    status: str
    result: dict[str, Any] | None
    error: str | None
    versions: dict[str, str]
    device: str
    seconds: float | None
    jitter: float | None
    started: str | None
    finished: str | None
    owner: str | None
    attempts: int


def run_of(row: Sequence[Any]) -> Run:
    """A run from its fields as they are stored, in their order."""
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


@lru_cache(maxsize=64)
def _versions(text: str | None) -> tuple[tuple[str, str], ...]:
    """Few different ones, in thousands of rows."""
    return () if text is None else tuple(json.loads(text).items())


def stamp(now: float) -> str:
    """Seconds since 1970 as a date and time."""
    return datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds")


def versions_here() -> dict[str, str]:
    """Of Python and of the packages that are loaded."""
    loaded = {name: sys.modules[name] for name in PACKAGES if name in sys.modules}
    found = {name: str(module.__version__) for name, module in loaded.items()}
    return {"python": platform.python_version(), **found}


def without_lists(result: dict[str, Any]) -> dict[str, Any]:
    """What a listing shows of a result: no learning curves, nor what held only such."""
    short = {}
    for name, value in result.items():
        if isinstance(value, dict):
            inside = without_lists(value)
            if inside or not value:
                short[name] = inside
        elif not isinstance(value, list):
            short[name] = value
    return short
