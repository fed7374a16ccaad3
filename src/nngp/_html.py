"""Small pieces of HTML for notebooks and pages: escaped text, tables, panels that fold.

Colours are those of the surrounding page (`currentColor` and `inherit`), so that light and dark
themes both work.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

CELL = "padding:0.15em 1em 0.15em 0;text-align:left;vertical-align:top;border:0"
FRAME = "border:1px solid #8884;border-radius:6px;padding:0.6em 0.9em;display:inline-block"


def facts_table(facts: Mapping[str, object]) -> str:
    """Names and values, a row each."""
    rows = (
        f"<tr><th style='{CELL};font-weight:600;white-space:nowrap'>{escape(name)}</th>"
        f"<td style='{CELL};font-variant-numeric:tabular-nums'>{value_text(value)}</td></tr>"
        for name, value in facts.items()
    )
    return f"<table style='border-collapse:collapse'>{''.join(rows)}</table>"


def rows_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with a line of headings; numbers are aligned on the right."""
    line = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{value_text(value)}</td>" for value in row) + "</tr>" for row in rows
    )
    return f"<div class='scroll'><table class='rows'><tr>{line}</tr>{body}</table></div>"


def value_text(value: object) -> str:
    """A value as escaped text: numbers with four digits, lists with commas."""
    if isinstance(value, float):
        return escape(f"{value:.4g}")
    if isinstance(value, list | tuple):
        return ", ".join(value_text(part) for part in value)
    return escape(str(value))


def panel(title: str, body: str, *folded: tuple[str, str]) -> str:
    """A framed block with a title, its body, and parts (title, body) that are folded at first."""
    details = "".join(
        f"<details style='margin-top:0.4em'><summary>{escape(name)}</summary>{part}</details>"
        for name, part in folded
    )
    return (
        f"<div style='{FRAME};color:inherit;font-family:system-ui,sans-serif;font-size:0.9em'>"
        f"<div style='font-weight:600;margin-bottom:0.4em'>{escape(title)}</div>{body}{details}"
        "</div>"
    )
