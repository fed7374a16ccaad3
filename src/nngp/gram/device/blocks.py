"""The programs for blocks of a kernel matrix on a device: all steps of a block are one program, so
the host is asked once for a block however many orders there are."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax

from nngp._arrays import DeviceArray
from nngp.curve.octaves import evaluate
from nngp.gram.device.layers import ClosedForm, DeviceLayers, layer_values
from nngp.gram.device.orders import DeviceOrders, moved
from nngp.gram.device.profiles import (
    BlockOrigin,
    DeviceProfile,
    look_up,
    near_gap,
    profile_values,
    with_diagonal,
)
from nngp.gram.device.programs import program


class TermRule(NamedTuple):
    """How a program turns cosines into values: by the layers of a closed form, or by a curve, where
    near pairs may need a second look."""

    form: ClosedForm | None
    careful: bool


class LastSteps(NamedTuple):
    """What is done to the sum of the terms; None for a step that is left out."""

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
    profile: DeviceProfile | DeviceLayers,
    last: LastSteps | None,
    *,
    rule: TermRule,
) -> tuple[DeviceArray, DeviceArray]:
    """What was there before and a share of Σ v_u k(x, u x'), with the last steps where these terms
    are the last; and the smallest 1 - |c| so far, if it is small. `alike` says whether both sides
    are transformed by one function, so that the diagonal may have inputs with themselves."""

    def term(other: DeviceArray, same: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
        here = origin._replace(symmetric=origin.symmetric & same)
        c = x @ other.T
        if isinstance(profile, DeviceLayers):
            assert rule.form is not None
            return layer_values(profile, c, x, other, here, rule.form)
        if rule.careful:
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


def _finished(total: DeviceArray, last: LastSteps, origin: BlockOrigin) -> DeviceArray:
    """A block of M from the sum of its terms."""
    if last.norms is not None and last.head is not None:
        left, right = last.norms
        total = look_up(last.head, jnp.clip(total * left[:, None] * right, -1.0, 1.0))
    if last.shift is not None:
        scale, offset = last.shift
        total = total / scale - offset
    return with_diagonal(total, last.own, origin)


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
