"""Work on the paper as runs in a store: what there is to do, and doing what is left of it.

A study names its runs by their configurations and knows how to do one. Whoever works on the store,
now or later, here or in another process, does what nobody has done yet.
"""

import math
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

from nngp._progress import Progress, progress_for
from nngp.runs import POLL, Run, RunStore

WINDOW = 64  # runs


@dataclass(frozen=True)
class Outcome:
    """What came of a run: its result, where it was done, and the noise that it took."""

    result: Mapping[str, Any]
    device: str = "cpu"
    jitter: float | None = None


@dataclass(frozen=True)
class Study:
    """Runs of one experiment, in the order in which they should be done, and how one is done.

    `work` takes a configuration. An ArithmeticError that it raises is a result too: such a
    network cannot be computed, and the run is written down as failed with that sentence. `close`
    lets go of what it holds; it may be asked for more afterwards.
    """

    experiment: str
    configs: Sequence[Mapping[str, Any]]
    work: Callable[[Mapping[str, Any]], Outcome]
    close: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Ended:
    """A run that was tried: what came of it, or the sentence that says why nothing can."""

    outcome: Outcome | None
    error: str
    seconds: float


def attempt(study: Study, config: Mapping[str, Any]) -> Ended:
    """Do a run."""
    start = time.perf_counter()
    try:
        outcome, problem = study.work(config), ""
    except ArithmeticError as error:
        outcome, problem = None, str(error)
    return Ended(outcome, problem, time.perf_counter() - start)


class Executor(Protocol):
    """Who does the runs: this process, or the workers of a cluster."""

    @property
    def threads(self) -> int:
        """How many runs are worked on side by side."""

    @property
    def room(self) -> int:
        """How many runs may be in hand."""

    def take(self, study: Study, run: Run) -> None:
        """Have a run done, now or later."""

    def next(self) -> tuple[str, Ended]:
        """The key of a run that has ended, and how; raises what ended it otherwise."""

    def drop(self) -> None:
        """Leave what is in hand."""


class LocalExecutor:
    """This process: one run at a time."""

    threads = room = 1

    def __init__(self) -> None:
        self._held: list[tuple[Study, Run]] = []

    def take(self, study: Study, run: Run) -> None:
        self._held.append((study, run))

    def next(self) -> tuple[str, Ended]:
        study, run = self._held.pop()
        return run.key, attempt(study, run.config)

    def drop(self) -> None:
        self._held.clear()


def carry_out(
    store: RunStore,
    study: Study,
    *,
    until: float = math.inf,
    wait: bool = True,
    progress: Any = None,
    executor: Executor | None = None,
) -> list[str]:
    """Do what is left of a study, here or by other executor; gives the keys of its runs.

    Nothing new is begun after the time `until`, as `time.monotonic` counts. What other processes
    have in hand is waited for, and done here if they die, unless `wait` is False.
    """
    keys = store.declare(study.experiment, study.configs)
    with (
        closing(study),
        Progress(study.experiment, len(keys), progress_for(progress, math.inf)) as bar,
    ):
        bar.advance(len(keys) - store.pending(keys))
        while True:
            with closing(
                _ended(store, study, keys, until, executor or LocalExecutor())
            ) as all_ended:
                for key, ended in all_ended:
                    _write(store, key, ended)
                    bar.advance(1)
            if not wait or time.monotonic() >= until or not store.pending(keys):
                return keys
            time.sleep(POLL)


def _ended(
    store: RunStore, study: Study, keys: list[str], until: float, executor: Executor
) -> Generator[tuple[str, Ended]]:
    """Runs that nobody has, claimed as there is room for them, as they end."""
    claims, held = _claims(store, keys), set[str]()
    try:
        while True:
            while (
                len(held) < executor.room
                and time.monotonic() < until
                and (run := next(claims, None))
            ):
                held.add(run.key)
                executor.take(study, run)
            if not held:
                return
            key, ended = executor.next()
            held.discard(key)
            yield key, ended
    finally:
        if held:
            executor.drop()
            store.release(held)


def _claims(store: RunStore, keys: list[str]) -> Iterator[Run]:
    """Some at a time: a claim looks at all that it is given."""
    for start in range(0, len(keys), WINDOW):
        some = keys[start : start + WINDOW]
        while run := store.claim(keys=some):
            yield run


def _write(store: RunStore, key: str, ended: Ended) -> None:
    out = ended.outcome
    if out is None:
        store.fail(key, ended.error, ended.seconds)
    else:
        store.finish(key, out.result, seconds=ended.seconds, device=out.device, jitter=out.jitter)
