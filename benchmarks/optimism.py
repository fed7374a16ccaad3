"""What estimators say of themselves, and what they do on new rows: estimated against true scores.

    python benchmarks/optimism.py run --data DIR --label after
    python benchmarks/optimism.py table

`run` fits the default estimators on random parts of real tables and compares their own estimate, of
rows left out, with the score on rows that they never saw. Classification: every set of
DIR/uci_classification with 100 to 1,000 rows, three quarters of them for training; log loss and
accuracy, beside the loss of predicting the frequencies of the classes. Regression: 60, 150 and 400
rows of the tables of DIR/uci_regression_more that have at least 100 more; R² and the coverage of
95% intervals, with at most 2,000 new rows. Results are added to results/optimism.json under a
label: that of the code before a change is measured by running this file with PYTHONPATH set to the
older sources. `--only` measures one kind, and keeps the other of that label. `table` prints the
averages of each label.
"""

import argparse
import json
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from large import command, machine

import nngp

RECORD = Path(__file__).parent / "results" / "optimism.json"
ROWS, NEW_ROWS, MOST_NEW = (60, 150, 400), 100, 2000
Row = dict[str, Any]


def read(path: Path) -> tuple[Any, Any]:
    with np.load(path) as table:
        return table["X"].astype(float), table["y"]


def classify(split: int, options: Row, path: Path) -> Row:
    """Scores of a classifier on one split of a set."""
    X, y = read(path)
    order, count = np.random.default_rng(split).permutation(len(y)), 3 * len(y) // 4
    train, test = order[:count], order[count:]
    model = nngp.NNGPClassifier(**options).fit(X[train], y[train])
    known = np.isin(y[test], model.classes_)  # a class without training rows has no probability
    right = float((model.predict(X[test]) == y[test]).mean())
    test = test[known]
    column = np.searchsorted(model.classes_, y[test])
    probability = model.predict_proba(X[test])[np.arange(len(test)), column]
    shares = np.array([(y[train] == label).mean() for label in model.classes_])
    estimate = getattr(
        model, "loss_estimate_", None
    )  # older versions have no estimate of the whole
    if estimate is None:
        estimate = min(model.left_out_loss_.values())
    return {
        "set": path.stem,
        "split": split,
        "rows": count,
        "estimated": float(estimate),
        "true": float(-np.log(np.maximum(probability, 1e-12)).mean()),
        "frequencies": float(-np.log(shares[column]).mean()),
        "accuracy": right,
    }


def regress(split: int, options: Row, rows: int, path: Path) -> Row:
    """Scores of a regressor that is given some rows of a table."""
    X, y = read(path)
    order = np.random.default_rng(split).permutation(len(y))
    train, test = order[:rows], order[rows : rows + MOST_NEW]
    model = nngp.NNGPRegressor(**options).fit(X[train], y[train])
    own = model.left_out().mean()[:, 0]
    low, high = model.predict_interval(X[test], 0.95)
    covered = (np.asarray(low) <= y[test]) & (y[test] <= np.asarray(high))
    return {
        "set": path.stem,
        "split": split,
        "rows": rows,
        "estimated": r_squared(y[train], own),
        "true": r_squared(y[test], model.predict(X[test])),
        "covered": float(covered.mean()),
    }


def r_squared(y: Any, predicted: Any) -> float:
    return 1.0 - float(np.square(y - predicted).mean() / np.var(y))


def jobs(data: Path, splits: int, options: Row) -> list[Any]:
    """Calls without arguments, one for each fit."""
    out: list[Any] = []
    for path in sorted((data / "uci_classification").glob("*.npz")):
        if 100 <= len(read(path)[1]) <= 1000:
            out += [partial(classify, split, options, path) for split in range(splits)]
    for path in sorted((data / "uci_regression_more").glob("*.npz")):
        count = len(read(path)[1])
        for rows in ROWS:
            if count >= rows + NEW_ROWS:
                out += [partial(regress, split, options, rows, path) for split in range(splits)]
    return out


def carry_out(job: Any) -> Row:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: Row = job()
    return found


def averages(rows: list[Row]) -> Row:
    """Of all rows of one kind; R² of a table is at least -1, so that one does not decide."""
    keys = [key for key in rows[0] if key not in ("set", "split", "rows")]
    out = {key: float(np.mean([max(row[key], -1.0) for row in rows])) for key in keys}
    if "frequencies" in out:
        worse = [row for row in rows if row["true"] > row["frequencies"]]
        out["worse than frequencies"] = len(worse)
    return out


def show(record: Row) -> None:
    for label, found in record.items():
        for kind, values in found["averages"].items():
            numbers = ", ".join(f"{name} {value:.3f}" for name, value in values.items())
            print(f"{label:>8}  {kind:<16}  {numbers}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--label", default="after")
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--only", choices=("classification", "regression"))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--options", default="{}", help="parameters of the estimators, as JSON")
    parser.add_argument("--record", type=Path, default=RECORD)
    args = parser.parse_args()
    record: Row = json.loads(args.record.read_text()) if args.record.exists() else {}
    if args.what == "run":
        todo = jobs(args.data, args.splits, json.loads(args.options))
        wanted: dict[str, list[Any]] = {"classification": [classify], "regression": [regress]}
        functions = wanted.get(args.only, [classify, regress])
        with ProcessPoolExecutor(args.processes) as pool:
            rows = list(pool.map(carry_out, [job for job in todo if job.func in functions]))
        if args.only:  # what was measured of the other kind stays
            measured = "accuracy" if args.only == "classification" else "covered"
            rows += [row for row in record[args.label]["rows"] if measured not in row]
        kinds = {"classification": [row for row in rows if "accuracy" in row]}
        for count in ROWS:
            mine = [row for row in rows if "covered" in row and row["rows"] == count]
            kinds[f"regression {count}"] = mine
        record[args.label] = {
            "command": command(),
            "machine": machine("cpu"),
            "averages": {kind: averages(found) for kind, found in kinds.items() if found},
            "rows": rows,
        }
        args.record.write_text(json.dumps(record, indent=1) + "\n")
    show(record)


if __name__ == "__main__":
    main()
