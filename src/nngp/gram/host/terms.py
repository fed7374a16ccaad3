"""One term of a kernel matrix in host memory: the network's own kernel between two sets of inputs.

Inner products come from BLAS; they become cosines and kernel values in place, strip by strip, while
they are in the cache.
"""

from typing import Protocol

from nngp._arrays import Array
from nngp.architecture.invariances.orbit import OrbitTerm
from nngp.gram.host.cosines import Cosines, in_strips
from nngp.gram.host.equal_norm import ProfileTransform
from nngp.gram.host.pairwise import PairwiseTransform
from nngp.gram.inputs import Inputs
from nngp.gram.orbit_inputs import cut
from nngp.gram.steps import KernelSteps


class Transform(Protocol):
    """The profile of a kernel matrix: cosines to kernel values, in place on blocks."""

    @property
    def smallest_gap(self) -> float:
        """The smallest 1 - |c| met so far, if it is so small that it matters."""

    @property
    def noise(self) -> float:
        """The error of a value beside that of a curve and that of rounding, relative to K(x, x)."""

    def __call__(self, block: Array, rows: slice, columns: slice) -> None: ...


def make_transform(steps: KernelSteps, left: Inputs, right: Inputs) -> Transform:
    """The profile that the steps ask for, between these inputs."""
    if steps.profile is None:
        return PairwiseTransform(steps.base, left, right)
    return ProfileTransform(steps.profile, left, right)


class Term:
    """Values of the network's own kernel between two sets of inputs."""

    def __init__(self, steps: KernelSteps, left: Inputs, right: Inputs) -> None:
        self.left, self.right = left, right
        self.cosines = Cosines(left, right)
        self.transform = make_transform(steps, left, right)

    def block(self, rows: slice, columns: slice, out: Array | None = None) -> Array:
        """The values of these rows and columns."""
        block = self.cosines.products(rows, columns, out)
        for part, strip in in_strips(block, rows, columns):
            self.values(part, strip, columns)
        return block

    def values(self, products: Array, rows: slice, columns: slice) -> None:
        """From inner products, in place on a strip."""
        self.cosines.scale(products, rows, columns)
        self.transform(products, rows, columns)


def moved_sides(
    term: OrbitTerm, left: Inputs, right: Inputs, rows: slice, columns: slice
) -> tuple[Inputs, Inputs]:
    """The inputs of a block of a term, with the columns of the right ones in the term's order.

    They are moved when a block needs them: that moves numbers, and a product multiplies each of
    them by hundreds of others.
    """
    others = cut(right, columns)
    if not term.order.is_identity:
        others = Inputs(term.order(others.X), others.var)
    return cut(left, rows), others


def whole(inputs: Inputs) -> slice:
    """All rows."""
    return slice(0, len(inputs))
