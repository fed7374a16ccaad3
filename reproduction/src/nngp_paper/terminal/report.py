"""`nngp-paper report`: stores of runs to one page about the paper."""

from collections.abc import Sequence
from pathlib import Path

from nngp_paper.errors import NothingMeasuredError
from nngp_paper.plots.style import need_matplotlib
from nngp_paper.report import scopes_of, write_report
from nngp_paper.runs import merged
from nngp_paper.scope import Scope
from nngp_paper.terminal.files import check_not_input, check_writable, default_output
from nngp_paper.terminal.options import ReportOptions
from nngp_paper.terminal.output import DataError, UsageError, print_result

PAGES = (".html", ".htm")


def report(options: ReportOptions) -> None:
    """Write the page, and print what it shows and what is missing."""
    stores = options.stores or [Path("runs.db")]
    page = default_output(options.output, "report.html")
    need_matplotlib()
    check_writable(page, PAGES, create=True)
    check_not_input(page, stores, "store")
    with merged(stores) as store:
        scopes = _selected(scopes_of(store), options.dataset or [])
        try:
            shown = write_report(store, page, scopes)
        except NothingMeasuredError as error:
            raise DataError(str(error)) from None
    facts = {
        "page": page,
        "bytes": page.stat().st_size,
        "data sets": [scope.dataset for scope in scopes],
        "shown": [one.part.named(one.scope) for one in shown if not one.problem],
        "missing": [one.part.named(one.scope) for one in shown if one.problem],
    }
    print_result("report", facts, options.as_json)


def _selected(known: Sequence[Scope], datasets: Sequence[str]) -> list[Scope]:
    """The scopes of the data sets that are named, or all."""
    names = [scope.dataset for scope in known]
    for name in datasets:
        if name not in names:
            there = ", ".join(names) or "none"
            raise UsageError(f"there are no runs on '{name}'; data sets with runs: {there}")
    return [scope for scope in known if not datasets or scope.dataset in datasets]
