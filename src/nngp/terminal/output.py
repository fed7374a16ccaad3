"""Output of commands: messages and tables for people, JSON for programs, exit codes for scripts."""

import difflib
import json
import math
import os
import re
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, TextIO

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from nngp import errors
from nngp.terminal.options import FitOptions, estimator_options

USAGE, DATA, RESOURCES, INTERRUPTED = 2, 3, 4, 130
Row = Mapping[str, object]
WARNINGS = [kind for name, kind in vars(errors).items() if name.endswith("Warning")]

LABELS = {  # of names in the JSON output whose words are others
    "rmse": "RMSE",
    "r2": "R²",
    "coverage_95": "coverage of 95% intervals",
    "log_likelihood": "log likelihood per row",
    "calibration_error": "expected calibration error",
    "log_evidence_one_hot": "log evidence of one-hot targets",
    "chi": "slope χ",
    "correlation": "limiting correlation",
    "variance": "limiting variance",
    "depth_scale_variance": "depth scale ξ of variance",
    "depth_scale_correlation": "depth scale ξ of correlation",
    "critical_weight_var": "critical weight_var",
}

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


def print_result(title: str, *groups: Row, as_json: bool, json_only: Row | None = None) -> None:
    """Print the result of a command: names and values in groups, or one JSON object of all."""
    if as_json:
        whole = {
            name: value for group in (*groups, json_only or {}) for name, value in group.items()
        }
        print_json(whole, lambda number: None if math.isinf(number) else number)
        return
    width = width_of(sys.stdout)
    out.print(f"[italic]{escape(title)}[/]", width=width)
    for number, group in enumerate(groups):
        if number:
            out.print()
        table = Table(show_header=False, box=None, pad_edge=False)
        table.add_column(style="bold", no_wrap=True)
        table.add_column(overflow="fold")
        for name, value in group.items():
            if not _is_table(value):
                table.add_row(label_of(name), escape(_text(value)))
        out.print(table, width=width)
        for name, value in group.items():
            if _is_table(value):
                out.print(f"\n[bold]{label_of(name)}[/]", width=width)
                _print_table(value)


def label_of(name: str) -> str:
    """A name of the JSON output, as people read it."""
    return LABELS.get(name, name if name.endswith("_var") else name.replace("_", " "))


def _is_table(value: object) -> bool:
    """Whether a value is a list of rows with the same names."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _print_table(rows: Any) -> None:
    """Print rows with the same names as columns, each name once on the left."""
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    for _ in rows:
        table.add_column(justify="right", overflow="fold")
    for name in rows[0]:
        table.add_row(label_of(name), *(escape(_text(row[name])) for row in rows))
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


# Options of the command line in place of the library's parameters, in its messages.
# Parameters of an estimator, and the fields of the options that set them.
FIELDS = {option.name: field for field, option in estimator_options(FitOptions).items()}
OPTIONS = (*FIELDS, "engine")
GIVEN = re.compile(rf"\b({'|'.join(OPTIONS)})=(?:'([^']*)'|([\w.+-]+))")  # solver='cg'
# noise_var anywhere; words such as depth where a sentence says what their values must be
LONG = "|".join(name for name in OPTIONS if "_" in name)
NAMED = re.compile(rf"\b({LONG}|(?:{'|'.join(OPTIONS)})(?= must be))\b")
OTHERS = {  # no options: what to say, or not to say, in their place
    "pass a file from save()": "pass a file that nngp fit wrote",
    "was the model saved there?": "nngp fit writes one",
    "; a cluster is nngp.DaskEngine(address)": "; a cluster is --cluster ADDRESS",
    " (free, or the memory= asked for)": "",
    ", or relative_noise=True": "",
    "nngp.normalize on both": "--input-scaling unit",
    "math.inf": "inf",
    " or nngp.CG(...)": "",
    "points would fit": "rows would fit",
    "convert the column to numbers": "name it by --decimal . or --decimal ,",
}


def in_command_words(sentence: str) -> str:
    """A message of the library as the command says it.

    >>> in_command_words("needs a factor; condition with solver='cholesky' and noise_var > 0")
    'needs a factor; condition with --solver cholesky and --noise-var > 0'
    """
    for python, ours in OTHERS.items():
        sentence = sentence.replace(python, ours)
    sentence = GIVEN.sub(lambda found: f"{_option(found[1])} {found[2] or found[3]}", sentence)
    return NAMED.sub(lambda found: _option(found[0]), sentence)


def option_named(field: str) -> str:
    """The option that a field of the options is."""
    return f"--{field.replace('_', '-')}"


def _option(parameter: str) -> str:
    return option_named(FIELDS.get(parameter, parameter))
