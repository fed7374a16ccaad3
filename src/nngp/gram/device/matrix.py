"""Blocks of a kernel matrix on an accelerator, through JAX, in double precision.

The steps are those of `gram/steps.py`; arrays live on the device, where one program does a block.
What only the host can compute is sent there (`UploadedMatrix`).
"""

from functools import cached_property, lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from nngp._arrays import EPS, TINY, Array, DeviceArray
from nngp.architecture import Network, average_of
from nngp.curve import curve_at
from nngp.curve.octaves import SHALLOW
from nngp.gram.device.arrays import count_of, default_device, padded_rows, put, unit_block
from nngp.gram.device.blocks import (
    DeviceOrders,
    LastSteps,
    add_pairs,
    device_orders,
    diagonal_of_orders,
    finish,
    function_pairs,
    in_order,
    pair_values,
    sum_of_terms,
    used_orders,
)
from nngp.gram.device.profiles import DEEP, BlockOrigin, DeviceProfile, device_profile, origin_of
from nngp.gram.host.matrix import HostMatrix
from nngp.gram.inputs import Inputs, transformed_inputs
from nngp.gram.kernel_matrix import Gradient, GradientSums, Shift
from nngp.gram.plan import KernelPlan
from nngp.gram.split import KernelSplit
from nngp.gram.steps import BlockMatrix, KernelSteps

CARELESS = 1e-13  # error, relative to the diagonal, for which near pairs are not done again


class CurveTerms:
    """Terms of inputs of equal norm: look-ups in one table. Pairs with 1 - |c| < 2^-16 are computed
    again from the difference of their unit vectors where the `error` of leaving that out, relative
    to the diagonal, were too large."""

    def __init__(self, network: Network, input_var: float, split: KernelSplit) -> None:
        curve = curve_at(network, input_var)
        # As the deficit is concave, an error of eps in c moves K by D(eps) at most.
        size = max(curve.variance, TINY) if split.is_trivial else split.scale
        careless = 4 * (float(curve.deficit(one_minus=EPS)) - curve.jump) / size
        self._careful = careless > CARELESS
        self.error = 0.0 if self._careful else careless
        octaves = SHALLOW if self._careful else DEEP
        self._table = curve_table(network, input_var, split, octaves)

    def sum(self, block: "_TermBlock", before: "_Sum", last: LastSteps | None) -> "_Sum":
        """All orders of a pair of row functions, added to what was there before."""
        return sum_of_terms(
            *before,
            block.x,
            block.y,
            np.float64(block.share),
            block.origin,
            np.bool_(block.alike),
            block.orders,
            self._table,
            last,
            careful=self._careful,
        )


class PairTerms:
    """Terms of inputs of any norms: the walk, pair by pair."""

    error = 0.0

    def __init__(self, network: Network) -> None:
        self._network = network

    def sum(self, block: "_TermBlock", before: "_Sum", last: LastSteps | None) -> "_Sum":
        """All orders of a pair of row functions, added to what was there before."""
        total, gap = before
        orders, weights, same = block.orders, [1.0], [True]
        if orders is not None:
            weights, same = np.asarray(orders.weights).tolist(), np.asarray(orders.same).tolist()
        for k, (weight, unmoved) in enumerate(zip(weights, same, strict=True)):
            y = block.y if orders is None else in_order(block.y, orders, np.int32(k))
            here = block.origin._replace(
                symmetric=np.bool_(bool(block.origin.symmetric) and block.alike and unmoved)
            )
            value, near = pair_values(self._network, block.x, y, *block.norms, here)
            total, gap = add_pairs(total, value, block.share * weight), jnp.minimum(gap, near)
        return total if last is None else finish(total, last, block.origin), gap


_Sum = tuple[DeviceArray | None, DeviceArray]  # of the terms so far, and the smallest 1 - |c|


class _TermBlock(NamedTuple):
    """One block of the terms of a pair of row functions: unit vectors, and x·x/d of each."""

    x: DeviceArray
    y: DeviceArray
    norms: tuple[DeviceArray, DeviceArray]
    share: float
    alike: bool
    origin: BlockOrigin
    orders: DeviceOrders | None


def make_terms(steps: KernelSteps) -> CurveTerms | PairTerms:
    """The terms that the steps ask for."""
    if steps.curve is None or steps.plan.input_var is None:
        return PairTerms(steps.base)
    return CurveTerms(steps.base, steps.plan.input_var, steps.split_of_terms)


def curve_table(
    network: Network, input_var: float, split: KernelSplit, octaves: int
) -> DeviceProfile:
    """M of a split as a table on the device that is JAX's default now. One of `SHALLOW` octaves has
    what near pairs are computed from."""
    return _table_on(network, input_var, split, octaves, default_device())


@lru_cache(maxsize=4)
def _table_on(
    network: Network, input_var: float, split: KernelSplit, octaves: int, device: DeviceArray
) -> DeviceProfile:
    """The device is part of the key."""
    return device_profile(split.profile(curve_at(network, input_var)), octaves)


DIAGONAL_ROWS = 2048  # whose own kernel values are computed at a time


class DeviceMatrix(BlockMatrix[Inputs]):
    """`KernelMatrix` on a device; inputs of unequal norms need closed forms
    (`has_device_walk`)."""

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
        self._terms = make_terms(steps)
        self._gap: DeviceArray = np.float64(1.0)

    def _of_same_inputs(self, network: Network) -> HostMatrix:
        return HostMatrix(
            network, self.left, None if self.symmetric else self.right, plan=self.plan
        )

    def block(
        self, rows: slice, columns: slice, *, shift: Shift = 0.0, out: Array | None = None
    ) -> DeviceArray:
        return self.average_block(rows, columns, self._last_steps(rows, columns, shift))

    def average_block(
        self, rows: slice, columns: slice, last: LastSteps | None = None
    ) -> DeviceArray:
        """The sum of the terms, and what is done to it."""
        origin = origin_of(rows, columns, self.shape, self.symmetric)
        with jax.enable_x64(True):
            found: _Sum = None, self._gap
            for pair in self._pairs:
                left, right = self._lefts[pair.left], self._rights[pair.right]
                here = _TermBlock(
                    unit_block(left, rows),
                    unit_block(right, columns),
                    (
                        padded_rows(left.var[rows], count_of(rows), 1.0),
                        padded_rows(right.var[columns], count_of(columns), 1.0),
                    ),
                    pair.share,
                    pair.left == pair.right,
                    origin,
                    self._orders,
                )
                found = self._terms.sum(here, found, last if pair is self._pairs[-1] else None)
            total, self._gap = found
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
                for start in range(0, n, DIAGONAL_ROWS):
                    rows = slice(start, start + DIAGONAL_ROWS)
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


class UploadedMatrix:
    """`KernelMatrix` of the host, with blocks sent to the device."""

    supports_padding = True

    def __init__(self, host: HostMatrix) -> None:
        self._host = host
        self.network, self.left, self.plan = host.network, host.left, host.plan
        self.split, self.is_exact = host.split, host.is_exact

    @property
    def diagonal(self) -> Array:
        return self._host.diagonal

    def block(
        self, rows: slice, columns: slice, *, shift: Shift = 0.0, out: Array | None = None
    ) -> DeviceArray:
        sides = zip((rows, columns), self._host.shape, strict=True)
        here = [slice(side.start, min(side.stop, n)) for side, n in sides]
        there, size = self._host.block(*here, shift=shift), (count_of(rows), count_of(columns))
        if there.shape == size:
            return put(there)
        block = np.eye(*size, k=rows.start - columns.start)
        block[: len(there)], block[:, : there.shape[1]] = 0.0, 0.0
        block[: len(there), : there.shape[1]] = there
        return put(block)

    def error(self) -> float:
        return self._host.error()


class DownloadedGradient:
    """`GradientSums` of the host, from blocks of the device that may reach beyond the inputs."""

    def __init__(self, host: GradientSums, n: int) -> None:
        self._host, self._n = host, n

    def contract(self, G: DeviceArray, rows: slice, columns: slice) -> None:
        rows, columns = (slice(s.start, min(s.stop, self._n)) for s in (rows, columns))
        there = np.asarray(G)[: rows.stop - rows.start, : columns.stop - columns.start]
        self._host.contract(np.ascontiguousarray(there), rows, columns)

    def result(self, sum_of_all: float) -> Gradient:
        return self._host.result(sum_of_all)
