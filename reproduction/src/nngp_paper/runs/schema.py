"""Tables of a store's file, and its version.

The file says whose it is (`application_id`) and which version its tables have (`user_version`).
Step i of `MIGRATIONS` takes version i to i + 1; version 0 is an empty file. To change the tables,
append a step; never change one.
"""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nngp_paper.errors import RunStoreError

PATIENCE = 30.0  # seconds to wait for other processes
APPLICATION = int.from_bytes(b"nngp", "big")
PRIMARY = 0xFF  # the low byte of SQLite's extended error codes

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

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        RUNS,
        OWNERS,
        "CREATE INDEX runs_by_status ON runs (status)",
        "CREATE INDEX runs_by_experiment ON runs (experiment, status)",
    ),
)


def prepare(connection: sqlite3.Connection, path: Path, create: bool) -> None:
    """Check that the file is a store, and bring its tables to the current version; an empty file
    becomes a store if `create`."""
    if not _stored_version(connection, path):
        if not create:
            raise RunStoreError(f"{path} is empty: there is no store of runs in it")
        _enable_write_ahead_log(connection)
    if _stored_version(connection, path) == len(MIGRATIONS):
        return
    with transaction(connection):
        for step in MIGRATIONS[_pragma(connection, "user_version") :]:  # others may have been first
            for statement in step:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction that takes the write lock at once: all of the block happens, or nothing."""
    try:  # an interrupt may come right after BEGIN, too
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _enable_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Let readers go on while another process writes. SQLite does not wait for processes that do
    the same to a new file, so this function does."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & PRIMARY == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _stored_version(connection: sqlite3.Connection, path: Path) -> int:
    """The version of the tables, 0 for an empty file. Raises RunStoreError for other databases."""
    tables, version, application = _header(connection)
    if not (version or application or tables):
        return 0
    if application != APPLICATION:
        raise RunStoreError(f"{path} is the database of another program; choose another name")
    if version > len(MIGRATIONS):
        raise RunStoreError(
            f"the store {path} was written by a later nngp (format {version}, this one knows up to "
            f"{len(MIGRATIONS)}); update nngp"
        )
    return version


def _header(connection: sqlite3.Connection) -> tuple[int, int, int]:
    """The number of tables, the version and the application, all of one moment: another process
    may be about to make a store of the file."""
    connection.execute("BEGIN")
    try:
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return tables, _pragma(connection, "user_version"), _pragma(connection, "application_id")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
