"""The terms of an average as a device has them: orders of the columns, and pairs of row functions.

Row functions are applied on the host, once for all rows, and each pair of them is a call of a
program; the orders of the columns are a loop inside it. A network that is no average has one pair
and no orders.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from nngp._arrays import DeviceArray
from nngp.architecture.invariances import Orbit
from nngp.gram.device.arrays import put, put_as


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


def device_orders(orbit: Orbit) -> DeviceOrders | None:
    """The orders of an orbit, whose weights may be zero; None if columns stay where they are."""
    if len(orbit.orders) == 1 and orbit.orders[0].is_identity:
        return None
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


def moved(rows: DeviceArray, orders: DeviceOrders, k: DeviceArray) -> DeviceArray:
    """Rows with their columns in the k-th order."""
    out = jnp.take(rows, orders.index[k], axis=1, mode="clip")
    return out if orders.signs is None else out * orders.signs[k]
