"""A UCI table, read from its .npz file.

There is no one home with published checksums for these tables in this form, so they are read from
a folder and never downloaded.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nngp.datasets.integrity import arrays, reading
from nngp.datasets.uci import Collection, Task

Rows = NDArray[np.int64]
Splits = list[tuple[Rows, Rows]]
Stored = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Table:
    """Inputs X (n, d) in float64, not standardised here; y in float64, or int64 labels from 0;
    splits: pairs of row numbers to train on and to test on."""

    name: str
    task: Task
    X: NDArray[np.float64]
    y: NDArray[Any]
    splits: Splits


def _listed(stored: Stored, n: int) -> Splits:
    every = np.arange(n)
    return [(np.setdiff1d(every, test), _rows(test)) for test in stored["test"]]


def _folded(stored: Stored, n: int) -> Splits:
    fold = stored["fold"]
    if fold.shape != (n,):
        raise ValueError(f"fold has shape {fold.shape}, expected {(n,)}")
    return [(np.flatnonzero(fold != s), np.flatnonzero(fold == s)) for s in np.unique(fold)]


def _paired(stored: Stored, n: int) -> Splits:
    pairs = zip(stored["cv_train"], stored["cv_test"], strict=True)
    return [(_rows(train), _rows(test)) for train, test in pairs]


def _rows(numbers: NDArray[Any]) -> Rows:
    if numbers.dtype.kind not in "iu":
        raise ValueError(f"row numbers are {numbers.dtype}, expected whole numbers")
    return numbers.astype(np.int64)


SPLITS: dict[str, Callable[[Stored, int], Splits]] = {
    "uci": _listed,
    "uci_class": _paired,
    "uci_more": _folded,
}


def read_table(collection: Collection, name: str, path: Path) -> Table:
    """The table in a file, with all that can be checked about it checked."""
    stored = arrays(path, ("X", "y", *collection.keys))
    with reading(path):
        X, y = _values(stored["X"], stored["y"], collection.task)
        splits = SPLITS[collection.prefix](stored, len(y))
        for train, test in splits:
            _check_split(train, test, len(y))
    return Table(name, collection.task, X, y, splits)


def _values(X: NDArray[Any], y: NDArray[Any], task: Task) -> tuple[NDArray[np.float64], Any]:
    if X.ndim != 2 or y.shape != (len(X),):
        raise ValueError(f"X has shape {X.shape} and y {y.shape}, expected (n, d) and (n,)")
    kinds = "iu" if task == "classification" else "fiu"
    if X.dtype.kind not in "fiu" or y.dtype.kind not in kinds:
        wanted = "whole numbers from 0" if task == "classification" else "numbers"
        raise ValueError(f"X holds {X.dtype} and y {y.dtype}, expected numbers and {wanted}")
    if not (np.isfinite(X).all() and np.isfinite(y).all()):
        raise ValueError("it holds NaN or infinity")
    if task == "classification" and y.min(initial=0) < 0:
        raise ValueError(f"a label is {y.min()}, but labels count from 0")
    return X.astype(np.float64), y.astype(np.int64 if task == "classification" else np.float64)


def _check_split(train: Rows, test: Rows, n: int) -> None:
    both = np.concatenate([train, test])
    outside = both[(both < 0) | (both >= n)]
    if len(outside):
        raise ValueError(f"a split names row {outside[0]}, but there are rows 0 to {n - 1}")
    if not len(train) or not len(test) or len(np.unique(both)) != len(both):
        raise ValueError("a split has an empty part, or a row that is in both parts or there twice")
