"""Runs as tables in files: CSV with the standard library, Parquet with polars.

A row is a run, a column a field of it: configurations and results by dotted names
("config.optimizer.rate", "result.accuracy"), versions and lists as JSON. A column of numbers is one
of numbers in Parquet; values of different kinds in one column become texts.
"""

import csv
import json
import math
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from nngp_paper.files import replaced
from nngp_paper.runs.key import Json
from nngp_paper.runs.run import Run, flat

AFTER = ("seconds", "device", "jitter", "error", "versions", "started", "finished")
NUMBERS = ("seconds", "jitter")  # even where all are missing
Row = dict[str, Json]
Columns = dict[str, list[Json]]


def export_runs(runs: Iterable[Run], path: str | os.PathLike[str], lists: bool = False) -> int:
    """Write runs to a .csv or .parquet file, which is there as a whole or not at all; lists in
    results, such as learning curves, are left out unless `lists`. Returns the number of rows.

    Examples
    --------
    >>> import os, tempfile
    >>> from nngp_paper.runs import RunStore, export_runs
    >>> store = RunStore(os.path.join(tempfile.mkdtemp(), "runs.db"))
    >>> (key,) = store.declare("width", [{"width": 64}])
    >>> done = store.finish(key, {"loss": 0.5, "curve": [2.0, 0.5]}, seconds=1.0)
    >>> path = store.path.with_suffix(".csv")
    >>> export_runs(store.runs(), path)
    1
    >>> path.read_text().splitlines()[0][:46]
    'key,experiment,status,config.width,result.loss'
    >>> store.close()
    """
    return export_rows([as_row(run, lists) for run in runs], path)


def export_rows(rows: list[Row], path: str | os.PathLike[str]) -> int:
    """Write rows to a .csv or .parquet file; returns their number.

    Examples
    --------
    >>> import os, tempfile
    >>> from nngp_paper.runs import export_rows
    >>> path = os.path.join(tempfile.mkdtemp(), "rows.csv")
    >>> export_rows([{"key": "a", "config.width": 64}, {"key": "b", "config.width": 128}], path)
    2
    """
    write = _writer(Path(path))
    columns = {name: [row.get(name) for row in rows] for name in column_names(rows)}
    with replaced(path) as part:
        write(columns, part)
    return len(rows)


def as_row(run: Run, lists: bool = False) -> Row:
    """One run as a row: values by the names of the columns.

    Examples
    --------
    >>> import os, tempfile
    >>> from nngp_paper.runs import RunStore, as_row
    >>> store = RunStore(os.path.join(tempfile.mkdtemp(), "runs.db"))
    >>> (key,) = store.declare("width", [{"width": 64}])
    >>> done = store.finish(key, {"loss": 0.5, "curve": [2.0, 0.5]}, seconds=1.0)
    >>> row = as_row(store.get(key))
    >>> row["config.width"], row["result.loss"], "result.curve" in row
    (64, 0.5, False)
    >>> store.close()
    """
    result = flat(run.result or {})
    kept = {name: value for name, value in result.items() if lists or not isinstance(value, list)}
    return {
        "key": run.key,
        "experiment": run.experiment,
        "status": run.status,
        **{f"config.{name}": value for name, value in flat(run.config).items()},
        **{f"result.{name}": value for name, value in kept.items()},
        **{name: getattr(run, name) for name in AFTER},
    }


def column_names(rows: list[Row]) -> list[str]:
    """All columns of some rows, configurations before results, in the order of appearance.

    Examples
    --------
    >>> from nngp_paper.runs import column_names
    >>> column_names([{"result.loss": 0.5, "config.width": 64}])[:5]
    ['key', 'experiment', 'status', 'config.width', 'result.loss']
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    first = ["key", "experiment", "status"]
    inner = [name for part in ("config.", "result.") for name in names if name.startswith(part)]
    return [*first, *inner, *AFTER]


def _writer(path: Path) -> Callable[[Columns, Path], None]:
    kind = path.suffix.lower()
    if kind == ".csv":
        return _write_csv
    if kind != ".parquet":
        raise ValueError(f"{path}: the name must end in .csv or .parquet")
    try:
        import polars  # noqa: F401
    except ImportError:
        raise ImportError(
            "Parquet needs polars: pip install 'nngp[cli]'; or export to .csv"
        ) from None
    return _write_parquet


def _write_csv(columns: Columns, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(
            [_as_text(value) for value in row] for row in zip(*columns.values(), strict=True)
        )


def _write_parquet(columns: Columns, path: Path) -> None:
    import polars as pl

    frame = pl.DataFrame([_series(name, values) for name, values in columns.items()])
    frame.write_parquet(path)


def _series(name: str, values: list[Json]) -> Any:
    import polars as pl

    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pl.Series(name, values, pl.Boolean)
    if kinds == {int} and _fit(values, 2**63):
        return pl.Series(name, values, pl.Int64)
    if name in NUMBERS or (kinds and kinds <= {int, float} and _fit(values, 2**53)):
        return pl.Series(name, values, pl.Float64, strict=False)
    texts = [None if value is None else _as_text(value) for value in values]
    return pl.Series(name, texts, pl.String)


def _fit(values: list[Json], limit: int) -> bool:
    """Whether all whole numbers are within the range that a column holds exactly."""
    return all(-limit <= value < limit for value in values if type(value) is int)


def _as_text(value: Json) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value)  # as readers of CSV know it
    return json.dumps(value)
