"""Blocks of a kernel matrix on an accelerator, through JAX, in double precision.

The steps are those of `gram/steps.py`; arrays live on the device, where one program does a block.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import cast

import jax
import numpy as np

from nngp._arrays import Array, DeviceArray
from nngp.architecture import average_of
from nngp.gram.device.arrays import count_of, default_device, filled_rows, put, unit_block
from nngp.gram.device.blocks import LastSteps, TermRule, diagonal_of_orders, sum_of_terms
from nngp.gram.device.curve import curve_table, device_curve
from nngp.gram.device.layers import DeviceLayers, LayerVariances, closed_form_of
from nngp.gram.device.orders import FunctionPair, device_orders, function_pairs, used_orders
from nngp.gram.device.profiles import DEEP, DeviceProfile, origin_of
from nngp.gram.host.backend import in_memory
from nngp.gram.host.matrix import HostMatrix
from nngp.gram.inputs import Inputs
from nngp.gram.kernel_matrix import MatrixRequest, Shift
from nngp.gram.orbit_inputs import transformed_inputs
from nngp.gram.plan import KernelPlan
from nngp.gram.steps import BlockMatrix, KernelSteps

ROWS = 2048  # whose own kernel values are computed at a time


class DeviceMatrix(BlockMatrix[Inputs]):
    """`KernelMatrix` on a device; inputs of unequal norms need an activation with a closed form."""

    supports_padding = True

    def __init__(self, request: MatrixRequest, plan: KernelPlan) -> None:
        left = in_memory(request.left)
        right = None if request.right is None else in_memory(request.right)
        other = left if right is None else right
        steps = KernelSteps.of(request.network, left, other, plan, request.split)
        super().__init__(steps, left, right)
        orbit = used_orders(steps.orbit)
        self._orders, self._pairs = device_orders(orbit), function_pairs(orbit)
        self._lefts, self._rights = self._versions(left), self._versions(other)
        self._terms = _CurveTerms(steps) if steps.curve is not None else self._layer_terms()
        self._gap: DeviceArray = np.float64(1.0)

    def _versions(self, inputs: Inputs) -> Sequence[Inputs]:
        return cast(Sequence[Inputs], transformed_inputs(self.network, inputs))

    def _layer_terms(self) -> "_LayerTerms":
        return _LayerTerms(self.steps, self._lefts, self._rights)

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
            norms = filled_rows(left, count), filled_rows(right, count_of(columns))
        split = None if self.is_exact else (self.split.scale, self.split.offset)
        return LastSteps(filled_rows(own, count)[:, None], norms, self._head_table, split)

    @cached_property
    def _head_table(self) -> DeviceProfile | None:
        if self.steps.head is None:
            return None
        return curve_table(self.steps.head.head, 1.0, self.split, DEEP, default_device())

    def _diagonal_of_terms(self, inputs: Inputs) -> Array:
        if self.plan.input_var is None or self.steps.curve is None:
            network = average_of(self.network)
            return HostMatrix(network, inputs, plan=self.plan).average_diagonal
        # An input may be very near to its own transformations.
        split, var = self.steps.split_of_terms, self.plan.input_var
        table = device_curve(self.steps.base, var, split, near=True).table
        versions, n = self._versions(inputs), len(inputs)
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


class _CurveTerms:
    """Terms on a curve: one table for all of them."""

    def __init__(self, steps: KernelSteps) -> None:
        assert steps.plan.input_var is not None
        found = device_curve(steps.base, steps.plan.input_var, steps.split_of_terms)
        self._table, self.error = found.table, found.careless
        self.rule = TermRule(None, found.careful)

    def profile(self, pair: FunctionPair, rows: slice, columns: slice) -> DeviceProfile:
        return self._table


class _LayerTerms:
    """Terms pair by pair: the variances of every layer, for each version of the inputs."""

    error = 0.0

    def __init__(
        self, steps: KernelSteps, lefts: Sequence[Inputs], rights: Sequence[Inputs]
    ) -> None:
        net = steps.base
        self.rule = TermRule(closed_form_of(net), careful=True)
        self._lefts = [LayerVariances(net, one) for one in lefts]
        self._rights = [LayerVariances(net, one) for one in rights]
        self._variances = put(net.weight_vars), put(net.bias_vars)

    def profile(self, pair: FunctionPair, rows: slice, columns: slice) -> DeviceLayers:
        left, right = self._lefts[pair.left], self._rights[pair.right]
        return DeviceLayers(left.block(rows), right.block(columns), *self._variances)
