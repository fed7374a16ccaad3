"""`nngp reproduce`: do what parts of the paper need, then draw and write them."""

import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from nngp._files import replaced
from nngp.errors import NothingMeasuredError
from nngp.linsolve import Forecast
from nngp.paper.cost import WorkloadCost, cost_of, memory, shares
from nngp.paper.grids.study import LARGEST_FULL_GRID
from nngp.paper.on_dask import Workers
from nngp.paper.part import PartResult, read_parts
from nngp.paper.parts import PARTS
from nngp.paper.scope import Scope
from nngp.paper.words import duration
from nngp.paper.workloads import Workload, workloads_for
from nngp.plots import need_matplotlib
from nngp.runs import RunStore
from nngp.terminal.listing import show_rows
from nngp.terminal.request import Asked
from nngp.terminal.speech import UsageError, answer, say
from nngp.terminal.tables import try_writing

PRINTED = (
    "train",
    "activation",
    "paper_nngp",
    "paper_nngp_setting",
    "table_at_paper_setting",
    "exact_at_paper_setting",
    "nngp",
    "nngp_setting",
    "difference",
    "evidence",
    "nn",
    "networks",
    "networks_wanted",
)


def reproduce(wanted: Asked, budget: float, path: Path, folder: Path, as_json: bool) -> None:
    """Work on the store, then show what is in it. With all parts there is a report as well."""
    begun = time.monotonic()
    need_matplotlib()
    if path.suffix == ".gz":
        raise UsageError(f"{path} would be taken for a packed store, which can only be read")
    _make(folder)
    with _executor(wanted) as executor, RunStore(path) as store:
        tasks, problems = workloads_for(wanted.parts, wanted.scope, wanted.finite, executor)
        for sentence in problems:
            say(sentence)
        outlooks = [cost_of(store, task) for task in tasks]
        _say_outlook(outlooks, wanted.scope, budget, path, executor)
        work(store, tasks, outlooks, begun, budget)
        left = _say_left(store, tasks)
        shown = read_parts(wanted.parts, store, wanted.scope)
        files = {one.part.name: _write(one, folder, quiet=as_json) for one in shown}
        whole = {part.name for part in wanted.parts} == {part.name for part in PARTS}
        page = _report(store, folder) if whole else None
    if as_json:
        answer("", _facts(shown, files, left, path, page), True)
    else:
        count = sum(map(len, files.values()))
        written = "1 file" if count == 1 else f"{count} files"
        say(f"{written} in {folder}; all runs: nngp runs {path}")


@contextmanager
def _executor(wanted: Asked) -> Iterator[Workers | None]:
    """Who does the runs: the workers of a cluster, or with None this process."""
    if wanted.cluster is None:
        yield None
        return
    workers = Workers(wanted.cluster, wanted.scope)
    with closing(workers.client):
        yield workers


def _make(folder: Path) -> None:
    """The folder for what is written in the end, or a sentence before any work."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; name a folder for figures and tables")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"the folder {folder} cannot be created ({error.strerror}); use another"
        ) from None
    try_writing(folder)


def work(
    store: RunStore,
    tasks: Sequence[Workload],
    outlooks: Sequence[WorkloadCost],
    begun: float,
    budget: float,
) -> None:
    """Every task in its share of what is left of the budget; then all of them again in what is
    left then, as some need less than was thought."""
    last = begun + budget
    for i, task in enumerate(tasks):
        now = time.monotonic()
        share = shares(outlooks[i:], last - now)[0]
        task.do(store, min(now + share, last), sys.stderr.isatty())
    for task in tasks:
        if time.monotonic() < last:
            task.do(store, last, sys.stderr.isatty())


def _say_outlook(
    outlooks: Sequence[WorkloadCost],
    scope: Scope,
    budget: float,
    path: Path,
    executor: Workers | None,
) -> None:
    """How much there is to do, and about what it takes."""
    runs, left = sum(one.runs for one in outlooks), sum(one.left for one in outlooks)
    say(f"{runs} run{'s' * (runs != 1)} in {path}, {runs - left} of them done")
    if any(one.experiment == "grid" and not one.runs for one in outlooks):
        say(
            f"no grid is tried: with more than {LARGEST_FULL_GRID} training points only networks "
            "are tried that did best with fewer; add a smaller size to --sizes"
        )
    if not left:
        return
    for one in outlooks:
        if one.left:
            basis = "measured on those done" if one.measured else "a guess"
            say(f"  {one.experiment}: {one.left} left, about {duration(one.seconds)} ({basis})")
    total = sum(one.seconds for one in outlooks)
    limit = "" if math.isinf(budget) else f", within a budget of {duration(budget)}"
    say(f"about {duration(total)} in all{limit}")
    if points := max(one.points for one in outlooks):
        say(_memory(scope, points, executor))


def _memory(scope: Scope, points: int, executor: Workers | None) -> str:
    """What a training set of so many points needs, refused where there is less."""
    need = memory(scope, points)
    told = f"up to {need.bytes / 1e9:.1f} GB of memory, for {points:,} training points"
    if executor is not None:
        _check_workers(need, executor)
        return f"{told}, on each of {executor.threads} threads of workers"
    if not need.fits and need.available is not None:
        raise MemoryError(
            f"{need.n} training points need {need.bytes / 1e9:.1f} GB of memory, and "
            f"{need.available / 1e9:.1f} GB are free; ask for at most {need.largest} with --sizes"
        )
    return told


def _check_workers(need: Forecast, executor: Workers) -> None:
    free = executor.memory()
    if free is not None and need.bytes > free:
        raise MemoryError(
            f"{need.n} training points need {need.bytes / 1e9:.1f} GB for each thread of a worker, "
            f"and the smallest has {free / 1e9:.1f} GB; ask for fewer with --sizes, or start "
            "workers with more memory or fewer threads"
        )


def _say_left(store: RunStore, tasks: Sequence[Workload]) -> dict[str, int]:
    """The runs of each task that nobody has done, and what to do about them."""
    left = {task.experiment: store.pending(task.declare(store)) for task in tasks}
    rest = {name: count for name, count in left.items() if count}
    if rest:
        listed = ", ".join(f"{count} of {name}" for name, count in rest.items())
        say(f"the budget is spent; runs left: {listed}; the same command goes on with them")
    return rest


def _write(shown: PartResult, folder: Path, quiet: bool) -> list[Path]:
    """A figure as PNG and SVG, a table as CSV and on the terminal; gives the files."""
    part, name = shown.part, shown.part.named(shown.scope)
    if shown.problem:
        say(f"{part.name}: {shown.problem}")
        return []
    if part.draw is None:
        return [_write_table(shown, folder / f"{name}.csv", quiet)]
    files = [folder / f"{name}.png", folder / f"{name}.svg"]
    for file in files:
        with replaced(file) as half:
            part.draw(shown.data, half)
    return files


def _write_table(shown: PartResult, file: Path, quiet: bool) -> Path:
    from nngp.paper.tables import as_columns, write_csv

    write_csv([shown.data], file)
    if not quiet:
        rows = [as_columns(row) for row in shown.data.rows]
        title = f"{shown.part.heading} ({shown.scope.dataset})"
        show_rows(title, rows, [name for name in PRINTED if _any(rows, name)], len(rows))
    return file


def _any(rows: list[dict[str, Any]], name: str) -> bool:
    return any(row[name] is not None for row in rows)


def _report(store: RunStore, folder: Path) -> Path | None:
    from nngp.paper.report import write_report

    page = folder / "report.html"
    try:
        write_report(store, page)
    except NothingMeasuredError as error:
        say(str(error))
        return None
    say(f"report: {page}")
    return page


def _facts(
    shown: Sequence[PartResult],
    files: dict[str, list[Path]],
    left: dict[str, int],
    path: Path,
    page: Path | None,
) -> dict[str, Any]:
    parts = {
        one.part.name: {"files": [str(f) for f in files[one.part.name]], "problem": one.problem}
        for one in shown
    }
    return {"store": str(path), "left": left, "parts": parts, "report": page and str(page)}
