"""Runs in other files: tables as CSV, and stores compressed with gzip to a sixth of the size.

A row of a table is a run, a column a field of it: configurations and results by dotted names
("config.optimizer.rate", "result.accuracy"), versions and lists as JSON.
"""

import csv
import gzip
import json
import math
import os
import shutil
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from nngp_paper.errors import RunStoreError
from nngp_paper.files import replaced
from nngp_paper.runs.key import Json, flat
from nngp_paper.runs.store import Run, RunStore

AFTER = ("seconds", "device", "jitter", "error", "versions", "started", "finished")
Row = dict[str, Json]


def as_row(run: Run, lists: bool = False) -> Row:
    """One run as a row: values by the names of the columns. Lists in results, such as learning
    curves, are left out unless `lists`.

    Examples
    --------
    >>> from nngp_paper.runs import RunStore, as_row
    >>> store = RunStore("runs.db")
    >>> (key,) = store.declare("width", [{"width": 64}])
    >>> done = store.finish(key, {"loss": 0.5, "curve": [2.0, 0.5]}, seconds=1.0)
    >>> row = as_row(store.get(key))
    >>> row["config.width"], row["result.loss"], "result.curve" in row
    (64, 0.5, False)
    """
    result = flat(run.result or {})
    kept = {name: value for name, value in result.items() if lists or not isinstance(value, list)}
    return {
        **{name: getattr(run, name) for name in ("key", "experiment", "status")},
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
    inner = [name for part in ("config.", "result.") for name in names if name.startswith(part)]
    return ["key", "experiment", "status", *inner, *AFTER]


def export_rows(rows: list[Row], path: str | os.PathLike[str]) -> int:
    """Write rows to a CSV file, which is there as a whole or not at all; returns their number.

    Examples
    --------
    >>> from nngp_paper.runs import export_rows
    >>> path = "rows.csv"
    >>> export_rows([{"key": "a", "config.width": 64}, {"key": "b", "config.width": 128}], path)
    2
    """
    names = column_names(rows)
    with replaced(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows([_as_text(row.get(name)) for name in names] for row in rows)
    return len(rows)


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """The file of a store: `path` itself, or a temporary copy of one that ends in .gz.

    Examples
    --------
    >>> from nngp_paper.runs import RunStore, pack, unpacked
    >>> store = RunStore("runs.db")
    >>> (key,) = store.declare("width", [{"width": 64}])
    >>> done = store.finish(key, {"loss": 0.5}, seconds=1.0)
    >>> published = store.path.with_suffix(".db.gz")
    >>> pack([store.path], published)
    1
    >>> with unpacked(published) as path:
    ...     RunStore(path, create=False).get(key).result
    {'loss': 0.5}
    """
    if path.suffix != ".gz":
        yield path
        return
    if not path.exists():
        raise FileNotFoundError(f"there is no store {path}; check the name")
    with TemporaryDirectory() as folder:
        copy = Path(folder) / path.stem
        try:
            with gzip.open(path, "rb") as packed, copy.open("wb") as file:
                shutil.copyfileobj(packed, file)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise RunStoreError(
                f"{path} is damaged, or not packed with gzip ({error}); get it again"
            ) from None
        try:
            yield copy
        except RunStoreError as error:  # the user knows the file, not the copy
            raise RunStoreError(str(error).replace(str(copy), str(path))) from None


@contextmanager
def merged(stores: Sequence[Path]) -> Iterator[RunStore]:
    """One store, packed or not; of several the finished runs, in a temporary store.

    Examples
    --------
    >>> from pathlib import Path
    >>> from nngp_paper.runs import RunStore, merged
    >>> paths = [Path("first.db"), Path("second.db")]
    >>> for width, path in enumerate(paths):
    ...     store = RunStore(path)
    ...     (key,) = store.declare("width", [{"width": width}])
    ...     done = store.finish(key, {"loss": 0.5}, seconds=1.0)
    >>> with merged(paths) as store:
    ...     len(store.runs())
    2
    """
    if len(stores) == 1:
        with unpacked(stores[0]) as file, RunStore(file, create=False) as store:
            yield store
        return
    with TemporaryDirectory() as folder, RunStore(Path(folder) / "runs.db") as store:
        _merge(stores, store)
        yield store


def pack(stores: Sequence[Path], target: Path) -> int:
    """Write the finished runs of some stores to one compressed file; returns how many.

    Examples
    --------
    >>> from nngp_paper.runs import RunStore, pack
    >>> store = RunStore("runs.db")
    >>> (key,) = store.declare("width", [{"width": 64}])
    >>> done = store.finish(key, {"loss": 0.5}, seconds=1.0)
    >>> pack([store.path], store.path.with_suffix(".db.gz"))
    1
    """
    with TemporaryDirectory() as folder:
        together = Path(folder) / "runs.db"
        with RunStore(together) as store:
            _merge(stores, store)
            done = store.counts()["done"]
        with (
            replaced(target) as part,
            part.open("wb") as raw,
            gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed,  # without name and time
            together.open("rb") as file,
        ):
            shutil.copyfileobj(file, packed)
    return done


def _merge(stores: Sequence[Path], target: RunStore) -> None:
    for path in stores:
        with unpacked(path) as file:
            target.merge(file)


def _as_text(value: Json) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value)  # as readers of CSV know it
    return json.dumps(value)
