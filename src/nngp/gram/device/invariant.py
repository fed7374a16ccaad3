"""Kernel matrices of networks that are averaged over transformations, on a device.

One program computes a block: for every order of the columns the rows of one side are put in that
order, multiplied with those of the other, looked up in the curve and added, so the host is asked
once for a block however many orders there are. Row functions are applied on the host, once for all
rows; each pair of them is one call of that program.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nngp._arrays import Array, DeviceArray
from nngp.architecture import Invariant
from nngp.architecture.invariances import Orbit
from nngp.curve.octaves import evaluate
from nngp.gram.device.arrays import count_of, put, put_as, unit_block
from nngp.gram.device.curve import device_curve
from nngp.gram.device.profiles import (
    BlockOrigin,
    DeviceProfile,
    device_profile,
    look_up,
    near_gap,
    origin_of,
    profile_values,
    shift_on_device,
    with_diagonal,
)
from nngp.gram.device.programs import program
from nngp.gram.host.backend import in_memory
from nngp.gram.host.invariant_gradient import check_request, finished
from nngp.gram.inputs import Inputs
from nngp.gram.kernel_matrix import Gradient, GradientRequest, MatrixRequest, Shift
from nngp.gram.orbit_inputs import transformed_inputs
from nngp.gram.plan import KernelPlan, own_split, split_fits
from nngp.gram.sensitivities import CurveSensitivities
from nngp.gram.split import TRIVIAL_SPLIT

ROWS = 2048  # whose own kernel values are computed at a time


class DeviceOrders(NamedTuple):
    """The orders of the columns on the device, with their weights."""

    index: DeviceArray  # (orders, d)
    signs: DeviceArray | None  # (orders, d), None if all are one
    weights: DeviceArray
    same: DeviceArray  # whether an order leaves the columns as they are


class FunctionPair(NamedTuple):
    """Row functions of both sides by their number, and the share of this pair."""

    left: int
    right: int
    share: float


def device_orders(orbit: Orbit) -> DeviceOrders:
    """The orders of an orbit, whose weights may be zero."""
    index = np.array([order.index for order in orbit.orders], dtype=np.int32)
    signs = None
    if any(order.signs is not None for order in orbit.orders):
        ones = np.ones(index.shape[1])
        given = [ones if order.signs is None else order.signs for order in orbit.orders]
        signs = put(np.array(given))
    same = np.array([order.is_identity for order in orbit.orders])
    return DeviceOrders(
        put_as(index, index.dtype), signs, put(orbit.order_weights), put_as(same, same.dtype)
    )


def function_pairs(orbit: Orbit) -> list[FunctionPair]:
    """All pairs of row functions that count."""
    shares = np.outer(orbit.function_weights, orbit.function_weights)
    return [
        FunctionPair(i, j, float(shares[i, j])) for i, j in np.ndindex(shares.shape) if shares[i, j]
    ]


def used_orders(orbit: Orbit) -> Orbit:
    """The orbit without orders of weight zero."""
    kept = np.flatnonzero(orbit.order_weights > 0)
    return Orbit(
        orbit.functions,
        orbit.function_weights,
        tuple(orbit.orders[k] for k in kept),
        orbit.order_weights[kept],
        {},
    )


class DeviceInvariantMatrix:
    """`KernelMatrix` of an `Invariant` network on a device; inputs share one norm."""

    can_fill = True  # blocks may reach beyond the inputs

    def __init__(self, request: MatrixRequest, plan: KernelPlan) -> None:
        network = cast(Invariant, request.architecture)
        assert plan.input_var is not None
        self.architecture, self.plan, self.left = network, plan, in_memory(request.left)
        self._symmetric = request.right is None
        right = self.left if request.right is None else in_memory(request.right)
        self._shape = len(self.left), len(right)
        self.split = request.split or own_split(network, plan)
        self.is_exact = split_fits(self.split, plan)
        if not self.is_exact:
            self.split.check_shift()
        own = self.split if self.is_exact else TRIVIAL_SPLIT
        self._curve = device_curve(network.base, plan.input_var, own)
        # Of an input with its own transformations, which may be very near.
        self._near = device_curve(network.base, plan.input_var, own, near=True)
        orbit = used_orders(network.orbit(self.left.shape[1]))
        self._orders, self._pairs = device_orders(orbit), function_pairs(orbit)
        self._lefts, self._rights = (
            cast(Sequence[Inputs], transformed_inputs(network, side)) for side in (self.left, right)
        )
        self._nearest: DeviceArray = np.float64(1.0)

    def block(
        self, rows: slice, columns: slice, *, shift: Shift = 0.0, out: Array | None = None
    ) -> DeviceArray:
        with jax.enable_x64(True):
            total: DeviceArray = None
            for pair in self._pairs:
                x = unit_block(self._lefts[pair.left], rows)
                y = unit_block(self._rights[pair.right], columns)
                total, self._nearest = _orbit_block(
                    total, x, y, *self._rest(rows, columns, pair), careful=self._curve.careful
                )
            value = total if self.is_exact else self.split.of_whole(total)
            own = self.diagonal[rows] + shift if self._symmetric else 0.0
            origin = origin_of(rows, columns, self._shape, self._symmetric)
            return _with_diagonal(value, shift_on_device(own, count_of(rows)), origin)

    def _rest(self, rows: slice, columns: slice, pair: FunctionPair) -> tuple[Any, ...]:
        """The arguments of the program for a block, beside its inputs."""
        alike = self._symmetric and pair.left == pair.right
        return (
            np.float64(pair.share),
            origin_of(rows, columns, self._shape, alike),
            self._orders,
            self._curve.table,
            self._nearest,
        )

    @cached_property
    def diagonal(self) -> Array:
        """On the device: a look-up for each order."""
        n, total = len(self.left), np.zeros(len(self.left))
        same = float(np.asarray(self._orders.weights)[np.asarray(self._orders.same)].sum())
        with jax.enable_x64(True):
            for pair in self._pairs:
                alike = np.bool_(pair.left == pair.right)
                if alike:
                    total += pair.share * same * self._curve.at_one
                for start in range(0, n, ROWS):
                    rows = slice(start, start + ROWS)
                    x, y = (unit_block(self._lefts[k], rows) for k in (pair.left, pair.right))
                    part = _orbit_diagonal(x, y, alike, self._orders, self._near.table)
                    total[rows] += pair.share * np.asarray(part)[: n - start]
        return total if self.is_exact else np.asarray(self.split.of_whole(total))

    def error(self) -> float:
        error = self._curve.error(float(self._nearest))
        if self.is_exact:
            return error
        rounding = self.split.shift_error(self.architecture.depth)
        return error + self._curve.noise * self.split.offset + rounding


class DeviceInvariantGradient:
    """`GradientSums` of an `Invariant` network on a device; inputs share one norm."""

    def __init__(
        self, request: GradientRequest, inputs: Inputs, sensitivities: CurveSensitivities
    ) -> None:
        network = check_request(request)
        self._request, self._sensitivities = request, sensitivities
        orbit = network.orbit(inputs.shape[1])
        orbit = orbit if orbit.slopes else used_orders(orbit)
        self._orders, self._pairs = device_orders(orbit), function_pairs(orbit)
        self._sides = cast(Sequence[Inputs], transformed_inputs(network, inputs))
        assert request.split.input_var is not None or request.split.is_trivial
        var = float(np.median(self._sides[0].var))
        curve = device_curve(network.base, request.split.input_var or var, request.split, near=True)
        profiles = [device_profile(profile) for profile in sensitivities.profiles]
        self._tables = [curve.table, *profiles]
        self._total = put(np.zeros((len(self._tables), len(orbit.orders))))

    def contract(self, G: DeviceArray, rows: slice, columns: slice) -> None:
        n = len(self._sides[0])
        for pair in self._pairs:
            x = unit_block(self._sides[pair.left], rows)
            y = unit_block(self._sides[pair.right], columns)
            origin = origin_of(rows, columns, (n, n), pair.left == pair.right)
            share = np.float64(pair.share)
            self._total = _contract_orbit(
                self._total, share, G, x, y, origin, self._orders, self._tables
            )

    def result(self, sum_of_all: float) -> Gradient:
        by_order, *in_variances = np.asarray(self._total)
        weights = np.asarray(self._orders.weights)
        total = np.array([float(one @ weights) for one in in_variances])
        return finished(self._request, self._sensitivities, total, by_order, sum_of_all)


def _moved(rows: DeviceArray, orders: DeviceOrders, k: DeviceArray) -> DeviceArray:
    """Rows with their columns in the k-th order."""
    out = jnp.take(rows, orders.index[k], axis=1, mode="clip")
    return out if orders.signs is None else out * orders.signs[k]


@program
def _orbit_block(
    before: DeviceArray | None,
    x: DeviceArray,
    y: DeviceArray,
    share: DeviceArray,
    origin: BlockOrigin,
    orders: DeviceOrders,
    table: DeviceProfile,
    nearest: DeviceArray,
    *,
    careful: bool,
) -> tuple[DeviceArray, DeviceArray]:
    """What was there before and a share of Σ v_u k(x, u x'), and the smallest 1 - |c| if it is
    small."""

    def add(k: DeviceArray, state: tuple[DeviceArray, DeviceArray]) -> Any:
        total, nearest = state
        moved, weight = _moved(y, orders, k), share * orders.weights[k]
        c = x @ moved.T
        if not careful:
            return total + weight * look_up(table, c), nearest
        same = origin._replace(symmetric=origin.symmetric & orders.same[k])
        value, near = profile_values(table, c, x, moved, same, 0.0)
        return total + weight * value, jnp.minimum(nearest, near)

    start = jnp.zeros((len(x), len(y))) if before is None else before
    total, nearest = lax.fori_loop(0, len(orders.weights), add, (start, nearest))
    return total, nearest


@program
def _with_diagonal(block: DeviceArray, own: DeviceArray, origin: BlockOrigin) -> DeviceArray:
    return with_diagonal(block, own, origin)


@program
def _orbit_diagonal(
    x: DeviceArray,
    y: DeviceArray,
    alike: DeviceArray,
    orders: DeviceOrders,
    table: DeviceProfile,
) -> DeviceArray:
    """Σ v_u k(x, u x) of some rows, without the order that changes nothing if the sides are
    alike."""

    def add(k: DeviceArray, total: DeviceArray) -> DeviceArray:
        m, negative = near_gap(x, _moved(y, orders, k))
        deficit = evaluate(jnp, table.coefs, table.ends, table.exponents, negative, m)
        weight = jnp.where(alike & orders.same[k], 0.0, orders.weights[k])
        return total + weight * (table.at_one - deficit)

    return lax.fori_loop(0, len(orders.weights), add, jnp.zeros(len(x)))


@program
def _contract_orbit(
    total: DeviceArray,
    share: DeviceArray,
    G: DeviceArray,
    x: DeviceArray,
    y: DeviceArray,
    origin: BlockOrigin,
    orders: DeviceOrders,
    tables: list[DeviceProfile],
) -> DeviceArray:
    """Σ G f(x, u x') over a block for each table f and each order u, (tables, orders), added to
    those of other blocks."""

    def sums(k: DeviceArray) -> DeviceArray:
        moved = _moved(y, orders, k)
        c = x @ moved.T
        same = origin._replace(symmetric=origin.symmetric & orders.same[k])
        found = [profile_values(table, c, x, moved, same, 0.0)[0] for table in tables]
        return jnp.stack([(G * one).sum() for one in found])

    return total + share * lax.map(sums, jnp.arange(len(orders.weights))).T
