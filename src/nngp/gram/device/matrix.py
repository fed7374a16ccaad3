"""Blocks of a kernel matrix on an accelerator, through JAX, in double precision.

The steps are those of `gram/steps.py`; arrays live on the device, where one program does a block.
"""

from functools import cached_property

import jax
import numpy as np

from nngp._arrays import Array, DeviceArray
from nngp.architecture import Network, average_of
from nngp.curve.octaves import SHALLOW
from nngp.gram.device.arrays import count_of, padded_rows, unit_block
from nngp.gram.device.blocks import LastSteps, diagonal_of_orders, sum_of_terms
from nngp.gram.device.orders import device_orders, function_pairs, used_orders
from nngp.gram.device.profiles import DEEP, DeviceProfile, origin_of
from nngp.gram.device.terms import curve_table, make_terms
from nngp.gram.host.matrix import HostMatrix
from nngp.gram.inputs import Inputs
from nngp.gram.kernel_matrix import Shift
from nngp.gram.orbit_inputs import transformed_inputs
from nngp.gram.plan import KernelPlan
from nngp.gram.split import KernelSplit
from nngp.gram.steps import BlockMatrix, KernelSteps

ROWS = 2048  # whose own kernel values are computed at a time


class DeviceMatrix(BlockMatrix[Inputs]):
    """`KernelMatrix` on a device; inputs of unequal norms need an activation with a closed form."""

    supports_padding = True

    def __init__(
        self,
        network: Network,
        left: Inputs,
        right: Inputs | None,
        *,
        plan: KernelPlan,
        split: KernelSplit | None,
    ) -> None:
        other = left if right is None else right
        steps = KernelSteps.of(network, left, other, plan, split)
        super().__init__(steps, left, right)
        orbit = used_orders(steps.orbit)
        self._orders, self._pairs = device_orders(orbit), function_pairs(orbit)
        self._lefts, self._rights = (transformed_inputs(network, side) for side in (left, other))
        self._terms = make_terms(steps, self._lefts, self._rights)
        self._gap: DeviceArray = np.float64(1.0)

    def block(
        self, rows: slice, columns: slice, *, shift: Shift = 0.0, out: Array | None = None
    ) -> DeviceArray:
        last = self._last_steps(rows, columns, shift)
        origin = origin_of(rows, columns, self.shape, self.symmetric)
        with jax.enable_x64(True):
            total: DeviceArray = None
            for pair in self._pairs:
                total, self._gap = sum_of_terms(
                    total,
                    self._gap,
                    unit_block(self._lefts[pair.left], rows),
                    unit_block(self._rights[pair.right], columns),
                    np.float64(pair.share),
                    origin,
                    np.bool_(pair.left == pair.right),
                    self._orders,
                    self._terms.profile(pair, rows, columns),
                    last if pair is self._pairs[-1] else None,
                    rule=self._terms.rule,
                )
        return total

    def _last_steps(self, rows: slice, columns: slice, shift: Shift) -> LastSteps:
        count, norms = count_of(rows), None
        own = self.diagonal[rows] + shift if self.symmetric else np.empty(0)
        if self.norms is not None:
            left, right = self.norms.left[rows], self.norms.right[columns]
            norms = padded_rows(left, count), padded_rows(right, count_of(columns))
        split = None if self.is_exact else (self.split.scale, self.split.offset)
        return LastSteps(padded_rows(own, count)[:, None], norms, self._head_table, split)

    @cached_property
    def _head_table(self) -> DeviceProfile | None:
        if self.steps.head is None:
            return None
        return curve_table(self.steps.head.head, 1.0, self.split, DEEP)

    def _diagonal_of_terms(self, inputs: Inputs) -> Array:
        if self.plan.input_var is None or self.steps.curve is None:
            network = average_of(self.network)
            return HostMatrix(network, inputs, plan=self.plan).average_diagonal
        # An input may be very near to its own transformations.
        split, var = self.steps.split_of_terms, self.plan.input_var
        table = curve_table(self.steps.base, var, split, SHALLOW)
        versions, n = transformed_inputs(self.network, inputs), len(inputs)
        total = np.zeros(n)
        with jax.enable_x64(True):
            for pair in self._pairs:
                alike = np.bool_(pair.left == pair.right)
                for start in range(0, n, ROWS):
                    rows = slice(start, start + ROWS)
                    x, y = (unit_block(versions[k], rows) for k in (pair.left, pair.right))
                    part = diagonal_of_orders(x, y, alike, self._orders, table)
                    total[rows] += pair.share * np.asarray(part)[: n - start]
        return total

    @property
    def smallest_gap(self) -> float:
        return float(self._gap)

    @property
    def _error_of_terms(self) -> float:
        return self._terms.error
