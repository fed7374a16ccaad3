"""Results that come home from another machine."""

import os
from collections.abc import Iterator
from typing import Any

from nngp.runs.database import NO_FORK, Database

COLUMNS = (
    "key",
    "experiment",
    "config",
    "status",
    "owner",
    "attempts",
    "started",
    "finished",
    "seconds",
    "jitter",
    "device",
    "versions",
    "error",
    "scalars",
    "result",
)
TAKEN = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS[3:])


def merge(
    ours: Database, theirs: Database, keys: frozenset[str] | None = None, lists: bool = True
) -> int:
    """Copy the finished runs of `theirs`, which is closed; gives how many were new to `ours`."""
    try:
        if os.path.samefile(ours.file, theirs.file):
            raise ValueError(f"{theirs.path} is this store; name another one")
        with NO_FORK, ours.writing() as target:  # a fork would take both locks, in any order
            before = target.total_changes
            target.executemany(
                f"INSERT INTO runs ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))}) "
                f"ON CONFLICT (key) DO UPDATE SET {TAKEN} WHERE runs.status != 'done'",
                (row for row in _finished(theirs, lists) if keys is None or row[0] in keys),
            )
            return target.total_changes - before
    finally:
        theirs.close()


def _finished(store: Database, lists: bool) -> Iterator[tuple[Any, ...]]:
    """One by one, as curves may be long; what is wrong with this file is said of this file."""
    results = COLUMNS[-2:] if lists else ("NULL", "coalesce(scalars, result)")
    columns = ", ".join((*COLUMNS[:-2], *results))
    with store.reading() as source:
        yield from source.execute(f"SELECT {columns} FROM runs WHERE status = 'done' ORDER BY id")
