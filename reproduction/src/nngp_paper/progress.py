"""Progress of long jobs: a bar on a terminal, a line now and then elsewhere, or a callback."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SHOW_FROM = 3.0  # seconds: shorter jobs show no bar
EVERY = 10.0  # seconds between lines


@dataclass(frozen=True)
class Step:
    """The argument of a progress callback: phase, fraction done, estimated time, and a message."""

    phase: str
    done: float  # in [0, 1]
    seconds_left: float
    message: str = ""


Callback = Callable[[Step], None]


class Progress:
    """One phase of a job; call `advance` with the work done, in the units of `total`."""

    def __init__(
        self, phase: str, total: float, report: Callback | None, expected: float = 0.0
    ) -> None:
        self.phase, self.total, self.report = phase, total if total > 0 else 1.0, report
        self._expected, self._done, self._start = expected, 0.0, time.perf_counter()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *error: object) -> None:
        if isinstance(self.report, _Bar | _Lines):
            self.report.close()

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
        spent = time.perf_counter() - self._start
        left = self._expected * (1 - done) if done < 0.02 else spent * (1 - done) / done
        self.report(Step(self.phase, done, left, message))


def progress_for(progress: Callback | bool | None, expected: float) -> Callback | None:
    """Choose the callback: the caller's, a bar on a terminal, lines elsewhere if they are asked
    for, or None."""
    if callable(progress):
        return progress
    if progress is not None and not isinstance(progress, bool):
        raise TypeError("progress must be a callable, True, False or None")
    if progress is False:
        return None
    if sys.stderr.isatty():
        return _Bar() if progress or expected > SHOW_FROM else None
    return _Lines() if progress else None


class _Bar:
    """A progress bar of rich on stderr, removed when the phase is done."""

    def __init__(self) -> None:
        self._bar: Any = None

    def __call__(self, step: Step) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress as Bar, TextColumn

        if self._bar is None:
            columns = (
                TextColumn("{task.description}"),
                BarColumn(bar_width=None),
                TextColumn("{task.percentage:>3.0f}%"),
                TextColumn("{task.fields[left]}"),
            )
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True, expand=True)
            self._task = self._bar.add_task("", total=1.0, left="")
            self._bar.start()
        text = " · ".join(part for part in (step.phase, step.message) if part)
        left = f"{time_in_words(step.seconds_left)} left"
        self._bar.update(self._task, completed=step.done, description=text, left=left)
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
        left = "done" if ends else f"{time_in_words(step.seconds_left)} left"
        print(f"{step.phase}: {int(100 * step.done)}%, {left}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Nothing is left behind."""


def time_in_words(seconds: float) -> str:
    """Seconds, minutes or hours, with about two digits."""
    if seconds < 90:
        return f"about {seconds:.2g} s" if seconds < 10 else f"about {seconds:.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"
