"""Studies: lists of runs that any number of processes do together, each run once.

A study names its runs by their configurations and can do one of them. `carry_out` does those runs
that nobody has done yet; it can be interrupted and called again, here or in another process.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol

from nngp_paper.progress import progress_bar
from nngp_paper.runs.key import Config
from nngp_paper.runs.store import POLL, Run, RunStore

WINDOW = 64  # runs


@dataclass(frozen=True)
class Outcome:
    """The result of a run, the device that computed it, and the noise that the kernel needed."""

    result: Config
    device: str = "cpu"
    jitter: float | None = None


@dataclass(frozen=True)
class Study:
    """Runs of one experiment, in the order in which they should be done, and how to do one.

    `work` takes a configuration. If it raises an ArithmeticError, such a network cannot be
    computed, and the run is recorded as failed with that message. `close` frees what `work` holds;
    `work` may be called again afterwards.
    """

    experiment: str
    configs: Sequence[Config]
    work: Callable[[Config], Outcome]
    close: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Ended:
    """A run that was attempted: its outcome, or None and the message of the error."""

    outcome: Outcome | None
    error: str
    seconds: float


def attempt(study: Study, config: Config) -> Ended:
    """Do one run of a study."""
    start = time.perf_counter()
    try:
        outcome, message = study.work(config), ""
    except ArithmeticError as error:
        outcome, message = None, str(error)
    return Ended(outcome, message, time.perf_counter() - start)


class Executor(Protocol):
    """Something that does runs: this process, or the workers of a cluster."""

    @property
    def capacity(self) -> int:
        """The number of runs that may be submitted and not ended."""

    def submit(self, study: Study, run: Run) -> None:
        """Accept a run, to be done now or later."""

    def next_ended(self) -> tuple[str, Ended]:
        """Wait for a run to end; returns its key and outcome. Raises errors other than those that
        `attempt` records."""

    def cancel(self) -> None:
        """Drop all runs that have not ended."""


class LocalExecutor:
    """This process: one run at a time."""

    capacity = 1

    def __init__(self) -> None:
        self._submitted: list[tuple[Study, Run]] = []

    def submit(self, study: Study, run: Run) -> None:
        self._submitted.append((study, run))

    def next_ended(self) -> tuple[str, Ended]:
        study, run = self._submitted.pop()
        return run.key, attempt(study, run.config)

    def cancel(self) -> None:
        self._submitted.clear()


def carry_out(
    store: RunStore,
    study: Study,
    *,
    until: float = math.inf,
    wait: bool = True,
    progress: bool | None = None,
    executor: Executor | None = None,
) -> list[str]:
    """Do all runs of a study that are not done yet; returns the keys of all its runs.

    No run is started after the time `until`, as `time.monotonic` counts. Runs that other processes
    have claimed are waited for, and done here if those processes die, unless `wait` is False.
    """
    keys = store.declare(study.experiment, study.configs)
    by = executor or LocalExecutor()
    with closing(study), progress_bar(study.experiment, len(keys), progress) as advance:
        advance(len(keys) - store.pending(keys))
        while True:
            _do_free_runs(store, study, keys, until, by, advance)
            if not wait or time.monotonic() >= until or not store.pending(keys):
                return keys
            time.sleep(POLL)


def _do_free_runs(
    store: RunStore,
    study: Study,
    keys: list[str],
    until: float,
    executor: Executor,
    advance: Callable[[int], None],
) -> None:
    """Claim runs as the executor has capacity for them, and record them as they end."""
    claims, submitted = _claims(store, keys), set[str]()
    try:
        while True:
            while (
                len(submitted) < executor.capacity
                and time.monotonic() < until
                and (run := next(claims, None))
            ):
                submitted.add(run.key)
                executor.submit(study, run)
            if not submitted:
                return
            key, ended = executor.next_ended()
            _record(store, key, ended)
            submitted.discard(key)
            advance(1)
    finally:
        if submitted:
            executor.cancel()
            store.release(submitted)


def _claims(store: RunStore, keys: list[str]) -> Iterator[Run]:
    """Claim runs one by one, from a window of keys: the time of a claim grows with their number."""
    for start in range(0, len(keys), WINDOW):
        window = keys[start : start + WINDOW]
        while run := store.claim(keys=window):
            yield run


def _record(store: RunStore, key: str, ended: Ended) -> None:
    out = ended.outcome
    if out is None:
        store.fail(key, ended.error, ended.seconds)
    else:
        store.finish(key, out.result, seconds=ended.seconds, device=out.device, jitter=out.jitter)
