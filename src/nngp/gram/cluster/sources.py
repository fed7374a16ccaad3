"""Where rows come from: an array here, a file that all workers see, or a dask array.

A source says its shape and gives handles of blocks of rows. What a handle stands for is computed
by a task that can be done again (a file is read again, an array travels with its task), so that no
row is lost with the worker that held it.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nngp._digest import digest
from nngp.gram.cluster.task import Task, own_copy
from nngp.gram.inputs import as_inputs

LARGEST = 4e9  # bytes of an array that may travel with tasks, which the scheduler keeps


def source_of(cluster: Any, X: Any, name: str) -> Any:
    """The source that suits X."""
    if isinstance(X, str | os.PathLike):
        return File.of(cluster, Path(X), name)
    if hasattr(X, "to_delayed") and hasattr(X, "rechunk"):
        return DaskArray.of(cluster, X, name)
    rows = Rows(cluster, as_inputs(X, name))
    if rows.X.nbytes > LARGEST and cluster.store is None:
        raise MemoryError(
            f"{name} has {rows.X.nbytes / 1e9:.1f} GB, too much to travel with the tasks; save it "
            "with numpy.save where all workers can read it and pass the path, or use store=FOLDER"
        )
    return rows


def sent(cluster: Any, X: Any, *, keep: bool = False) -> Any:
    """Rows that travel with a task; with `keep` they go through the store, if there is one."""
    X = np.ascontiguousarray(X)
    return cluster.submit(Task(own_copy, (X,), digest("rows", X)), keep=keep)


@dataclass
class Rows:
    """An array on the client."""

    cluster: Any
    X: Any

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape

    def rows(self, rows: slice) -> Any:
        return sent(self.cluster, self.X[rows], keep=True)


@dataclass
class File:
    """A .npy file or a zarr array; `stamp` is its size and time, to notice a change."""

    cluster: Any
    path: str
    shape: tuple[int, int]
    stamp: tuple[int, int]

    @classmethod
    def of(cls, cluster: Any, path: Path, name: str) -> "File":
        if path.suffix not in (".npy", ".zarr"):
            raise ValueError(f"{name} must be an array, or the path of a .npy or .zarr, got {path}")
        where = str(path.absolute())
        shape, stamp, problem = cluster.fetch(cluster.submit(Task(seen, (where,), "")))
        if problem:
            raise ValueError(f"{name} cannot be read by the workers: {problem}")
        if 0 in shape:
            raise ValueError(f"{name} is empty: {where} has the shape {shape}")
        if len(shape) not in (1, 2):
            raise ValueError(f"{name} must be two-dimensional (points, features), got {shape}")
        return cls(cluster, where, (shape[0], shape[1] if len(shape) == 2 else 1), stamp)

    def rows(self, rows: slice) -> Any:
        return self.cluster.submit(
            Task(read_rows, (self.path, rows.start, rows.stop, self.stamp), "")
        )


@dataclass
class DaskArray:
    """A dask array, whose chunks become blocks of rows on the workers."""

    cluster: Any
    X: Any
    shape: tuple[int, int]

    @classmethod
    def of(cls, cluster: Any, X: Any, name: str) -> "DaskArray":
        if X.ndim == 1:
            X = X[:, None]
        if 0 in X.shape:
            raise ValueError(f"{name} is empty: a dask array of the shape {X.shape}")
        if X.ndim != 2:
            raise ValueError(f"{name} must be two-dimensional (points, features), got {X.shape}")
        if not all(np.isfinite(size) for size in X.shape):
            raise ValueError(
                f"{name} must be a dask array (points, features) of known shape, got {X.shape}; "
                f"use {name}.compute_chunk_sizes()"
            )
        return cls(cluster, X, (int(X.shape[0]), int(X.shape[1])))

    def rows(self, rows: slice) -> Any:
        block = self.X[rows].rechunk((rows.stop - rows.start, self.shape[1]))
        return self.cluster.compute(block.to_delayed()[0, 0])


def seen(path: str) -> tuple[tuple[int, ...], tuple[int, int], str]:
    """On a worker: shape and stamp of a file, or why there are none."""
    try:
        return tuple(_opened(path).shape), _stamp(path), ""
    except (OSError, ValueError, ImportError, KeyError, EOFError) as error:
        return (), (0, 0), f"{path}: {error}"


def read_rows(path: str, start: int, stop: int, stamp: tuple[int, int]) -> Any:
    """On a worker: some rows of a file that has not changed meanwhile."""
    if _stamp(path) != stamp:
        raise ValueError(
            f"{path} was changed while it was in use; leave it alone, and condition again"
        )
    return np.array(_opened(path)[start:stop]).reshape(stop - start, -1)


def _opened(path: str) -> Any:
    if path.endswith(".npy"):
        return np.load(path, mmap_mode="r", allow_pickle=False)
    try:
        import zarr
    except ImportError:
        raise ImportError("reading .zarr needs zarr: pip install 'nngp[distributed]'") from None
    found = zarr.open(path, mode="r")
    if not hasattr(found, "shape"):
        raise ValueError("it is a group of arrays; pass the path of one of them")
    return found


def _stamp(path: str) -> tuple[int, int]:
    files = [path] if os.path.isfile(path) else _files_below(path)
    facts = [os.stat(file) for file in files]
    return sum(f.st_size for f in facts), max((f.st_mtime_ns for f in facts), default=0)


def _files_below(folder: str) -> list[str]:
    return [os.path.join(where, name) for where, _, names in os.walk(folder) for name in names]
