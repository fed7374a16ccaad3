"""The sections of the page."""

from collections.abc import Sequence
from typing import Any

from nngp.reproduce.datasets.catalogue import IMAGE_SETS
from nngp.reproduce.parts import Showing
from nngp.reproduce.report.facts import efforts, versions
from nngp.reproduce.report.findings import finding
from nngp.reproduce.report.html import Html, element, joined
from nngp.reproduce.report.picture import inline
from nngp.reproduce.report.tables import accuracies, definitions, table, verdict
from nngp.reproduce.scope import Scope
from nngp.reproduce.store import RunStore


def summary(store: RunStore, scopes: Sequence[Scope], shown: Sequence[Showing]) -> Html:
    """What was wanted, what the paper says, and what was found."""
    return element(
        "section",
        element("h2", "Summary"),
        element(
            "p",
            "The paper shows that deep networks become Gaussian processes as their layers become "
            "wide, computes the kernel of that process by a look-up table, and does exact Bayesian "
            "inference with it. Here its experiments are done again with exact kernels.",
        ),
        _goals(store, scopes),
        _claims(shown),
        id="summary",
    )


def part_section(group: Sequence[Showing]) -> Html:
    """One table or figure, for every data set."""
    part = group[0].part
    return element(
        "section",
        element("h2", part.heading),
        element("p", element("strong", "The paper: "), part.claim, class_="claim"),
        *(_shown(one, titled=part.about_data) for one in group),
        id=part.name,
    )


def done_how(store: RunStore, scopes: Sequence[Scope]) -> Html:
    """Settings, times, devices and versions."""
    known = {name: ", ".join(found) for name, found in versions(store).items()}
    return element(
        "section",
        element("h2", "How it was done"),
        element("h3", "What was asked"),
        *(definitions(_settings(scope)) for scope in scopes),
        element("h3", "What it took"),
        _times(store),
        element("h3", "Versions"),
        definitions(known),
        id="how",
    )


def _goals(store: RunStore, scopes: Sequence[Scope]) -> Html:
    from nngp.reproduce.readings.goals import goals

    rows = [
        (goal.name, verdict(goal.verdict), goal.sentence)
        for scope in scopes
        for goal in goals(store, scope)
    ]
    return table(("goal", "verdict", "numbers"), rows, "Goals set beforehand.", "Goals")


def _claims(shown: Sequence[Showing]) -> Html:
    rows = [
        (
            element("a", _label(one), href=f"#{one.part.named(one.scope)}"),
            one.part.claim,
            finding(one),
        )
        for one in shown
    ]
    return table(
        ("part", "the paper", "here"), rows, "What is claimed, and what was found.", "Claims"
    )


def _shown(one: Showing, titled: bool) -> Html:
    place = one.part.named(one.scope)
    head = element("h3", IMAGE_SETS[one.scope.dataset].title) if titled else Html()
    if one.problem:
        return element(
            "div", head, element("p", "Missing: ", one.problem, class_="missing"), id=place
        )
    if one.part.draw is None:
        body = joined(element("p", one.part.look), accuracies(one.data.rows, _label(one)))
    else:
        picture = inline(one.part.draw(one.data), place, f"{_label(one)}. {one.part.look}")
        words = joined(element("strong", _label(one), ". "), one.part.look, " ", finding(one))
        body = element("figure", picture, element("figcaption", words))
    return element("div", head, body, id=place if titled else None)


def _label(one: Showing) -> str:
    data = f", {one.scope.dataset}" if one.part.about_data else ""
    return one.part.heading.split(":")[0] + data


def _settings(scope: Scope) -> dict[str, Any]:
    entry = IMAGE_SETS[scope.dataset]
    return {
        "data set": f"{entry.title}; {entry.validation:,} images to choose networks with, "
        f"{entry.test:,} to test them",
        "training points": ", ".join(f"{size:,}" for size in scope.sizes),
        "hidden layers": ", ".join(map(str, scope.depths)),
        "activations": ", ".join(scope.activations),
        "grid": f"{scope.grid} weight variances from {scope.weight_vars[0]:g} to "
        f"{scope.weight_vars[-1]:g}, {scope.grid} bias variances from {scope.bias_vars[0]:g} to "
        f"{scope.bias_vars[-1]:g}",
    }


def _times(store: RunStore) -> Html:
    heads = ("experiment", "data set", "runs", "failed", "left", "time", "device", "when")
    rows = [
        (
            one.experiment,
            one.dataset or "–",
            f"{one.done:,}",
            one.failed,
            one.left,
            _spoken(one.seconds),
            ", ".join(one.devices),
            one.first if one.first == one.last else f"{one.first} to {one.last}",
        )
        for one in efforts(store)
    ]
    return table(heads, rows, "Seconds of work, added up over runs.", "Times")


def _spoken(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
