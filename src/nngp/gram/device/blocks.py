"""The programs for blocks of a kernel matrix on a device: all steps of a block are one program, so
the host is asked once for a block however many orders there are.

Of an average, row functions are applied on the host, once for all rows, and each pair of them is a
call of a program; the orders of the columns are a loop inside it. A network that is no average has
one pair and no orders.
"""

from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from nngp._arrays import DeviceArray
from nngp.architecture import Activation, Network
from nngp.architecture.activation import ClosedFormKey
from nngp.architecture.invariances import Orbit
from nngp.architecture.walk import output, walk
from nngp.covariance import closed_form
from nngp.curve.octaves import evaluate
from nngp.gram.device.arrays import program, put, put_as
from nngp.gram.device.profiles import (
    BlockOrigin,
    DeviceProfile,
    inside,
    look_up,
    near_gap,
    on_diagonal,
    profile_values,
    recompute,
    with_diagonal,
)
from nngp.gram.error_bounds import FAR_ENOUGH
from nngp.gram.triples import Triple, Triples, snapped_correlation


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


def has_device_walk(network: Network) -> bool:
    """Whether a device can compute pairs of different norms, by closed forms; pairs of equal norm
    it always can."""
    if network.is_infinite or network.planes is not None:
        return False
    forms = [phi.closed_form for phi in network.activations]
    return all(form is not None and form[0] != "dual" for form in forms)  # that may be NumPy only


class _Layer:
    """An expectation of an activation on a device, as the operations on triples take it."""

    def __init__(self, phi: Activation, slope: bool) -> None:
        self._which = {"form": phi.closed_form, "slope": slope}

    def variance(self, q: DeviceArray) -> DeviceArray:
        return _expectation(q, q, q, **self._which)

    def covariance(self, q1: DeviceArray, q2: DeviceArray, cov: DeviceArray) -> DeviceArray:
        return _expectation(q1, q2, cov, **self._which)


@program
def _expectation(
    q1: DeviceArray, q2: DeviceArray, cov: DeviceArray, *, form: ClosedFormKey, slope: bool
) -> DeviceArray:
    corr = snapped_correlation(jnp, cov, q1, q2)
    expectation = closed_form(form).slope if slope else closed_form(form).value
    return expectation(jnp, q1, q2, corr)


# One program for each operation, whatever the network: all of a network as one program would take
# minutes to compile.
OPERATIONS = Triples(jnp, partial(_Layer, slope=False), partial(_Layer, slope=True))


def pair_values(
    network: Network,
    x: DeviceArray,
    y: DeviceArray,
    left: DeviceArray,
    right: DeviceArray,
    origin: BlockOrigin,
) -> tuple[DeviceArray, DeviceArray]:
    """The kernel between unit vectors x, y of inputs with these x·x/d, but for the diagonal, by the
    walk; and the smallest 1 - |c| if it is small."""
    variances = list(zip(network.weight_vars, network.bias_vars, strict=True))
    c, cov = _products(x, y, left, right)
    inputs = Triple(left[:, None], right[None, :], cov)
    out = output(walk(network, OPERATIONS, inputs, variances=variances.__getitem__))
    if network.has_masks:  # equal inputs are two draws of the masks
        own = jnp.full(len(x), jnp.nan)
    else:
        own = jnp.broadcast_to(out.rows, (len(x), 1))[:, 0]
    return _with_duplicates(out.cov, own, c, x, y, left, right, origin)


@program
def _products(
    x: DeviceArray, y: DeviceArray, left: DeviceArray, right: DeviceArray
) -> tuple[DeviceArray, DeviceArray]:
    """Cosines, and x·x'/d."""
    c = x @ y.T
    return c, jnp.sqrt(left)[:, None] * jnp.sqrt(right) * c


@program
def _with_duplicates(
    cov: DeviceArray,
    own: DeviceArray,
    c: DeviceArray,
    x: DeviceArray,
    y: DeviceArray,
    left: DeviceArray,
    right: DeviceArray,
    origin: BlockOrigin,
) -> tuple[DeviceArray, DeviceArray]:
    """A block whose equal inputs have the exact values `own`, unless these are NaN."""

    def pair(i: DeviceArray, j: DeviceArray, old: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
        # Unit vectors alone would take parallel inputs for duplicates.
        same = (x[i] == y[j]).all(axis=1) & (left[i] == right[j])
        gap = jnp.where(same, 1.0, jnp.maximum(1 - c[i, j], jnp.finfo(c.dtype).eps))
        return jnp.where(same & ~jnp.isnan(own[i]), own[i], old), gap

    near = (c > 1 - FAR_ENOUGH) & ~on_diagonal(c.shape, origin)
    return recompute(jnp.broadcast_to(cov, c.shape), near, pair)


@program
def in_order(rows: DeviceArray, orders: DeviceOrders, k: DeviceArray) -> DeviceArray:
    """Rows with their columns in the k-th order."""
    return moved(rows, orders, k)


class LastSteps(NamedTuple):
    """Steps applied to the sum of the terms; None for a step that is skipped."""

    own: DeviceArray  # what is on the diagonal, (rows, 1)
    norms: tuple[DeviceArray, DeviceArray] | None  # of rows and columns, below a head
    head: DeviceProfile | None
    shift: tuple[DeviceArray, DeviceArray] | None  # scale and offset of a split


@program
def sum_of_terms(
    before: DeviceArray | None,
    gap: DeviceArray,
    x: DeviceArray,
    y: DeviceArray,
    share: DeviceArray,
    origin: BlockOrigin,
    alike: DeviceArray,
    orders: DeviceOrders | None,
    profile: DeviceProfile,
    last: LastSteps | None,
    *,
    careful: bool,
) -> tuple[DeviceArray, DeviceArray]:
    """The previous sum plus a share of Σ v_u k(x, u x'), with the last steps where these terms
    are the last; and the smallest 1 - |c| so far, if it is small. `alike` says whether both sides
    are transformed by one function, so that the diagonal may have inputs with themselves; `careful`
    whether near pairs need a second look."""

    def term(other: DeviceArray, same: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
        here = origin._replace(symmetric=origin.symmetric & same)
        c = x @ other.T
        if careful:
            return profile_values(profile, c, x, other, here)
        return look_up(profile, c), jnp.ones(())

    def add(k: DeviceArray, state: tuple[DeviceArray, DeviceArray]) -> Any:
        assert orders is not None
        total, gap = state
        value, near = term(moved(y, orders, k), alike & orders.same[k])
        return total + share * orders.weights[k] * value, jnp.minimum(gap, near)

    if orders is None:
        value, near = term(y, alike)
        total, gap = share * value, jnp.minimum(gap, near)
        total = total if before is None else before + total
    else:
        start = jnp.zeros((len(x), len(y))) if before is None else before
        total, gap = lax.fori_loop(0, len(orders.weights), add, (start, gap))
    return total if last is None else _finished(total, last, origin), gap


@program
def add_pairs(before: DeviceArray | None, value: DeviceArray, share: DeviceArray) -> DeviceArray:
    """The previous sum plus a share of one term."""
    return share * value if before is None else before + share * value


@program
def finish(total: DeviceArray, last: LastSteps, origin: BlockOrigin) -> DeviceArray:
    """A block of M from the sum of its terms."""
    return _finished(total, last, origin)


def _finished(total: DeviceArray, last: LastSteps, origin: BlockOrigin) -> DeviceArray:
    """A block of M from the sum of its terms."""
    if last.norms is not None and last.head is not None:
        left, right = last.norms
        total = look_up(last.head, jnp.clip(total * left[:, None] * right, -1.0, 1.0))
    if last.shift is not None:
        scale, offset = last.shift
        total = total / scale - offset
    return with_diagonal(total, last.own, origin)


class HeadParts(NamedTuple):
    """What a block of G gives through a head: sums for the variances of the head, G for the average
    below it, and what reaches the average's own values of rows and columns."""

    in_head: DeviceArray
    below: DeviceArray
    in_rows: DeviceArray
    in_columns: DeviceArray


@program
def through_head(
    G: DeviceArray,
    average: DeviceArray,
    norms: tuple[DeviceArray, DeviceArray],
    origin: BlockOrigin,
    tables: list[DeviceProfile],
    slope: DeviceProfile,
) -> HeadParts:
    """The chain rule of `host.gradient` for a block; `slope` is that of the head's curve, in units
    of the split."""
    left, right = norms
    c = jnp.clip(average * left[:, None] * right, -1.0, 1.0)
    values = [with_diagonal(look_up(table, c), table.at_one, origin) for table in tables]
    in_head = jnp.stack([(G * one).sum() for one in values])
    apart = inside(G.shape, origin) & ~on_diagonal(G.shape, origin)
    G = jnp.where(apart, G * look_up(slope, c), 0.0)
    turned = -0.5 * G * c
    below = G * left[:, None] * right
    return HeadParts(in_head, below, turned.sum(axis=1) * left**2, turned.sum(axis=0) * right**2)


@program
def diagonal_of_orders(
    x: DeviceArray,
    y: DeviceArray,
    alike: DeviceArray,
    orders: DeviceOrders | None,
    table: DeviceProfile,
) -> DeviceArray:
    """Σ v_u k(x, u x) of some rows on a curve."""

    def value(other: DeviceArray, same: DeviceArray) -> DeviceArray:
        m, negative = near_gap(x, other)
        deficit = evaluate(jnp, table.coefs, table.ends, table.exponents, negative, m)
        return jnp.where(same, table.at_one, table.at_one - deficit)

    def add(k: DeviceArray, total: DeviceArray) -> DeviceArray:
        assert orders is not None
        return total + orders.weights[k] * value(moved(y, orders, k), alike & orders.same[k])

    if orders is None:
        return value(y, alike)
    return lax.fori_loop(0, len(orders.weights), add, jnp.zeros(len(x)))


@program
def contracted(
    total: DeviceArray,
    share: DeviceArray,
    G: DeviceArray,
    x: DeviceArray,
    y: DeviceArray,
    origin: BlockOrigin,
    orders: DeviceOrders | None,
    tables: list[DeviceProfile],
) -> DeviceArray:
    """Σ G f(x, u x') over a block for each table f and each order u, (tables, orders), added to
    those of other blocks."""

    def sums(other: DeviceArray, here: BlockOrigin) -> DeviceArray:
        c = x @ other.T
        found = [
            with_diagonal(profile_values(table, c, x, other, here)[0], table.at_one, here)
            for table in tables
        ]
        return jnp.stack([(G * one).sum() for one in found])

    def of_order(k: DeviceArray) -> DeviceArray:
        assert orders is not None
        same = origin.symmetric & orders.same[k]
        return sums(moved(y, orders, k), origin._replace(symmetric=same))

    if orders is None:
        return total + share * sums(y, origin)[:, None]
    return total + share * lax.map(of_order, jnp.arange(len(orders.weights))).T
