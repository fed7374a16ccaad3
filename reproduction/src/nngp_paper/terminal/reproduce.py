"""`nngp-paper reproduce`: do the runs that parts of the paper need, then draw and write them."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from nngp import forecast
from nngp_paper.errors import NothingMeasuredError
from nngp_paper.files import replaced
from nngp_paper.grids.study import LARGEST_FULL_GRID
from nngp_paper.on_dask import Workers
from nngp_paper.part import PartResult, read_parts
from nngp_paper.parts import PARTS
from nngp_paper.plots.style import need_matplotlib
from nngp_paper.report import write_report
from nngp_paper.runs import RunStore
from nngp_paper.scope import Scope
from nngp_paper.shared.tables import as_columns, write_csv
from nngp_paper.shared.words import duration
from nngp_paper.terminal.files import create_folder
from nngp_paper.terminal.options import ReproduceOptions
from nngp_paper.terminal.output import (
    UsageError,
    on_terminal,
    print_message,
    print_result,
    print_rows,
)
from nngp_paper.terminal.request import Request, request_of
from nngp_paper.workloads import Remaining, Workload, remaining, workloads_for

PRINTED = (
    *("train", "activation", "paper_nngp", "paper_nngp_setting", "table_at_paper_setting"),
    *("exact_at_paper_setting", "nngp", "nngp_setting", "difference", "evidence"),
    *("nn", "networks", "networks_wanted"),
)


def reproduce(options: ReproduceOptions) -> None:
    """Do runs, then show what is in the store. With all parts a report is written as well."""
    request, path, folder = request_of(options), options.store, options.output
    begun = time.monotonic()
    need_matplotlib()
    if path.suffix == ".gz":
        raise UsageError(f"{path} would be taken for a packed store, which can only be read")
    create_folder(folder)
    with _workers(request) as workers, RunStore(path) as store:
        left = _do_runs(store, request, workers, begun)
        shown = read_parts(request.parts, store, request.scope)
        files = {one.part.name: _write(one, folder, quiet=options.as_json) for one in shown}
        complete = {part.name for part in request.parts} == {part.name for part in PARTS}
        page = _write_report(store, folder) if complete else None
    if options.as_json:
        problems = {one.part.name: one.problem for one in shown}
        words = {one.part.name: vars(one.verdict) for one in shown}
        parts = {
            n: {"files": list(map(str, files[n])), "problem": problems[n], "verdict": words[n]}
            for n in files
        }
        facts = {"store": str(path), "left": left, "parts": parts, "report": page and str(page)}
        print_result("", facts, as_json=True)
    else:
        count = sum(map(len, files.values()))
        written = "1 file" if count == 1 else f"{count} files"
        print_message(f"{written} in {folder}; all runs: nngp-paper runs {path}")


@contextmanager
def _workers(request: Request) -> Iterator[Workers | None]:
    """The workers of a cluster, or None: this process does the runs."""
    if request.cluster is None:
        yield None
        return
    workers = Workers(request.cluster, request.scope)
    with closing(workers.client):
        yield workers


def _do_runs(
    store: RunStore, request: Request, workers: Workers | None, begun: float
) -> dict[str, int]:
    """Print how many runs there are, do them within the budget, and count those that are left."""
    workloads, problems = workloads_for(request.parts, request.scope, request.finite, workers)
    print_message(*problems)
    _print_plan([remaining(store, one) for one in workloads], request, store.path, workers)
    work(store, workloads, begun, request.budget)
    counts = {workload.experiment: store.pending(workload.declare(store)) for workload in workloads}
    left = {name: count for name, count in counts.items() if count}
    if left:
        listed = ", ".join(f"{count} of {name}" for name, count in left.items())
        print_message(
            f"the budget is spent; runs left: {listed}; the same command goes on with them"
        )
    return left


def work(store: RunStore, workloads: Sequence[Workload], begun: float, budget: float) -> None:
    """Do the workloads one after the other, each in an equal share of the time that is left, then
    all of them again in the rest: some need less than their share."""
    last = begun + budget
    for i, workload in enumerate(workloads):
        now = time.monotonic()
        workload.do(store, now + (last - now) / (len(workloads) - i), on_terminal())
    for workload in workloads:
        if time.monotonic() < last:
            workload.do(store, last, on_terminal())


def _print_plan(
    plan: Sequence[Remaining], request: Request, path: Path, workers: Workers | None
) -> None:
    """Print the number of runs, and the memory that they need."""
    runs, left = sum(one.runs for one in plan), sum(one.left for one in plan)
    print_message(f"{runs} run{'s' * (runs != 1)} in {path}, {runs - left} of them done")
    if any(one.experiment == "grid" and not one.runs for one in plan):
        print_message(
            f"no network of a grid is left to try: with more than {LARGEST_FULL_GRID} training "
            "points only those are tried that did best with fewer; where none was measured, add a "
            "smaller size to --sizes"
        )
    if not left:
        return
    listed = ", ".join(f"{one.left} of {one.experiment}" for one in plan if one.left)
    within = "" if math.isinf(request.budget) else f"; {duration(request.budget)} for them"
    print_message(f"to do: {listed}{within}")
    if points := max(one.points for one in plan):
        print_message(_memory(request.scope, points, workers))


def _memory(scope: Scope, points: int, workers: Workers | None) -> str:
    """The memory that so many training points need; MemoryError where there is less."""
    images = scope.images
    need = forecast(points, math.prod(images.shape), len(images.class_names), engine=scope.engine)
    amount = f"up to {need.bytes / 1e9:.1f} GB of memory, for {points:,} training points"
    if workers is not None:
        workers.check_memory(points, need.bytes)
        return f"{amount}, on each of {workers.threads} threads of workers"
    if not need.fits and need.available is not None:
        raise MemoryError(
            f"{need.n} training points need {need.bytes / 1e9:.1f} GB of memory, and "
            f"{need.available / 1e9:.1f} GB are free; ask for at most {need.largest} with --sizes"
        )
    return amount


def _write(shown: PartResult, folder: Path, quiet: bool) -> list[Path]:
    """Write a figure as PNG and SVG, a table as CSV and on the terminal; gives the files."""
    part, name = shown.part, shown.part.named(shown.scope)
    if shown.problem:
        print_message(f"{part.name}: {shown.problem}")
        return []
    print_message(f"{part.name}: {shown.verdict.word}. {shown.verdict.reason}")
    if part.draw is None:
        return [_write_table(shown, folder / f"{name}.csv", quiet)]
    files = [folder / f"{name}.png", folder / f"{name}.svg"]
    for file in files:
        with replaced(file) as half:
            part.draw(shown.data, half)
    return files


def _write_table(shown: PartResult, file: Path, quiet: bool) -> Path:
    write_csv([shown.data], file)
    if not quiet:
        rows = [as_columns(row) for row in shown.data.rows]
        names = [name for name in PRINTED if any(row[name] is not None for row in rows)]
        print_rows(f"{shown.part.heading} ({shown.scope.dataset})", rows, names, len(rows))
    return file


def _write_report(store: RunStore, folder: Path) -> Path | None:
    page = folder / "report.html"
    try:
        write_report(store, page)
    except NothingMeasuredError as error:
        print_message(str(error))
        return None
    print_message(f"report: {page}")
    return page
