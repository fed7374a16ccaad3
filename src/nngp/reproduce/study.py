"""Work on the paper as runs in a store: what there is to do, and doing what is left of it.

A study names its runs by their configurations and knows how to do one. Whoever works on the store,
now or later, here or in another process, does what nobody has done yet.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from nngp.linsolve import Progress, progress_for
from nngp.reproduce.store import Run, RunStore

POLL = 0.5  # seconds between two looks at runs that another process has in hand
WINDOW = 64  # runs


class NothingMeasuredError(LookupError):
    """The store has no finished runs of what is to be shown."""


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


def carry_out(
    store: RunStore,
    study: Study,
    *,
    until: float = math.inf,
    wait: bool = True,
    progress: Any = None,
) -> list[str]:
    """Do what is left of a study; gives the keys of its runs.

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
            for some in _windows(keys):
                while time.monotonic() < until and (run := store.claim(keys=some)):
                    _do(store, study, run)
                    bar.advance(1)
            if not wait or time.monotonic() >= until or not store.pending(keys):
                return keys
            time.sleep(POLL)


def _windows(keys: list[str]) -> Iterator[list[str]]:
    """Some at a time: a claim looks at all that it is given."""
    for start in range(0, len(keys), WINDOW):
        yield keys[start : start + WINDOW]


def _do(store: RunStore, study: Study, run: Run) -> None:
    start = time.perf_counter()
    try:
        outcome = study.work(run.config)
    except ArithmeticError as error:
        store.fail(run.key, str(error), time.perf_counter() - start)
        return
    except BaseException:
        store.release([run.key])
        raise
    seconds = time.perf_counter() - start
    store.finish(
        run.key, outcome.result, seconds=seconds, device=outcome.device, jitter=outcome.jitter
    )
