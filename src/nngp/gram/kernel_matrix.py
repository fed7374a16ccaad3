"""The seam between kernels and solvers: a kernel matrix in blocks, and who makes one.

`KernelMatrix` is all that `linsolve` and `posterior` know of a kernel: any block of it, computed
when it is asked for, as an array of an engine's own kind. `KernelBackend` makes kernel matrices
for one kind of engine; there are three: in host memory, on a device, on a cluster.
"""

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from nngp._arrays import Array
from nngp.architecture import Network
from nngp.gram.inputs import Inputs, InputSet
from nngp.gram.plan import KernelPlan
from nngp.gram.split import KernelSplit

Tile = Any  # an array of an engine's kind: NumPy, JAX, or the description of a task
Gradient = dict[str, Any]  # by parameter: a number, or an entry for each layer, input or row
Shift = float | Array  # what is added to a diagonal: one number, or one for each row


def shift_of(shift: Shift, rows: slice) -> Shift:
    """The shift of some rows."""
    return shift[rows] if isinstance(shift, np.ndarray) else shift


class KernelMatrix(Protocol):
    """K = scale (M + offset) of two sets of inputs; blocks are those of M."""

    @property
    def network(self) -> Network: ...

    @property
    def left(self) -> InputSet: ...

    @property
    def plan(self) -> KernelPlan: ...

    @property
    def split(self) -> KernelSplit: ...

    @property
    def supports_padding(self) -> bool:
        """Whether blocks may reach beyond the inputs; there they are those of the identity."""

    @property
    def is_exact(self) -> bool:
        """Whether the split is that of these inputs, so that nothing large is subtracted."""

    @property
    def diagonal(self) -> Array:
        """M(x, x) of the left inputs."""

    def block(
        self, rows: slice, columns: slice, *, shift: Shift = 0.0, out: Array | None = None
    ) -> Tile:
        """M of these rows and columns, with `shift` on the matrix's diagonal: one number, or one
        for each row of the block. `out` is memory that may be used for the result."""

    def error(self) -> float:
        """Largest error of the entries computed so far, relative to the diagonal."""


class GradientSums(Protocol):
    """Sums Σ G dK/dθ over blocks of a matrix G."""

    def contract(self, G: Tile, rows: slice, columns: slice) -> None:
        """Add Σ G dK/dθ over one block."""

    def result(self, sum_of_all: float) -> Gradient:
        """The sums by parameter, given the sum of all entries of scale G."""


class KernelBackend(ABC):
    """Makes kernel matrices for one kind of engine."""

    is_local = True  # False where blocks are computed by other machines

    @abstractmethod
    def inputs(self, X: ArrayLike) -> InputSet:
        """Training inputs, checked, where this backend computes."""

    def test_inputs(self, inputs: Inputs) -> InputSet:
        """Further inputs, from memory to where this backend computes."""
        return inputs

    def supports(self, network: Network, inputs: InputSet) -> bool:
        """Whether this backend computes these blocks itself, at its full speed."""
        return True

    @abstractmethod
    def matrix(
        self,
        network: Network,
        left: InputSet,
        right: InputSet | None = None,
        *,
        split: KernelSplit | None = None,
    ) -> KernelMatrix:
        """K(left, right); `right` None means left. `split` is by default the one that suits the
        inputs."""

    @abstractmethod
    def gradient(
        self,
        network: Network,
        inputs: InputSet,
        *,
        split: KernelSplit,
        per_layer: bool,
        per_input: bool = False,
    ) -> GradientSums:
        """Sums of derivatives of K(inputs, inputs), all zero as yet."""
