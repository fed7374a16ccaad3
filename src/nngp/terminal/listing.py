"""Rows of runs as a table for people: what differs, as far as there is room."""

import json
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from nngp.runs import column_names
from nngp.terminal.speech import out, say

SHOWN = 20  # rows, unless told otherwise
LONGEST = 40  # characters in a cell
GAP = 2
Row = dict[str, Any]


def show_rows(title: str, rows: list[Row], picked: list[str], limit: int | None) -> None:
    """The first rows: the columns in `picked`, or those that tell runs apart, and what came out."""
    out.print(escape(title), highlight=False)
    if not rows:
        say("no run matches")
        return
    shown = rows[: limit or SHOWN]
    names = picked or _telling(rows)
    cells = {name: [_cell(name, row.get(name)) for row in shown] for name in names}
    heads = _headings(names)
    widths = [max(map(cell_len, (heads[name], *cells[name]))) for name in names]
    room = len(names) if picked or not out.is_terminal else _fitting(widths, out.width)
    kept = names[:room]
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
    for name in kept:
        right = any(isinstance(row.get(name), int | float) for row in shown)
        table.add_column(escape(heads[name]), justify="right" if right else "left", no_wrap=True)
    for line in zip(*(cells[name] for name in kept), strict=True):
        table.add_row(*map(escape, line))
    width = sum(widths[:room]) + GAP * room
    Console(width=max(width, out.width), emoji=False).print(table, highlight=False)
    _say_rest(rows, shown, [heads[name] for name in names[room:]])


def _telling(rows: list[Row]) -> list[str]:
    """The columns that are worth their place."""
    names = column_names(rows)
    inner = [name for name in names if name.startswith(("experiment", "status", "config."))]
    results = [name for name in names if name.startswith("result.")]
    varying = [name for name in inner if any(row.get(name) != rows[0].get(name) for row in rows)]
    after = [name for name in ("seconds", "error") if any(row.get(name) for row in rows)]
    return ["key", *varying, *results, *after]


def _headings(names: list[str]) -> dict[str, str]:
    """Short names where they are not two things."""
    short = {name: name.removeprefix("config.").removeprefix("result.") for name in names}
    often = list(short.values())
    return {name: text if often.count(text) == 1 else name for name, text in short.items()}


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name == "key":
        return str(value)[:8]
    if isinstance(value, float):
        return f"{value:.6g}"
    text = value if isinstance(value, str) else json.dumps(value)
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 3] + "..."


def _fitting(widths: list[int], room: int) -> int:
    """How many columns fit beside each other; at least one."""
    total = 0
    for count, width in enumerate(widths):
        total += width + GAP
        if total - GAP > room:
            return max(count, 1)
    return len(widths)


def _say_rest(rows: list[Row], shown: list[Row], left: list[str]) -> None:
    if len(shown) < len(rows):
        say(f"{len(shown)} of {len(rows)} runs; more with --limit")
    if left:
        say(f"no room for {', '.join(left)}; choose with --columns, or --export")
