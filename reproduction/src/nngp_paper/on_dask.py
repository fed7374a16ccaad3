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
from contextlib import suppress
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Any

from nngp.errors import ClusterError
from nngp_paper.experiment import Config
from nngp_paper.runs import POLL, Run
from nngp_paper.runs.study import Ended, Study, attempt
from nngp_paper.scope import Scope
from nngp_paper.workloads import study_named

PER_THREAD = 2  # runs in flight: one that is done and one that waits
CONNECT = 10.0  # seconds to reach the scheduler
ANSWER = 10.0  # seconds for a result to arrive, before the cluster is looked at
PATIENCE = 60.0  # seconds without any worker
COUNT_AGE = 5.0  # seconds after which workers are counted again
KEPT = "finished runs are in the store"


class Workers:
    """Executor of a scope's runs on the workers of a cluster."""

    def __init__(self, client_or_address: Any, scope: Scope, patience: float = PATIENCE) -> None:
        self.client, self.patience = _connected(client_or_address), patience
        data = None if scope.data is None else scope.data.absolute()
        self.scope = replace(scope, data=data)
        self._began: dict[str, tuple[str, Any]] = {}  # by key of the task: run, future
        self._ended: SimpleQueue[Any] = SimpleQueue()
        self._counted, self._workers = float("-inf"), list[tuple[int, int]]()
        self._alone_since: float | None = None

    @property
    def threads(self) -> int:
        """Number of threads of all workers, at least 1, at most some seconds old."""
        if time.monotonic() - self._counted > COUNT_AGE:
            self._count_workers()
        return max(1, sum(threads for threads, _ in self._workers))

    @property
    def capacity(self) -> int:
        return PER_THREAD * self.threads

    def check_memory(self, points: int, needed: int) -> None:
        """Raise MemoryError unless each thread of each worker may use so many bytes."""
        self._count_workers()
        free = min((limit // threads for threads, limit in self._workers if limit), default=needed)
        if free < needed:
            raise MemoryError(
                f"{points} training points need {needed / 1e9:.1f} GB for each thread of a worker, "
                f"and the smallest has {free / 1e9:.1f} GB; ask for fewer with --sizes, or start "
                "workers with more memory or fewer threads"
            )

    def submit(self, study: Study, run: Run) -> None:
        task = f"nngp-run-{secrets.token_hex(8)}"
        arguments = study.experiment, self.scope, run.config
        try:
            future = self.client.submit(do_run, *arguments, key=task, pure=False)
        except Exception as error:  # of many kinds, all of a connection that is gone
            raise _lost() from error
        self._began[task] = run.key, future
        future.add_done_callback(self._ended.put)

    def next_ended(self) -> tuple[str, Ended]:
        future = self._first()
        ended = self._result(future)
        key, _ = self._began.pop(future.key)
        return key, ended

    def cancel(self) -> None:
        futures = [future for _, future in self._began.values()]
        self._began.clear()
        with suppress(Exception):  # the connection may be what failed
            self.client.cancel(futures)

    def _first(self) -> Any:
        """The next future to end; those that were dropped do not count."""
        while True:
            try:
                future = self._ended.get(timeout=POLL)
            except Empty:
                self._look_after_cluster()
                continue
            if future.key in self._began:
                return future

    def _result(self, future: Any) -> Ended:
        from distributed import CancelledError
        from distributed.comm import CommClosedError
        from distributed.scheduler import KilledWorker

        while True:
            try:
                ended: Ended = future.result(timeout=ANSWER)
            except KilledWorker:
                raise ClusterError(
                    "one worker after another died in the same run; if memory was the reason, "
                    f"give workers more of it or fewer threads; {KEPT}"
                ) from None
            except (CancelledError, CommClosedError):
                raise _lost() from None
            except TimeoutError:
                if future.status == "error":  # the run itself met it
                    raise
                self._look_after_cluster()  # who held the result may have died: it is done again
            else:
                return ended

    def _look_after_cluster(self) -> None:
        """Raise ClusterError if the scheduler is gone, or has had no worker for too long."""
        self._count_workers()
        now = time.monotonic()
        if self._workers:
            self._alone_since = None
        elif self._alone_since is None:
            self._alone_since = now
        elif now - self._alone_since > self.patience:
            raise ClusterError(
                f"the cluster has had no worker for {self.patience:.0f} seconds; see that they "
                f"run, and call again; {KEPT}"
            )

    def _count_workers(self) -> None:
        """Ask the scheduler for the threads and the memory limit of each worker."""
        if self.client.status != "running":
            raise _lost()
        try:
            self._workers = self.client.run_on_scheduler(_workers_of)
        except Exception as error:  # of many kinds, all of a connection that is gone
            raise _lost() from error
        self._counted = time.monotonic()


def _workers_of(dask_scheduler: Any) -> list[tuple[int, int]]:
    return [(one.nthreads, one.memory_limit) for one in dask_scheduler.workers.values()]


def _lost() -> ClusterError:
    return ClusterError(
        f"the connection to the scheduler was lost; start the cluster and call again; {KEPT}"
    )


def _connected(client_or_address: Any) -> Any:
    """A client of that scheduler."""
    try:
        from distributed import Client
    except ImportError:
        raise ImportError(
            "a cluster needs Dask; install it with: pip install 'nngp[distributed]'"
        ) from None
    if isinstance(client_or_address, Client):
        return client_or_address
    try:
        return Client(client_or_address, timeout=CONNECT, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(
            f"there is no Dask scheduler at {client_or_address} ({type(error).__name__}); start "
            "one with 'dask scheduler' and workers with 'dask worker', or check the address"
        ) from None


_of_thread = threading.local()  # on a worker: the study of each thread


def do_run(experiment: str, scope: Scope, config: Config) -> Ended:
    """Do one run, on a worker. Threads share nothing, as studies are not made for that."""
    if getattr(_of_thread, "made_for", None) != (experiment, scope):
        if hasattr(_of_thread, "study"):
            _of_thread.study.close()
        _of_thread.study, _of_thread.made_for = study_named(experiment, scope), (experiment, scope)
    return attempt(_of_thread.study, config)
