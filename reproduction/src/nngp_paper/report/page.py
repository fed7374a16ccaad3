"""The page as a whole: summary, parts in the paper's order, how it was done."""

import os
from collections.abc import Sequence
from datetime import date
from importlib.resources import files

import nngp
from nngp_paper.errors import NothingMeasuredError
from nngp_paper.files import replaced
from nngp_paper.part import PartResult, read_parts
from nngp_paper.parts import PARTS
from nngp_paper.report.facts import scopes_of, short_title
from nngp_paper.report.html import Html, element, joined
from nngp_paper.report.sections import done_how, part_section, summary
from nngp_paper.runs import RunStore
from nngp_paper.scope import Scope

TITLE = "Deep neural networks as Gaussian processes, reproduced"
PAPER = (
    "J. Lee, Y. Bahri, R. Novak, S. S. Schoenholz, J. Pennington and J. Sohl-Dickstein, "
    "Deep Neural Networks as Gaussian Processes, ICLR 2018"
)


def write_report(
    store: RunStore, path: str | os.PathLike[str], scopes: Sequence[Scope] | None = None
) -> list[PartResult]:
    """Write the page for these scopes, by default all data sets of the store; gives what was shown
    and what is missing.

    Examples
    --------
    >>> from nngp_paper.report import write_report
    >>> from nngp_paper.runs import RunStore
    >>> with RunStore("runs.db") as store:
    ...     write_report(store, "report.html")
    Traceback (most recent call last):
    nngp_paper.errors.NothingMeasuredError: the store has no finished runs on any data set; run
    nngp-paper reproduce first
    """
    own = scopes_of(store) if scopes is None else list(scopes)
    if not own:
        raise NothingMeasuredError(
            "the store has no finished runs on any data set; run nngp-paper reproduce first"
        )
    about_data = [part for part in PARTS if part.about_data]
    shown = read_parts(PARTS, store, own[0])
    for scope in own[1:]:
        shown += read_parts(about_data, store, scope)
    shown = _wanted(shown)
    page = _page(store, own, shown)
    with replaced(path) as half:
        half.write_text(page, encoding="utf-8")
    return shown


def _wanted(results: Sequence[PartResult]) -> list[PartResult]:
    """Results in the paper's order, without what is missing where the paper has nothing either,
    unless nothing else is known of that part."""
    own = [one for one in results if not one.problem or one.is_papers]
    known = {one.part.name for one in own}
    left = [one for one in results if one in own or one.part.name not in known]
    return sorted(left, key=lambda one: PARTS.index(one.part))


def _page(store: RunStore, scopes: Sequence[Scope], shown: Sequence[PartResult]) -> str:
    by_part = [[one for one in shown if one.part == part] for part in PARTS]
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", TITLE),
        element("style", Html(files(__package__).joinpath("style.css").read_text("utf-8"))),
    )
    main = element(
        "main",
        summary(scopes, shown),
        _contents(),
        *(part_section(group) for group in by_part),
        done_how(store, scopes, shown),
    )
    body = element("body", _opening(scopes), main, _closing())
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _opening(scopes: Sequence[Scope]) -> Html:
    names = ", ".join(short_title(scope.dataset) for scope in scopes)
    return element(
        "header",
        element("h1", TITLE),
        element("p", f"Every table and figure of {PAPER}, as measured on {names}.", class_="lead"),
    )


def _contents() -> Html:
    places = [
        ("summary", "Summary"),
        *((p.name, p.heading) for p in PARTS),
        ("how", "How it was done"),
    ]
    links = [element("li", element("a", words, href=f"#{place}")) for place, words in places]
    return element("nav", element("h2", "Contents"), element("ul", *links), aria_label="Contents")


def _closing() -> Html:
    words = f"Written by nngp {nngp.__version__} on {date.today().isoformat()}."
    return joined(element("footer", element("p", words)))
