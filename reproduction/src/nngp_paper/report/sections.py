"""The sections of the page."""

import re
from collections import Counter
from collections.abc import Sequence

from nngp_paper.part import PartResult, Results
from nngp_paper.published import published
from nngp_paper.report.facts import efforts, full_title, short_title, versions
from nngp_paper.report.goals import goals
from nngp_paper.report.html import Html, definitions, element, joined, table
from nngp_paper.report.index import TESTS, equations
from nngp_paper.report.opening import PICTURE, claims_words, opening_sentences
from nngp_paper.report.pictures import both_widths
from nngp_paper.report.tables import accuracies, other_activations, verdict
from nngp_paper.report.times import compute_times
from nngp_paper.runs import RunStore
from nngp_paper.scope import Scope
from nngp_paper.shared.settings import OLD_TABLE
from nngp_paper.shared.tables import Row
from nngp_paper.shared.words import duration

VERDICTS = ("met", "met so far", "missed", "not measured")
SENTENCE = re.compile(r"(?<=[\w%)])\. (?=[A-Z])")
DIFFERENCES = (
    "Where numbers differ, there are four reasons. The authors' table is not the exact kernel: it "
    "cuts its integral at ten, counts correlations above 0.99999 as 0.99999 and interpolates "
    "linearly, which in deep networks makes near inputs equal. With few training points that can "
    "be an advantage, and no setting of the exact kernel reaches their number. Which images of "
    "CIFAR-10 they trained on and held out is not known. And a test set of 10,000 images leaves a "
    "standard error of 0.1 to 0.5 points."
)
SAMPLING = (
    "Why the paper's numbers are lower: training images that are drawn with replacement, instead "
    "of the first of every class, give its accuracies from 2,000 images on (the ablation in "
    "docs/benchmarks/cifar10.md), and not with fewer."
)


def summary(scopes: Sequence[Scope], shown: Sequence[PartResult]) -> Html:
    """Five sentences and a picture, then all verdicts and the index of equations, folded."""
    items = [element("li", sentence) for sentence in opening_sentences(shown)]
    return element(
        "section",
        element("h2", "Summary"),
        element("ol", *items, class_="opening"),
        _opening_picture(shown),
        _folded("All claims and verdicts", _claims(shown)),
        _folded("Equations: file and test", equations()),
        _folded("Where numbers differ", element("p", DIFFERENCES)) if _compares(scopes) else Html(),
        id="summary",
    )


def _opening_picture(shown: Sequence[PartResult]) -> Html:
    """The first drawing of the part that the picture shows."""
    for one in shown:
        if one.part.name == PICTURE and not one.problem and one.part.draw is not None:
            words = (
                "Test accuracy of deep networks by their weight and bias variance: by the authors' "
                "table, by the exact kernel with the paper's noise, and with relative noise."
            )
            picture = both_widths(one.part.draw, one.data, "opening", words)
            return element("figure", picture, element("figcaption", words))
    return Html()


def _folded(head: str, *body: object) -> Html:
    return element("details", element("summary", head), *body)


def _compares(scopes: Sequence[Scope]) -> bool:
    """Whether the paper has numbers for any of the data sets."""
    return bool({scope.dataset for scope in scopes} & {row.dataset for row in published()})


def part_section(group: Sequence[PartResult]) -> Html:
    """One table or figure, for every data set: claim, verdict, deciding number, drawing; the rest
    is folded."""
    part = group[0].part
    whose = "The question: " if part.is_beyond else "The paper: "
    return element(
        "section",
        element("h2", part.heading),
        element("p", element("strong", whose), part.claim.paper, class_="claim"),
        *(_verdict_line(one, len(group) > 1) for one in group),
        *(_shown(one) for one in group),
        id=part.name,
    )


def _verdict_line(one: PartResult, named: bool) -> Html:
    """The verdict on a part and the number that decides it, after the name of its data set if there
    are several."""
    name = f"{short_title(one.scope.dataset)}: " if named else ""
    deciding = SENTENCE.split(one.verdict.reason, maxsplit=1)[0].rstrip(".")
    words = element("strong", name), verdict(one.verdict.word), ": ", deciding, "."
    return element("p", *words, class_="verdict")


def done_how(store: RunStore, scopes: Sequence[Scope], shown: Sequence[PartResult]) -> Html:
    """Settings, times, devices, versions and goals."""
    known = {name: ", ".join(found) for name, found in versions(store).items()}
    return element(
        "section",
        element("h2", "How it was done"),
        _folded("What was asked", *(definitions(_settings(scope)) for scope in scopes)),
        _folded("What it took", compute_times(store, scopes), _times(store)),
        _folded("Versions", definitions(known)),
        _goals(store, scopes, shown),
        id="how",
    )


def _goals(store: RunStore, scopes: Sequence[Scope], shown: Sequence[PartResult]) -> Html:
    """Goals and verdicts, from the rows of table 2 that have been read."""
    tables = [one for one in shown if one.part.name == "table2"]
    known = {one.scope.dataset: () if one.problem else one.data.rows for one in tables}
    judged = [
        goal for scope in scopes for goal in goals(Results(store, scope), known[scope.dataset])
    ]
    counts = Counter(goal.verdict for goal in judged)
    words = ", ".join(f"{counts[word]} {word}" for word in VERDICTS if counts[word])
    rows = [(goal.name, verdict(goal.verdict), goal.sentence) for goal in judged]
    caption = f"Goals set beforehand: {words}."
    reasons = [reason for goal in judged for reason in _reasons(goal.name, goal.reasons)]
    listed = table(("goal", "verdict", "numbers"), rows, caption, "Goals", "goals")
    head = element("summary", f"Goals of this reproduction, set beforehand: {words}")
    return element("details", head, listed, *reasons)


def _reasons(goal: str, reasons: Sequence[str]) -> list[Html]:
    """The sentences about the numbers that missed a goal."""
    if not reasons:
        return []
    items = [element("li", reason) for reason in reasons]
    return [element("p", f"Missed, row by row: {goal}"), element("ul", *items)]


def _claims(shown: Sequence[PartResult]) -> Html:
    parts = dict.fromkeys(one.part for one in shown)
    rows = [
        (
            element("a", part.heading, href=f"#{part.name}"),
            f"{part.read.__module__.rpartition('.')[2]}.py",
            TESTS[part.name],
            joined(*(_judged(one) for one in shown if one.part == part)),
        )
        for part in parts
    ]
    heads = ("part", "file in parts/", "test", "verdict")
    caption = f"Claims of the paper: {claims_words(shown)}."
    return table(heads, rows, caption, "Claims and verdicts", "claims")


def _judged(one: PartResult) -> Html:
    """A verdict, after the name of its data set."""
    name = f"{short_title(one.scope.dataset)}: " if one.part.about_data else ""
    return element("div", element("strong", name), verdict(one.verdict.word))


def _shown(one: PartResult) -> Html:
    place = one.part.named(one.scope) if one.part.about_data else None
    kind = None if one.part.draw is None else "whole"  # on paper, a heading stays with its figure
    return element("div", _body(one), id=place, class_=kind)


def _body(one: PartResult) -> Html:
    if one.problem:
        return element("p", f"{_label(one)}: missing: {one.problem}.", class_="missing")
    look, rest = one.part.look(one.scope), SENTENCE.split(one.verdict.reason, maxsplit=1)[1:]
    told = [element("p", words) for words in (look, *rest, one.finding) if words]
    if one.part.name == "table1" and one.scope.dataset == "cifar10":
        told.insert(0, element("p", SAMPLING))
    if one.part.draw is None:
        told += [element("p", words) for words in [_earlier(one.data.rows)] if words]
        return _folded(f"{_label(one)}: the table", *told, *_tables(one))
    words = f"{_label(one)}. {look}"
    picture = both_widths(one.part.draw, one.data, one.part.named(one.scope), words)
    figure = element("figure", picture, element("figcaption", _label(one)))
    return joined(figure, _folded("Details", *told))


def _earlier(rows: Sequence[Row]) -> str:
    """Which rows by the authors' table were done before its correlations were clamped."""
    old = [row for row in rows if row.lookup and row.lookup.config["kernel"] == OLD_TABLE]
    if not old:
        return ""
    least = min(row.train for row in old)
    return (
        f"{len(old)} rows of the authors' table, from {least:,} points, are runs of an earlier "
        "version, in which correlations above 0.99999 were not clamped."
    )


def _tables(one: PartResult) -> list[Html]:
    """The paper's activations beside its numbers; below, those that it does not have."""
    own = [row for row in one.data.rows if row.activation in one.scope.paper_activations]
    others = [row for row in one.data.rows if row not in own and row.chosen is not None]
    shown = [accuracies(own, _label(one))] if own else []
    return shown + ([other_activations(others, _label(one))] if others else [])


def _label(one: PartResult) -> str:
    data = f", {short_title(one.scope.dataset)}" if one.part.about_data else ""
    return one.part.label + data


def _settings(scope: Scope) -> dict[str, str]:
    entry = scope.images
    return {
        "data set": f"{full_title(scope.dataset)}; {entry.validation:,} images to choose networks "
        f"with, {entry.test:,} to test them",
        "training points": ", ".join(f"{size:,}" for size in scope.sizes),
        "hidden layers": ", ".join(map(str, scope.depths)),
        "activations": ", ".join(scope.activations),
        "grid": f"{scope.grid} weight variances from {scope.weight_vars[0]:g} to "
        f"{scope.weight_vars[-1]:g}, {scope.grid} bias variances from {scope.bias_vars[0]:g} to "
        f"{scope.bias_vars[-1]:g}",
    }


def _times(store: RunStore) -> Html:
    known = efforts(store)
    rows = [
        {
            "experiment": one.experiment,
            "data set": one.dataset or "–",
            "runs": f"{one.done:,}",
            "failed": f"{one.failed:,}",
            "left": f"{one.left:,}",
            "time": duration(one.seconds),
            "device": ", ".join(one.devices),
            "when": one.first if one.first == one.last else f"{one.first} to {one.last}",
        }
        for one in known
    ]
    # finished runs that come together from several stores say nothing about others
    none = {name for name in ("failed", "left") if not any(getattr(one, name) for one in known)}
    heads = [name for name in rows[0] if name not in none]
    lines = [[row[name] for name in heads] for row in rows]
    return table(heads, lines, "Time of finished runs, added up.", "Times")
