"""Progress of long jobs: a bar on a terminal, a line now and then elsewhere, or a callback.

A job of several phases, such as the fit of an estimator, is shown as one: within `one_job` the
phases below move one bar (or one sequence of lines) from 0 to 100%. A callback of the user's is
told of each phase. Time is measured, not predicted: what has passed, and, once some of the work is
done, what the rest takes at that pace.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

SHOW_FROM = 3.0  # seconds: shorter jobs show no bar
MEASURED = 0.02  # of the work, after which the pace is known
EVERY = 10.0  # seconds between lines


@dataclass(frozen=True)
class Step:
    """The argument of a progress callback: phase, fraction done, seconds since it began, and a
    message."""

    phase: str
    done: float  # in [0, 1]
    seconds: float
    message: str = ""

    @property
    def seconds_left(self) -> float | None:
        """Estimated seconds for the rest; None before some work is done."""
        return self.seconds * (1 - self.done) / self.done if self.done >= MEASURED else None

    @property
    def time(self) -> str:
        """Both in words."""
        left = self.seconds_left
        so_far = f"{time_in_words(self.seconds)} so far"
        return so_far if left is None else f"{so_far}, about {time_in_words(left)} left"


Callback = Callable[[Step], None]


class Progress:
    """One phase of a job; call `advance` with the work done, in the units of `total`."""

    def __init__(self, phase: str, total: float, report: Callback | None) -> None:
        self.phase, self.total, self.report = phase, total if total > 0 else 1.0, report
        self._done, self._start = 0.0, time.perf_counter()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *error: object) -> None:
        if isinstance(self.report, _Bar | _Lines):
            self.report.close()

    def begin(self, message: str = "") -> None:
        """Reset to zero, with a new start time."""
        self._done, self._start = 0.0, time.perf_counter()
        self._report(message)

    def advance(self, work: float, message: str = "") -> None:
        """Add work done since the last call."""
        self._done += work
        self._report(message)

    def finish(self) -> None:
        """Report the end, where less work was needed than expected."""
        self.advance(max(self.total - self._done, 0.0))

    def _report(self, message: str = "") -> None:
        if self.report is None:
            return
        done = min(self._done / self.total, 1.0)
        self.report(Step(self.phase, done, time.perf_counter() - self._start, message))


def progress_for(progress: Callback | bool | None) -> Callback | None:
    """Choose the callback: the caller's, the job's that is under way, a bar on a terminal, lines
    elsewhere if they are asked for, or None."""
    if callable(progress):
        return progress
    if progress is not None and not isinstance(progress, bool):
        raise TypeError("progress must be a callable, True, False or None")
    if progress is False:
        return None
    if (job := _job.get()) is not None:
        return job
    if on_terminal():
        return _Bar(0.0 if progress else SHOW_FROM)
    return _Lines() if progress else None


def on_terminal() -> bool:
    """Whether somebody would see a bar, and there is one to show."""
    return sys.stderr.isatty() and find_spec("rich") is not None


@contextmanager
def one_job(
    progress: Callback | bool | None, phases: Callable[[], Mapping[str, float]]
) -> Iterator[None]:
    """Show all phases of a job as one, unless the user has a callback or wants to see none.

    `phases` gives the work of each phase, in their order, by the beginning of its name.
    """
    shown = progress is True or (progress is None and on_terminal())
    report = progress_for(progress) if shown and _job.get() is None else None
    if report is None:
        yield
        return
    job = _WholeJob(phases(), report)
    token = _job.set(job)
    try:
        job.begin()
        yield
        job.finish()
    finally:
        _job.reset(token)
        job.close()


class _WholeJob:
    """One report for several phases: each has a share of the whole, and it never goes back."""

    def __init__(self, phases: Mapping[str, float], report: Callback) -> None:
        self._phases, self._report, self._done = dict(phases), report, 0.0
        self._start = time.perf_counter()

    def __call__(self, step: Step) -> None:
        names = list(self._phases)
        which = next((i for i, name in enumerate(names) if step.phase.startswith(name)), None)
        if which is None:
            return
        work = list(self._phases.values())
        done = (sum(work[:which]) + work[which] * step.done) / max(sum(work), 1e-9)
        self._done = max(self._done, min(done, 0.999))  # all is done when the job says so
        self._tell(names[which], self._done, step.message)

    def begin(self) -> None:
        self._tell(next(iter(self._phases)), 0.0)

    def finish(self) -> None:
        self._tell(list(self._phases)[-1], 1.0)

    def _tell(self, phase: str, done: float, message: str = "") -> None:
        self._report(Step(phase, done, time.perf_counter() - self._start, message))

    def close(self) -> None:
        if isinstance(self._report, _Bar | _Lines):
            self._report.close()


_job: ContextVar[_WholeJob | None] = ContextVar("job", default=None)


class _Bar:
    """A progress bar of rich on stderr, which appears after some seconds and is removed when the
    phase is done."""

    def __init__(self, after: float = 0.0) -> None:
        self._bar: Any = None
        self._from = time.perf_counter() + after

    def __call__(self, step: Step) -> None:
        if self._bar is not None or time.perf_counter() >= self._from:
            self._show(step)

    def _show(self, step: Step) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress as Bar, TextColumn

        if self._bar is None:
            columns = (
                TextColumn("{task.description}"),
                BarColumn(bar_width=None),
                TextColumn("{task.percentage:>3.0f}%"),
                TextColumn("{task.fields[time]}"),
            )
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True, expand=True)
            self._task = self._bar.add_task("", total=1.0, time="")
            self._bar.start()
        text = " · ".join(part for part in (step.phase, step.message) if part)
        self._bar.update(self._task, completed=step.done, description=text, time=step.time)
        if step.done >= 1:
            self.close()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


class _Lines:
    """A line on stderr now and then, for a log: the first, the last, and one in ten seconds."""

    def __init__(self) -> None:
        self._last, self._ended = -EVERY, False

    def __call__(self, step: Step) -> None:
        now, ends = time.perf_counter(), step.done >= 1
        if self._ended or not (ends or now - self._last >= EVERY):
            return
        self._last, self._ended = now, ends
        said = "done" if ends else step.time
        print(f"{step.phase}: {int(100 * step.done)}%, {said}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Nothing is left behind."""


def time_in_words(seconds: float) -> str:
    """Seconds, minutes or hours, with about two digits."""
    if seconds < 90:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
