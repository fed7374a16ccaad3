"""Kernel matrices of layers on top of an average over transformations, in host memory."""

from functools import cached_property

import numpy as np

from nngp._arrays import Array
from nngp.architecture import Headed
from nngp.curve import NEAR, Profile, Workspace
from nngp.gram.error_bounds import FAR_ENOUGH, pairwise_error
from nngp.gram.head import AverageNorms, HeadCurve
from nngp.gram.host.invariant import InvariantMatrix
from nngp.gram.host.matrix import HostMatrix, set_diagonal
from nngp.gram.inputs import Inputs
from nngp.gram.kernel_matrix import Shift
from nngp.gram.plan import KernelPlan
from nngp.gram.split import TRIVIAL_SPLIT, KernelSplit


class HeadedMatrix:
    """`KernelMatrix` of a `Headed` network in host memory."""

    can_fill = False
    is_exact = True  # the average is brought to norm one, whatever the inputs are

    def __init__(
        self,
        network: Headed,
        left: Inputs,
        right: Inputs | None = None,
        *,
        plan: KernelPlan | None = None,
        split: KernelSplit | None = TRIVIAL_SPLIT,
    ) -> None:
        self._average = InvariantMatrix(network.average, left, right, plan=plan)
        self.architecture, self.left, self._right = network, left, right
        self.plan, self.shape = self._average.plan, self._average.shape
        self.symmetric = self._average.symmetric
        self._head = HeadCurve(network.head, split)
        self.split = self._head.split
        self._profile = self._head.profile

    @cached_property
    def _norms(self) -> AverageNorms:
        network, plan, other = self.architecture.average, self.plan, None
        if self._right is not None:
            other = InvariantMatrix(network, self._right, plan=plan).diagonal
        sides = [self.left] if self._right is None else [self.left, self._right]
        plain = [HostMatrix(network.base, one, plan=plan) for one in sides]
        variance = max(float(one.diagonal.max()) for one in plain)
        terms = self._average.orbit.products
        return AverageNorms(self._average.diagonal, other, variance, terms)

    def block(
        self, rows: slice, columns: slice, *, shift: Shift = 0.0, out: Array | None = None
    ) -> Array:
        norms = self._norms
        total = self._average.block(rows, columns, out=out)
        total *= norms.left[rows][:, None]
        total *= norms.right[columns]
        np.clip(total, -1.0, 1.0, out=total)
        _look_up(self._profile, total)
        if self.symmetric:
            set_diagonal(total, rows, columns, self.diagonal[rows] + shift)
        return total

    @cached_property
    def diagonal(self) -> Array:
        return np.full(len(self.left), self._profile.at_one)

    @property
    def nearest(self) -> float:
        """The smallest 1 - |c| of inputs met so far, if it is so small that it matters."""
        return self._average.nearest

    def error(self) -> float:
        below = self._average.error()
        if self.plan.method == "pairwise":  # the head would multiply a bound that is not tight
            nearest = min(self.nearest, FAR_ENOUGH)
            below = pairwise_error(self.architecture.base, self.left.var, nearest)
        return self._head.error(self._norms.error_of_cosines(below))


def _look_up(profile: Profile, block: Array) -> None:
    """Cosines to values of a profile, in place."""
    flat = np.ascontiguousarray(block).reshape(-1)
    near = np.flatnonzero(np.abs(flat) > 1 - NEAR)
    c = flat[near]
    profile.fast.apply(flat, Workspace(flat.size), any_negative=bool((flat < 0).any()))
    flat[near] = profile.at_signed(c < 0, 1.0 - np.abs(c))
    if not np.may_share_memory(flat, block):
        block[...] = flat.reshape(block.shape)
