"""Which runs are meant, and reading them."""

import json
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any

from nngp.runs.checks import checked_text, wanted_keys
from nngp.runs.flat import Where
from nngp.runs.run import STATUSES, Run, run_of

FIELDS = tuple(field.name for field in fields(Run))
ALL = ", ".join(FIELDS)
SHORT = ALL.replace("result", "coalesce(scalars, result)")


class Choice:
    """Some of the runs; what is None does not choose."""

    def __init__(
        self,
        experiment: str | None = None,
        status: str | None = None,
        where: Mapping[str, Any] | None = None,
        keys: Iterable[str] | None = None,
    ) -> None:
        if status is not None and status not in STATUSES:
            raise ValueError(f"status must be one of {', '.join(STATUSES)}, got {status!r}")
        if experiment is not None:
            checked_text(experiment, "experiment")
        given = {"experiment": experiment, "status": status}
        self.equal = {name: value for name, value in given.items() if value is not None}
        self.where, self.keys = Where(where) if where else None, wanted_keys(keys)

    @property
    def sql(self) -> str:
        """The part of the choice that SQL makes."""
        return " AND ".join(f"{name} = :{name}" for name in self.equal) or "1"

    def holds(self, key: str, config: str) -> bool:
        """The part that is made here."""
        if self.keys is not None and key not in self.keys:
            return False
        return self.where is None or self.where(json.loads(config))


def rows_of(
    connection: sqlite3.Connection, columns: str, chosen: Choice, count: int | None = None
) -> list[tuple[Any, ...]]:
    """Columns of the chosen runs, the first `count` in the order in which they were declared."""
    query = f"SELECT key, config, {columns} FROM runs WHERE {chosen.sql} ORDER BY id"
    with closing(connection.execute(query, chosen.equal)) as found:
        return list(islice((row[2:] for row in found if chosen.holds(row[0], row[1])), count))


def runs(connection: sqlite3.Connection, chosen: Choice, lists: bool) -> list[Run]:
    """The chosen runs; without `lists` in their results they are read faster."""
    return [run_of(row) for row in rows_of(connection, ALL if lists else SHORT, chosen)]


def counts(connection: sqlite3.Connection, chosen: Choice) -> dict[str, int]:
    """How many of each status."""
    out = dict.fromkeys(STATUSES, 0)
    if chosen.where is None and chosen.keys is None:
        grouped = f"SELECT status, count(*) FROM runs WHERE {chosen.sql} GROUP BY status"
        return out | dict(connection.execute(grouped, chosen.equal).fetchall())
    for (status,) in rows_of(connection, "status", chosen):
        out[status] += 1
    return out


def one(connection: sqlite3.Connection, key: str, path: Path) -> Run:
    """The run with this key."""
    row = connection.execute(f"SELECT {ALL} FROM runs WHERE key = ?", (key,)).fetchone()
    if row is None:
        raise KeyError(f"there is no run {key!r} in {path}; declare it first")
    return run_of(row)
