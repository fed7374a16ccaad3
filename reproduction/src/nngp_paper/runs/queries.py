"""SQL queries of the store: selecting, claiming and copying runs.

Every function takes a connection; those that change something are called in a transaction.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import fields
from itertools import islice
from pathlib import Path

from nngp_paper.runs.key import Config, Json, canonical, checked_keys, checked_text, plain
from nngp_paper.runs.owner import Owner
from nngp_paper.runs.run import STATUSES, Run, flat, mapping, run_from_row, utc_text

FIELDS = tuple(field.name for field in fields(Run))
ALL = ", ".join(FIELDS)
WITHOUT_LISTS = ALL.replace("result", "coalesce(scalars, result)")
COPIED = (*FIELDS, "scalars")  # the first three are what a run is, and stay
TO_PENDING = "UPDATE runs SET status = 'pending', owner = NULL, started = NULL"


class Selection:
    """Some of the runs; a criterion that is None selects all. `where` has values of the
    configuration, by nested or dotted names."""

    def __init__(
        self,
        experiment: str | None = None,
        status: str | None = None,
        where: Config | None = None,
        keys: Iterable[str] | None = None,
    ) -> None:
        if status is not None and status not in STATUSES:
            raise ValueError(f"status must be one of {', '.join(STATUSES)}, got {status!r}")
        if experiment is not None:
            checked_text(experiment, "experiment")
        given = {"experiment": experiment, "status": status}
        self.equal = {name: value for name, value in given.items() if value is not None}
        self.keys = checked_keys(keys)
        values = flat(plain(where or {}, "where"))
        self.values = {name: canonical(value, f"where.{name}") for name, value in values.items()}

    @property
    def sql(self) -> str:
        """The criteria that SQL checks."""
        return " AND ".join(f"{name} = :{name}" for name in self.equal) or "1"

    def accepts(self, key: str, config: str) -> bool:
        """Whether a run meets the criteria that are checked here."""
        if self.keys is not None and key not in self.keys:
            return False
        if not self.values:
            return True
        values = flat(mapping(config, key, "configuration"))
        return all(
            name in values and canonical(values[name], name) == text
            for name, text in self.values.items()
        )


def select(
    connection: sqlite3.Connection, columns: str, selection: Selection, count: int | None = None
) -> list[tuple[Json, ...]]:
    """Columns of the selected runs, the first `count` in the order in which they were declared."""
    query = f"SELECT key, config, {columns} FROM runs WHERE {selection.sql} ORDER BY id"
    with closing(connection.execute(query, selection.equal)) as found:
        return list(islice((row[2:] for row in found if selection.accepts(*row[:2])), count))


def select_runs(connection: sqlite3.Connection, selection: Selection, lists: bool) -> list[Run]:
    """The selected runs; without `lists` in their results they are read faster."""
    columns = ALL if lists else WITHOUT_LISTS
    return [run_from_row(row) for row in select(connection, columns, selection)]


def count_by_status(connection: sqlite3.Connection, selection: Selection) -> dict[str, int]:
    """The number of selected runs of each status."""
    out = dict.fromkeys(STATUSES, 0)
    if not selection.values and selection.keys is None:
        grouped = f"SELECT status, count(*) FROM runs WHERE {selection.sql} GROUP BY status"
        found = connection.execute(grouped, selection.equal).fetchall()
    else:
        found = [(status, 1) for (status,) in select(connection, "status", selection)]
    for status, count in found:
        if status not in out:
            raise sqlite3.DatabaseError(f"a run has the status {status!r:.40}")
        out[status] += count
    return out


def get_run(connection: sqlite3.Connection, key: str, path: Path) -> Run:
    """The run with this key."""
    row = connection.execute(f"SELECT {ALL} FROM runs WHERE key = ?", (key,)).fetchone()
    if row is None:
        raise KeyError(f"there is no run {key!r} in {path}; declare it first")
    return run_from_row(row)


def claim(
    connection: sqlite3.Connection, owner: Owner, now: float, count: int, pending: Selection
) -> list[Run]:
    """Mark the first `count` of some pending runs as running for this owner."""
    found = [key for (key,) in select(connection, "key", pending, count)]
    if not found:
        return []
    connection.execute(
        "INSERT OR REPLACE INTO owners (id, place, pid, start, beat) VALUES (?, ?, ?, ?, ?)",
        (owner.id, owner.place, owner.pid, owner.start, now),
    )
    connection.executemany(
        "UPDATE runs SET status = 'running', owner = ?, started = ?, attempts = attempts + 1 "
        "WHERE key = ?",
        [(owner.id, utc_text(now), key) for key in found],
    )
    return select_runs(connection, Selection(None, "running", None, found), lists=True)


def free_abandoned(connection: sqlite3.Connection, owner: Owner, now: float) -> None:
    """Make runs pending again whose owner has died."""
    known = connection.execute("SELECT id, place, pid, start, beat FROM owners").fetchall()
    for *who, beat in known:
        other = Owner(*who)
        if not other.is_possible or not isinstance(beat, float):
            raise sqlite3.DatabaseError(f"the owner {who[0]!r:.40} of some runs cannot be read")
        if other.id != owner.id and not other.is_alive(now - beat):
            connection.execute("DELETE FROM owners WHERE id = ?", (other.id,))
    connection.execute(
        f"{TO_PENDING} WHERE status = 'running' AND owner NOT IN (SELECT id FROM owners)"
    )


def finished_rows(
    connection: sqlite3.Connection, lists: bool
) -> Iterator[tuple[Json, ...] | sqlite3.DatabaseError]:
    """Rows of finished runs to copy, one by one, as curves may be long; the error in the place of a
    row that is damaged, and of the rest of a table that is."""
    columns = f"{ALL}, scalars" if lists else f"{WITHOUT_LISTS}, NULL"
    query = f"SELECT {columns} FROM runs WHERE id = ? AND status = 'done'"
    try:
        numbers = connection.execute("SELECT id FROM runs NOT INDEXED ORDER BY id")
        for number in iter(numbers.fetchone, None):
            try:
                row = connection.execute(query, number).fetchone()
                if row is not None:
                    yield _checked(row)
            except sqlite3.DatabaseError as error:
                yield error
    except sqlite3.DatabaseError as error:
        yield error


def _checked(row: tuple[Json, ...]) -> tuple[Json, ...]:
    """The row, whose values are those of a run."""
    run_from_row(row[:-1])
    if row[-1] is not None:
        mapping(row[-1], row[0], "short result")
    return row


def insert_finished(connection: sqlite3.Connection, rows: Iterable[tuple[Json, ...]]) -> int:
    """Insert rows of finished runs; a result that is there stays. Returns how many were new."""
    before = connection.total_changes
    replaced = ", ".join(f"{name} = excluded.{name}" for name in COPIED[3:])
    connection.executemany(
        f"INSERT INTO runs ({', '.join(COPIED)}) VALUES ({', '.join('?' * len(COPIED))}) "
        f"ON CONFLICT (key) DO UPDATE SET {replaced} WHERE runs.status != 'done'",
        rows,
    )
    return connection.total_changes - before
