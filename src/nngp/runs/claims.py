"""Who does what: statements inside a store's transactions."""

import sqlite3
from collections.abc import Iterable

from nngp.runs.owner import Owner
from nngp.runs.reading import Choice, rows_of, runs
from nngp.runs.run import Run, stamp

POLL = 0.5  # seconds between two looks at runs that another process has claimed
TO_PENDING = "UPDATE runs SET status = 'pending', owner = NULL, started = NULL"


def take(
    connection: sqlite3.Connection,
    me: Owner,
    now: float,
    count: int,
    keys: frozenset[str] | None,
    experiment: str | None,
) -> list[Run]:
    """The first `count` pending runs of the choice, now running for this owner."""
    chosen = Choice(experiment, "pending", None, keys)
    found = [key for (key,) in rows_of(connection, "key", chosen, count)]
    if not found:
        return []
    connection.execute(
        "INSERT OR REPLACE INTO owners (id, place, pid, start, beat) VALUES (?, ?, ?, ?, ?)",
        (me.id, me.place, me.pid, me.start, now),
    )
    connection.executemany(
        "UPDATE runs SET status = 'running', owner = ?, started = ?, attempts = attempts + 1 "
        "WHERE key = ?",
        [(me.id, stamp(now), key) for key in found],
    )
    return runs(connection, Choice(None, "running", None, found), lists=True)


def free_the_abandoned(connection: sqlite3.Connection, me: Owner, now: float) -> None:
    """Runs whose owner is gone are pending again."""
    known = connection.execute("SELECT id, place, pid, start, beat FROM owners").fetchall()
    for *who, beat in known:
        owner = Owner(*who)
        if owner.id != me.id and not owner.is_alive(now - beat):
            connection.execute("DELETE FROM owners WHERE id = ?", (owner.id,))
    connection.execute(
        f"{TO_PENDING} WHERE status = 'running' AND owner NOT IN (SELECT id FROM owners)"
    )


def give_back(connection: sqlite3.Connection, me: Owner, keys: Iterable[str]) -> int:
    """Runs of this owner that it will not finish."""
    given = connection.executemany(
        f"{TO_PENDING} WHERE status = 'running' AND owner = ? AND key = ?",
        [(me.id, key) for key in keys],
    )
    return max(given.rowcount, 0)


def leave(connection: sqlite3.Connection, me: Owner) -> None:
    """Give back everything; the owner is no more."""
    connection.execute(f"{TO_PENDING} WHERE status = 'running' AND owner = ?", (me.id,))
    connection.execute("DELETE FROM owners WHERE id = ?", (me.id,))


def renew(connection: sqlite3.Connection, me: Owner, now: float) -> None:
    """The heartbeat, while something is claimed."""
    connection.execute(
        "UPDATE owners SET beat = ? WHERE id = ? "
        "AND EXISTS (SELECT 1 FROM runs WHERE status = 'running' AND owner = owners.id)",
        (now, me.id),
    )


def revive(
    connection: sqlite3.Connection, keys: frozenset[str] | None, experiment: str | None
) -> int:
    """Failed runs are pending again."""
    found = rows_of(connection, "key", Choice(experiment, "failed", None, keys))
    connection.executemany(f"{TO_PENDING}, error = NULL, finished = NULL WHERE key = ?", found)
    return len(found)
