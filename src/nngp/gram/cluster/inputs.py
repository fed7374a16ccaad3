"""Inputs in blocks of rows on a cluster: workers load their own rows.

The client knows x·x/d of every input and a digest of every block of rows, no more. Rows come from
an array on the client, a file that all workers see, or a dask array: a source has a shape and gives
handles of blocks of rows. A task that can be repeated makes each block (a file is read again, an
array travels with its task), so no row is lost with a worker.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from nngp._arrays import Array, Index
from nngp._digest import digest
from nngp._files import open_npy
from nngp.gram.cluster.task import Cluster, RowsHandle, Task, own_copy
from nngp.gram.inputs import Inputs, as_inputs, input_vars

MAX_SENT_BYTES = 4e9  # bytes of an array that may travel with tasks, which the scheduler keeps


class RowsSource(Protocol):
    """Rows of known shape."""

    @property
    def shape(self) -> tuple[int, int]: ...

    def rows(self, rows: slice) -> RowsHandle:
        """The handle of a block of rows."""


def rows_source(cluster: Cluster, X: Any, name: str) -> RowsSource:
    """The source of the rows of X."""
    if isinstance(X, str | os.PathLike):
        return FileRows.of(cluster, Path(X), name)
    if hasattr(X, "to_delayed") and hasattr(X, "rechunk"):
        return DaskRows.of(cluster, X, name)
    rows = ArrayRows(cluster, as_inputs(X, name))
    if rows.X.nbytes > MAX_SENT_BYTES and cluster.store is None:
        raise MemoryError(
            f"{name} has {rows.X.nbytes / 1e9:.1f} GB, too much to travel with the tasks; save it "
            "with numpy.save where all workers can read it and pass the path, or use store=FOLDER"
        )
    return rows


def send_rows(cluster: Cluster, X: Array, *, keep: bool = False) -> RowsHandle:
    """Rows that travel with a task; with `keep` they go through the store, if there is one."""
    X = np.ascontiguousarray(X)
    return cluster.submit(Task(own_copy, (X,), digest("rows", X)), keep=keep)


@dataclass
class ArrayRows:
    """An array on the client."""

    cluster: Cluster
    X: Array

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape

    def rows(self, rows: slice) -> RowsHandle:
        return send_rows(self.cluster, self.X[rows], keep=True)


@dataclass
class FileRows:
    """A .npy file or a zarr array; `stamp` is its size and time, to notice a change."""

    cluster: Cluster
    path: str
    shape: tuple[int, int]
    stamp: tuple[int, int]

    @classmethod
    def of(cls, cluster: Cluster, path: Path, name: str) -> "FileRows":
        if path.suffix not in (".npy", ".zarr"):
            raise ValueError(f"{name} must be an array, or the path of a .npy or .zarr, got {path}")
        where = str(path.absolute())
        shape, stamp, problem = cluster.fetch(cluster.submit(Task(inspect_file, (where,), "")))
        if problem:
            raise ValueError(f"{name} cannot be read by the workers: {problem}")
        if 0 in shape:
            raise ValueError(f"{name} is empty: {where} has the shape {shape}")
        if len(shape) not in (1, 2):
            raise ValueError(f"{name} must be two-dimensional (points, features), got {shape}")
        return cls(cluster, where, (shape[0], shape[1] if len(shape) == 2 else 1), stamp)

    def rows(self, rows: slice) -> RowsHandle:
        return self.cluster.submit(
            Task(read_rows, (self.path, rows.start, rows.stop, self.stamp), "")
        )


@dataclass
class DaskRows:
    """A dask array, whose chunks become blocks of rows on the workers."""

    cluster: Cluster
    X: Any
    shape: tuple[int, int]

    @classmethod
    def of(cls, cluster: Cluster, X: Any, name: str) -> "DaskRows":
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

    def rows(self, rows: slice) -> RowsHandle:
        block = self.X[rows].rechunk((rows.stop - rows.start, self.shape[1]))
        return self.cluster.compute(block.to_delayed()[0, 0])


def inspect_file(path: str) -> tuple[tuple[int, ...], tuple[int, int], str]:
    """On a worker: shape and stamp of a file, or the problem with it."""
    try:
        return tuple(_open(path).shape), _stamp(path), ""
    except (OSError, ValueError, ImportError, KeyError, EOFError) as error:
        return (), (0, 0), f"{path}: {error}"


def read_rows(path: str, start: int, stop: int, stamp: tuple[int, int]) -> Array:
    """On a worker: some rows of a file that has not changed meanwhile."""
    if _stamp(path) != stamp:
        raise ValueError(
            f"{path} was changed while it was in use; leave it alone, and condition again"
        )
    return np.array(_open(path)[start:stop]).reshape(stop - start, -1)


def _open(path: str) -> Any:
    if path.endswith(".npy"):
        return open_npy(path)
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


BLOCK = 1024  # test inputs in one block


class ClusterInputs:
    """Inputs in blocks of rows on the cluster; `edges` say where blocks begin."""

    def __init__(
        self,
        cluster: Cluster,
        parts: Sequence[RowsHandle],
        edges: Sequence[int],
        var: Array,
        d: int,
    ) -> None:
        self.cluster, self.parts, self.edges = cluster, parts, tuple(edges)
        self.var, self.d = var, d

    @classmethod
    def of(cls, cluster: Cluster, X: Any, name: str = "X") -> "ClusterInputs":
        """From an array, a dask array, or the path of a .npy file or zarr array."""
        cluster.listener.begin()
        source = rows_source(cluster, X, name)
        n, d = source.shape
        cluster.check_room(n, d)
        edges = (*range(0, n, cluster.tile_size(n)), n)
        loaded = [source.rows(slice(a, b)) for a, b in pairwise(edges)]
        tasks = [Task(examine_rows, each, "") for each in zip(loaded, edges[:-1], strict=True)]
        known = [cluster.submit(task) for task in tasks]
        facts = [_checked(cluster.fetch(handle)) for handle in known]
        for part, fact in zip(loaded, facts, strict=True):
            part.name = fact.name
        return cls(cluster, loaded, edges, np.concatenate([fact.var for fact in facts]), d)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.var), self.d

    @property
    def name(self) -> str:
        """A digest of all rows."""
        return digest([part.name for part in self.parts])

    def __len__(self) -> int:
        return len(self.var)

    def check_unchanged(self) -> None:
        """The workers that load a file notice whether it was changed."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        """All rows, on the client."""
        rows = np.concatenate([self.cluster.fetch(part) for part in self.parts])
        return np.asarray(rows, dtype=dtype)

    def duplicates(self) -> int:
        """Number of rows that repeat another."""
        handles = [self.cluster.submit(Task(row_digests, (part,), "")) for part in self.parts]
        return len(self) - len(set().union(*map(self.cluster.fetch, handles)))

    def joined(self, other: Inputs) -> "ClusterInputs":
        """These, then others from the client."""
        new = upload_rows(self.cluster, other)
        edges = (*self.edges, *(self.edges[-1] + edge for edge in new.edges[1:]))
        var = np.concatenate([self.var, other.var])
        return ClusterInputs(self.cluster, [*self.parts, *new.parts], edges, var, self.d)

    def take(self, index: Index) -> Inputs:
        """Some rows, on the client."""
        X = np.empty((len(index), self.d))
        place = np.searchsorted(self.edges, index, side="right") - 1
        wanted = [
            (
                which,
                self.cluster.submit(
                    Task(take_rows, (self.parts[k], index[which] - self.edges[k]), "")
                ),
            )
            for k in range(len(self.parts))
            if len(which := np.flatnonzero(place == k))
        ]
        for which, handle in wanted:
            X[which] = self.cluster.fetch(handle)
        return Inputs(X, self.var[index])

    def rows(self, rows: slice) -> tuple[list[RowsHandle], int, int]:
        """The blocks that hold some rows, and where in them they are."""
        first = int(np.searchsorted(self.edges, rows.start, side="right")) - 1
        last = int(np.searchsorted(self.edges, rows.stop, side="left"))
        start = rows.start - self.edges[first]
        return list(self.parts[first:last]), start, start + rows.stop - rows.start


class Facts(NamedTuple):
    """Of a block of rows: x·x/d, a digest, and what is wrong with it."""

    var: Array
    name: str
    problem: str


def examine_rows(rows: Any, start: int) -> Facts:
    """On a worker: rows as the kernel needs them, or the sentence that says why not."""
    try:
        X = as_inputs(rows, "X", start)
        return Facts(input_vars(X), digest("rows", X), "")
    except (TypeError, ValueError) as error:
        return Facts(np.zeros(0), "", str(error))


def row_digests(rows: Any) -> set[str]:
    """On a worker: a digest of every different row."""
    return {digest(row) for row in as_inputs(rows)}


def take_rows(rows: Any, index: Index) -> Any:
    """On a worker: some of its rows."""
    return as_inputs(rows)[index]


def _checked(facts: Facts) -> Facts:
    if facts.problem:
        raise ValueError(facts.problem)
    return facts


def upload_rows(cluster: Cluster, inputs: Inputs) -> ClusterInputs:
    """Test inputs, which are on the client, in blocks on the cluster. They leave no files: there
    may be any number of them in the life of a posterior."""
    if inputs.X.nbytes > MAX_SENT_BYTES:
        most = int(MAX_SENT_BYTES / (8 * inputs.shape[1]))
        raise MemoryError(
            f"{len(inputs)} points have {inputs.X.nbytes / 1e9:.1f} GB, too much to travel with "
            f"the tasks; pass at most {most} at a time"
        )
    edges = (*range(0, len(inputs), BLOCK), len(inputs))
    parts = [send_rows(cluster, inputs.X[a:b]) for a, b in pairwise(edges)]
    return ClusterInputs(cluster, parts, edges, inputs.var, inputs.shape[1])
