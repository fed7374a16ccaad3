"""Finished runs as rows: from stores to CSV files, and back from these for the summary.

`tabular_regression.csv` and `tabular_classification.csv` have a row for each run: collection, set,
split, bound of training rows, method, scores (five digits), seconds of the fit, machine, version.
A run that failed has the message in `error` and no scores. A set with twins has its scores without
them in the columns "without_twins.*".
"""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nngp_paper.runs import Run, RunStore, flat

TASKS = ("regression", "classification")
CONFIG = ("collection", "set", "split", "rows", "method")
AFTER = ("machine", "error")
Record = dict[str, Any]


def merge(path: Path, parts: Iterable[Path]) -> None:
    """Copy the runs of stores into one; the first result of a run stays, also before a failure."""
    with RunStore(path) as store:
        for part in parts:
            print(f"{part}: {store.merge(part)} runs were new")
            with RunStore(part, create=False) as other:
                failed = other.runs(status="failed")
            for run in failed:
                (key,) = store.declare(run.experiment, [run.config])
                store.fail(key, run.error or "failed")


def export(path: Path, folder: Path) -> None:
    """Write the finished runs of a store as one CSV file for each task."""
    with RunStore(path, create=False) as store:
        runs = [run for run in store.runs() if run.status in ("done", "failed")]
    for task in TASKS:
        records = [as_record(run) for run in runs if task_of(run.config["collection"]) == task]
        records.sort(key=lambda r: (r["collection"], r["set"], r["method"], r["split"]))
        if records:
            write(folder / f"tabular_{task}.csv", records)


def task_of(collection: Any) -> str:
    """The task of a collection's sets."""
    return "classification" if collection == "uci_class" else "regression"


def as_record(run: Run) -> Record:
    """A row of a CSV file."""
    config = {name: run.config[name] for name in CONFIG}
    return {**config, **flat(run.result or {}), "machine": run.device, "error": run.error}


def write(path: Path, records: list[Record]) -> None:
    """Write records; numbers with five digits."""
    names = list(dict.fromkeys(name for record in records for name in record))
    names = [name for name in names if name not in AFTER] + list(AFTER)
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(names)
        table.writerows([_text(record.get(name)) for name in names] for record in records)
    print(f"{path.name}: {len(records)} runs")


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def read(folder: Path) -> dict[str, list[Record]]:
    """The records of both tasks, with numbers as numbers; missing values are left out."""
    found: dict[str, list[Record]] = {}
    for task in TASKS:
        path = folder / f"tabular_{task}.csv"
        if not path.exists():
            raise SystemExit(f"{path} is missing; make it by: tabular.py run, then export")
        with path.open(newline="", encoding="utf-8") as file:
            found[task] = [
                {name: _value(text) for name, text in row.items() if text}
                for row in csv.DictReader(file)
            ]
    return found


def _value(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text
