"""The tables of a store, and how files of earlier versions are brought up to date.

The file says whose it is (`application_id`) and which version its tables have (`user_version`).
Step i of `STEPS` takes version i to i + 1; version 0 is an empty file. To change the tables, append
a step; never change one.
"""

import sqlite3
import time
from pathlib import Path

from nngp.errors import RunStoreError
from nngp.runs.faults import PRIMARY

PATIENCE = 30.0  # seconds to wait for other processes
APPLICATION = int.from_bytes(b"nngp", "big")

# `result` comes last, and `scalars` repeats it without its lists where it has any: so a listing of
# many runs does not read their learning curves.
RUNS = """CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    experiment TEXT NOT NULL,
    config TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'pending'
        CHECK (status IN ('pending', 'running', 'done', 'failed')),
    owner TEXT,
    attempts INTEGER NOT NULL DEFAULT 0,
    started TEXT,
    finished TEXT,
    seconds REAL,
    jitter REAL,
    device TEXT NOT NULL DEFAULT '',
    versions TEXT,
    error TEXT,
    scalars TEXT,
    result TEXT
)"""

OWNERS = """CREATE TABLE owners (
    id TEXT PRIMARY KEY,
    place TEXT NOT NULL,
    pid INTEGER NOT NULL,
    start TEXT NOT NULL,
    beat REAL NOT NULL
)"""

STEPS: tuple[tuple[str, ...], ...] = (
    (
        RUNS,
        OWNERS,
        "CREATE INDEX runs_by_status ON runs (status)",
        "CREATE INDEX runs_by_experiment ON runs (experiment, status)",
    ),
)


def prepare(connection: sqlite3.Connection, path: Path, create: bool) -> None:
    """See that the file is a store, of this version; make it one if it is empty and `create`."""
    if _is_empty(connection):
        if not create:
            raise RunStoreError(f"{path} is empty: there is no store of runs in it")
        _write_ahead(connection)
    if _is_current(connection, path):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in STEPS[_version(connection) :]:  # somebody may have been first: look again
            for statement in step:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {len(STEPS)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Let readers go on while somebody writes. SQLite does not wait for others who are about to do
    the same to a new file, so this does."""
    patience = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & PRIMARY == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > patience:
                raise
            time.sleep(0.01)


def _is_current(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether nothing is to be done; what must be left alone is refused."""
    if _is_empty(connection):
        return False
    if _pragma(connection, "application_id") != APPLICATION:
        raise RunStoreError(f"{path} is the database of another program; choose another name")
    version = _version(connection)
    if version > len(STEPS):
        raise RunStoreError(
            f"the store {path} was written by a later nngp (format {version}, this one knows up to "
            f"{len(STEPS)}); update nngp"
        )
    return version == len(STEPS)


def _is_empty(connection: sqlite3.Connection) -> bool:
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return not tables and not _version(connection) and not _pragma(connection, "application_id")


def _version(connection: sqlite3.Connection) -> int:
    return _pragma(connection, "user_version")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
