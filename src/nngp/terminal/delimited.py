"""Text with separators as columns of text: encodings, separators, headers, and every fault with the
line it is in.

Rows are read by the standard library's csv. polars would fill up a short row without a word, names
no line for the other faults, takes blanks beside a separator for part of a value, and knows neither
encodings but UTF-8 nor lines that end in a carriage return; it finds no separator either.
"""

import codecs
import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from nngp.frames import Column, InputTable, with_decimal_mark
from nngp.frames.amounts import plain_numbers
from nngp.terminal.output import DataError, UsageError

SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars", " ": "blanks"}
WORDS = {"comma": ",", "tab": "\t", "\\t": "\t", "semicolon": ";", "bar": "|", "pipe": "|"}
WORDS |= {"blank": " ", "space": " "}
SAMPLE = 50  # lines that the separator is found from
BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True)
class Delimited:
    """A table read from text, its separator, and remarks on how it was read."""

    table: InputTable
    separator: str
    remarks: list[str]


def separator_of(option: str | None) -> str | None:
    """The separator that an option names: one character, or a word such as tab."""
    if option is None:
        return None
    found = WORDS.get(option.lower(), option)
    if len(found) != 1 or found in '"\r\n' or found.isalnum():
        raise UsageError(
            f"--sep must be one character, or comma, tab, semicolon, bar or blank; got '{option}'"
        )
    return found


def check_encoding(encoding: str | None) -> None:
    """Raise UsageError for an encoding that is not known."""
    try:
        with suppress(UnicodeError):
            b" ".decode(encoding or "utf-8")
    except (LookupError, ValueError):
        raise UsageError(
            f"--encoding '{encoding}' is not known; use utf-8, latin-1, cp1252, utf-16 or another"
        ) from None


def decoded(data: bytes, name: str, encoding: str | None) -> str:
    """Bytes as text; DataError if they are none in that encoding (UTF-8 by default)."""
    found = encoding or next((e for bom, e in BOMS if data.startswith(bom)), "utf-8")
    if b"\0" in data and "16" not in found and "32" not in found:
        raise DataError(
            f"{name} holds NUL bytes, so it is no text; write it as CSV, or name its encoding "
            "(--encoding utf-16)"
        )
    try:
        text = data.decode(found)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        hint = "try --encoding cp1252 or latin-1" if not encoding else "name another encoding"
        raise DataError(
            f"{name} is not text in {found.removesuffix('-sig').upper()} (line {line}); {hint}"
        ) from None
    one_line = "\n" not in text and "\r" not in text
    if one_line and (b"\n" in data or b"\r" in data):
        raise DataError(
            f"{name} is not text in {found.upper()}: its lines do not end in that encoding; leave "
            "--encoding out, or name another"
        )
    return text.removeprefix("\ufeff")


def read_delimited(text: str, name: str, separator: str | None, usual: str = ",") -> Delimited:
    """Read a table whose first line holds the names of its columns.

    `separator` is None where it is to be found; `usual` is the one that needs no remark.
    """
    if not text.strip():
        raise DataError(f"{name} is empty; a table has a line of names, then a line for each row")
    chosen = separator or _find_separator(text, usual)
    rows = _rows(text, name, chosen)
    header = next(rows, (0, [""]))[1]
    names, remarks = _names(header, name)
    if separator is None and chosen not in (usual, ",") and len(names) > 1:
        remarks.append(f"{name} is separated by {SEPARATORS[chosen]}")
    cells = _cells(rows, len(names), name, SEPARATORS.get(chosen, f"'{chosen}'"))
    if not cells:
        raise DataError(f"{name} has a line of names and no rows below it")
    columns = zip(names, zip(*cells, strict=True), strict=True)
    table = InputTable(tuple(Column.of_texts(column, texts) for column, texts in columns))
    table = with_decimal_mark(table, usual="," if chosen == ";" else None)
    return Delimited(table, chosen, remarks)


def _rows(text: str, name: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Rows with the line they begin in; the first is not blank."""
    lines = io.StringIO(text, newline="")
    source = (line.strip(" \r\n") + "\n" for line in lines) if separator == " " else lines
    reader = csv.reader(source, delimiter=separator, skipinitialspace=True, strict=True)
    line, begun = 1, False
    try:
        for row in reader:
            begun = begun or not _is_blank(row)
            if begun:
                yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"line {line} of {name} {_fault(str(error))}") from None


def _fault(error: str) -> str:
    """Describe the error in a line, in the words of the command."""
    if "field limit" in error:
        return (
            f"has a value of more than {csv.field_size_limit()} characters; is a quotation mark "
            "not closed?"
        )
    if "end of data" in error:
        return "has a quotation mark that is not closed; close it, or write it twice"
    return "has text after a closing quotation mark; write marks inside a value twice"


def _cells(
    rows: Iterator[tuple[int, list[str]]], width: int, name: str, separators: str
) -> list[list[str]]:
    """The rows below the header, blank lines left out; DataError if one has another width."""
    out = []
    for line, row in rows:
        if _is_blank(row) and width > 1:
            continue
        row = row or [""]  # in a table of one column a blank line is a missing value
        if len(row) != width:
            raise DataError(
                f"line {line} of {name} has {len(row)} value(s) and the header {width}; mend the "
                f"line (values that hold {separators} need quotation marks)"
            )
        out.append(row)
    while width == 1 and out and _is_blank(out[-1]):
        out.pop()
    return out


def _is_blank(row: Sequence[str]) -> bool:
    return len(row) == 0 or (len(row) == 1 and not row[0].strip())


def _names(header: Sequence[str], name: str) -> tuple[list[str], list[str]]:
    """Names of columns, different and not empty, and remarks on them."""
    stripped = [cell.strip() for cell in header]
    names = [cell or f"column {j + 1}" for j, cell in enumerate(stripped)]
    twice = [cell for cell, count in Counter(names).items() if count > 1]
    if twice:
        listed = ", ".join(f"'{cell}'" for cell in twice[:5])
        raise DataError(f"{name} has more than one column {listed}; rename all but one")
    remarks = []
    if "" in stripped:
        unnamed = [n for n, cell in zip(names, stripped, strict=True) if not cell]
        remarks.append(f"{name} has a column without a name, called '{unnamed[0]}' here")
    if _is_number_line(stripped):
        remarks.append(
            f"the first line of {name} holds numbers and is taken for the names of columns; "
            "if it is a row, put a line of names above it"
        )
    return names, remarks


def _is_number_line(cells: Sequence[str]) -> bool:
    return plain_numbers([cell for cell in cells if cell]) is not None


def _find_separator(text: str, usual: str) -> str:
    """The separator that gives the first lines the most equal numbers of values, above one."""
    best, score = usual, (0.0, 0)
    sample = _first_lines(text)
    for separator in dict.fromkeys((usual, *SEPARATORS)):
        if separator == " " and score[1] > 1:
            break  # blanks are within values, unless nothing else separates
        widths = _widths(sample, separator)
        if widths and widths[0] > 1:
            same = sum(width == widths[0] for width in widths) / len(widths)
            if separator == " " and (same < 1 or not _has_numbers(sample)):
                continue
            if (same, widths[0]) > score:
                best, score = separator, (same, widths[0])
    return best


def _first_lines(text: str) -> list[str]:
    lines = []
    for line in io.StringIO(text, newline=None):
        if line.strip():
            lines.append(line.rstrip("\n"))
        if len(lines) == SAMPLE:
            break
    return lines


def _widths(lines: list[str], separator: str) -> list[int]:
    source = (line.strip(" ") for line in lines) if separator == " " else lines
    try:
        return [len(row) for row in csv.reader(source, delimiter=separator, skipinitialspace=True)]
    except csv.Error:
        return []


def _has_numbers(lines: list[str]) -> bool:
    """Whether each row below the header has a number among its words."""
    return len(lines) > 1 and all(
        any(plain_numbers([word]) is not None for word in line.split()) for line in lines[1:]
    )
