"""Connection to a store's file, one for all threads of a process.

Threads take turns. Before a fork every connection is closed, and parent and child open their own at
the next use: SQLite's locks do not survive a fork, not even in connections that are only kept.
A commit is synced to the disk (synchronous = FULL): a finished run outlives a power cut, not only
`kill -9`, for a few milliseconds a commit.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from weakref import WeakSet

from nngp_paper.errors import RunStoreError
from nngp_paper.runs.schema import PATIENCE, PRIMARY, prepare, transaction

LONGEST = 120  # letters of SQLite's own words
SMALLEST = 512  # bytes in a database that is not empty; less is taken for an empty one


class Database:
    """The file at `path`, created if `create`; its folder must exist."""

    def __init__(self, path: str | os.PathLike[str], create: bool) -> None:
        self.path = Path(path)
        self.file = Path(os.path.abspath(path))  # whatever becomes the working directory
        self.lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._closed = False
        self._check_path(create)
        with NO_FORK, readable_errors(self.path):
            self._connection = self._connect(create)
            self._identity = self._current_identity()
            _OPEN.add(self)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, for statements that change nothing."""
        with self.lock, readable_errors(self.path):
            yield self._open_connection()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The connection in a transaction: all of the block happens, or nothing."""
        with self.reading() as connection, transaction(connection):
            yield connection

    def close(self) -> None:
        with self.lock:
            self._closed = True
            self.disconnect()

    def disconnect(self) -> None:
        """Close the connection; the next use opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open_connection(self) -> sqlite3.Connection:
        if self._closed:
            raise ValueError(f"the store {self.path} is closed; open it again")
        if self._current_identity() != self._identity:  # results would go to a file without a name
            raise RunStoreError(
                f"the store {self.path} was removed or replaced while in use; open it again"
            )
        if self._connection is None:
            self._connection = self._connect(create=False)
        return self._connection

    def _connect(self, create: bool) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self.file.as_uri()}?mode={'rwc' if create else 'rw'}",
            uri=True,
            timeout=PATIENCE,
            isolation_level=None,  # transactions are begun and ended explicitly
            check_same_thread=False,
        )
        try:
            prepare(connection, self.path, create)
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_path(self, create: bool) -> None:
        if self.file.is_dir():
            raise IsADirectoryError(f"{self.path} is a folder; give the name of a file")
        if not self.file.parent.is_dir():
            folder = self.path.parent
            raise FileNotFoundError(f"the folder {folder} does not exist; create it first")
        if not create and not self.file.exists():
            raise FileNotFoundError(f"there is no store {self.path}; check the name")
        if self.file.exists() and 0 < self.file.stat().st_size < SMALLEST:
            raise RunStoreError(NO_STORE.format(path=self.path))

    def _current_identity(self) -> tuple[int, int] | None:
        try:
            facts = self.file.stat()
        except FileNotFoundError:
            return None
        return facts.st_dev, facts.st_ino


NO_STORE = "{path} is not a store of runs; choose another name"
LOCKED = "the store {path} stayed locked by another program; try again when that has finished"
READ_ONLY = "the store {path} or its folder is read-only; change permissions, or work on a copy"
MEANINGS: dict[int, tuple[type[Exception], str]] = {
    sqlite3.SQLITE_BUSY: (TimeoutError, LOCKED),
    sqlite3.SQLITE_LOCKED: (TimeoutError, LOCKED),
    sqlite3.SQLITE_READONLY: (PermissionError, READ_ONLY),
    sqlite3.SQLITE_PERM: (PermissionError, READ_ONLY),
    sqlite3.SQLITE_CANTOPEN: (
        PermissionError,
        "the store {path} cannot be opened; both the file and its folder must be writable, as "
        "SQLite keeps a file beside it",
    ),
    sqlite3.SQLITE_FULL: (
        OSError,
        "there is no room left to write to the store {path}; make room and start again: finished "
        "runs are kept",
    ),
    sqlite3.SQLITE_IOERR: (
        OSError,
        "the disk with the store {path} fails ({error}); finished runs are kept",
    ),
    sqlite3.SQLITE_NOTADB: (RunStoreError, NO_STORE),
    sqlite3.SQLITE_NOMEM: (MemoryError, "there is not enough memory to read the store {path}"),
}
DAMAGED = (
    "the store {path} is damaged ({error}); take a copy from before, or save what can be read with "
    "nngp_paper.runs.RunStore('new.db').merge('{path}', salvage=True), or with: "
    "sqlite3 {path} .recover"
)
SHORT = (sqlite3.SQLITE_IOERR_SHORT_READ,)  # errors of a disk that are the file's own


@contextmanager
def readable_errors(path: Path) -> Iterator[None]:
    """Replace SQLite's errors by ones that name the file and the remedy. What is left when locks,
    permissions, disk and memory are not to blame is damage: missing tables, broken rows."""
    try:
        yield
    except (sqlite3.Error, UnicodeError) as error:  # the latter for names of damaged tables
        # An error that was not SQLite's own has no code.
        code = getattr(error, "sqlite_errorcode", 0)
        if isinstance(error, sqlite3.ProgrammingError | sqlite3.InterfaceError):
            raise
        damaged = RunStoreError, DAMAGED
        kind, message = damaged if code in SHORT else MEANINGS.get(code & PRIMARY, damaged)
        raise kind(message.format(path=path, error=_printable(str(error)))) from error


def _printable(text: str) -> str:
    """A text that may quote the bytes of a damaged file, as part of a sentence."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in text)
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}..."


NO_FORK = threading.RLock()  # taken before a database's own lock, never after
_OPEN: WeakSet[Database] = WeakSet()
_FORKING: list[Database] = []


def _before_fork() -> None:
    """Wait until no thread uses a connection, and close all connections."""
    NO_FORK.acquire()
    _FORKING.extend(sorted(_OPEN, key=id))
    for database in _FORKING:
        database.lock.acquire()
        database.disconnect()


def _after_fork() -> None:
    while _FORKING:
        _FORKING.pop().lock.release()
    NO_FORK.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )
