"""How commands talk: sentences and tables for people, JSON for programs, exit codes for scripts."""

import difflib
import json
import math
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from rich.console import Console
from rich.markup import escape
from rich.table import Table

USAGE, DATA, RESOURCES, INTERRUPTED = 2, 3, 4, 130

out = Console(soft_wrap=True, emoji=False)
err = Console(stderr=True, soft_wrap=True, emoji=False)


class UsageError(Exception):
    """The command was asked for something that is not there: an option, a column."""


class DataError(Exception):
    """A file or the values in it cannot be used."""


@contextmanager
def guarded(interrupted: str = "interrupted; nothing was written") -> Iterator[None]:
    """Errors that a user can mend become one sentence and an exit code."""
    with warnings.catch_warnings():
        warnings.showwarning = _say_warning
        try:
            yield
        except BrokenPipeError:  # whoever reads has seen enough, as in: nngp runs | head
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(0)
        except KeyboardInterrupt:
            stop(interrupted, INTERRUPTED)
        except UsageError as error:
            stop(str(error), USAGE)
        except MemoryError as error:
            stop(str(error) or "not enough memory; take fewer rows", RESOURCES)
        except (ImportError, RuntimeError) as error:
            stop(str(error), RESOURCES)
        except (DataError, OSError, ValueError, TypeError, ArithmeticError) as error:
            stop(str(error), DATA)


def stop(sentence: str, code: int) -> NoReturn:
    """Say what went wrong and leave."""
    err.print(f"[bold red]error:[/] {escape(sentence)}", highlight=False)
    sys.exit(code)


def say(sentence: str) -> None:
    """A remark for people, beside whatever the output is."""
    err.print(escape(sentence), highlight=False)


def nearest(name: str, names: list[str]) -> str:
    """The names that may have been meant, as the end of a sentence about one that is not there."""
    lower = {other.lower(): other for other in names}
    near = difflib.get_close_matches(name.lower(), list(lower), n=3, cutoff=0.6)
    return f" (did you mean {' or '.join(repr(lower[n]) for n in near)}?)" if near else ""


def show(title: str, rows: dict[str, Any]) -> None:
    """Names and values as a small table."""
    table = Table(
        title=escape(title), show_header=False, title_justify="left", box=None, pad_edge=False
    )
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        table.add_row(name, escape(_text(value)))
    out.print(table)


def answer(title: str, rows: dict[str, Any], as_json: bool) -> None:
    """The result of a command: a table, or one JSON object on stdout."""
    if as_json:
        print(json.dumps(_sayable(rows), default=_jsonable, allow_nan=False))
    else:
        show(title, rows)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        between = "\n" if any(isinstance(part, dict) for part in value) else ", "
        return between.join(_text(part) for part in value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {_text(part)}" for name, part in value.items())
    return str(value)


def _sayable(value: Any) -> Any:
    """Infinity as null: JSON has no word for it."""
    if isinstance(value, dict):
        return {name: _sayable(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_sayable(part) for part in value]
    return None if isinstance(value, float) and math.isinf(value) else value


def _jsonable(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


def _say_warning(message: Any, category: Any, *rest: Any, **more: Any) -> None:
    err.print(f"[yellow]note:[/] {escape(str(message))}", highlight=False)
