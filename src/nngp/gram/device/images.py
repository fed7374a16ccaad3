"""Networks of images on a JAX device: the strips of `gram/host/images.py` as one program a tile.

relu and its relatives need no arc function: arcsin |c| and sqrt(1 - c²) + c arcsin c are, to 4e-15,
polynomials of degree 27 in sqrt(1 - |c|), which take a fraction of the time of arcsin in JAX on a
processor.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.polynomial import Chebyshev, Polynomial

from nngp._arrays import Array, DeviceArray
from nngp.architecture import Activation, Network
from nngp.architecture.graph import Windowed
from nngp.architecture.planes import Axis, AxisWindow
from nngp.architecture.walk import output, walk
from nngp.covariance import closed_form
from nngp.gram.host.images import (
    SNAPPED,
    Crossing,
    ImageTerm,
    Map,
    StripOperations,
    columns_of_tile,
    is_rectifier,
    like,
    rectifier_weights,
    values_of,
)
from nngp.gram.triples import Planes, as_images, image_planes, snapped_correlation, windowed

DEGREE, NODES = 27, 400


class DeviceImageTerm(ImageTerm):
    """Values of a network of images, whose tiles a device computes."""

    @property
    def _rows(self) -> int:
        return columns_of_tile(self._plan)

    @property
    def _columns(self) -> int:
        return self._width  # a tile is a strip of each of its rows: one program for all tiles

    def _tile(self, X: Array, Y: Array) -> Array:
        padded = _repeated(X, self._rows), _repeated(Y, self._columns)
        left, right = (as_images(self._plan, side) for side in padded)
        recorded, own = self._recorded(left, right)
        maps = [one.variances for one in recorded]
        with jax.enable_x64(True):
            found = _tile_values(self.network, left, right, maps)
            out = np.array(found)[: len(X), : len(Y)]
        self._set_equal(out, X, Y, own)
        return out


def _repeated(X: Array, count: int) -> Array:
    """Rows, and the first one again up to a count."""
    return np.concatenate([X, np.broadcast_to(X[:1], (count - len(X), X.shape[1]))])


def has_closed_forms(network: Network) -> bool:
    """Whether a device can compute a network of images: integrals are left to the host."""
    return all(phi.closed_form is not None for phi in network.activations)


@partial(jax.jit, static_argnums=0)
def _tile_values(
    network: Network, left: DeviceArray, right: DeviceArray, maps: list[DeviceArray]
) -> DeviceArray:
    """The values of a tile, row by row."""
    plan = network.planes
    assert plan is not None
    rows, crossings = left.shape[-1], [DeviceCrossing(one) for one in maps]

    def strip(i: DeviceArray) -> DeviceArray:
        operations = DeviceStrip(network.is_tangent, crossings, slice(0, 1), slice(rows, None))
        operations.traced = i
        image = lax.dynamic_slice_in_dim(left, i, 1, axis=-1)
        inputs = image_planes(plan, image, right)
        return output(walk(network, operations, inputs))

    return lax.map(strip, jnp.arange(rows))


class DeviceCrossing(Crossing):
    """A `Crossing` in JAX."""

    def __init__(self, variances: DeviceArray) -> None:
        roots = jnp.sqrt(variances)
        inverse = jnp.where(roots > 0, 1 / jnp.where(roots > 0, roots, 1.0), 0.0)
        vars(self).update(variances=variances, roots=roots, inverse_roots=inverse)


class DeviceStrip(StripOperations):
    """The operations of a strip in JAX; the number of the row is `traced`."""

    traced: DeviceArray

    def _sides(self, maps: DeviceArray, state: Map) -> tuple[DeviceArray, DeviceArray]:
        left = lax.dynamic_slice_in_dim(maps, self.traced, 1, axis=-1)
        right = maps[..., self._columns]
        if isinstance(state, Planes):
            return state.own(left), state.partner(right)
        return left, right

    def dual(self, phi: Activation, state: Map) -> Map:
        crossing = next(self._left)
        if is_rectifier(phi):
            return self._rectified(phi, state, crossing)
        assert phi.closed_form is not None
        form = closed_form(phi.closed_form)
        q1, q2 = self._sides(crossing.variances, state)
        c = snapped_correlation(jnp, values_of(state), q1, q2)
        if self._with_slopes:
            slope: DeviceArray = jnp.broadcast_to(form.slope(jnp, q1, q2, c), c.shape)
            self._slope = like(state, slope)
        return like(state, form.value(jnp, q1, q2, c))

    def window(self, state: Map, node: Windowed) -> Map:
        if node.kind != "patch" or not state.is_plain or node.padding == "circular":
            return windowed(jnp, state, node)
        # As one operation: XLA would fuse slices with the layer before, and compute that again for
        # each of them.
        down, across = (
            AxisWindow.of(node, axis, part.size)
            for axis, part in enumerate((state.height, state.width))
        )
        values = lax.reduce_window(
            values_of(state),
            0.0,
            lax.add,
            (down.window, across.window, 1),
            (down.stride, across.stride, 1),
            ((down.low, down.high), (across.low, across.high), (0, 0)),
        )
        weight = down.weight * across.weight
        return Planes(values * weight, Axis(down.out), Axis(across.out))

    def _rectified(self, phi: Activation, state: Map, crossing: Crossing) -> Map:
        a2, b2 = rectifier_weights(phi)
        left, right = self._sides(crossing.inverse_roots, state)
        c = jnp.clip(values_of(state) * left * right, -1.0, 1.0)
        near = jnp.abs(c)
        t = 2 * jnp.sqrt(jnp.where(near > 1 - SNAPPED, 0.0, 1 - near)) - 1
        arc, value = arc_polynomials()
        if self._with_slopes:
            self._slope = like(state, a2 + b2 * jnp.sign(c) * horner(arc, t))
        left, right = self._sides(crossing.roots, state)
        out = (a2 * c + b2 * horner(value, t)) * left * right
        # Otherwise the polynomial is evaluated again for each of the sums over a window.
        return like(state, lax.optimization_barrier(out))


@cache
def arc_polynomials() -> tuple[tuple[float, ...], tuple[float, ...]]:
    """arcsin c and sqrt(1 - c²) + c arcsin c for c from 0 to 1: coefficients of the powers of
    t = 2 sqrt(1 - c) - 1, from -1 to 1, the highest first. Chebyshev's series, whose coefficients
    are means over so many nodes that they have no rounding error to speak of."""

    def angle(t: Array) -> Array:
        return np.asarray(0.5 * np.pi - 2 * np.arcsin(np.sqrt(0.125) * (1 + t)))

    def value(t: Array) -> Array:
        u = np.sqrt(0.125) * (1 + t)
        return np.asarray(2 * u * np.sqrt(1 - u * u) + (1 - 2 * u * u) * angle(t))

    x = (np.arange(NODES) + 0.5) * np.pi / NODES
    cosines = np.cos(np.outer(np.arange(DEGREE + 1), x))

    def powers(function: Callable[[Array], Array]) -> tuple[float, ...]:
        series = cosines @ function(np.cos(x)) * 2 / NODES
        series[0] /= 2
        return tuple(Chebyshev(series).convert(kind=Polynomial).coef[::-1].tolist())

    return powers(angle), powers(value)


def horner(coefficients: Sequence[float], t: Any) -> Any:
    """A polynomial in t."""
    total = coefficients[0]
    for one in coefficients[1:]:
        total = total * t + one
    return total
