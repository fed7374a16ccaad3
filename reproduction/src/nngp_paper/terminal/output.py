"""Output of commands: messages and tables for people, JSON for programs, exit codes for scripts."""

import difflib
import json
import math
import os
import sqlite3
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NoReturn

from rich.console import Console
from rich.table import Table
from rich.text import Text

from nngp_paper.terminal.words import in_command_words

USAGE, DATA, RESOURCES, INTERRUPTED = 2, 3, 4, 130
SHOWN = 20  # rows of a table, unless there is a limit
LONGEST = 40  # characters in a cell
UNLIMITED = 100_000  # columns of characters in a file or a pipe
Row = Mapping[str, object]


class UsageError(Exception):
    """An option, or a column that an option names, cannot be used."""


class DataError(Exception):
    """A file or the values in it cannot be used."""


CODES: tuple[tuple[type[Exception] | tuple[type[Exception], ...], int], ...] = (  # the first holds
    (UsageError, USAGE),
    ((MemoryError, ImportError, RuntimeError), RESOURCES),
    ((DataError, OSError, ValueError, TypeError, ArithmeticError, sqlite3.Error), DATA),
)


@contextmanager
def exit_codes(interrupted: str) -> Iterator[None]:
    """Turn errors that a user can mend into one sentence and an exit code."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *rest, **more: _print("note:", "yellow", message)
        try:
            yield
        except BrokenPipeError:  # whoever reads has seen enough, as in: nngp-paper runs | head
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(0)
        except KeyboardInterrupt:
            _exit(interrupted, INTERRUPTED)
        except Exception as error:
            for kinds, code in CODES:
                if isinstance(error, kinds):
                    _exit(_sentence(error), code)
            raise


def _sentence(error: Exception) -> str:
    """The message of an error; of the system's about a file with the name of that file."""
    if isinstance(error, OSError) and error.strerror is not None:
        return f"{error.filename or 'a file'} cannot be used: {error.strerror}"
    return str(error) or "not enough memory; take fewer points"


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn errors about the values of options into UsageError."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise UsageError(str(error)) from None


def exit_with_usage(sentence: str, command: str) -> NoReturn:
    """End with one sentence about a command line that cannot be read, and where to look."""
    words = sentence.strip().removesuffix(".")
    _exit(f"{words[:1].lower()}{words[1:]}; see {command} --help", USAGE)


def _exit(sentence: str, code: int) -> NoReturn:
    _print("error:", "bold red", sentence)
    sys.exit(code)


def _print(word: str, style: str, sentence: object) -> None:
    """Print a sentence on stderr after a coloured word."""
    text = Text.assemble((word, style), f" {in_command_words(str(sentence))}")
    _console(stderr=True).print(text)


def print_message(*sentences: str) -> None:
    """Print messages for people on stderr, each on a line of its own."""
    for sentence in sentences:
        _console(stderr=True).print(Text(sentence))


def _console(*, stderr: bool = False) -> Console:
    """Where to print: as wide as the terminal or as COLUMNS says, without a limit elsewhere."""
    stream = sys.stderr if stderr else sys.stdout
    limited = stream.isatty() or os.environ.get("COLUMNS", "").isdigit()
    return Console(stderr=stderr, width=None if limited else UNLIMITED, highlight=False)


def on_terminal() -> bool:
    """Whether somebody would see a progress bar."""
    return sys.stderr.isatty()


def suggestion(name: str, names: Sequence[str]) -> str:
    """The names that may have been meant, as the end of a sentence about an unknown name."""
    near = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.6)
    return f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""


def print_result(title: str, rows: Row, as_json: bool) -> None:
    """Print the result of a command: a table of names and values, or one JSON object."""
    if as_json:
        print_json(rows, lambda number: None if math.isinf(number) else number)
        return
    table = Table(title=Text(title), show_header=False, title_justify="left", box=None)
    table.pad_edge = False
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        between = "\n" if any(", " in str(part) for part in _parts(value)) else ", "
        table.add_row(name, Text(between.join(str(part) for part in _parts(value))))
    _console().print(table)


def _parts(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else [value]


def print_json(value: object, number: Callable[[float], object]) -> None:
    """Print JSON, which knows neither infinity nor NaN: `number` gives what stands for a float."""
    print(json.dumps(_with_numbers(value, number), default=str, allow_nan=False))


def _with_numbers(value: object, number: Callable[[float], object]) -> object:
    if isinstance(value, Mapping):
        return {name: _with_numbers(part, number) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_with_numbers(part, number) for part in value]
    return number(value) if isinstance(value, float) else value


def print_rows(
    title: str, rows: Sequence[Row], names: Sequence[str], limit: int | None, cut: bool = False
) -> None:
    """Print the columns `names` of the first rows: side by side as far as a terminal has room. The
    others follow below, or with `cut` they are only named."""
    console = _console()
    console.print(Text(title))
    if not rows:
        print_message("no run matches")
        return
    shown, heads = rows[: limit or SHOWN], _headings(names)
    left = list(names)
    while left and not (cut and len(left) < len(names)):
        count = _fitting(console, shown, left, heads)
        console.print(_table(shown, left[:count], heads))
        left = left[count:]
    if len(shown) < len(rows):
        print_message(f"{len(shown)} of {len(rows)} runs; more with --limit")
    if left:
        hidden = ", ".join(heads[name] for name in left)
        print_message(f"no room for {hidden}; choose with --columns, or --export")


def _fitting(
    console: Console, rows: Sequence[Row], names: Sequence[str], heads: Mapping[str, str]
) -> int:
    """The number of columns that fit beside each other; at least one."""
    wide = console.options.update(width=UNLIMITED)
    for count in range(len(names), 1, -1):
        needed = console.measure(_table(rows, names[:count], heads), options=wide).maximum
        if needed <= console.width:
            return count
    return 1


def _table(rows: Sequence[Row], names: Sequence[str], heads: Mapping[str, str]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in names:
        number = any(isinstance(row.get(name), int | float) for row in rows)
        table.add_column(Text(heads[name]), justify="right" if number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(_cell(name, row.get(name))) for name in names))
    return table


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
