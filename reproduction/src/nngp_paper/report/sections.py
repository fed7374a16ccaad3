"""The sections of the page."""

from collections import Counter
from collections.abc import Sequence

from nngp_paper.part import PartResult, Results
from nngp_paper.published import published
from nngp_paper.report.facts import efforts, full_title, short_title, versions
from nngp_paper.report.goals import goals
from nngp_paper.report.html import Html, definitions, element, joined, table
from nngp_paper.report.pictures import both_widths
from nngp_paper.report.tables import accuracies, other_activations, verdict
from nngp_paper.report.times import compute_times
from nngp_paper.runs import RunStore
from nngp_paper.scope import Scope
from nngp_paper.shared.words import duration
from nngp_paper.verdict import Word

WORDS: tuple[Word, ...] = ("supported", "partly", "not supported", "not measured")
VERDICTS = ("met", "met so far", "missed", "not measured")
INTRODUCTION = (
    "The paper shows that deep networks become Gaussian processes as their layers become wide. It "
    "computes the kernel of that process by interpolation in a table, does exact Bayesian "
    "inference with it, and compares it with trained networks. Here its experiments are done "
    "again, with exact kernels beside the authors' table."
)
DIFFERENCES = (
    "Where numbers differ, there are four reasons. The authors' table is not the exact kernel: it "
    "cuts its integral at ten, which makes kernels of large variance too small, and interpolates "
    "linearly, which in deep networks makes near inputs equal (tanh 100-3.99-2.00: all pairs with "
    "a cosine above 0.9). With few training points that can be an advantage, and no setting of "
    "the exact kernel reaches their number. Their kernels lose digits with depth; ours do not. "
    "Which images of CIFAR-10 they trained on and held out is not known, which matters most where "
    "they are few. And a test set of 10,000 images leaves a standard error of 0.1 to 0.5 points."
)


def summary(scopes: Sequence[Scope], shown: Sequence[PartResult]) -> Html:
    """Claims and verdicts."""
    return element(
        "section",
        element("h2", "Summary"),
        element("p", INTRODUCTION),
        _claims(shown),
        element("p", DIFFERENCES) if _compares(scopes) else Html(),
        id="summary",
    )


def _compares(scopes: Sequence[Scope]) -> bool:
    """Whether the paper has numbers for any of the data sets."""
    return bool({scope.dataset for scope in scopes} & {row.dataset for row in published()})


def part_section(group: Sequence[PartResult]) -> Html:
    """One table or figure, for every data set."""
    part = group[0].part
    return element(
        "section",
        element("h2", part.heading),
        element("p", element("strong", "The paper: "), part.claim.paper, class_="claim"),
        *(_verdict_line(one, len(group) > 1) for one in group),
        element("p", part.look(group[0].scope)) if part.draw is None else Html(),
        *(_shown(one, titled=part.about_data) for one in group),
        id=part.name,
    )


def _verdict_line(one: PartResult, named: bool) -> Html:
    """The verdict on a part, after the name of its data set if there are several."""
    name = f"{short_title(one.scope.dataset)}: " if named else ""
    words = element("strong", name), verdict(one.verdict.word), ": ", one.verdict.reason
    return element("p", *words, class_="verdict")


def done_how(store: RunStore, scopes: Sequence[Scope], shown: Sequence[PartResult]) -> Html:
    """Settings, times, devices, versions and goals."""
    known = {name: ", ".join(found) for name, found in versions(store).items()}
    return element(
        "section",
        element("h2", "How it was done"),
        element("h3", "What was asked"),
        *(definitions(_settings(scope)) for scope in scopes),
        element("h3", "What it took"),
        compute_times(store, scopes),
        _times(store),
        element("h3", "Versions"),
        definitions(known),
        element("h3", "Goals"),
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
            part.claim.paper,
            joined(*(_judged(one) for one in shown if one.part == part)),
        )
        for part in parts
    ]
    counts = Counter(one.verdict.word for one in shown)
    words = ", ".join(f"{counts[word]} {word}" for word in WORDS if counts[word])
    heads = ("part", "what the paper says", "verdict, and the number that decides")
    return table(heads, rows, f"Claims of the paper: {words}.", "Claims and verdicts", "claims")


def _judged(one: PartResult) -> Html:
    """A verdict, after the name of its data set."""
    name = f"{short_title(one.scope.dataset)}: " if one.part.about_data else ""
    reason = "" if one.problem else f" {one.verdict.reason}"
    return element("div", element("strong", name), verdict(one.verdict.word), reason)


def _shown(one: PartResult, titled: bool) -> Html:
    place = one.part.named(one.scope)
    head = element("h3", full_title(one.scope.dataset)) if titled else Html()
    kind = None if one.part.draw is None else "whole"  # on paper, a heading stays with its figure
    return element("div", head, _body(one, place), id=place if titled else None, class_=kind)


def _body(one: PartResult, place: str) -> Html:
    if one.problem:
        return element("p", "Missing: ", one.problem, ".", class_="missing")
    if one.part.draw is None:
        return joined(element("p", one.finding), *_tables(one))
    look = one.part.look(one.scope)
    words = joined(element("strong", _label(one), ". "), look, " ", one.finding)
    picture = both_widths(one.part.draw, one.data, place, f"{_label(one)}. {look}")
    return element("figure", picture, element("figcaption", words))


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
