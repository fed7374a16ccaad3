"""A network as an outline: its steps from input to output, with branches, for text and pictures.

Parts say what they are by `OutlineStep`s; `as_text` writes them below each other, `as_html` draws
them in a notebook, and `plots.network_picture` in a figure.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain
from typing import Literal

StepKind = Literal["dense", "activation", "other", "join", "repeat"]
INPUT_NAME, OUTPUT_NAME, IDENTITY = "input", "output", "identity"
GAP = 3  # spaces between the longest name and the details
# Colours of boxes in a notebook; half transparent, so that they suit light and dark pages.
HTML_COLOURS = {"dense": "#0072b2", "activation": "#d55e00", "other": "#009e73", "join": "#777"}
HTML_BOX = (
    "border:1.5px solid {0};background:{0}22;border-radius:6px;padding:0.15em 0.7em;"
    "text-align:center;white-space:nowrap"
)
HTML_COLUMN = "display:flex;flex-direction:column;align-items:center"
HTML_ARROW = "<div style='line-height:1;opacity:0.6'>↓</div>"


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


def as_html(outline: Outline) -> str:
    """Boxes from the input at the top to the output at the bottom; branches side by side."""
    ends = [f"<div style='opacity:0.7'>{name}</div>" for name in (INPUT_NAME, OUTPUT_NAME)]
    boxes = HTML_ARROW.join([ends[0], *_html_boxes(outline), ends[1]])
    style = f"{HTML_COLUMN};width:max-content;font:0.85em system-ui,sans-serif;color:inherit"
    return f"<div style='{style}'>{boxes}</div>"


def _html_boxes(outline: Outline) -> Iterator[str]:
    for step in outline:
        if step.kind == "repeat":
            inner = HTML_ARROW.join(_html_boxes(step.branches[0]))
            frame = f"{HTML_COLUMN};border:1.5px dashed #888;border-radius:6px;padding:0.3em 0.8em"
            yield f"<div style='{frame}'><i>{escape(step.name)}</i>{inner}</div>"
            continue
        if step.branches:
            columns = (
                f"<div style='{HTML_COLUMN}'>{HTML_ARROW.join(_html_boxes(b)) or IDENTITY}</div>"
                for b in step.branches
            )
            row = "display:flex;gap:1.2em;align-items:center;border-left:1px solid #8886;"
            row += "border-right:1px solid #8886;padding:0 0.6em"
            yield f"<div style='{row}'>{''.join(columns)}</div>"
        details = f"<br><small>{escape(', '.join(step.details))}</small>" if step.details else ""
        colour = HTML_BOX.format(HTML_COLOURS[step.kind])
        yield f"<div style='{colour}'>{escape(step.name)}{details}</div>"


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
