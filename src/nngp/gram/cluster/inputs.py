"""Inputs in blocks of rows on a cluster: workers load their own rows.

The client knows x·x/d of every input and a digest of every block of rows, no more.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nngp._arrays import Array, Index
from nngp._digest import digest
from nngp.gram.cluster.sources import LARGEST, rows_source, send_rows
from nngp.gram.cluster.task import Cluster, RowsHandle, Task
from nngp.gram.inputs import Inputs, as_inputs, input_vars

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
    if inputs.X.nbytes > LARGEST:
        most = int(LARGEST / (8 * inputs.shape[1]))
        raise MemoryError(
            f"{len(inputs)} points have {inputs.X.nbytes / 1e9:.1f} GB, too much to travel with "
            f"the tasks; pass at most {most} at a time"
        )
    edges = (*range(0, len(inputs), BLOCK), len(inputs))
    parts = [send_rows(cluster, inputs.X[a:b]) for a, b in pairwise(edges)]
    return ClusterInputs(cluster, parts, edges, inputs.var, inputs.shape[1])
