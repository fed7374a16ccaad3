"""Tables in CSV and Parquet files, by the end of the name, and checks of files before any work."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import polars as pl
from numpy.typing import NDArray

from nngp._files import replaced
from nngp.terminal.output import DataError, UsageError, print_message, suggestion

TABLES = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet"}
PICTURES = (".svg", ".png", ".pdf")


def read_table(path: Path, texts: Iterable[str] = ()) -> pl.DataFrame:
    """Read the table in a file, the columns in `texts` as text, whatever they look like."""
    kind = _kind(path)
    if not path.exists():
        beside = [other.name for other in path.parent.glob("*")]
        raise DataError(f"there is no file {path}{suggestion(path.name, beside)}")
    if path.is_dir():
        raise DataError(f"{path} is a folder; name a file")
    try:
        parquet = kind == "parquet"
        table = pl.read_parquet(path, glob=False) if parquet else _read_csv(path, kind, texts)
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
        print_message(f"{path} is separated by semicolons")
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


def write_table(columns: Mapping[str, Sequence[object] | NDArray[Any]], path: Path | None) -> None:
    """Write columns to a file, or to stdout as CSV."""
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


def check_writable(path: Path, kinds: Iterable[str] = (), create: bool = False) -> None:
    """Raise UsageError where a result could not be written, before any work. With `create`, a
    file is created in the folder: permissions do not say all (to root, or in /proc)."""
    if not path.parent.is_dir():
        raise UsageError(f"the folder {path.parent} does not exist; create it first")
    if path.is_dir():
        raise UsageError(f"{path} is a folder; give a file name")
    if kinds and path.suffix.lower() not in kinds:
        raise UsageError(f"{path}: the name must end in {', '.join(kinds)}")
    if create:
        check_folder(path.parent)


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


def column_of(table: pl.DataFrame, name: str) -> pl.Series:
    """A column by name; if there is none, the error has similar names."""
    if name not in table.columns:
        raise UsageError(
            f"there is no column '{name}'{suggestion(name, table.columns)}; the columns are: "
            + ", ".join(table.columns[:30])
            + (", ..." if table.width > 30 else "")
        )
    return table[name]


def _kind(path: Path) -> str:
    kind = TABLES.get(path.suffix.lower())
    if kind is None:
        raise UsageError(f"{path}: the name must end in {', '.join(TABLES)}")
    return kind
