"""Kernel matrices of layers on top of an average over transformations, on a device."""

from dataclasses import replace
from functools import cached_property
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np

from nngp._arrays import Array, DeviceArray
from nngp.architecture import Headed
from nngp.curve import curve_at
from nngp.gram.device.arrays import count_of, default_device, filled_rows
from nngp.gram.device.curve import curve_table
from nngp.gram.device.invariant import DeviceInvariantMatrix
from nngp.gram.device.profiles import (
    DEEP,
    BlockOrigin,
    DeviceProfile,
    look_up,
    origin_of,
    shift_on_device,
    with_diagonal,
)
from nngp.gram.device.programs import program
from nngp.gram.head import AverageNorms, HeadCurve
from nngp.gram.host.backend import in_memory
from nngp.gram.kernel_matrix import MatrixRequest, Shift
from nngp.gram.plan import KernelPlan
from nngp.gram.split import TRIVIAL_SPLIT


class DeviceHeadedMatrix:
    """`KernelMatrix` of a `Headed` network on a device; inputs share one norm."""

    can_fill = True  # blocks may reach beyond the inputs
    is_exact = True  # the average is brought to norm one, whatever the inputs are

    def __init__(self, request: MatrixRequest, plan: KernelPlan) -> None:
        network = cast(Headed, request.architecture)
        below = replace(request, architecture=network.average, split=TRIVIAL_SPLIT)
        self._average, self._below = DeviceInvariantMatrix(below, plan), below
        self.architecture, self.plan, self.left = network, plan, self._average.left
        self._symmetric = request.right is None
        right = self.left if request.right is None else in_memory(request.right)
        self._shape = len(self.left), len(right)
        self._head = HeadCurve(network.head, request.split)
        self.split = self._head.split
        self._table = curve_table(network.head, 1.0, self.split, DEEP, default_device())

    @cached_property
    def _norms(self) -> AverageNorms:
        other = None
        if self._below.right is not None:
            request = replace(self._below, left=self._below.right, right=None)
            other = DeviceInvariantMatrix(request, self.plan).diagonal
        assert self.plan.input_var is not None
        variance = curve_at(self.architecture, self.plan.input_var).variance
        terms = self.architecture.products(self.left.shape[1])
        return AverageNorms(self._average.diagonal, other, variance, terms)

    def block(
        self, rows: slice, columns: slice, *, shift: Shift = 0.0, out: Array | None = None
    ) -> DeviceArray:
        left, right = self._norms.left, self._norms.right
        with jax.enable_x64(True):
            value = self._average.block(rows, columns)
            both = (
                filled_rows(left[rows], count_of(rows)),
                filled_rows(right[columns], count_of(columns)),
            )
            return _head_block(value, *both, *self._rest(rows, columns, shift))

    def _rest(
        self, rows: slice, columns: slice, shift: Shift
    ) -> tuple[DeviceArray, BlockOrigin, DeviceProfile]:
        own = shift_on_device(self._at_one + shift, count_of(rows))
        return own, origin_of(rows, columns, self._shape, self._symmetric), self._table

    @property
    def _at_one(self) -> float:
        return self._head.profile.at_one

    @cached_property
    def diagonal(self) -> Array:
        return np.full(len(self.left), self._at_one)

    def error(self) -> float:
        return self._head.error(self._norms.error_of_cosines(self._average.error()))


@program
def _head_block(
    value: DeviceArray,
    left: DeviceArray,
    right: DeviceArray,
    own: DeviceArray,
    origin: BlockOrigin,
    table: DeviceProfile,
) -> DeviceArray:
    """The head's kernel from that of the average, with `own` on the matrix's diagonal."""
    c = jnp.clip(value * left[:, None] * right, -1.0, 1.0)
    return with_diagonal(look_up(table, c), own, origin)
