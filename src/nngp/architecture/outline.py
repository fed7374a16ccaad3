"""A network as an outline: its steps from input to output, with branches, for text and pictures.

Parts say what they are by `OutlineStep`s; `as_text` writes them below each other, and
`plots.network_picture` draws them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

StepKind = Literal["dense", "activation", "other", "join", "repeat"]
INPUT_NAME, OUTPUT_NAME, IDENTITY = "input", "output", "identity"
GAP = 3  # spaces between the longest name and the details


@dataclass(frozen=True)
class OutlineStep:
    """One operation, or branches that begin at the same units.

    `branches` are joined at their end by what `name` says; a repeated part has one branch.
    """

    kind: StepKind
    name: str
    details: tuple[str, ...] = ()
    branches: tuple["Outline", ...] = ()


Outline = tuple[OutlineStep, ...]


def as_text(outline: Outline) -> str:
    """The steps below each other, branches indented, details in a column."""
    rows = [(INPUT_NAME, ""), *_rows(outline), (OUTPUT_NAME, "")]
    width = GAP + max((len(name) for name, details in rows if details), default=0)
    return "\n".join(f"{name:{width}}{details}".rstrip() for name, details in rows)


def _rows(outline: Outline) -> Iterator[tuple[str, str]]:
    for step in outline:
        yield step.name, ", ".join(step.details)
        yield from chain.from_iterable(_branch_rows(step.branches))


def _branch_rows(branches: Sequence[Outline]) -> Iterator[Iterator[tuple[str, str]]]:
    for place, branch in enumerate(branches, start=1):
        first, others = ("└ ", "  ") if place == len(branches) else ("├ ", "│ ")
        rows = list(_rows(branch)) or [(IDENTITY, "")]
        marks = [first] + [others] * (len(rows) - 1)
        yield ((mark + name, more) for mark, (name, more) in zip(marks, rows, strict=True))


def repeated(outline: Outline, times: float) -> Outline:
    """Copies of steps behind each other, as one step with their number."""
    if times == 1 or not outline:
        return outline
    words = "infinitely often" if times == float("inf") else f"{times} times"
    return (OutlineStep("repeat", words, branches=(outline,)),) if times else ()
