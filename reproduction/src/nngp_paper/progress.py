"""Progress of long jobs: a bar of rich on a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

Advance = Callable[[float], None]


@contextmanager
def progress_bar(phase: str, total: float, shown: bool | None = None) -> Iterator[Advance]:
    """Show a bar on stderr, if that is a terminal, unless `shown` says otherwise; gives a function
    that takes the work done since its last call, in the units of `total`."""
    hidden = not (sys.stderr.isatty() if shown is None else shown)
    columns = TextColumn("{task.description}"), BarColumn(None), TaskProgressColumn()
    console = Console(stderr=True)
    with Progress(
        *columns, TimeRemainingColumn(), console=console, transient=True, disable=hidden
    ) as bar:
        task = bar.add_task(phase, total=total)
        yield lambda work: bar.advance(task, work)
