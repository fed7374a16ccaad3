"""Tables in files: CSV and Parquet, by the end of the name."""

import difflib
from pathlib import Path
from typing import Any

import polars as pl

from nngp.terminal.speech import DataError, UsageError

READERS = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet"}


def read_table(path: Path) -> pl.DataFrame:
    """The table in a file; refused with a sentence if there is none."""
    kind = _kind(path)
    if not path.exists():
        beside = [other.name for other in path.parent.glob("*")]
        raise DataError(f"there is no file {path}{_nearest(path.name, beside)}")
    try:
        if kind == "parquet":
            table = pl.read_parquet(path)
        else:
            separator = "\t" if kind == "tsv" else ","
            table = pl.read_csv(
                path,
                separator=separator,
                infer_schema_length=None,
                null_values=["", "NA", "N/A", "NaN", "nan", "null", "?"],
            )
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as cause:
        first = str(cause).strip().splitlines()
        raise DataError(
            f"{path} could not be read as {kind.upper()}: {first[0] if first else cause}"
        ) from None
    if table.height == 0 or table.width == 0:
        raise DataError(f"{path} has no rows")
    return table.rename({name: name.strip() for name in table.columns})


def write_table(columns: dict[str, Any], path: Path | None) -> None:
    """Columns to a file, or to stdout as CSV."""
    table = pl.DataFrame(columns)
    if path is None:
        print(table.write_csv(), end="")
        return
    kind = _kind(path)
    part = path.with_name(f".{path.name}.part")
    try:
        if kind == "parquet":
            table.write_parquet(part)
        else:
            table.write_csv(part, separator="\t" if kind == "tsv" else ",")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Before any work: a result that could not be written would be lost."""
    if not path.parent.is_dir():
        raise UsageError(f"the folder {path.parent} does not exist; create it first")
    if path.is_dir():
        raise UsageError(f"{path} is a folder; give a file name")


def column_of(table: pl.DataFrame, name: str) -> pl.Series:
    """A column by name; if it is not there, the nearest ones are listed."""
    if name not in table.columns:
        raise UsageError(
            f"there is no column '{name}'{_nearest(name, table.columns)}; the columns are: "
            + ", ".join(table.columns[:30])
            + (", ..." if table.width > 30 else "")
        )
    return table[name]


def _nearest(name: str, names: list[str]) -> str:
    lower = {other.lower(): other for other in names}
    near = difflib.get_close_matches(name.lower(), list(lower), n=3, cutoff=0.6)
    return f" (did you mean {' or '.join(repr(lower[n]) for n in near)}?)" if near else ""


def _kind(path: Path) -> str:
    kind = READERS.get(path.suffix.lower())
    if kind is None:
        raise UsageError(f"{path}: the name must end in {', '.join(READERS)}")
    return kind
