"""Output of commands: messages and tables for people, JSON for programs, exit codes for scripts."""

import difflib
import json
import math
import os
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NoReturn, TextIO

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from nngp import errors
from nngp.terminal.words import in_command_words

USAGE, DATA, RESOURCES, INTERRUPTED = 2, 3, 4, 130
Row = Mapping[str, object]
WARNINGS = [kind for name, kind in vars(errors).items() if name.endswith("Warning")]

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
        except BrokenPipeError:  # whoever reads has seen enough, as in: nngp inspect | head
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
            _exit(reason or "not enough memory; take fewer rows", RESOURCES)
        except (ImportError, RuntimeError) as error:
            _exit(in_command_words(str(error)), RESOURCES)
        except OSError as error:
            _exit(_about_file(error), DATA)
        except (ValueError, TypeError, ArithmeticError) as error:
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
