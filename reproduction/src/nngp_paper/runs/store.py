"""The store: declare runs, claim them, finish them, read them."""

import json
import os
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from nngp_paper.errors import RunStoreWarning
from nngp_paper.runs import queries
from nngp_paper.runs.commit import current_commit
from nngp_paper.runs.database import NO_FORK, Database
from nngp_paper.runs.key import (
    Config,
    Json,
    checked_amount,
    checked_count,
    checked_keys,
    checked_text,
    plain,
    plain_key,
)
from nngp_paper.runs.owner import Heartbeat, Owner
from nngp_paper.runs.queries import TO_PENDING, Selection
from nngp_paper.runs.run import Run, current_versions, utc_text, without_lists

Keys = Iterable[str] | None
POLL = 0.5  # seconds between two looks at runs that another process has claimed


class RunStore:
    """Runs in the SQLite file `path`, which is created unless `create` is False. Threads may share
    one object and processes one file; a copy that crosses a fork or a pickle opens the file
    itself, as an owner of its own. `clock` gives seconds since 1970.

    Examples
    --------
    >>> import os, tempfile
    >>> from nngp_paper.runs import RunStore
    >>> with RunStore(os.path.join(tempfile.mkdtemp(), "runs.db")) as store:
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
        self._database = Database(path, create)
        self._clock = clock
        self._owner: Owner | None = None
        self._heartbeat = Heartbeat(self._beat)

    @property
    def path(self) -> Path:
        """The file, as it was named."""
        return self._database.path

    def declare(self, experiment: str, configs: Sequence[Config]) -> list[str]:
        """Add runs to be done, in this order, and return their keys; known runs do not change.

        Examples
        --------
        >>> import os, tempfile
        >>> from nngp_paper.runs import RunStore
        >>> store = RunStore(os.path.join(tempfile.mkdtemp(), "runs.db"))
        >>> keys = store.declare("width", [{"width": width} for width in (64, 128)])
        >>> store.declare("width", [{"width": 64.0}]) == keys[:1]  # known already
        True
        >>> store.close()
        """
        experiment = checked_text(experiment, "experiment")
        if isinstance(configs, str | Mapping):
            raise TypeError("configs must be a list of mappings, one for each run")
        rows = []
        for i, config in enumerate(configs):
            if not isinstance(config, Mapping):
                raise TypeError(f"configs[{i}] is a {type(config).__name__}; give a mapping")
            values = plain(config, f"configs[{i}]")
            rows.append(
                (plain_key(experiment, values, f"configs[{i}]"), experiment, json.dumps(values))
            )
        with self._database.writing() as connection:
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
        >>> import os, tempfile
        >>> from nngp_paper.runs import RunStore
        >>> store = RunStore(os.path.join(tempfile.mkdtemp(), "runs.db"))
        >>> keys = store.declare("width", [{"width": width} for width in (64, 128)])
        >>> store.claim(keys).config, store.claim(keys).config, store.claim(keys)
        ({'width': 64}, {'width': 128}, None)
        >>> store.close()
        """
        runs = self.claim_many(1, keys, experiment)
        return runs[0] if runs else None

    def claim_many(self, count: int, keys: Keys = None, experiment: str | None = None) -> list[Run]:
        """Take up to `count` runs at once, in the order in which they were declared.

        Examples
        --------
        >>> import os, tempfile
        >>> from nngp_paper.runs import RunStore
        >>> store = RunStore(os.path.join(tempfile.mkdtemp(), "runs.db"))
        >>> keys = store.declare("width", [{"width": width} for width in (64, 128)])
        >>> [run.config["width"] for run in store.claim_many(10, keys)]
        [64, 128]
        >>> store.close()
        """
        current_commit()  # that of the code which does the runs, not of a later checkout
        number, pending = checked_count(count), Selection(experiment, "pending", None, keys)
        with self._database.writing() as connection:
            now, owner = self._clock(), self._current_owner()
            queries.free_abandoned(connection, owner, now)
            runs = queries.claim(connection, owner, now, number, pending)
            if runs:
                self._heartbeat.start()
        return runs

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
        >>> import os, tempfile
        >>> from nngp_paper.runs import RunStore
        >>> store = RunStore(os.path.join(tempfile.mkdtemp(), "runs.db"))
        >>> (key,) = store.declare("width", [{"width": 64}])
        >>> first = store.finish(key, {"loss": 0.5}, seconds=1.0)
        >>> first, store.finish(key, {"loss": 0.4}, seconds=1.0), store.get(key).result
        (True, False, {'loss': 0.5})
        >>> store.close()
        """
        if not isinstance(result, Mapping):
            raise TypeError(f"the result is a {type(result).__name__}; give a mapping")
        values = plain(result, "result")
        short = without_lists(values)
        outcome = {
            "status": "done",
            "result": json.dumps(values),
            "scalars": None if short == values else json.dumps(short),
            "error": None,
            "device": checked_text(device, "device", empty=True),
            "seconds": checked_amount(seconds, "seconds"),
            "jitter": None if jitter is None else checked_amount(jitter, "jitter"),
        }
        return self._end(key, outcome)

    def fail(self, key: str, error: str, seconds: float = 0.0) -> bool:
        """Record why a run has no result; it is not claimed again before `retry`. Returns False,
        and changes nothing, if another process has finished it.

        Examples
        --------
        >>> import os, tempfile
        >>> from nngp_paper.runs import RunStore
        >>> store = RunStore(os.path.join(tempfile.mkdtemp(), "runs.db"))
        >>> (key,) = store.declare("width", [{"width": 64}])
        >>> store.fail(key, "out of memory"), store.get(key).error
        (True, 'out of memory')
        >>> store.close()
        """
        if isinstance(error, str):  # a name of a file in it may be half a character
            error = error.encode("utf-8", "replace").decode()
        outcome = {"status": "failed", "error": checked_text(error, "error")}
        return self._end(key, outcome | {"seconds": checked_amount(seconds, "seconds")})

    def release(self, keys: Iterable[str]) -> int:
        """Give back runs that this store claimed and has not finished; returns how many.

        Examples
        --------
        >>> import os, tempfile
        >>> from nngp_paper.runs import RunStore
        >>> store = RunStore(os.path.join(tempfile.mkdtemp(), "runs.db"))
        >>> (key,) = store.declare("width", [{"width": 64}])
        >>> run = store.claim()
        >>> store.release([run.key]), store.counts()["pending"]
        (1, 1)
        >>> store.close()
        """
        given = checked_keys(keys) or ()
        with self._database.writing() as connection:
            released = connection.executemany(
                f"{TO_PENDING} WHERE status = 'running' AND owner = ? AND key = ?",
                [(self._current_owner().id, key) for key in given],
            )
        return max(released.rowcount, 0)

    def retry(self, keys: Keys = None, experiment: str | None = None) -> int:
        """Make failed runs pending again; returns how many.

        Examples
        --------
        >>> import os, tempfile
        >>> from nngp_paper.runs import RunStore
        >>> store = RunStore(os.path.join(tempfile.mkdtemp(), "runs.db"))
        >>> (key,) = store.declare("width", [{"width": 64}])
        >>> failed = store.fail(key, "out of memory")
        >>> store.retry(), store.claim().key == key
        (1, True)
        >>> store.close()
        """
        failed = Selection(experiment, "failed", None, keys)
        with self._database.writing() as connection:
            found = queries.select(connection, "key", failed)
            connection.executemany(
                f"{TO_PENDING}, error = NULL, finished = NULL WHERE key = ?", found
            )
        return len(found)

    def get(self, key: str) -> Run:
        """One run.

        Examples
        --------
        >>> import os, tempfile
        >>> from nngp_paper.runs import RunStore
        >>> store = RunStore(os.path.join(tempfile.mkdtemp(), "runs.db"))
        >>> (key,) = store.declare("width", [{"width": 64}])
        >>> store.get(key).config, store.get(key).status
        ({'width': 64}, 'pending')
        >>> store.close()
        """
        with self._database.reading() as connection:
            return queries.get_run(connection, key, self.path)

    def runs(
        self,
        experiment: str | None = None,
        status: str | None = None,
        where: Config | None = None,
        keys: Keys = None,
        lists: bool = True,
    ) -> list[Run]:
        """Runs in the order in which they were declared: of an experiment, with a status, with some
        values in their configurations, with these keys. Without `lists` the results come
        without their lists, such as learning curves, which is faster.

        Examples
        --------
        >>> import os, tempfile
        >>> from nngp_paper.runs import RunStore
        >>> store = RunStore(os.path.join(tempfile.mkdtemp(), "runs.db"))
        >>> keys = store.declare("width", [{"width": width} for width in (64, 128)])
        >>> [run.key == keys[1] for run in store.runs("width", where={"width": 128})]
        [True]
        >>> store.close()
        """
        selection = Selection(experiment, status, where, keys)
        with self._database.reading() as connection:
            return queries.select_runs(connection, selection, lists)

    def counts(
        self, experiment: str | None = None, where: Config | None = None, keys: Keys = None
    ) -> dict[str, int]:
        """The number of runs of each status.

        Examples
        --------
        >>> import os, tempfile
        >>> from nngp_paper.runs import RunStore
        >>> store = RunStore(os.path.join(tempfile.mkdtemp(), "runs.db"))
        >>> keys = store.declare("width", [{"width": width} for width in (64, 128)])
        >>> store.counts()
        {'pending': 2, 'running': 0, 'done': 0, 'failed': 0}
        >>> store.close()
        """
        selection = Selection(experiment, None, where, keys)
        with self._database.reading() as connection:
            return queries.count_by_status(connection, selection)

    def pending(self, keys: Keys = None) -> int:
        """The number of runs neither done nor failed, those of other processes included.

        Examples
        --------
        >>> import os, tempfile
        >>> from nngp_paper.runs import RunStore
        >>> store = RunStore(os.path.join(tempfile.mkdtemp(), "runs.db"))
        >>> keys = store.declare("width", [{"width": width} for width in (64, 128)])
        >>> run = store.claim()
        >>> store.pending(keys)  # one claimed, one not
        2
        >>> store.close()
        """
        found = self.counts(keys=keys)
        return found["pending"] + found["running"]

    def merge(
        self,
        other: str | os.PathLike[str],
        keys: Keys = None,
        lists: bool = True,
        *,
        salvage: bool = False,
    ) -> int:
        """Copy the finished runs of another store, or those with these keys; returns how many were
        new. A run finished in both keeps the result that is here. Without `lists` results come
        without their lists, such as learning curves, which is much smaller. A damaged store is
        refused; with `salvage` what can be read of it is copied, and a RunStoreWarning says that
        something could not.

        Examples
        --------
        >>> import os, tempfile
        >>> from nngp_paper.runs import RunStore
        >>> store = RunStore(os.path.join(tempfile.mkdtemp(), "runs.db"))
        >>> keys = store.declare("width", [{"width": width} for width in (64, 128)])
        >>> with RunStore(os.path.join(tempfile.mkdtemp(), "other.db")) as other:
        ...     (key,) = other.declare("width", [{"width": 64}])
        ...     done = other.finish(key, {"loss": 0.5}, seconds=1.0)
        >>> store.merge(other.path), store.get(key).result
        (1, {'loss': 0.5})
        >>> store.close()
        """
        wanted, theirs = checked_keys(keys), Database(other, create=False)
        try:
            if os.path.samefile(self._database.file, theirs.file):
                raise ValueError(f"{theirs.path} is this store; name another one")
            # a fork would take the locks of both files, in any order
            with NO_FORK, self._database.writing() as connection:
                return queries.insert_finished(
                    connection, _finished(theirs, wanted, lists, salvage)
                )
        finally:
            theirs.close()

    def close(self) -> None:
        """Give back claimed runs, and close the file.

        Examples
        --------
        >>> import os, tempfile
        >>> from nngp_paper.runs import RunStore
        >>> store = RunStore(os.path.join(tempfile.mkdtemp(), "runs.db"))
        >>> (key,) = store.declare("width", [{"width": 64}])
        >>> run = store.claim()
        >>> store.close()
        >>> with RunStore(store.path) as again:
        ...     again.get(key).status
        'pending'
        """
        claimed = self._heartbeat.stop()
        try:
            if claimed:
                with self._database.writing() as connection:
                    me = (self._current_owner().id,)
                    connection.execute(f"{TO_PENDING} WHERE status = 'running' AND owner = ?", me)
                    connection.execute("DELETE FROM owners WHERE id = ?", me)
        finally:
            self._database.close()

    def __enter__(self) -> "RunStore":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(RunStore, create=False), (str(self._database.file),)

    def _end(self, key: str, outcome: dict[str, Json]) -> bool:
        """Write a result or a failure; the first result stays."""
        outcome["versions"] = json.dumps(current_versions())
        outcome["finished"] = utc_text(self._clock())
        with self._database.writing() as connection:
            outcome["owner"] = self._current_owner().id
            assigned = ", ".join(f"{name} = :{name}" for name in outcome)
            query = f"UPDATE runs SET {assigned} WHERE key = :key AND status != 'done'"
            written = connection.execute(query, outcome | {"key": key}).rowcount
            if not written:
                queries.get_run(connection, key, self.path)  # raises if there is no such run
            return bool(written)

    def _current_owner(self) -> Owner:
        """This store in this process: a child of a fork is another owner."""
        if self._owner is None or self._owner.pid != os.getpid():
            self._owner = Owner.this()
        return self._owner

    def _beat(self) -> None:
        """Renew the heartbeat of an owner that has claimed something."""
        with self._database.writing() as connection:
            connection.execute(
                "UPDATE owners SET beat = ? WHERE id = ? "
                "AND EXISTS (SELECT 1 FROM runs WHERE status = 'running' AND owner = owners.id)",
                (self._clock(), self._current_owner().id),
            )


def _finished(
    store: Database, keys: frozenset[str] | None, lists: bool, salvage: bool
) -> Iterator[tuple[Json, ...]]:
    """Rows to copy. Errors of this file name this file, so it is read in a block of its own."""
    damaged: list[sqlite3.DatabaseError] = []
    with store.reading() as connection:
        for row in queries.finished_rows(connection, lists):
            if isinstance(row, sqlite3.DatabaseError):
                if not salvage:
                    raise row
                damaged.append(row)
            elif keys is None or row[0] in keys:
                yield row
    if damaged:
        warnings.warn(
            f"{store.path} is damaged ({damaged[0]}); {len(damaged)} runs or groups of runs were "
            "left out, and all that can be read were taken",
            RunStoreWarning,
            stacklevel=5,
        )
