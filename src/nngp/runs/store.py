"""The store: declare runs, claim them, finish them, look at them."""

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from nngp.runs import claims, reading
from nngp.runs.checks import checked_amount, checked_count, checked_text, wanted_keys
from nngp.runs.database import Database
from nngp.runs.key import digest, plain
from nngp.runs.merge import merge
from nngp.runs.owner import Heartbeat, Owner
from nngp.runs.run import Run, stamp, versions_here, without_lists

Keys = Iterable[str] | None


class RunStore:
    """Runs in the SQLite file `path`, which is created unless `create` is False. Threads may share
    one object and processes one file; a copy that crosses a fork or a pickle opens the file
    itself, as an owner of its own. `clock` gives seconds since 1970."""

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

    def declare(self, experiment: str, configs: Sequence[Mapping[str, Any]]) -> list[str]:
        """Runs to be done, in this order; those already known are left alone. Gives their keys."""
        experiment = checked_text(experiment, "experiment")
        if isinstance(configs, str | Mapping):
            raise TypeError("configs must be a list of mappings, one for each run")
        rows = []
        for i, config in enumerate(configs):
            if not isinstance(config, Mapping):
                raise TypeError(f"configs[{i}] is a {type(config).__name__}; give a mapping")
            values = plain(config, f"configs[{i}]")
            rows.append((digest(experiment, values, f"configs[{i}]"), experiment, _json(values)))
        with self._database.writing() as connection:
            connection.executemany(
                "INSERT INTO runs (key, experiment, config) VALUES (?, ?, ?) "
                "ON CONFLICT (key) DO NOTHING",
                rows,
            )
        return [key for key, _, _ in rows]

    def claim(self, keys: Keys = None, experiment: str | None = None) -> Run | None:
        """Take the first run that is to be done, among `keys` or of `experiment` if given; None if
        all are done, failed, or being done by others (see `pending`)."""
        runs = self.claim_many(1, keys, experiment)
        return runs[0] if runs else None

    def claim_many(self, count: int, keys: Keys = None, experiment: str | None = None) -> list[Run]:
        """Take up to `count` runs at once, in the order in which they were declared."""
        number, wanted = checked_count(count), wanted_keys(keys)
        with self._database.writing() as connection:
            now, me = self._clock(), self._me()
            claims.free_the_abandoned(connection, me, now)
            runs = claims.take(connection, me, now, number, wanted, experiment)
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
        """Keep the result of a run. If somebody else has finished it already, theirs is kept, and
        this says False. A result may hold NaN and infinities; they come back as such."""
        if not isinstance(result, Mapping):
            raise TypeError(f"the result is a {type(result).__name__}; give a mapping")
        values = plain(result, "result")
        short = without_lists(values)
        outcome = {
            "status": "done",
            "result": _json(values),
            "scalars": None if short == values else _json(short),
            "error": None,
            "device": checked_text(device, "device", empty=True),
            "seconds": checked_amount(seconds, "seconds"),
            "jitter": None if jitter is None else checked_amount(jitter, "jitter"),
        }
        return self._end(key, outcome)

    def fail(self, key: str, error: str, seconds: float = 0.0) -> bool:
        """Say why a run has no result; it is not claimed again before `retry`. False, and nothing
        changed, if somebody else has finished it."""
        if isinstance(error, str):  # a name of a file in it may be half a character
            error = error.encode("utf-8", "replace").decode()
        outcome = {"status": "failed", "error": checked_text(error, "error")}
        return self._end(key, outcome | {"seconds": checked_amount(seconds, "seconds")})

    def release(self, keys: Iterable[str]) -> int:
        """Give back runs that this store claimed and has not finished; gives how many."""
        given = wanted_keys(keys) or ()
        with self._database.writing() as connection:
            return claims.give_back(connection, self._me(), given)

    def retry(self, keys: Keys = None, experiment: str | None = None) -> int:
        """Make failed runs pending again; gives how many."""
        wanted = wanted_keys(keys)
        with self._database.writing() as connection:
            return claims.revive(connection, wanted, experiment)

    def get(self, key: str) -> Run:
        """One run."""
        with self._database.reading() as connection:
            return reading.one(connection, key, self.path)

    def runs(
        self,
        experiment: str | None = None,
        status: str | None = None,
        where: Mapping[str, Any] | None = None,
        keys: Keys = None,
        lists: bool = True,
    ) -> list[Run]:
        """Runs in the order in which they were declared: of an experiment, with a status, with some
        values in their configurations, with these keys. Without `lists` the results come
        without their lists, such as learning curves, which is faster."""
        chosen = reading.Choice(experiment, status, where, keys)
        with self._database.reading() as connection:
            return reading.runs(connection, chosen, lists)

    def counts(
        self,
        experiment: str | None = None,
        where: Mapping[str, Any] | None = None,
        keys: Keys = None,
    ) -> dict[str, int]:
        """How many runs there are of each status."""
        chosen = reading.Choice(experiment, None, where, keys)
        with self._database.reading() as connection:
            return reading.counts(connection, chosen)

    def pending(self, keys: Keys = None) -> int:
        """How many runs are neither done nor failed, those that others are doing included."""
        found = self.counts(keys=keys)
        return found["pending"] + found["running"]

    def merge(self, other: str | os.PathLike[str], keys: Keys = None, lists: bool = True) -> int:
        """Take over the finished runs of another store, or those with these keys; gives how many
        were new. A run finished in both keeps the result that is here. Without `lists` results
        come without their lists, such as learning curves, which is much smaller."""
        return merge(self._database, Database(other, create=False), wanted_keys(keys), lists)

    def close(self) -> None:
        """Give back what is claimed, and close the file."""
        claimed = self._heartbeat.stop()
        try:
            if claimed:
                with self._database.writing() as connection:
                    claims.leave(connection, self._me())
        finally:
            self._database.close()

    def __enter__(self) -> "RunStore":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(RunStore, create=False), (str(self._database.file),)

    def _end(self, key: str, outcome: dict[str, Any]) -> bool:
        """A result or a failure; the first result stays."""
        outcome |= {"versions": _json(versions_here()), "finished": stamp(self._clock())}
        with self._database.writing() as connection:
            outcome["owner"] = self._me().id
            places = ", ".join(f"{name} = :{name}" for name in outcome)
            done = connection.execute(
                f"UPDATE runs SET {places} WHERE key = :key AND status != 'done'",
                outcome | {"key": key},
            )
            if not done.rowcount:
                reading.one(connection, key, self.path)
            return bool(done.rowcount)

    def _me(self) -> Owner:
        """This store in this process: a child of a fork is another owner."""
        if self._owner is None or self._owner.pid != os.getpid():
            self._owner = Owner.this()
        return self._owner

    def _beat(self) -> None:
        with self._database.writing() as connection:
            claims.renew(connection, self._me(), self._clock())


def _json(value: Any) -> str:
    return json.dumps(value)
