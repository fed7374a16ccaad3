"""`nngp report`: what stores of runs say about the paper, as one page."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from nngp.errors import NothingMeasuredError
from nngp.paper.report import scopes_of, write_report
from nngp.plots import need_matplotlib
from nngp.runs import RunStore, unpacked
from nngp.terminal.speech import DataError, UsageError, answer
from nngp.terminal.tables import check_writable, try_writing

PAGES = (".html", ".htm")


def report(paths: list[Path], page: Path, datasets: list[str], as_json: bool) -> None:
    """Stores to a page."""
    need_matplotlib()
    check_writable(page, PAGES)
    try_writing(page.parent)
    if page.exists() and any(path.exists() and page.samefile(path) for path in paths):
        raise UsageError(f"the output {page} is the store; choose another name")
    with _together(paths) as store:
        known = scopes_of(store)
        scopes = [scope for scope in known if not datasets or scope.dataset in datasets]
        names = [scope.dataset for scope in scopes]
        missing = [name for name in datasets if name not in names]
        if missing:
            there = ", ".join(scope.dataset for scope in known) or "none"
            raise UsageError(f"there are no runs on '{missing[0]}'; data sets with runs: {there}")
        try:
            shown = write_report(store, page, scopes)
        except NothingMeasuredError as error:
            raise DataError(str(error)) from None
    facts = {
        "page": page,
        "bytes": page.stat().st_size,
        "data sets": names,
        "shown": [one.part.named(one.scope) for one in shown if not one.problem],
        "missing": [one.part.named(one.scope) for one in shown if one.problem],
    }
    answer("report", facts, as_json)


@contextmanager
def _together(paths: list[Path]) -> Iterator[RunStore]:
    """One store, or the finished runs of several in one that is gone afterwards."""
    if len(paths) == 1:
        with unpacked(paths[0]) as file, RunStore(file, create=False) as store:
            yield store
        return
    with TemporaryDirectory() as folder, RunStore(Path(folder) / "runs.db") as store:
        for path in paths:
            with unpacked(path) as file:
                store.merge(file)
        yield store
