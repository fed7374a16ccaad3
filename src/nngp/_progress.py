"""Progress of long jobs: a bar on a terminal, or a callback for programs."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

SHOW_FROM = 3.0  # seconds: shorter jobs show no bar


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
        self.phase, self.total, self.report = phase, max(total, 1.0), report
        self._expected, self._done, self._start = expected, 0.0, time.perf_counter()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *error: object) -> None:
        if isinstance(self.report, _Bar):
            self.report.close()

    def begin(self, message: str = "") -> None:
        """Reset to zero, with a new start time."""
        self._done, self._start = 0.0, time.perf_counter()
        self._report(message)

    def advance(self, work: float, message: str = "") -> None:
        """Add work done since the last call."""
        self._done += work
        self._report(message)

    def _report(self, message: str = "") -> None:
        if self.report is None:
            return
        done = min(self._done / self.total, 1.0)
        spent = time.perf_counter() - self._start
        left = self._expected * (1 - done) if done < 0.02 else spent * (1 - done) / done
        self.report(Step(self.phase, done, left, message))


def progress_for(progress: Callback | bool | None, expected: float) -> Callback | None:
    """Choose the callback: the caller's, a bar on a terminal, or None."""
    if callable(progress):
        return progress
    if progress is not None and not isinstance(progress, bool):
        raise TypeError("progress must be a callable, True, False or None")
    show = progress if progress is not None else expected > SHOW_FROM
    if show and sys.stderr.isatty() and find_spec("rich") is not None:
        return _Bar()
    return None


class _Bar:
    """A progress bar of rich on stderr, removed when the phase is done."""

    def __init__(self) -> None:
        self._bar: Any = None

    def __call__(self, step: Step) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress as Bar, TextColumn, TimeElapsedColumn

        if self._bar is None:
            columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("", total=1.0)
            self._bar.start()
        left = f"about {step.seconds_left:.0f} s left"
        text = " · ".join(part for part in (step.phase, step.message, left) if part)
        self._bar.update(self._task, completed=step.done, description=text)
        if step.done >= 1:
            self.close()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
