"""Blocks of a kernel matrix as tasks for the workers of a cluster.

A worker computes a block from its own rows by `HostMatrix`, as one machine does.
"""

from collections.abc import Sequence
from dataclasses import astuple
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, NoReturn, cast

import numpy as np

from nngp._arrays import Array
from nngp._digest import digest
from nngp._machine import single_threaded_blas
from nngp.architecture import Network
from nngp.gram.cluster.inputs import ClusterInputs, upload_rows
from nngp.gram.cluster.task import BlockWithGap, Cluster, Task
from nngp.gram.host.matrix import HostMatrix, make_transform
from nngp.gram.host.tiles import set_diagonal
from nngp.gram.inputs import Inputs, InputSet, as_inputs, input_vars
from nngp.gram.kernel_matrix import KernelBackend, Shift
from nngp.gram.plan import KernelPlan
from nngp.gram.split import TRIVIAL_SPLIT, KernelSplit
from nngp.gram.steps import BlockMatrix, KernelSteps


class Kernel(NamedTuple):
    """The part of a block's task that all blocks of a matrix share; `id` is a digest of it."""

    id: str
    network: Network
    plan: KernelPlan
    split: KernelSplit


class ClusterMatrix(BlockMatrix[ClusterInputs]):
    """`KernelMatrix` whose blocks are tasks; the client computes what norms tell, no more."""

    def __init__(
        self,
        network: Network,
        left: ClusterInputs,
        right: ClusterInputs | None = None,
        *,
        split: KernelSplit | None = None,
    ) -> None:
        other = left if right is None else right
        super().__init__(KernelSteps.of(network, left, other, None, split), left, right)
        how = self.plan.method, self.plan.input_var, astuple(self.split)
        kernel_id = digest(network.values, *how)
        self._kernel = Kernel(kernel_id, network, self.plan, self.split)

    def _of_same_inputs(self, network: Network) -> "ClusterMatrix":
        right = None if self.symmetric else self.right
        return ClusterMatrix(network, self.left, right, split=TRIVIAL_SPLIT)

    def block(
        self, rows: slice, columns: slice, *, shift: Shift = 0.0, out: Array | None = None
    ) -> Task:
        """The task that computes the block."""
        left, right = self.left.rows(rows), self.right.rows(columns)
        if isinstance(shift, np.ndarray) and not _meet(rows, columns):
            shift = 0.0  # rather than to send what is not used
        diagonal = (rows.start - columns.start, shift) if self.symmetric else None
        name = digest("block", self._kernel.id, left, right, diagonal)
        arguments = self._kernel, diagonal, *left, *right
        return Task(compute_block, arguments, name, heavy=True)

    def _diagonal_of_terms(self, inputs: ClusterInputs) -> Array:
        cluster = inputs.cluster
        arguments = [(self._kernel, part) for part in inputs.parts]
        handles = [cluster.submit(Task(compute_diagonal, one, "")) for one in arguments]
        return np.concatenate([cluster.fetch(handle) for handle in handles])

    @property
    def smallest_gap(self) -> float:
        return self.left.cluster.listener.nearest.get(self._kernel.id, 1.0)

    @cached_property
    def _error_of_terms(self) -> float:
        if self.steps.base.planes is not None:
            return 0.0
        # Of inputs the client's transform reads norms only: it transforms no block.
        sides = cast(Inputs, self.left), cast(Inputs, self.right)
        return make_transform(self.steps, *sides).noise


def _meet(rows: slice, columns: slice) -> bool:
    return rows.start < columns.stop and columns.start < rows.stop


@lru_cache(maxsize=64)
def _cached(kernel_id: str) -> list[Kernel]:
    """On a worker: a place for one kernel, so that all its blocks share the compiled curve."""
    return []


@single_threaded_blas()
def compute_block(
    kernel: Kernel,
    diagonal: tuple[int, Shift] | None,
    left: Sequence[Array],
    start: int,
    stop: int,
    right: Sequence[Array],
    begin: int,
    end: int,
) -> BlockWithGap:
    """On a worker: one block, from blocks of rows. `diagonal` is how far its first row is below
    its first column, and the shift."""
    known = _cached(kernel.id)
    if not known:
        known.append(kernel)
    sides = _inputs(left, start, stop), _inputs(right, begin, end)
    matrix = _host_matrix(known[0], *sides)
    rows, columns = slice(0, stop - start), slice(0, end - begin)
    block = matrix.block(rows, columns)
    if diagonal is not None:
        below, shift = diagonal
        rows = slice(below, below + stop - start)
        set_diagonal(block, rows, columns, matrix.diagonal + shift)
    return BlockWithGap(block, kernel.id, matrix.smallest_gap)


def compute_diagonal(kernel: Kernel, rows: Array) -> Array:
    """On a worker: the average of the terms for a block of rows with themselves."""
    return _host_matrix(kernel, _inputs([rows], 0, len(rows))).average_diagonal


def _host_matrix(kernel: Kernel, left: Inputs, right: Inputs | None = None) -> HostMatrix:
    return HostMatrix(kernel.network, left, right, plan=kernel.plan, split=kernel.split)


def _inputs(parts: Sequence[Array], start: int, stop: int) -> Inputs:
    X = as_inputs((parts[0] if len(parts) == 1 else np.concatenate(parts))[start:stop])
    return Inputs(X, input_vars(X))


class ClusterBackend(KernelBackend):
    """`KernelBackend` on a cluster."""

    is_local = False

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def inputs(self, X: Any) -> ClusterInputs:
        """Training inputs from an array, a dask array, or the path of a .npy file or zarr array."""
        return ClusterInputs.of(self._cluster, X)

    def test_inputs(self, inputs: Inputs) -> ClusterInputs:
        return upload_rows(self._cluster, inputs)

    def matrix(
        self,
        network: Network,
        left: InputSet,
        right: InputSet | None = None,
        *,
        split: KernelSplit | None = None,
    ) -> ClusterMatrix:
        other = None if right is None else _on_cluster(right)
        return ClusterMatrix(network, _on_cluster(left), other, split=split)

    def gradient(self, network: Network, inputs: InputSet, **options: Any) -> NoReturn:
        raise ValueError(
            "derivatives are computed on one machine; use engine='cpu' or 'gpu', with fewer points"
        )


def _on_cluster(inputs: InputSet) -> ClusterInputs:
    if not isinstance(inputs, ClusterInputs):
        raise TypeError("inputs in this machine's memory cannot be used by the engine of a cluster")
    return inputs
