"""Inputs and kernel blocks on a cluster: workers load their own rows and compute their own tiles.

The client knows x·x/d of every input and a digest of every block of rows, no more. A block of K is
described (`Task`) and computed where it is wanted, by `Blocks` as on one machine.
"""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nngp._digest import digest
from nngp.architecture import Architecture
from nngp.gram.cluster.sources import LARGEST, sent, source_of
from nngp.gram.cluster.task import BlockWithGap, Task
from nngp.gram.host.blocks import Blocks, set_diagonal
from nngp.gram.inputs import Inputs, as_inputs, input_vars
from nngp.gram.plan import KernelPlan
from nngp.gram.split import KernelSplit

Array = NDArray[np.float64]
BLOCK = 1024  # test inputs in one block


class RemoteInputs:
    """Inputs in blocks of rows on the cluster; `edges` say where blocks begin.

    A cluster is anything with `submit(later) -> handle`, `fetch(handle)` and a `listener`.
    """

    total = None

    def __init__(
        self, cluster: Any, parts: Sequence[Any], edges: Sequence[int], var: Array, d: int
    ) -> None:
        self.cluster, self.parts, self.edges = cluster, parts, tuple(edges)
        self.var, self.d = var, d

    @classmethod
    def of(cls, cluster: Any, X: Any, name: str = "X") -> "RemoteInputs":
        """From an array, a dask array, or the path of a .npy file or zarr array."""
        cluster.listener.begin()
        source = source_of(cluster, X, name)
        n, d = source.shape
        cluster.check_room(n, d)
        edges = (*range(0, n, cluster.tile_size(n)), n)
        loaded = [source.rows(slice(a, b)) for a, b in pairwise(edges)]
        asked = [Task(examined, each, "") for each in zip(loaded, edges[:-1], strict=True)]
        known = [cluster.submit(later) for later in asked]
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
        """Files that changed are noticed by the workers that load them."""

    @cached_property
    def inverse_norm(self) -> Array:
        """1/|x| of every row, 0 for zero rows."""
        norms = np.sqrt(self.var * self.d)
        return np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        """All rows, on the client."""
        rows = np.concatenate([self.cluster.fetch(part) for part in self.parts])
        return np.asarray(rows, dtype=dtype)

    def duplicates(self) -> int:
        """How many rows repeat another."""
        handles = [self.cluster.submit(Task(row_names, (part,), "")) for part in self.parts]
        return len(self) - len(set().union(*map(self.cluster.fetch, handles)))

    def joined(self, other: Inputs) -> "RemoteInputs":
        """These, then others from the client."""
        new = remote_test(self.cluster, other)
        edges = (*self.edges, *(self.edges[-1] + edge for edge in new.edges[1:]))
        var = np.concatenate([self.var, other.var])
        return RemoteInputs(self.cluster, [*self.parts, *new.parts], edges, var, self.d)

    def take(self, index: NDArray[np.intp]) -> Inputs:
        """Some rows, on the client."""
        X = np.empty((len(index), self.d))
        place = np.searchsorted(self.edges, index, side="right") - 1
        wanted = [
            (
                which,
                self.cluster.submit(
                    Task(chosen, (self.parts[k], index[which] - self.edges[k]), "")
                ),
            )
            for k in range(len(self.parts))
            if len(which := np.flatnonzero(place == k))
        ]
        for which, handle in wanted:
            X[which] = self.cluster.fetch(handle)
        return Inputs(X, self.var[index])

    def rows(self, rows: slice) -> tuple[list[Any], int, int]:
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


def examined(rows: Any, start: int) -> Facts:
    """On a worker: rows as the kernel needs them, or the sentence that says why not."""
    try:
        X = as_inputs(rows, "X", start)
        return Facts(input_vars(X), digest("rows", X), "")
    except (TypeError, ValueError) as error:
        return Facts(np.zeros(0), "", str(error))


def row_names(rows: Any) -> set[str]:
    """On a worker: a digest of every different row."""
    return {digest(row) for row in as_inputs(rows)}


def chosen(rows: Any, index: NDArray[np.intp]) -> Any:
    """On a worker: some of its rows."""
    return as_inputs(rows)[index]


def _checked(facts: Facts) -> Facts:
    if facts.problem:
        raise ValueError(facts.problem)
    return facts


class Kernel(NamedTuple):
    """What a worker must know of a kernel; `id` names it and its values."""

    id: str
    architecture: Architecture
    plan: KernelPlan
    split: KernelSplit


class RemoteBlocks(Blocks):
    """Blocks of K, described; the client computes the diagonal and nothing else."""

    def __init__(
        self,
        architecture: Architecture,
        left: Any,
        right: Any = None,
        *,
        split: KernelSplit | None = None,
    ) -> None:
        super().__init__(architecture, left, right, split=split)
        split_values = self.split.scale, self.split.offset, self.split.input_var
        kernel_id = digest(architecture.values, self.plan.method, self.plan.input_var, split_values)
        self._cluster, self._sides = left.cluster, (left, left if right is None else right)
        self._kernel = Kernel(kernel_id, architecture, self.plan, self.split)

    def block(self, rows: slice, columns: slice, *, shift: float = 0.0, out: Any = None) -> Any:
        """K of these rows and columns, with `shift` on its diagonal, as a description."""
        left, right = self._sides[0].rows(rows), self._sides[1].rows(columns)
        diagonal = (rows.start - columns.start, shift) if self.symmetric else None
        name = digest("block", self._kernel.id, left, right, diagonal)
        arguments = self._kernel, diagonal, *left, *right
        return Task(remote_block, arguments, name, heavy=True)

    def error(self) -> float:
        """Largest error of the entries computed so far, relative to the diagonal."""
        self._transform.met(self._cluster.listener.nearest.get(self._kernel.id, 1.0))
        return super().error()


@lru_cache(maxsize=64)
def _same(kernel_id: str) -> list[Kernel]:
    """On a worker: room for a kernel of that name, so that curves are shared by all its blocks."""
    return []


def remote_block(
    kernel: Kernel,
    diagonal: tuple[int, float] | None,
    left: Sequence[Any],
    start: int,
    stop: int,
    right: Sequence[Any],
    begin: int,
    end: int,
) -> Any:
    """On a worker: one block, from blocks of rows. `diagonal` is how far its first row is below
    its first column, and the shift."""
    met = _same(kernel.id)
    if not met:
        met.append(kernel)
    kernel = met[0]
    sides = [_inputs(left, start, stop), _inputs(right, begin, end)]
    blocks = Blocks(kernel.architecture, *sides, plan=kernel.plan, split=kernel.split)
    rows, columns = slice(0, stop - start), slice(0, end - begin)
    block = blocks.block(rows, columns)
    if diagonal is not None:
        below, shift = diagonal
        rows = slice(below, below + stop - start)
        set_diagonal(block, rows, columns, blocks.diagonal + shift)
    return BlockWithGap(block, kernel.id, blocks.nearest)


def _inputs(parts: Sequence[Any], start: int, stop: int) -> Inputs:
    X = as_inputs((parts[0] if len(parts) == 1 else np.concatenate(parts))[start:stop])
    return Inputs(X, input_vars(X))


def remote_test(cluster: Any, inputs: Inputs) -> RemoteInputs:
    """Test inputs, which are on the client, in blocks on the cluster. They leave no files: there
    may be any number of them in the life of a posterior."""
    if inputs.X.nbytes > LARGEST:
        most = int(LARGEST / (8 * inputs.shape[1]))
        raise MemoryError(
            f"{len(inputs)} points have {inputs.X.nbytes / 1e9:.1f} GB, too much to travel with "
            f"the tasks; pass at most {most} at a time"
        )
    edges = (*range(0, len(inputs), BLOCK), len(inputs))
    parts = [sent(cluster, inputs.X[a:b]) for a, b in pairwise(edges)]
    return RemoteInputs(cluster, parts, edges, inputs.var, inputs.shape[1])
