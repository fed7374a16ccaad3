"""The store: one SQLite file with a row for each run, for any number of threads and processes.

Each call opens the file, does one transaction and closes it, so a store may be used by all threads
of a process, and after a fork by the child as well. SQLite's write lock is what makes a claim
exclusive.

A claim is a lease: it holds for `LEASE` seconds, and a thread of its owner renews it while the
owner lives. A run whose lease has ended is free, and so is one whose owner was a process of this
machine that is gone.
"""

import json
import math
import os
import platform
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nngp_paper.errors import RunStoreError
from nngp_paper.runs.key import Config, Json, canonical, flat, key_of, plain
from nngp_paper.runs.versions import current_commit, current_versions

STATUSES = ("pending", "running", "done", "failed")
POLL = 0.5  # seconds between two looks at runs that another process has claimed
LEASE = 90.0  # seconds for which a claim holds without being renewed
BEAT = 10.0  # seconds between renewals
PATIENCE = 30.0  # seconds to wait for the transactions of others
SMALLEST = 512  # bytes of a database that is not empty; SQLite takes less for an empty one
APPLICATION, VERSION = int.from_bytes(b"nngp", "big"), 2  # what the file says it is

RUNS = """CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    experiment TEXT NOT NULL,
    config TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'pending'
        CHECK (status IN ('pending', 'running', 'done', 'failed')),
    owner TEXT,
    expires REAL,
    attempts INTEGER NOT NULL DEFAULT 0,
    started TEXT,
    finished TEXT,
    seconds REAL,
    jitter REAL,
    device TEXT NOT NULL DEFAULT '',
    versions TEXT,
    error TEXT,
    result TEXT
)"""
INDEX = "CREATE INDEX runs_by_status ON runs (status)"
TO_PENDING = "UPDATE runs SET status = 'pending', owner = NULL, started = NULL"
Keys = Iterable[str] | None

# Held while a connection is open: a child that is forked meanwhile would take the locks of its
# parent's connections for its own, and wait for them for ever.
OPEN = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=OPEN.acquire, after_in_parent=OPEN.release, after_in_child=OPEN.release
    )


@dataclass(frozen=True)
class Run:
    """A row of the store. Times are ISO 8601 in UTC; `seconds` is how long the work took, `jitter`
    the noise that was added to factor a kernel, `owner` who claimed it last, `attempts` how often
    it was claimed.

    Examples
    --------
    >>> from nngp_paper.runs import RunStore
    >>> store = RunStore("runs.db")
    >>> (key,) = store.declare("width", [{"width": 64}])
    >>> done = store.finish(key, {"loss": 0.5}, seconds=1.0)
    >>> run = store.get(key)
    >>> run.experiment, run.config, run.status, run.result, run.seconds
    ('width', {'width': 64}, 'done', {'loss': 0.5}, 1.0)
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


FIELDS = tuple(field.name for field in fields(Run))
AS_JSON = ("config", "result", "versions")


class RunStore:
    """Runs in the SQLite file `path`, which is created unless `create` is False. `clock` gives
    seconds since 1970.

    Examples
    --------
    >>> from nngp_paper.runs import RunStore
    >>> with RunStore("runs.db") as store:
    ...     keys = store.declare("width", [{"width": width} for width in (64, 128)])
    ...     while run := store.claim(keys):
    ...         done = store.finish(run.key, {"loss": 1 / run.config["width"]}, seconds=0.1)
    ...     [run.result["loss"] for run in store.runs(status="done")]
    [0.015625, 0.0078125]
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        create: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = Path(path)
        self._file = Path(os.path.abspath(path))  # whatever becomes the working directory
        self._clock, self._number = clock, secrets.token_hex(6)
        self._heart: threading.Thread | None = None
        self._stop = threading.Event()
        self._closed = False
        if self._file.is_dir():
            raise IsADirectoryError(f"{path} is a folder; give the name of a file")
        if not self._file.parent.is_dir():
            raise FileNotFoundError(
                f"the folder {self.path.parent} does not exist; create it first"
            )
        if create and not self._file.exists():
            with OPEN, _readable_errors(self.path), closing(self._connect("rwc")):
                pass
        with self._reading() as connection:
            self._prepare(connection, create)

    def declare(self, experiment: str, configs: Iterable[Config]) -> list[str]:
        """Add runs to be done, in this order, and return their keys; known runs do not change.

        Examples
        --------
        >>> from nngp_paper.runs import RunStore
        >>> store = RunStore("runs.db")
        >>> keys = store.declare("width", [{"width": width} for width in (64, 128)])
        >>> store.declare("width", [{"width": 64.0}]) == keys[:1]  # known already
        True
        """
        if isinstance(configs, str | Mapping):
            raise TypeError("configs must be a list of mappings, one for each run")
        rows = []
        for config in configs:
            if not isinstance(config, Mapping):
                raise TypeError(f"a configuration is a {type(config).__name__}; give a mapping")
            text = json.dumps(plain(config, "config"))
            rows.append((key_of(experiment, config), experiment, text))
        with self._writing() as connection:
            connection.executemany(
                "INSERT INTO runs (key, experiment, config) VALUES (?, ?, ?) "
                "ON CONFLICT (key) DO NOTHING",
                rows,
            )
        return [key for key, _, _ in rows]

    def claim(self, keys: Keys = None, experiment: str | None = None) -> Run | None:
        """Take the first run that is to be done, among `keys` or of `experiment` if given; None if
        all are done, failed, or being done by others (see `pending`).

        Examples
        --------
        >>> from nngp_paper.runs import RunStore
        >>> store = RunStore("runs.db")
        >>> keys = store.declare("width", [{"width": width} for width in (64, 128)])
        >>> store.claim(keys).config, store.claim(keys).config, store.claim(keys)
        ({'width': 64}, {'width': 128}, None)
        >>> store.close()
        """
        current_commit()  # that of the code which does the runs, not of a later checkout
        chosen, values = _selection(experiment, "pending", keys)
        with self._writing() as connection:
            now, me = self._clock(), self._owner
            _free_abandoned(connection, me, now)
            found = connection.execute(
                f"SELECT key FROM runs WHERE {chosen} ORDER BY id LIMIT 1", values
            ).fetchone()
            if found is None:
                return None
            connection.execute(
                "UPDATE runs SET status = 'running', owner = ?, expires = ?, started = ?, "
                "attempts = attempts + 1 WHERE key = ?",
                (me, now + LEASE, _utc_text(now), *found),
            )
            self._start_heart()  # within the transaction, so that only one thread starts it
            return self._get(connection, *found)

    def finish(
        self,
        key: str,
        result: Mapping[str, Any],
        *,
        seconds: float,
        device: str = "",
        jitter: float | None = None,
    ) -> bool:
        """Keep the result of a run. If another process has finished it, that result stays, and this
        returns False. A result may hold NaN and infinities; they come back as such.

        Examples
        --------
        >>> from nngp_paper.runs import RunStore
        >>> store = RunStore("runs.db")
        >>> (key,) = store.declare("width", [{"width": 64}])
        >>> first = store.finish(key, {"loss": 0.5}, seconds=1.0)
        >>> first, store.finish(key, {"loss": 0.4}, seconds=1.0), store.get(key).result
        (True, False, {'loss': 0.5})
        """
        if not isinstance(result, Mapping):
            raise TypeError(f"the result is a {type(result).__name__}; give a mapping")
        return self._end(
            key,
            status="done",
            result=json.dumps(plain(result, "result")),
            error=None,
            device=device,
            seconds=_amount(seconds, "seconds"),
            jitter=None if jitter is None else _amount(jitter, "jitter"),
        )

    def fail(self, key: str, error: str, seconds: float = 0.0) -> bool:
        """Record why a run has no result; it is not claimed again before `retry`. Returns False,
        and changes nothing, if another process has finished it.

        Examples
        --------
        >>> from nngp_paper.runs import RunStore
        >>> store = RunStore("runs.db")
        >>> (key,) = store.declare("width", [{"width": 64}])
        >>> store.fail(key, "out of memory"), store.get(key).error
        (True, 'out of memory')
        """
        text = error.encode("utf-8", "replace").decode()  # names of files may be no Unicode
        return self._end(key, status="failed", error=text, seconds=_amount(seconds, "seconds"))

    def release(self, keys: Iterable[str]) -> int:
        """Give back runs that this store claimed and has not finished; returns how many.

        Examples
        --------
        >>> from nngp_paper.runs import RunStore
        >>> store = RunStore("runs.db")
        >>> (key,) = store.declare("width", [{"width": 64}])
        >>> run = store.claim()
        >>> store.release([run.key]), store.counts()["pending"]
        (1, 1)
        >>> store.close()
        """
        chosen, values = _selection(None, "running", keys)
        with self._writing() as connection:
            return connection.execute(
                f"{TO_PENDING} WHERE {chosen} AND owner = :owner", values | {"owner": self._owner}
            ).rowcount

    def retry(self, keys: Keys = None, experiment: str | None = None) -> int:
        """Make failed runs pending again; returns how many.

        Examples
        --------
        >>> from nngp_paper.runs import RunStore
        >>> store = RunStore("runs.db")
        >>> (key,) = store.declare("width", [{"width": 64}])
        >>> failed = store.fail(key, "out of memory")
        >>> store.retry(), store.get(key).status
        (1, 'pending')
        """
        chosen, values = _selection(experiment, "failed", keys)
        with self._writing() as connection:
            return connection.execute(
                f"{TO_PENDING}, error = NULL, finished = NULL WHERE {chosen}", values
            ).rowcount

    def get(self, key: str) -> Run:
        """One run.

        Examples
        --------
        >>> from nngp_paper.runs import RunStore
        >>> store = RunStore("runs.db")
        >>> (key,) = store.declare("width", [{"width": 64}])
        >>> store.get(key).config, store.get(key).status
        ({'width': 64}, 'pending')
        """
        with self._reading() as connection:
            return self._get(connection, key)

    def runs(
        self,
        experiment: str | None = None,
        status: str | None = None,
        where: Config | None = None,
        keys: Keys = None,
    ) -> list[Run]:
        """Runs in the order in which they were declared: of an experiment, with a status, with some
        values in their configurations (by nested or dotted names), with these keys.

        Examples
        --------
        >>> from nngp_paper.runs import RunStore
        >>> store = RunStore("runs.db")
        >>> keys = store.declare("width", [{"width": width} for width in (64, 128)])
        >>> [run.key == keys[1] for run in store.runs("width", where={"width": 128})]
        [True]
        """
        with self._reading() as connection:
            return [_run(row) for row in _rows(connection, FIELDS, experiment, status, where, keys)]

    def counts(
        self, experiment: str | None = None, where: Config | None = None, keys: Keys = None
    ) -> dict[str, int]:
        """The number of runs of each status.

        Examples
        --------
        >>> from nngp_paper.runs import RunStore
        >>> store = RunStore("runs.db")
        >>> keys = store.declare("width", [{"width": width} for width in (64, 128)])
        >>> store.counts()
        {'pending': 2, 'running': 0, 'done': 0, 'failed': 0}
        """
        with self._reading() as connection:
            rows = _rows(connection, ("status",), experiment, None, where, keys)
            found = [row["status"] for row in rows]
        return {status: found.count(status) for status in STATUSES}

    def pending(self, keys: Keys = None) -> int:
        """The number of runs neither done nor failed, those of other processes included.

        Examples
        --------
        >>> from nngp_paper.runs import RunStore
        >>> store = RunStore("runs.db")
        >>> keys = store.declare("width", [{"width": width} for width in (64, 128)])
        >>> run = store.claim()
        >>> store.pending(keys)  # one claimed, one not
        2
        >>> store.close()
        """
        found = self.counts(keys=keys)
        return found["pending"] + found["running"]

    def merge(self, other: str | os.PathLike[str], keys: Keys = None) -> int:
        """Copy the finished runs of another store, or those with these keys; returns how many were
        new. A run finished in both keeps the result that is here.

        Examples
        --------
        >>> from nngp_paper.runs import RunStore
        >>> store = RunStore("runs.db")
        >>> other = RunStore("other.db")
        >>> (key,) = other.declare("width", [{"width": 64}])
        >>> done = other.finish(key, {"loss": 0.5}, seconds=1.0)
        >>> store.merge(other.path), store.get(key).result
        (1, {'loss': 0.5})
        """
        theirs = RunStore(other, create=False)
        if os.path.samefile(self._file, theirs._file):
            raise ValueError(f"{theirs.path} is this store; name another one")
        rows = [
            vars(run) | {name: json.dumps(getattr(run, name)) for name in AS_JSON}
            for run in theirs.runs(status="done", keys=keys)
        ]
        names, places = ", ".join(FIELDS), ", ".join(f":{name}" for name in FIELDS)
        replaced = ", ".join(f"{name} = excluded.{name}" for name in FIELDS)
        with self._writing() as connection:
            return connection.executemany(
                f"INSERT INTO runs ({names}) VALUES ({places}) "
                f"ON CONFLICT (key) DO UPDATE SET {replaced} WHERE runs.status != 'done'",
                rows,
            ).rowcount

    def close(self) -> None:
        """Give back claimed runs; nothing can be done with the store afterwards.

        Examples
        --------
        >>> from nngp_paper.runs import RunStore
        >>> store = RunStore("runs.db")
        >>> (key,) = store.declare("width", [{"width": 64}])
        >>> run = store.claim()
        >>> store.close()
        >>> RunStore(store.path).get(key).status
        'pending'
        """
        try:
            if self._heart is not None and self._heart.is_alive():  # not that of a parent process
                self._stop.set()
                with self._writing() as connection:
                    connection.execute(
                        f"{TO_PENDING} WHERE status = 'running' AND owner = ?", (self._owner,)
                    )
        finally:
            self._heart, self._closed = None, True

    def __enter__(self) -> "RunStore":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def _owner(self) -> str:
        """This store in this process: a child of a fork is another owner."""
        return f"{_place()}:{os.getpid()}:{self._number}"

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        if self._closed:
            raise ValueError(f"the store {self.path} is closed; open it again")
        if not self._file.exists():
            raise FileNotFoundError(f"there is no store {self.path}; check the name")
        if 0 < self._file.stat().st_size < SMALLEST:
            raise RunStoreError(f"{self.path} is no store of runs; choose another name")
        with OPEN, _readable_errors(self.path), closing(self._connect("rw")) as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A connection in a transaction: all of the block happens, or nothing."""
        with self._reading() as connection, _transaction(connection):
            yield connection

    def _connect(self, mode: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self._file.as_uri()}?mode={mode}", uri=True, timeout=PATIENCE, isolation_level=None
        )
        connection.row_factory = sqlite3.Row
        return connection

    def _prepare(self, connection: sqlite3.Connection, create: bool) -> None:
        """Check that the file is a store; an empty one becomes a store if `create`."""
        if _header(connection) == (APPLICATION, VERSION):
            return
        with _transaction(connection):  # in which another process may have been first
            application, version = _header(connection)
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if not (application or version or tables):
                if not create:
                    raise RunStoreError(f"{self.path} is empty: there is no store of runs in it")
                connection.execute(RUNS)
                connection.execute(INDEX)
            elif application != APPLICATION:
                raise RunStoreError(
                    f"{self.path} is the database of another program; choose another name"
                )
            elif version > VERSION:
                raise RunStoreError(
                    f"the store {self.path} was written by a later nngp-paper (format {version}, "
                    f"this one knows up to {VERSION}); update nngp-paper"
                )
            elif version < VERSION:  # leases were kept elsewhere
                connection.execute("ALTER TABLE runs ADD COLUMN expires REAL")
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")

    def _get(self, connection: sqlite3.Connection, key: str) -> Run:
        query = f"SELECT {', '.join(FIELDS)} FROM runs WHERE key = ?"
        row = connection.execute(query, (key,)).fetchone()
        if row is None:
            raise KeyError(f"there is no run {key!r} in {self.path}; declare it first")
        return _run(row)

    def _end(self, key: str, **outcome: Json) -> bool:
        """Write a result or a failure; the first result stays."""
        outcome |= {"versions": json.dumps(current_versions()), "owner": self._owner}
        outcome["finished"] = _utc_text(self._clock())
        assigned = ", ".join(f"{name} = :{name}" for name in outcome)
        with self._writing() as connection:
            written = connection.execute(
                f"UPDATE runs SET {assigned} WHERE key = :key AND status != 'done'",
                {**outcome, "key": key},
            ).rowcount
            if not written:
                self._get(connection, key)  # raises if there is no such run
            return bool(written)

    def _start_heart(self) -> None:
        """Start the thread that renews leases, unless it runs in this process."""
        if self._heart is None or not self._heart.is_alive():
            self._stop = threading.Event()
            self._heart = threading.Thread(target=self._renew, args=(self._stop,), daemon=True)
            self._heart.start()

    def _renew(self, stop: threading.Event) -> None:
        query = "UPDATE runs SET expires = ? WHERE status = 'running' AND owner = ?"
        while not stop.wait(BEAT):
            # The worker meets the same error, and reports it; or the store was closed meanwhile.
            with suppress(ValueError, OSError), self._writing() as connection:
                connection.execute(query, (self._clock() + LEASE, self._owner))


def _free_abandoned(connection: sqlite3.Connection, me: str, now: float) -> None:
    """Make runs pending again whose lease has ended or whose owner is gone."""
    running = "status = 'running' AND owner IS NOT ?"
    owners = connection.execute(f"SELECT DISTINCT owner FROM runs WHERE {running}", (me,))
    gone = [owner for (owner,) in owners.fetchall() if _is_gone(owner)]
    connection.execute(
        f"{TO_PENDING} WHERE {running} AND (expires IS NULL OR expires < ? "
        "OR owner IN (SELECT value FROM json_each(?)))",
        (me, now, json.dumps(gone)),
    )


def _is_gone(owner: str) -> bool:
    """Whether an owner was a process of this machine that has ended. Where that cannot be seen, the
    end of its lease tells."""
    place, _, rest = str(owner).rpartition(":")[0].rpartition(":")
    if place != _place() or not rest.isdigit() or os.name != "posix":
        return False
    try:
        os.kill(int(rest), 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        pass  # it exists, and is another user's
    return False


def _place() -> str:
    """The machine, and in Linux the container, in which numbers of processes have a meaning."""
    try:
        return f"{platform.node()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return platform.node()


def _rows(
    connection: sqlite3.Connection,
    names: Sequence[str],
    experiment: str | None,
    status: str | None,
    where: Config | None,
    keys: Keys,
) -> list[sqlite3.Row]:
    """Columns of the selected runs."""
    chosen, values = _selection(experiment, status, keys)
    given = flat(plain(where or {}, "where"))
    wanted = {name: canonical(value, f"where.{name}") for name, value in given.items()}
    columns = ", ".join(dict.fromkeys(("config", *names)))
    query = f"SELECT {columns} FROM runs WHERE {chosen} ORDER BY id"
    rows = connection.execute(query, values).fetchall()
    return [row for row in rows if not wanted or _matches(row, wanted)]


def _selection(
    experiment: str | None, status: str | None, keys: Keys
) -> tuple[str, dict[str, Json]]:
    """A condition in SQL, and its values."""
    if status is not None and status not in STATUSES:
        raise ValueError(f"status must be one of {', '.join(STATUSES)}, got {status!r}")
    if isinstance(keys, str):
        raise TypeError("keys must be a list of keys, got a text; put it into a list")
    given = {"experiment": experiment, "status": status}
    values = {name: value for name, value in given.items() if value is not None}
    conditions = [f"{name} = :{name}" for name in values]
    if keys is not None:
        conditions.append("key IN (SELECT value FROM json_each(:keys))")
        values["keys"] = json.dumps(list(keys))
    return " AND ".join(conditions) or "1", values


def _matches(row: sqlite3.Row, wanted: dict[str, str]) -> bool:
    values = flat(_json(row, "config"))
    return all(
        name in values and canonical(values[name], name) == text for name, text in wanted.items()
    )


def _run(row: sqlite3.Row) -> Run:
    plain_fields = {name: row[name] for name in FIELDS if name not in AS_JSON}
    result = None if row["result"] is None else _json(row, "result")
    versions = {} if row["versions"] is None else _json(row, "versions")
    return Run(**plain_fields, config=_json(row, "config"), result=result, versions=versions)


def _json(row: sqlite3.Row, name: str) -> dict[str, Json]:
    """A mapping from its text; sqlite3.DatabaseError, as for other damage, if it is none."""
    try:
        values = json.loads(row[name])
    except (TypeError, ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise sqlite3.DatabaseError(f"the {name} of a run is no mapping")
    return values


def _amount(value: float, name: str) -> float:
    if not 0 <= float(value) < math.inf:
        raise ValueError(f"{name} must be finite and not negative, got {value!r}")
    return float(value)


def _utc_text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def _header(connection: sqlite3.Connection) -> tuple[int, int]:
    """Whose file it is, and which version of it."""
    names = ("application_id", "user_version")
    application, version = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names)
    return application, version


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction that takes the write lock at once."""
    connection.execute("BEGIN IMMEDIATE")
    with connection:  # commits, or rolls back after an error
        yield


REMEDIES = {
    sqlite3.SQLITE_BUSY: "try again when the other program has finished",
    sqlite3.SQLITE_READONLY: "change the permissions of file and folder, or work on a copy",
    sqlite3.SQLITE_CANTOPEN: "change the permissions of file and folder, or work on a copy",
    sqlite3.SQLITE_FULL: "make room and start again, as finished runs are kept",
    sqlite3.SQLITE_IOERR: "check the disk; finished runs are kept",
    sqlite3.SQLITE_NOTADB: "it is no store of runs, so choose another name",
}
DAMAGED = "it is damaged: take an older copy, or save what can be read with sqlite3 and .recover"


@contextmanager
def _readable_errors(path: Path) -> Iterator[None]:
    """Replace SQLite's errors by one that names the file and the remedy."""
    try:
        yield
    except (sqlite3.Error, UnicodeError) as error:  # the latter for names of damaged tables
        remedy = REMEDIES.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, DAMAGED)
        raise RunStoreError(f"the store {path} cannot be used ({error}); {remedy}") from error
