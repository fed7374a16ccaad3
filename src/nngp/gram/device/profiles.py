"""Functions of the cosine on a device: a compiled curve, read for every pair of a block.

A program takes the rows and columns of one block, so that it serves every block of one shape,
whatever the number of points. A block may reach beyond the last point: there it is a block of the
identity. Near pairs (1 - |c| below 2^-16) are computed again from the difference of their unit
vectors, in a loop inside that program: the host is not asked.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from nngp._arrays import DeviceArray
from nngp.curve import NEAR, Profile
from nngp.curve.octaves import BITS, SHALLOW, evaluate
from nngp.gram.device.arrays import put

PAIRS = 4096  # near pairs handled at a time
SHIFT = 52 - BITS
DEEP = 54  # octaves of 1 - |c|: all that float64 cosines can have


class DeviceProfile(NamedTuple):
    """A `Profile` on the device. What near pairs are computed from is None where they need no
    second look: its size depends on the network, and programs do on sizes."""

    cubics: DeviceArray  # (2, cells, 4): c >= 0, then c < 0
    first: DeviceArray  # what the leading bits begin with
    coefs: DeviceArray
    ends: DeviceArray
    exponents: DeviceArray
    at_one: DeviceArray


class BlockOrigin(NamedTuple):
    """A block: where it begins, how many of its rows and columns exist, and whether it can meet
    the diagonal."""

    row: DeviceArray
    column: DeviceArray
    rows: DeviceArray
    columns: DeviceArray
    symmetric: DeviceArray


def origin_of(
    rows: slice, columns: slice, shape: tuple[int, int], symmetric: bool = False
) -> BlockOrigin:
    """Of a block of a matrix of this shape."""
    return BlockOrigin(
        np.int32(rows.start),
        np.int32(columns.start),
        np.int32(shape[0] - rows.start),
        np.int32(shape[1] - columns.start),
        np.bool_(symmetric),
    )


def device_profile(profile: Profile, octaves: int = SHALLOW) -> DeviceProfile:
    fast, deficit, at_one = profile.table(octaves), profile.deficit, put(profile.at_one)
    cubics, first = put(fast.columns.T.reshape(2, fast.cells, 4)), np.int64(fast.first)
    if octaves == DEEP:
        return DeviceProfile(cubics, first, None, None, None, at_one)
    near = put(deficit.coefs), put(deficit.ends), put(deficit.exponent)
    return DeviceProfile(cubics, first, *near, at_one)


def look_up(table: DeviceProfile, c: DeviceArray) -> DeviceArray:
    """`FastTable.apply`: the cell is in the leading bits of m = 1 - |c|, the rest is the offset."""
    return cell_values(table.cubics, table.first, c < 0, 1.0 - jnp.abs(c))


def cell_values(
    cubics: DeviceArray, first: DeviceArray, negative: DeviceArray, m: DeviceArray
) -> DeviceArray:
    """Of tables (2, cells, 4). Twice as fast with one index that is known to be inside."""
    raw, cells = lax.bitcast_convert_type(m, jnp.int64), cubics.shape[1]
    cell = jnp.clip((raw >> SHIFT) - first, 0, cells - 1) + jnp.where(negative, cells, 0)
    offset_bits = (raw & ((1 << SHIFT) - 1)) | (1023 << 52)
    x = lax.bitcast_convert_type(offset_bits, jnp.float64) - 1.0
    rows = cubics.reshape(-1, 4).at[cell.astype(jnp.int32)]
    cubic = rows.get(mode="promise_in_bounds")
    return ((cubic[..., 3] * x + cubic[..., 2]) * x + cubic[..., 1]) * x + cubic[..., 0]


def on_diagonal(shape: tuple[int, int], origin: BlockOrigin) -> DeviceArray:
    i = lax.broadcasted_iota(jnp.int32, shape, 0) + origin.row
    j = lax.broadcasted_iota(jnp.int32, shape, 1) + origin.column
    return (i == j) & origin.symmetric


def inside(shape: tuple[int, int], origin: BlockOrigin) -> DeviceArray:
    """Where both inputs exist."""
    i, j = (lax.broadcasted_iota(jnp.int32, shape, axis) for axis in (0, 1))
    return (i < origin.rows) & (j < origin.columns)


def with_diagonal(value: DeviceArray, on_it: DeviceArray, origin: BlockOrigin) -> DeviceArray:
    """A block with `on_it` on the matrix's diagonal; of the identity where no inputs are."""
    diagonal = on_diagonal(value.shape, origin)
    there = jnp.where(diagonal, on_it, value)
    return jnp.where(inside(value.shape, origin), there, jnp.where(diagonal, 1.0, 0.0))


def recompute(
    value: DeviceArray,
    marked: DeviceArray,
    pair: Callable[[DeviceArray, DeviceArray, DeviceArray], tuple[DeviceArray, DeviceArray]],
) -> tuple[DeviceArray, DeviceArray]:
    """Replace marked entries by pair(i, j, old), some thousand at a time; the smallest gap too."""
    width = value.shape[1]

    def body(state: DeviceArray) -> DeviceArray:
        value, marked, nearest = state
        index = jnp.flatnonzero(marked, size=PAIRS, fill_value=marked.size)
        i, j = index // width, index % width
        new, gap = pair(i, j, value[i, j])
        there = index < marked.size
        nearest = jnp.minimum(nearest, jnp.where(there & (gap > 0), gap, 1.0).min())
        return value.at[i, j].set(new, mode="drop"), marked.at[i, j].set(False), nearest

    start = value, marked, jnp.ones(())
    value, _, nearest = lax.while_loop(lambda state: state[1].any(), body, start)
    return value, nearest


def near_gap(x: DeviceArray, y: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    """1 - |c| of pairs of unit vectors from their difference, and whether c is negative."""
    negative = (x * y).sum(axis=1) < 0
    gap = jnp.where(negative[:, None], x + y, x - y)
    return 0.5 * (gap * gap).sum(axis=1), negative


def profile_values(
    table: DeviceProfile, c: DeviceArray, x: DeviceArray, y: DeviceArray, origin: BlockOrigin
) -> tuple[DeviceArray, DeviceArray]:
    """Cosines to values of a profile, but for the diagonal; the smallest 1 - |c| if it is small."""

    def pair(i: DeviceArray, j: DeviceArray, old: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
        m, negative = near_gap(x[i], y[j])
        deficit = evaluate(jnp, table.coefs, table.ends, table.exponents, negative, m)
        return table.at_one - deficit, m

    near = (jnp.abs(c) > 1 - NEAR) & ~on_diagonal(c.shape, origin)
    return recompute(look_up(table, c), near, pair)
