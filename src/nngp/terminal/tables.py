"""Tables in files: CSV and Parquet, by the end of the name."""

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import polars as pl

from nngp._files import replaced
from nngp.terminal.speech import DataError, UsageError, nearest, say

READERS = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet"}


def read_table(path: Path, texts: Iterable[str] = ()) -> pl.DataFrame:
    """The table in a file; refused with a sentence if there is none. Columns in `texts` are read
    as text, whatever they look like."""
    kind = _kind(path)
    if not path.exists():
        beside = [other.name for other in path.parent.glob("*")]
        raise DataError(f"there is no file {path}{nearest(path.name, beside)}")
    try:
        table = (
            pl.read_parquet(path, glob=False) if kind == "parquet" else _read_csv(path, kind, texts)
        )
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as cause:
        first = str(cause).strip().splitlines()
        raise DataError(
            f"{path} could not be read as {kind.upper()}: {first[0] if first else cause}"
        ) from None
    if table.height == 0 or table.width == 0:
        raise DataError(f"{path} has no rows")
    names = [name.strip() for name in table.columns]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise DataError(f"{path} has more than one column '{twice[0]}'; rename one of them")
    table.columns = names
    return table


def _read_csv(path: Path, kind: str, texts: Iterable[str]) -> pl.DataFrame:
    with path.open(encoding="utf-8", errors="replace") as file:
        header = file.readline()
    separator = "\t" if kind == "tsv" else ","
    if separator not in header and ";" in header:
        separator = ";"
        say(f"{path} is separated by semicolons")
    return pl.read_csv(
        path,
        separator=separator,
        decimal_comma=separator == ";",
        infer_schema_length=None,
        try_parse_dates=True,
        glob=False,
        null_values=["", "NA", "N/A", "NaN", "nan", "null", "?"],
        schema_overrides=dict.fromkeys(texts, pl.String),
    )


def write_table(columns: dict[str, Any], path: Path | None) -> None:
    """Columns to a file, or to stdout as CSV."""
    table = pl.DataFrame(columns)
    if path is None:
        print(table.write_csv(), end="")
        return
    kind = _kind(path)
    with replaced(path) as part:
        if kind == "parquet":
            table.write_parquet(part)
        else:
            table.write_csv(part, separator="\t" if kind == "tsv" else ",")


PICTURES = (".svg", ".png", ".pdf")


def check_writable(path: Path, kinds: tuple[str, ...] = ()) -> None:
    """Before any work: a result that could not be written would be lost."""
    if not path.parent.is_dir():
        raise UsageError(f"the folder {path.parent} does not exist; create it first")
    if path.is_dir():
        raise UsageError(f"{path} is a folder; give a file name")
    if kinds and path.suffix.lower() not in kinds:
        raise UsageError(f"{path}: the name must end in {', '.join(kinds)}")


def try_writing(folder: Path) -> None:
    """Permissions do not say all (to root, or in /proc): the way to know is to try."""
    try:
        TemporaryFile(dir=folder).close()
    except OSError as error:
        raise UsageError(
            f"nothing can be written to {folder} ({error.strerror}); use another folder"
        ) from None


def column_of(table: pl.DataFrame, name: str) -> pl.Series:
    """A column by name; if it is not there, the nearest ones are listed."""
    if name not in table.columns:
        raise UsageError(
            f"there is no column '{name}'{nearest(name, table.columns)}; the columns are: "
            + ", ".join(table.columns[:30])
            + (", ..." if table.width > 30 else "")
        )
    return table[name]


def _kind(path: Path) -> str:
    kind = READERS.get(path.suffix.lower())
    if kind is None:
        raise UsageError(f"{path}: the name must end in {', '.join(READERS)}")
    return kind
