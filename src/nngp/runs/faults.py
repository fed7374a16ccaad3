"""What can be wrong with a store's file, one sentence each."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nngp.errors import RunStoreError

PRIMARY = 0xFF  # the low byte of SQLite's extended codes


@contextmanager
def said(path: Path) -> Iterator[None]:
    """SQLite's errors in the block become ones that say what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise _meaning(path, error) from error


def _meaning(path: Path, error: sqlite3.Error) -> Exception:
    code = getattr(error, "sqlite_errorcode", 0) & PRIMARY
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return TimeoutError(
            f"the store {path} stayed locked by another program; try again when that has finished"
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return PermissionError(
            f"the store {path} or its folder is read-only; change permissions, or work on a copy"
        )
    if code == sqlite3.SQLITE_CANTOPEN:
        return PermissionError(
            f"the store {path} cannot be opened; both the file and its folder must be writable, as "
            "SQLite keeps a file beside it"
        )
    if code == sqlite3.SQLITE_FULL:
        return OSError(
            f"there is no room left to write to the store {path}; make room and start again: "
            "finished runs are kept"
        )
    if code == sqlite3.SQLITE_IOERR:
        return OSError(f"the disk with the store {path} fails ({error}); finished runs are kept")
    if code == sqlite3.SQLITE_NOTADB:
        return RunStoreError(f"{path} is not a store of runs; choose another name")
    if code == sqlite3.SQLITE_CORRUPT:
        return RunStoreError(
            f"the store {path} is damaged ({error}); take a copy from before, or save what can be "
            f"read with: sqlite3 {path} .recover"
        )
    return error
