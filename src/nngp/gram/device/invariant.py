"""Kernel matrices of networks that are averaged over transformations, on a device.

One program computes a block: for every order of the columns the rows of one side are put in that
order, multiplied with those of the other, looked up in the curve and added, so the host is asked
once for a block however many orders there are. Row functions are applied on the host, once for all
rows; each pair of them is one call of that program.
"""

from collections.abc import Sequence
from functools import cached_property, partial
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nngp._arrays import Array, DeviceArray
from nngp.architecture import Invariant
from nngp.architecture.invariances import Orbit
from nngp.curve.octaves import evaluate
from nngp.gram.device.arrays import put, unit_rows
from nngp.gram.device.curve import device_curve
from nngp.gram.device.profiles import (
    BlockOrigin,
    DeviceProfile,
    cut_rows,
    device_profile,
    look_up,
    near_gap,
    on_diagonal,
    origin_of,
    profile_values,
    shift_on_device,
    size_of,
)
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
    return DeviceOrders(jnp.asarray(index), signs, put(orbit.order_weights), jnp.asarray(same))


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

    def __init__(self, request: MatrixRequest, plan: KernelPlan) -> None:
        network = cast(Invariant, request.architecture)
        assert plan.input_var is not None
        self.architecture, self.plan, self.left = network, plan, in_memory(request.left)
        self._symmetric = request.right is None
        right = self.left if request.right is None else in_memory(request.right)
        self.split = request.split or own_split(network, plan)
        self.is_exact = split_fits(self.split, plan)
        if not self.is_exact:
            self.split.check_shift()
        self._curve = device_curve(
            network.base, plan.input_var, self.split if self.is_exact else TRIVIAL_SPLIT
        )
        orbit = used_orders(network.orbit(self.left.shape[1]))
        self._orders, self._pairs = device_orders(orbit), function_pairs(orbit)
        self._lefts, self._rights = (
            cast(Sequence[Inputs], transformed_inputs(network, side)) for side in (self.left, right)
        )
        self._nearest: DeviceArray = 1.0

    def block(
        self, rows: slice, columns: slice, *, shift: Shift = 0.0, out: Array | None = None
    ) -> DeviceArray:
        origin = origin_of(rows, columns, self._symmetric)
        with jax.enable_x64(True):
            total = None
            for pair in self._pairs:
                part, nearest = _orbit_block(
                    unit_rows(self._lefts[pair.left]),
                    unit_rows(self._rights[pair.right]),
                    origin._replace(symmetric=origin.symmetric & (pair.left == pair.right)),
                    self._orders,
                    self._curve.table,
                    careful=self._curve.careful,
                    **size_of(rows, columns),
                )
                self._nearest = jnp.minimum(self._nearest, nearest)
                if len(self._pairs) > 1:
                    part = pair.share * part
                total = part if total is None else total + part
            value = total if self.is_exact else self.split.of_whole(total)
            if not self._symmetric:
                return value
            own = shift_on_device(self.diagonal[rows] + shift)
            return _with_diagonal(value, own, origin)

    @cached_property
    def diagonal(self) -> Array:
        """On the device: a look-up for each order."""
        n = len(self.left)
        size, total = min(ROWS, n), np.zeros(n)
        same = float(np.asarray(self._orders.weights)[np.asarray(self._orders.same)].sum())
        with jax.enable_x64(True):
            for pair in self._pairs:
                sides = unit_rows(self._lefts[pair.left]), unit_rows(self._lefts[pair.right])
                alike = np.bool_(pair.left == pair.right)
                if alike:
                    total += pair.share * same * self._curve.at_one
                for start in range(0, n, size):
                    first = min(start, n - size)
                    part = _orbit_diagonal(
                        *sides, np.int32(first), alike, self._orders, self._curve.table, size=size
                    )
                    total[start : first + size] += pair.share * np.asarray(part)[start - first :]
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
        origin = origin_of(rows, columns, True)
        for pair in self._pairs:
            found = _contract_orbit(
                G,
                unit_rows(self._sides[pair.left]),
                unit_rows(self._sides[pair.right]),
                origin._replace(symmetric=origin.symmetric & (pair.left == pair.right)),
                self._orders,
                self._tables,
                **size_of(rows, columns),
            )
            self._total = self._total + pair.share * found

    def result(self, sum_of_all: float) -> Gradient:
        by_order, *in_variances = np.asarray(self._total)
        weights = np.asarray(self._orders.weights)
        total = np.array([float(one @ weights) for one in in_variances])
        return finished(self._request, self._sensitivities, total, by_order, sum_of_all)


def _moved(rows: DeviceArray, orders: DeviceOrders, k: DeviceArray) -> DeviceArray:
    """Rows with their columns in the k-th order."""
    out = jnp.take(rows, orders.index[k], axis=1, mode="clip")
    return out if orders.signs is None else out * orders.signs[k]


@partial(jax.jit, static_argnames=("height", "width", "careful"))
def _orbit_block(
    left: DeviceArray,
    right: DeviceArray,
    origin: BlockOrigin,
    orders: DeviceOrders,
    table: DeviceProfile,
    *,
    height: int,
    width: int,
    careful: bool,
) -> tuple[DeviceArray, DeviceArray]:
    """Σ v_u k(x, u x') of a block, and the smallest 1 - |c| if it is small."""
    x, y = cut_rows(left, right, origin, height, width)

    def add(k: DeviceArray, state: tuple[DeviceArray, DeviceArray]) -> DeviceArray:
        total, nearest = state
        moved = _moved(y, orders, k)
        c = x @ moved.T
        if not careful:
            return total + orders.weights[k] * look_up(table, c), nearest
        same = origin._replace(symmetric=origin.symmetric & orders.same[k])
        value, near = profile_values(table, c, x, moved, same, 0.0)
        return total + orders.weights[k] * value, jnp.minimum(nearest, near)

    start = jnp.zeros((height, width)), jnp.ones(())
    return lax.fori_loop(0, len(orders.weights), add, start)


@partial(jax.jit, donate_argnums=0)
def _with_diagonal(block: DeviceArray, own: DeviceArray, origin: BlockOrigin) -> DeviceArray:
    return jnp.where(on_diagonal(block.shape, origin), own, block)


@partial(jax.jit, static_argnames="size")
def _orbit_diagonal(
    left: DeviceArray,
    right: DeviceArray,
    first: DeviceArray,
    alike: DeviceArray,
    orders: DeviceOrders,
    table: DeviceProfile,
    *,
    size: int,
) -> DeviceArray:
    """Σ v_u k(x, u x) of some rows, without the order that changes nothing if the sides are
    alike."""
    x, y = (lax.dynamic_slice_in_dim(side, first, size) for side in (left, right))

    def add(k: DeviceArray, total: DeviceArray) -> DeviceArray:
        m, negative = near_gap(x, _moved(y, orders, k))
        deficit = evaluate(jnp, table.coefs, table.ends, table.exponents, negative, m)
        weight = jnp.where(alike & orders.same[k], 0.0, orders.weights[k])
        return total + weight * (table.at_one - deficit)

    return lax.fori_loop(0, len(orders.weights), add, jnp.zeros(size))


@partial(jax.jit, static_argnames=("height", "width"))
def _contract_orbit(
    G: DeviceArray,
    left: DeviceArray,
    right: DeviceArray,
    origin: BlockOrigin,
    orders: DeviceOrders,
    tables: list[DeviceProfile],
    *,
    height: int,
    width: int,
) -> DeviceArray:
    """Σ G f(x, u x') over a block for each table f and each order u, (tables, orders)."""
    x, y = cut_rows(left, right, origin, height, width)

    def sums(k: DeviceArray) -> DeviceArray:
        moved = _moved(y, orders, k)
        c = x @ moved.T
        same = origin._replace(symmetric=origin.symmetric & orders.same[k])
        found = [profile_values(table, c, x, moved, same, 0.0)[0] for table in tables]
        return jnp.stack([(G * one).sum() for one in found])

    return lax.map(sums, jnp.arange(len(orders.weights))).T
