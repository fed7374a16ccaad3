"""Blocks of a kernel matrix as tasks for the workers of a cluster.

A worker computes a block from its own rows by `HostMatrix`, as one machine does.
"""

from collections.abc import Sequence
from dataclasses import astuple
from functools import cached_property, lru_cache
from typing import NamedTuple, cast

import numpy as np

from nngp._arrays import Array
from nngp._digest import digest
from nngp._machine import single_threaded_blas
from nngp.architecture import Headed, Invariant, Network
from nngp.gram.cluster.inputs import ClusterInputs
from nngp.gram.cluster.task import BlockWithGap, Task
from nngp.gram.host.invariant import InvariantMatrix
from nngp.gram.host.matrices import host_matrix_of
from nngp.gram.host.matrix import make_transform, set_diagonal
from nngp.gram.inputs import Inputs, as_inputs, input_vars
from nngp.gram.kernel_matrix import Shift
from nngp.gram.plan import KernelPlan, make_plan, own_split, split_fits
from nngp.gram.split import KernelSplit


class Kernel(NamedTuple):
    """The part of a block's task that all blocks of a matrix share; `id` is a digest of it."""

    id: str
    architecture: Network
    plan: KernelPlan
    split: KernelSplit


class ClusterMatrix:
    """`KernelMatrix` whose blocks are tasks; the client computes the diagonal and nothing else."""

    can_fill = False

    def __init__(
        self,
        architecture: Network,
        left: ClusterInputs,
        right: ClusterInputs | None = None,
        *,
        split: KernelSplit | None = None,
    ) -> None:
        if isinstance(architecture, Headed):
            raise TypeError(
                "layers on top of an average are computed on one machine; use engine='cpu' or 'gpu'"
            )
        self.architecture, self.left = architecture, left
        self._symmetric, self._right = right is None, left if right is None else right
        self.plan = make_plan(architecture, left, self._right)
        self.split = own_split(architecture, self.plan) if split is None else split
        self.is_exact = split_fits(self.split, self.plan)
        # Of inputs the client's transform reads norms only: it transforms no block.
        sides = cast(Inputs, left), cast(Inputs, self._right)
        self._transform = make_transform(self.plan, architecture.base, *sides, self.split)
        how = self.plan.method, self.plan.input_var, astuple(self.split)
        kernel_id = digest(architecture.values, *how)
        self._kernel = Kernel(kernel_id, architecture, self.plan, self.split)

    @cached_property
    def diagonal(self) -> Array:
        """From norms alone, unless an input is compared with its own transformations."""
        if not isinstance(self.architecture, Invariant):
            return self._transform.diagonal
        cluster = self.left.cluster
        arguments = [(self._kernel, part) for part in self.left.parts]
        handles = [cluster.submit(Task(compute_diagonal, one, "")) for one in arguments]
        return np.concatenate([cluster.fetch(handle) for handle in handles])

    def block(
        self, rows: slice, columns: slice, *, shift: Shift = 0.0, out: Array | None = None
    ) -> Task:
        """The task that computes the block."""
        left, right = self.left.rows(rows), self._right.rows(columns)
        if isinstance(shift, np.ndarray) and not _meet(rows, columns):
            shift = 0.0  # rather than to send what is not used
        diagonal = (rows.start - columns.start, shift) if self._symmetric else None
        name = digest("block", self._kernel.id, left, right, diagonal)
        arguments = self._kernel, diagonal, *left, *right
        return Task(compute_block, arguments, name, heavy=True)

    def error(self) -> float:
        self._transform.met(self.left.cluster.listener.nearest.get(self._kernel.id, 1.0))
        return self._transform.error()


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
    met = _cached(kernel.id)
    if not met:
        met.append(kernel)
    kernel = met[0]
    sides = [_inputs(left, start, stop), _inputs(right, begin, end)]
    blocks = host_matrix_of(kernel.architecture, *sides, plan=kernel.plan, split=kernel.split)
    rows, columns = slice(0, stop - start), slice(0, end - begin)
    block = blocks.block(rows, columns)
    if diagonal is not None:
        below, shift = diagonal
        rows = slice(below, below + stop - start)
        set_diagonal(block, rows, columns, blocks.diagonal + shift)
    return BlockWithGap(block, kernel.id, blocks.nearest)


def compute_diagonal(kernel: Kernel, rows: Array) -> Array:
    """On a worker: M(x, x) of a block of rows, for a network averaged over transformations."""
    assert isinstance(kernel.architecture, Invariant)
    inputs = _inputs([rows], 0, len(rows))
    return InvariantMatrix(
        kernel.architecture, inputs, plan=kernel.plan, split=kernel.split
    ).diagonal


def _inputs(parts: Sequence[Array], start: int, stop: int) -> Inputs:
    X = as_inputs((parts[0] if len(parts) == 1 else np.concatenate(parts))[start:stop])
    return Inputs(X, input_vars(X))
