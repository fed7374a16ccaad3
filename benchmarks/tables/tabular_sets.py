"""The runs of the benchmark of tables: which sets, which splits, how many training rows.

- `uci`: nine sets with the splits of Hernández-Lobato and Adams (2015), all rows.
- `uci_more`: 31 sets with ten folds each, at most 2,000 training rows.
- `uci_class`: the 90 small sets of Arora et al. (2020) and 26 others, four splits each, at most
  5,000 training rows.

Rows past the bound are left out at random, the same ones for all methods. A twin is a test row
whose inputs and target also occur in the training part; scores without twins are kept beside the
others where there are any.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nngp_paper import datasets

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
Config = Mapping[str, Any]
MOST_ROWS = {"uci": None, "uci_more": 2_000, "uci_class": 5_000}


@dataclass(frozen=True)
class Fold:
    """One split of one set: what is trained on and what is predicted."""

    X: Array
    y: NDArray[Any]
    Xs: Array
    ys: NDArray[Any]
    twin: NDArray[np.bool_]
    classes: int  # 0 for regression


@cache  # all sets together have 100 MB
def table(collection: str, name: str, data: Path | None) -> datasets.Table:
    """A set by its name."""
    found = datasets.load(f"{collection}/{name}", data)
    assert isinstance(found, datasets.Table)
    return found


def names(collection: str) -> list[str]:
    """All sets of a collection."""
    prefix = f"{collection}/"
    return [name.removeprefix(prefix) for name in datasets.names() if name.startswith(prefix)]


def fold(config: Config, data: Path | None) -> Fold:
    """The data of a run."""
    found = table(config["collection"], config["set"], data)
    train, test = found.splits[config["split"]]
    train = subset(train, config["rows"], config["split"])
    classes = int(found.y.max()) + 1 if found.task == "classification" else 0
    X, y, Xs, ys = found.X[train], found.y[train], found.X[test], found.y[test]
    return Fold(X, y, Xs, ys, twins(X, y, Xs, ys), classes)


def subset(rows: Rows, most: int | None, seed: int) -> Rows:
    """At most so many rows, at random, in their order."""
    if most is None or len(rows) <= most:
        return rows
    kept = np.random.default_rng(seed).choice(len(rows), most, replace=False)
    return rows[np.sort(kept)]


def twins(X: Array, y: NDArray[Any], Xs: Array, ys: NDArray[Any]) -> NDArray[np.bool_]:
    """Which test rows occur, with their targets, among the training rows."""
    seen = {row.tobytes() for row in np.column_stack([X, y])}
    return np.array([row.tobytes() in seen for row in np.column_stack([Xs, ys])])


def configs(
    collections: Iterable[str],
    methods: dict[str, list[str]],
    data: Path | None,
    *,
    sets: Iterable[str] = (),
    splits: int | None = None,
    sizes: tuple[float, float] = (0, np.inf),
    bounded: bool = True,
    longest: float = np.inf,
    short_first: bool = False,
) -> list[Config]:
    """Runs of `methods` (names for "regression" and "classification"), costly ones first or last.

    `splits` bounds the splits of each set, `sizes` the training rows (from, below); without
    `bounded` every set is trained on whole. Runs that are estimated to take more seconds than
    `longest` are left out.
    """
    wanted, listed = set(sets), []
    for collection in collections:
        most = MOST_ROWS[collection] if bounded else None
        for name in names(collection):
            if wanted and name not in wanted and f"{collection}/{name}" not in wanted:
                continue
            found = table(collection, name, data)
            rows = min(len(found.splits[0][0]), most or len(found.y))
            if not sizes[0] <= rows < sizes[1]:
                continue
            work = rows * found.X.shape[1] * _outputs(found)
            for split in range(min(len(found.splits), splits or len(found.splits))):
                for method in methods[found.task]:
                    run = {"collection": collection, "set": name, "split": split}
                    listed.append(
                        (_cost(method, rows, work), {**run, "method": method, "rows": most})
                    )
    listed = [item for item in listed if item[0] <= longest]
    listed.sort(key=lambda item: item[0] if short_first else -item[0])
    return [config for _, config in listed]


def _outputs(found: datasets.Table) -> int:
    classes = len(np.unique(found.y)) if found.task == "classification" else 1
    return classes if classes > 2 else 1


def _cost(method: str, rows: int, work: float) -> float:
    """About how long a run takes, in seconds: good enough to begin with the long ones."""
    if method.startswith("nngp"):
        return 3 + rows / 300 + (rows / 3_000) ** 3
    by_name = {
        "catboost": 1 + 3e-5 * work,
        "gradient boosting": 0.3 + 2e-5 * work,
        "hist boosting": 0.3 + 1e-5 * work,
        "lightgbm": 0.1 + 1e-6 * work,
        "gpr": 0.3 + 10 * min(1.0, rows / 800) ** 2 + (min(rows, 10_000) / 3_000) ** 3,
        "svc": 0.1 + (rows / 2_000) ** 2,
    }
    return by_name.get(method, 0.2)
