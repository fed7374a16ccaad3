"""Pairs of inputs as signed gaps on a device: 1 - |c| with the sign of c, exact for near pairs.

Unlike a cosine a gap needs no second look, so that a kernel is one look-up for every pair.
"""

import jax.numpy as jnp

from nngp._arrays import DeviceArray
from nngp.curve import NEAR
from nngp.curve.octaves import cell_cubics, first_bits
from nngp.gram.device.profiles import DEEP, cell_values, near_gap, recompute
from nngp.gram.device.programs import program


@program
def signed_gaps(
    x: DeviceArray, y: DeviceArray, *, symmetric: bool
) -> tuple[DeviceArray, DeviceArray]:
    """1 - |c| of all pairs of unit vectors with the sign of c, exact for near pairs; and the
    smallest that is not zero, if it is below 2^-16. Unlike c it needs no second look."""

    def pair(i: DeviceArray, j: DeviceArray, old: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
        m, negative = near_gap(x[i], y[j])
        return jnp.where(negative, -m, m), m

    c = x @ y.T
    near = jnp.abs(c) > 1 - NEAR
    if symmetric:
        near &= ~jnp.eye(len(x), dtype=bool)
    gaps, nearest = recompute(jnp.copysign(1 - jnp.abs(c), c), near, pair)
    if symmetric:
        gaps = jnp.where(jnp.eye(len(x), dtype=bool), 0.0, gaps)
    return gaps, nearest


def gap_values(
    coefs: DeviceArray, at_one: DeviceArray, at_minus_one: DeviceArray, gaps: DeviceArray
) -> DeviceArray:
    """at_one - deficit at signed gaps, none below 2^-54; `coefs` are those of the deficit's first
    54 octaves."""
    cubics = cell_cubics(coefs)
    edge = jnp.concatenate([coefs[0, 0].sum()[None], jnp.zeros(3)])  # m = 1: all T_k(1) are 1
    cubics = jnp.concatenate([cubics, jnp.broadcast_to(edge, (2, 1, 4))], axis=1)
    negative, m = jnp.signbit(gaps), jnp.abs(gaps)
    inside = at_one - cell_values(cubics, first_bits(DEEP), negative, m)
    return jnp.where(m > 0, inside, jnp.where(negative, at_minus_one, at_one))
