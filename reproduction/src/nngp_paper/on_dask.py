"""Runs as tasks on the workers of a Dask cluster.

The client claims runs in the store, keeps a few in flight for each thread of a worker, and stores
the results; workers see no store. A worker gets the experiment's name, the scope and the
configuration of a run: it makes the study of them, reads the data itself and keeps both for the
runs that follow. A run is a pure function of these, so Dask may repeat it on another worker when
one dies.
"""

import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Any

from nngp import ClusterError
from nngp.linsolve.engines.dask.client import Watch, Words, connected, known_workers, result
from nngp_paper.experiment import Config
from nngp_paper.runs import POLL, Run
from nngp_paper.runs.study import Ended, Study, attempt
from nngp_paper.scope import Scope
from nngp_paper.workloads import study_named

PER_THREAD = 2  # runs in flight: one that is done and one that waits
PATIENCE = 60.0  # seconds without any worker
COUNT_AGE = 5.0  # seconds after which workers are counted again
RUNS = Words(
    lost="",
    kept="; finished runs are in the store",
    smaller="give workers more memory or fewer threads",
)


class Workers:
    """Executor of a scope's runs on the workers of a cluster."""

    def __init__(self, client_or_address: Any, scope: Scope, patience: float = PATIENCE) -> None:
        self.client, self.patience = connected(client_or_address), patience
        data = None if scope.data is None else scope.data.absolute()
        self.scope = replace(scope, data=data)
        self._began: dict[str, tuple[str, Any]] = {}  # by key of the task: run, future
        self._ended: SimpleQueue[Any] = SimpleQueue()
        self._counted, self._threads = float("-inf"), 0

    @property
    def threads(self) -> int:
        """Number of threads of all workers, at most some seconds old."""
        now = time.monotonic()
        if now - self._counted > COUNT_AGE:
            self._counted, self._threads = now, sum(w["nthreads"] for w in self._workers())
        return max(1, self._threads)

    @property
    def capacity(self) -> int:
        return PER_THREAD * self.threads

    def memory(self) -> int | None:
        """Bytes for each thread of the worker that has the least; None if there is no limit."""
        limits = [w["memory_limit"] // w["nthreads"] for w in self._workers() if w["memory_limit"]]
        return min(limits, default=None)

    def submit(self, study: Study, run: Run) -> None:
        task = f"nngp-run-{secrets.token_hex(8)}"
        arguments = study.experiment, self.scope, run.config
        with _lost_scheduler_as_error():
            future = self.client.submit(do_run, *arguments, key=task, pure=False)
        self._began[task] = run.key, future
        future.add_done_callback(self._ended.put)

    def next_ended(self) -> tuple[str, Ended]:
        future = self._first()
        ended = result(self.client, future, self.patience, RUNS)
        key, _ = self._began.pop(future.key)
        return key, ended

    def cancel(self) -> None:
        futures = [future for _, future in self._began.values()]
        self._began.clear()
        with suppress(Exception):  # the connection may be what failed
            self.client.cancel(futures)

    def _first(self) -> Any:
        """The next future to end; those that were dropped do not count."""
        watch = Watch(self.client, self.patience, RUNS)
        while True:
            try:
                future = self._ended.get(timeout=POLL)
            except Empty:
                watch.look()
                continue
            if future.key in self._began:
                return future

    def _workers(self) -> list[dict[str, Any]]:
        with _lost_scheduler_as_error():
            return list(known_workers(self.client).values())


@contextmanager
def _lost_scheduler_as_error() -> Iterator[None]:
    """Raise ClusterError for the many errors of a client that has lost its scheduler."""
    try:
        yield
    except Exception as error:
        raise ClusterError(
            f"the connection to the scheduler was lost ({type(error).__name__}); start the cluster "
            f"and call again{RUNS.kept}"
        ) from error


_of_thread = threading.local()  # on a worker: the study of each thread


def do_run(experiment: str, scope: Scope, config: Config) -> Ended:
    """Do one run, on a worker. Threads share nothing, as studies are not made for that."""
    if getattr(_of_thread, "made_for", None) != (experiment, scope):
        if hasattr(_of_thread, "study"):
            _of_thread.study.close()
        _of_thread.study, _of_thread.made_for = study_named(experiment, scope), (experiment, scope)
    return attempt(_of_thread.study, config)
