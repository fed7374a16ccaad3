"""Output of commands: messages and tables for people, JSON for programs, exit codes for scripts."""

import difflib
import json
import math
import os
import shutil
import sqlite3
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Literal, NoReturn, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from nngp import errors as library_errors
from nngp_paper import errors
from nngp_paper.terminal.words import in_command_words

USAGE, DATA, RESOURCES, INTERRUPTED = 2, 3, 4, 130
SHOWN = 20  # rows of a table, unless there is a limit
LONGEST = 40  # characters in a cell
GAP = 2  # columns of characters between those of a table
Row = Mapping[str, object]
WARNINGS = [
    kind
    for module in (library_errors, errors)
    for name, kind in vars(module).items()
    if name.endswith("Warning")
]

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
        for kind in WARNINGS:  # they are notes to the reader, whatever Python's filters say
            warnings.simplefilter("always", kind)
        try:
            yield
        except BrokenPipeError:  # whoever reads has seen enough, as in: nngp-paper runs | head
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(0)
        except KeyboardInterrupt:
            _exit(interrupted, INTERRUPTED)
        except UsageError as error:
            _exit(str(error), USAGE)
        except DataError as error:
            _exit(str(error), DATA)
        except MemoryError as error:
            reason = in_command_words(str(error))
            _exit(reason or "not enough memory; take fewer points", RESOURCES)
        except (ImportError, RuntimeError) as error:
            _exit(in_command_words(str(error)), RESOURCES)
        except OSError as error:
            _exit(_about_file(error), DATA)
        except (ValueError, TypeError, ArithmeticError, sqlite3.Error) as error:
            _exit(in_command_words(str(error)), DATA)


def _about_file(error: OSError) -> str:
    """A sentence of our own, or the system's word about a file."""
    if error.strerror is None:
        return in_command_words(str(error))
    return f"{error.filename or 'a file'} cannot be used: {error.strerror}"


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn errors about the values of options into UsageError."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise UsageError(in_command_words(str(error))) from None


def exit_with_usage(sentence: str, command: str) -> NoReturn:
    """End with one sentence about a command line that cannot be read, and where to look."""
    words = sentence.strip().removesuffix(".")
    _exit(f"{words[:1].lower()}{words[1:]}; see {command} --help", USAGE)


def _exit(sentence: str, code: int) -> NoReturn:
    _print_after("error:", "bold red", sentence)
    sys.exit(code)


def _print_warning(message: Warning | str, *rest: object, **more: object) -> None:
    _print_after("note:", "yellow", in_command_words(str(message)))


def _print_after(word: str, style: str, sentence: str) -> None:
    """Print a sentence on stderr after a coloured word."""
    text = wrapped(f"{word} {sentence}", sys.stderr).removeprefix(word)
    err.print(f"[{style}]{word}[/]{escape(text)}", highlight=False)


def print_message(*sentences: str) -> None:
    """Print messages for people on stderr, each on a line of its own."""
    for sentence in sentences:
        err.print(escape(wrapped(sentence, sys.stderr)), highlight=False)


def wrapped(text: str, stream: TextIO) -> str:
    """The text in lines that fit the terminal; in a file each message is one line."""
    room = width_of(stream)
    if room is None:
        return text
    indent = text[: len(text) - len(text.lstrip())]
    lines = textwrap.wrap(
        text,
        room,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines)


def width_of(stream: TextIO) -> int | None:
    """The columns of the terminal, or those that COLUMNS asks for; None for a file."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return shutil.get_terminal_size().columns if stream.isatty() else None


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
    out.print(table, width=width_of(sys.stdout))


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
    if value is None or isinstance(value, bool):
        return {None: "unknown", True: "yes", False: "no"}[value]
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        lines = any(isinstance(part, dict) or ", " in str(part) for part in value)
        between = "\n" if lines else ", "
        return between.join(_text(part) for part in value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {_text(part)}" for name, part in value.items())
    return str(value)


def print_rows(
    title: str, rows: Sequence[Row], names: Sequence[str], limit: int | None, cut: bool = False
) -> None:
    """Print the columns `names` of the first rows: side by side as far as a terminal has room. The
    others follow below, or with `cut` they are only named."""
    out.print(escape(wrapped(title, sys.stdout)), highlight=False)
    if not rows:
        print_message("no run matches")
        return
    shown, heads = rows[: limit or SHOWN], _headings(names)
    columns = [_Column.of(name, heads[name], shown) for name in names]
    first, *others = _blocks(columns, width_of(sys.stdout))
    for block in [first, *([] if cut else others)]:
        _print_block(block)
    if len(shown) < len(rows):
        print_message(f"{len(shown)} of {len(rows)} runs; more with --limit")
    if others and cut:
        hidden = ", ".join(column.head for block in others for column in block)
        print_message(f"no room for {hidden}; choose with --columns, or --export")


@dataclass(frozen=True)
class _Column:
    """Heading and cells of a column of a table; numbers are on the right."""

    head: str
    cells: list[str]
    right: bool

    @classmethod
    def of(cls, name: str, head: str, rows: Sequence[Row]) -> "_Column":
        right = any(isinstance(row.get(name), int | float) for row in rows)
        return cls(head, [_cell(name, row.get(name)) for row in rows], right)

    @property
    def width(self) -> int:
        return max(map(cell_len, (self.head, *self.cells)))


def _blocks(columns: Sequence[_Column], room: int | None) -> list[list[_Column]]:
    """Columns in blocks that fit beside each other; all in one where there is no limit."""
    left, out = list(columns), []
    while left:
        count = len(left) if room is None else _fitting([one.width for one in left], room)
        out.append(left[:count])
        left = left[count:]
    return out or [[]]


def _print_block(columns: Sequence[_Column]) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
    for column in columns:
        justify: Literal["right", "left"] = "right" if column.right else "left"
        table.add_column(escape(column.head), justify=justify, no_wrap=True)
    for line in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*map(escape, line))
    width = sum(column.width + GAP for column in columns)
    text = Console(width=max(width, 1), emoji=False)
    with text.capture() as captured:
        text.print(table, highlight=False)
    for row in captured.get().splitlines():  # without the gap after the last column
        print(row.rstrip())


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
