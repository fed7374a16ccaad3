"""Output of commands: messages and tables for people, JSON for programs, exit codes for scripts."""

import difflib
import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NoReturn

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

USAGE, DATA, RESOURCES, INTERRUPTED = 2, 3, 4, 130
SHOWN = 20  # rows of a table, unless there is a limit
LONGEST = 40  # characters in a cell
GAP = 2  # columns of characters between those of a table
Row = Mapping[str, object]

out = Console(soft_wrap=True, emoji=False)
err = Console(stderr=True, soft_wrap=True, emoji=False)


class UsageError(Exception):
    """An option, or a column that an option names, cannot be used."""


class DataError(Exception):
    """A file or the values in it cannot be used."""


@contextmanager
def exit_codes(interrupted: str) -> Iterator[None]:
    """Turn errors that a user can mend into one sentence and an exit code."""
    with warnings.catch_warnings():
        warnings.showwarning = _print_warning
        try:
            yield
        except BrokenPipeError:  # whoever reads has seen enough, as in: nngp runs | head
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(0)
        except KeyboardInterrupt:
            _exit(interrupted, INTERRUPTED)
        except UsageError as error:
            _exit(str(error), USAGE)
        except MemoryError as error:
            _exit(str(error) or "not enough memory; take fewer rows", RESOURCES)
        except (ImportError, RuntimeError) as error:
            _exit(str(error), RESOURCES)
        except (DataError, OSError, ValueError, TypeError, ArithmeticError) as error:
            _exit(str(error), DATA)


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn errors about the values of options into UsageError."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from None


def _exit(sentence: str, code: int) -> NoReturn:
    err.print(f"[bold red]error:[/] {escape(sentence)}", highlight=False)
    sys.exit(code)


def _print_warning(message: Warning | str, *rest: object, **more: object) -> None:
    err.print(f"[yellow]note:[/] {escape(str(message))}", highlight=False)


def print_message(*sentences: str) -> None:
    """Print messages for people on stderr, each on a line of its own."""
    for sentence in sentences:
        err.print(escape(sentence), highlight=False)


def on_terminal() -> bool:
    """Whether somebody would see a progress bar."""
    return sys.stderr.isatty()


def suggestion(name: str, names: Sequence[str]) -> str:
    """The names that may have been meant, as the end of a sentence about an unknown name."""
    lower = {other.lower(): other for other in names}
    near = difflib.get_close_matches(name.lower(), list(lower), n=3, cutoff=0.6)
    return f" (did you mean {' or '.join(repr(lower[n]) for n in near)}?)" if near else ""


def print_result(title: str, rows: Row, as_json: bool) -> None:
    """Print the result of a command: a table of names and values, or one JSON object."""
    if as_json:
        print_json(rows, lambda number: None if math.isinf(number) else number)
        return
    table = Table(
        title=escape(title), show_header=False, title_justify="left", box=None, pad_edge=False
    )
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(name, escape(_text(value)))
    out.print(table)


def print_json(value: object, number: Callable[[float], object]) -> None:
    """Print JSON, which knows neither infinity nor NaN: `number` gives what stands for a float."""
    print(json.dumps(_with_numbers(value, number), default=_plain, allow_nan=False))


def _with_numbers(value: object, number: Callable[[float], object]) -> object:
    if isinstance(value, Mapping):
        return {name: _with_numbers(part, number) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_with_numbers(part, number) for part in value]
    return number(value) if isinstance(value, float) else value


def _plain(value: object) -> object:
    """An array as a list, a path as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        between = "\n" if any(isinstance(part, dict) for part in value) else ", "
        return between.join(_text(part) for part in value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {_text(part)}" for name, part in value.items())
    return str(value)


def print_rows(
    title: str, rows: Sequence[Row], names: Sequence[str], limit: int | None, cut: bool = False
) -> None:
    """Print the columns `names` of the first rows; with `cut`, as far as a terminal has room."""
    out.print(escape(title), highlight=False)
    if not rows:
        print_message("no run matches")
        return
    shown = rows[: limit or SHOWN]
    cells = {name: [_cell(name, row.get(name)) for row in shown] for name in names}
    heads = _headings(names)
    widths = [max(map(cell_len, (heads[name], *cells[name]))) for name in names]
    room = _fitting(widths, out.width) if cut and out.is_terminal else len(names)
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
    for name in names[:room]:
        right = any(isinstance(row.get(name), int | float) for row in shown)
        table.add_column(escape(heads[name]), justify="right" if right else "left", no_wrap=True)
    for line in zip(*(cells[name] for name in names[:room]), strict=True):
        table.add_row(*map(escape, line))
    width = sum(widths[:room]) + GAP * room
    Console(width=max(width, out.width), emoji=False).print(table, highlight=False)
    if len(shown) < len(rows):
        print_message(f"{len(shown)} of {len(rows)} runs; more with --limit")
    if room < len(names):
        hidden = ", ".join(heads[name] for name in names[room:])
        print_message(f"no room for {hidden}; choose with --columns, or --export")


def _headings(names: Sequence[str]) -> dict[str, str]:
    """Names of columns without their prefix, where that leaves them different."""
    short = {name: name.removeprefix("config.").removeprefix("result.") for name in names}
    often = list(short.values())
    return {name: text if often.count(text) == 1 else name for name, text in short.items()}


def _cell(name: str, value: object) -> str:
    if value is None:
        return ""
    if name == "key":
        return str(value)[:8]
    if isinstance(value, float):
        return f"{value:.6g}"
    text = value if isinstance(value, str) else json.dumps(value)
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 3] + "..."


def _fitting(widths: Sequence[int], room: int) -> int:
    """The number of columns that fit beside each other; at least one."""
    total = 0
    for count, width in enumerate(widths):
        total += width + GAP
        if total - GAP > room:
            return max(count, 1)
    return len(widths)
