"""Tables in files, and checks of files before any work.

What is read is Parquet, a sheet of Excel, or text with separators (packed by gzip or not), from a
file or from stdin ("-"): its first bytes say which.
"""

import gzip
import sys
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import polars as pl
from numpy.typing import NDArray

from nngp._files import replaced, writable_file
from nngp._machine import available_memory
from nngp.frames import Column, InputTable, table_of
from nngp.frames.amounts import MARKS
from nngp.plots import need_matplotlib
from nngp.terminal.delimited import check_encoding, decoded, read_delimited, separator_of
from nngp.terminal.options import TableOptions
from nngp.terminal.output import DataError, UsageError, print_message, suggestion

TABLES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".xlsx": "excel",
}
PICTURES = (".svg", ".png", ".pdf")
TEXTS = (".csv", ".tsv", ".txt", ".dat", ".data", ".tab")
READABLE = (
    *TEXTS,
    *(f"{ending}.gz" for ending in (".csv", ".tsv", ".txt")),
    ".parquet",
    ".pq",
    ".xlsx",
)
STDIN = Path("-")
PACKED, PARQUET, ZIPPED = b"\x1f\x8b", b"PAR1", b"PK\x03\x04"
OTHERS = {
    b"\xd0\xcf\x11\xe0": "an old Excel file (.xls)",
    b"%PDF": "a PDF document",
    b"\x89PNG": "a picture",
    b"SQLite": "a database",
    b"\x93NUMPY": "a NumPy array",
}
MEMORY_PER_BYTE = 8  # of a table's text: its columns take more
STEP = 1 << 20


def read_table(path: Path, options: TableOptions | None = None) -> InputTable:
    """Read the table in a file, or from stdin; text is read as it stands."""
    options = options or TableOptions()
    separator, decimal = separator_of(options.sep), options.decimal
    check_encoding(options.encoding)
    if decimal not in (None, *MARKS):
        raise UsageError(f"--decimal must be . or ,, got '{decimal}'")
    name = "the input" if path == STDIN else str(path)
    data = _unpacked(_content(path), name)
    if data.startswith(PARQUET) or _ending(path) in (".parquet", ".pq"):
        table = _read_parquet(data, name)
    elif data.startswith(ZIPPED) or _ending(path) == ".xlsx":
        table = _read_excel(data, name)
    else:
        table = _read_text(data, name, path, separator, options.encoding)
    return table if decimal is None else replace(table, decimal=decimal, certain=True)


def _read_text(
    data: bytes, name: str, path: Path, separator: str | None, encoding: str | None
) -> InputTable:
    for start, what in OTHERS.items():
        if data.startswith(start):
            raise DataError(f"{name} is {what}, not a table; save it as CSV first")
    usual = "\t" if ".tsv" in path.suffixes else ","
    found = read_delimited(decoded(data, name, encoding), name, separator, usual)
    print_message(*found.remarks)
    return found.table


def _content(path: Path) -> bytes:
    """The bytes of a file; DataError if it cannot be read or is too large for the memory."""
    if path == STDIN:
        return sys.stdin.buffer.read()
    if path.suffix and not str(path).lower().endswith(READABLE):
        raise UsageError(f"{path}: the name must end in {', '.join(READABLE)}")
    if not path.exists():
        beside = [other.name for other in path.parent.glob("*")]
        raise DataError(f"there is no file {path}{suggestion(path.name, beside)}")
    if path.is_dir():
        raise DataError(f"{path} is a folder; name a file")
    if path.stat().st_size > _most_bytes():
        raise DataError(f"{path} is too large for the memory of this machine; use fewer rows")
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror})") from None


def _unpacked(data: bytes, name: str) -> bytes:
    """Content of a gzip file, or the bytes themselves."""
    if not data.startswith(PACKED):
        return data
    parts: list[bytes] = []
    try:
        with gzip.open(BytesIO(data)) as file:
            while part := file.read(STEP):
                parts.append(part)
                if len(parts) * STEP > _most_bytes():
                    raise DataError(f"{name} unpacks to more than the memory of this machine holds")
    except (OSError, EOFError, zlib.error):
        raise DataError(f"{name} is a damaged gzip file; get a fresh copy") from None
    return b"".join(parts)


def _most_bytes() -> float:
    memory = available_memory()
    return float("inf") if memory is None else memory / MEMORY_PER_BYTE


def _read_parquet(data: bytes, name: str) -> InputTable:
    try:
        frame = pl.read_parquet(BytesIO(data))
    except (pl.exceptions.PolarsError, OSError):
        raise DataError(
            f"{name} could not be read as PARQUET: it is damaged, or no Parquet file"
        ) from None
    return _table_in(frame, name)


def _read_excel(data: bytes, name: str) -> InputTable:
    """The first sheet of an .xlsx file, whose first row has the names of the columns."""
    _need("fastexcel", "reading")
    try:
        frame = pl.read_excel(BytesIO(data), engine="calamine")
    except Exception as cause:  # fastexcel's errors have no base of their own in older versions
        if isinstance(cause, pl.exceptions.NoDataError):
            raise DataError(f"{name} has no rows") from None
        raise DataError(
            f"{name} could not be read as Excel: it is damaged, or another kind of zip archive"
        ) from None
    return _table_in(frame, name)


def _need(package: str, what: str) -> None:
    """Raise ImportError with the command that installs a package for Excel files."""
    if find_spec(package) is None:
        raise ImportError(
            f"{what} Excel files needs {package}; install it with: pip install 'nngp[excel]'"
        )


def _table_in(frame: pl.DataFrame, name: str) -> InputTable:
    table = table_of(frame.rename(str.strip)) if frame.width else None
    if table is None or len(table) == 0:
        raise DataError(f"{name} has no rows")
    return table


def write_table(columns: Mapping[str, Sequence[object] | NDArray[Any]], path: Path | None) -> None:
    """Write columns to a file, or to stdout as CSV."""
    table = pl.DataFrame(columns)
    if path is None:
        print(table.write_csv(), end="")
        return
    kind = TABLES[path.suffix.lower()]
    with replaced(path) as part:
        if kind == "parquet":
            table.write_parquet(part)
        elif kind == "excel":
            _need("xlsxwriter", "writing")
            table.write_excel(part, autofit=True)
        else:
            table.write_csv(part, separator="\t" if kind == "tsv" else ",")


def check_writable(path: Path, kinds: Iterable[str] = (), create: bool = False) -> None:
    """Raise UsageError where a result could not be written, before any work. With `create`, a
    file is created in the folder: permissions do not say all (to root, or in /proc)."""
    try:
        writable_file(path)
    except OSError as error:
        raise UsageError(str(error)) from None
    if kinds and path.suffix.lower() not in kinds:
        raise UsageError(f"{path}: the name must end in {', '.join(kinds)}")
    if create:
        check_folder(path.parent)


def default_output(asked: Path | None, name: str) -> Path:
    """The file that was asked for, or else one of this name; a message says so if that replaces
    another file, which nobody asked for."""
    if asked is not None:
        return asked
    path = Path(name)
    if path.is_file():
        print_message(f"{path} is there already and will be replaced; -o names another file")
    return path


def picture_file(
    asked: Path | None, name: str, as_json: bool, kinds: Sequence[str] = PICTURES
) -> Path | None:
    """Where a picture goes, checked before any work: what was asked for, or `name`, which says
    what the picture shows. None with --json: a program that wants numbers asked for no picture."""
    if asked is None and as_json:
        return None
    path = default_output(asked, name)
    check_writable(path, kinds, create=True)
    if path.suffix in PICTURES:
        need_matplotlib()
    return path


def check_folder(folder: Path) -> None:
    """Raise UsageError unless a file can be created in the folder."""
    try:
        TemporaryFile(dir=folder).close()
    except OSError as error:
        raise UsageError(
            f"nothing can be written to {folder} ({error.strerror}); use another folder"
        ) from None


def create_folder(folder: Path) -> None:
    """Create a folder for figures and tables; UsageError where that cannot be."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; name a folder for figures and tables")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"the folder {folder} cannot be created ({error.strerror}); use another"
        ) from None
    check_folder(folder)


def check_not_input(output: Path, inputs: Iterable[Path], kind: str = "input") -> None:
    """Raise UsageError where the output would replace an input."""
    if output.exists() and any(path.exists() and output.samefile(path) for path in inputs):
        raise UsageError(f"the output {output} is the {kind}; choose another name")


def column_of(table: InputTable, name: str) -> Column:
    """A column by name; if there is none, the error has similar names."""
    names = table.names
    if name not in names:
        raise UsageError(
            f"there is no column '{name}'{suggestion(name, names)}; the columns are: "
            + ", ".join(names[:30])
            + (", ..." if len(names) > 30 else "")
        )
    return table.column(name)


def _ending(path: Path) -> str:
    return path.suffix.lower()
