"""One run: its configuration, its result, and where and when it was done."""

import json
import platform
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

from nngp_paper.runs.commit import current_commit
from nngp_paper.runs.key import Json, plain_key

STATUSES = ("pending", "running", "done", "failed")
PACKAGES = ("nngp", "numpy", "scipy", "sklearn", "jax", "jaxlib", "optax")
# Types of the plain columns
KINDS = {
    "key": str,
    "experiment": str,
    "status": str,
    "error": str | None,
    "device": str,
    "seconds": float | None,
    "jitter": float | None,
    "started": str | None,
    "finished": str | None,
    "owner": str | None,
    "attempts": int,
}


@dataclass(frozen=True)
class Run:
    """A row of the store. Times are ISO 8601 in UTC; `seconds` is how long the work took, `jitter`
    the noise that was added to factor a kernel, `owner` who claimed it last, `attempts` how often
    it was claimed.

    Examples
    --------
    >>> import os, tempfile
    >>> from nngp_paper.runs import RunStore
    >>> store = RunStore(os.path.join(tempfile.mkdtemp(), "runs.db"))
    >>> (key,) = store.declare("width", [{"width": 64}])
    >>> done = store.finish(key, {"loss": 0.5}, seconds=1.0)
    >>> run = store.get(key)
    >>> run.experiment, run.config, run.status, run.result, run.seconds
    ('width', {'width': 64}, 'done', {'loss': 0.5}, 1.0)
    >>> store.close()
    """

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
    """A run from the values of its row, in the order of the fields. Raises sqlite3.DatabaseError,
    as SQLite does for what it can check itself, for a row that no store has written."""
    key, experiment, config, status, result, error, versions, *rest = row
    run = Run(
        key,
        experiment,
        mapping(config, key, "configuration"),
        status,
        None if result is None else mapping(result, key, "result"),
        error,
        dict(_versions(versions, key)),
        *rest,
    )
    for name, kinds in KINDS.items():
        if not isinstance(getattr(run, name), kinds):
            raise damaged_row(key, f"its {name} is {getattr(run, name)!r:.40}")
    if status not in STATUSES:
        raise damaged_row(key, f"its status is {status!r:.40}")
    if plain_key(experiment, run.config, "config") != key:
        raise damaged_row(key, "its configuration is another one")
    return run


def mapping(text: Json, key: Json, name: str) -> dict[str, Json]:
    """A mapping from its JSON text in a row."""
    try:
        values = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise damaged_row(key, f"its {name} is no mapping")
    return values


def damaged_row(key: Json, cause: str) -> sqlite3.DatabaseError:
    """The error about a row."""
    return sqlite3.DatabaseError(f"the run {str(key)[:12]!r} cannot be read: {cause}")


@lru_cache(maxsize=64)  # thousands of rows share a few values
def _versions(text: str | None, key: str) -> tuple[tuple[str, str], ...]:
    return () if text is None else tuple(mapping(text, key, "list of versions").items())


def utc_text(seconds: float) -> str:
    """Seconds since 1970 as a date and time."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def current_versions() -> dict[str, str]:
    """Versions of Python and of the packages that are loaded, and the commit of this one if it is
    known."""
    loaded = {name: sys.modules[name] for name in PACKAGES if name in sys.modules}
    found = {name: str(module.__version__) for name, module in loaded.items()}
    commit = current_commit()
    known = {"python": platform.python_version(), **found}
    return known if commit is None else {**known, "commit": commit}


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
    """Nested values by dotted names: {"a": {"b": 1}} becomes {"a.b": 1}.

    Examples
    --------
    >>> from nngp_paper.runs import flat
    >>> flat({"optimizer": {"rate": 0.1, "decay": 0.0}, "width": 64})
    {'optimizer.rate': 0.1, 'optimizer.decay': 0.0, 'width': 64}
    """
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
