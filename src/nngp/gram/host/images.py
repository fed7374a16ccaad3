"""Networks of images: the walk on the planes of pairs, strip by strip.

A strip is one image of the rows with some of the columns, so many that the covariances of all their
positions stay in the cache. Arrays have the positions in front and the pairs last: a window then
adds contiguous pieces, and everything else is elementwise. The variances of every position and
their roots are computed once for the images of a tile. relu and its relatives take two fifths of
the time of their closed form, as roots and angles are shared by value and slope.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from nngp._arrays import EPS, Array
from nngp._machine import threads
from nngp._threads import in_threads
from nngp.architecture import Activation, Network
from nngp.architecture.graph import Windowed
from nngp.architecture.planes import PlanePlan
from nngp.architecture.walk import Number, output, walk
from nngp.covariance.form import TWO_OVER_PI
from nngp.gram.inputs import Inputs
from nngp.gram.triples import (
    Planes,
    Triple,
    Variances,
    as_images,
    covariances,
    image_planes,
    image_variances,
    mixture,
    slopes,
    windowed,
)

RESERVE = 2**21  # numbers: more than any temporary array of a strip
STRIP_BYTES = 2**18  # of the covariances of a strip: with a few temporaries they fit the L2 cache
COLUMNS = 128  # images of a tile, whose variances are kept; half as many rows
TILE_BYTES = 2**27  # of the covariances of the images of a tile with themselves
SNAPPED = 32 * EPS  # 1 - |c| that rounding explains behind some layers

Map = Any  # `Planes`, or an array where units have no positions


@dataclass(frozen=True)
class Crossing:
    """An operation that needs the variances which enter it, of all images of a tile: by position,
    the left images first."""

    variances: Array  # (height, width, images), or (images,) behind a readout

    @cached_property
    def roots(self) -> Array:
        return np.sqrt(self.variances)

    @cached_property
    def inverse_roots(self) -> Array:
        return np.divide(1.0, self.roots, out=np.zeros_like(self.roots), where=self.roots > 0)


class RecordedPlanes(Variances):
    """The operations on variances, which note what crosses each nonlinearity and layer norm."""

    def __init__(self) -> None:
        super().__init__()
        self.crossings: list[Crossing] = []

    def dual(self, phi: Activation, state: Triple) -> Triple:
        self._record(state)
        return super().dual(phi, state)

    def normalise(self, state: Triple, by: Triple) -> Triple:
        self._record(by)
        return super().normalise(state, by)

    def _record(self, state: Triple) -> None:
        q = state.rows
        self.crossings.append(Crossing(q.first if isinstance(q, Planes) else q))


class StripOperations:
    """The operations of a walk on the covariances of a strip."""

    def __init__(
        self, with_slopes: bool, crossings: Sequence[Crossing], row: slice, columns: slice
    ) -> None:
        self._with_slopes, self._left = with_slopes, iter(crossings)
        self._row, self._columns = row, columns
        self._slope: Map = None  # that of phi, once its value is computed

    def mix(self, weights: Sequence[Number], states: Sequence[Map], constant: Number) -> Map:
        if len(states) > 1:
            return mixture(weights, states, constant)
        values = weights[0] * values_of(states[0])
        if constant != 0.0:
            values += constant
        return like(states[0], values)

    def times(self, one: Map, other: Map) -> Map:
        return one * other

    def dual(self, phi: Activation, state: Map) -> Map:
        crossing = next(self._left)
        if is_rectifier(phi):
            return self._rectified(phi, state, crossing)
        q1, q2 = self._sides(crossing.variances, state)
        if self._with_slopes:
            self._slope = like(state, slopes(phi, q1, q2, values_of(state)))
        return like(state, covariances(phi, q1, q2, values_of(state)))

    def slope(self, phi: Activation, state: Map) -> Map:
        return self._slope  # `walk` asks right after the value

    def normalise(self, state: Map, by: Map) -> Map:
        # K comes before Θ, and both are divided by the roots of one crossing.
        crossing = next(self._left)
        a, b = self._sides(crossing.inverse_roots, state)
        return like(state, values_of(state) * a * b)

    def mask(self, state: Map, keep: float) -> Map:
        return state  # masks of two images are independent

    def window(self, state: Map, node: Windowed) -> Map:
        return windowed(np, state, node)

    def _sides(self, maps: Array, state: Map) -> tuple[Array, Array]:
        """State of both images of a pair at each position."""
        left, right = maps[..., self._row], maps[..., self._columns]
        return (
            (state.own(left), state.partner(right)) if isinstance(state, Planes) else (left, right)
        )

    def _rectified(self, phi: Activation, state: Map, crossing: Crossing) -> Map:
        """a x + b |x| in place: the slope is a² + b² 2/π arcsin c, the value sqrt(q q') times
        slope c + b² 2/π sqrt(1 - c²)."""
        a2, b2 = rectifier_weights(phi)
        left, right = self._sides(crossing.inverse_roots, state)
        c = values_of(state) * left
        c *= right
        np.clip(c, -1.0, 1.0, out=c)
        if self._with_slopes:  # which have infinite slopes at ±1
            _snap(c)
        slope, sine, more = np.arcsin(c), 1.0 - c, 1.0 + c
        sine *= more
        np.sqrt(sine, out=sine)
        slope += a2 / b2
        c *= slope
        c += sine
        left, right = self._sides(crossing.roots, state)
        c *= b2 * left
        c *= right
        if self._with_slopes:
            slope *= b2
            self._slope = like(state, slope)
        return like(state, c)


def is_rectifier(phi: Activation) -> bool:
    """Whether it is relu or one of its relatives, which have a way of their own."""
    key = phi.closed_form
    return key is not None and key[0] == "leaky_relu" and key[1] != key[2]


def rectifier_weights(phi: Activation) -> tuple[float, float]:
    """a² and b² 2/π of a rectifier a x + b |x|."""
    assert phi.closed_form is not None
    _, below, above = phi.closed_form
    return (0.5 * (above + below)) ** 2, TWO_OVER_PI * (0.5 * (above - below)) ** 2


def _snap(c: Array) -> None:
    """Correlations of ±1 where rounding alone keeps them from it, in place."""
    if c.max(initial=0.0) > 1 - SNAPPED or c.min(initial=0.0) < SNAPPED - 1:
        near = np.abs(c) > 1 - SNAPPED
        c[near] = np.sign(c[near])


def values_of(state: Map) -> Array:
    values: Array = state.values if isinstance(state, Planes) else state
    return values


def like(state: Map, values: Array) -> Map:
    return state.like(values) if isinstance(state, Planes) else values


class ImageTerm:
    """Values of a network of images between two sets of inputs: a `Term` without inner products."""

    smallest_gap = 1.0  # pairs of positions are not looked at one by one
    noise = 0.0

    def __init__(self, network: Network, left: Inputs, right: Inputs) -> None:
        self.network, self.left, self.right = network, left, right
        self.transform = self
        self._plan.check_columns(left.X.shape[1])

    def block(self, rows: slice, columns: slice, out: Array | None = None) -> Array:
        """The values of these rows and columns."""
        shape = rows.stop - rows.start, columns.stop - columns.start
        block = np.empty(shape) if out is None else out
        same = self.left is self.right and rows == columns
        tiles = [
            (slice(i, min(i + self._rows, shape[0])), slice(j, min(j + self._columns, shape[1])))
            for i in range(0, shape[0], self._rows)
            for j in range(0, min(i + self._rows, shape[1]) if same else shape[1], self._columns)
        ]
        X, Y = self.left.X[rows], self.right.X[columns]
        # The allocator of Linux maps large arrays into memory again, page by page, until one that
        # is larger still has been freed. Temporary arrays then cost twice as much as the
        # arithmetic.
        reserve = np.empty(RESERVE)
        del reserve

        def fill(tile: tuple[slice, slice]) -> None:
            block[tile] = self._tile(X[tile[0]], Y[tile[1]])

        in_threads(fill, tiles)
        if same:
            upper = np.triu_indices(len(block), 1)
            block[upper] = block.T[upper]
        return block

    def paired(self) -> Array:
        """The value of each left input with the right input of the same number."""
        plan, width = self._plan, self._width

        def values(some: slice) -> Array:
            left, right = (as_images(plan, side.X[some]) for side in (self.left, self.right))
            recorded, _ = self._recorded(left, right)
            count = left.shape[-1]
            sides = slice(0, count), slice(count, 2 * count)
            return self._strip(image_planes(plan, left, right), recorded, *sides)

        parts = [slice(start, start + width) for start in range(0, len(self.left), width)]
        return np.concatenate(in_threads(values, parts))

    def _tile(self, X: Array, Y: Array) -> Array:
        plan, width = self._plan, self._width
        out = np.empty((len(X), len(Y)))
        left, right = as_images(plan, X), as_images(plan, Y)
        recorded, own = self._recorded(left, right)
        for start in range(0, len(Y), width):
            part = slice(start, min(start + width, len(Y)))
            others = slice(len(X) + part.start, len(X) + part.stop)
            some = np.ascontiguousarray(right[..., part])
            for i in range(len(X)):
                row = slice(i, i + 1)
                inputs = image_planes(plan, left[..., row], some)
                out[i, part] = self._strip(inputs, recorded, row, others)
        self._set_equal(out, X, Y, own)
        return out

    def _set_equal(self, values: Array, X: Array, Y: Array, own: Array) -> None:
        """Give equal images exactly what is on the diagonal."""
        if not self.network.has_masks:
            for i, j in _equal_rows(X, Y):
                values[i, j] = own[i]

    @property
    def _rows(self) -> int:
        """Rows of a tile."""
        return self._columns // 2

    @property
    def _columns(self) -> int:
        """Columns of a tile."""
        return columns_of_tile(self._plan)

    @property
    def _width(self) -> int:
        """Columns of a strip."""
        return max(8, STRIP_BYTES // (8 * self._plan.numbers))

    def _strip(
        self, inputs: Planes, recorded: Sequence[Crossing], row: slice, columns: slice
    ) -> Array:
        operations = StripOperations(self.network.is_tangent, recorded, row, columns)
        steps = walk(self.network, operations, cast(Map, inputs))
        found: Array = output(steps)
        return found

    @property
    def _plan(self) -> PlanePlan:
        plan = self.network.planes
        assert plan is not None
        return plan

    def _recorded(self, left: Array, right: Array) -> tuple[list[Crossing], Array]:
        """States of these images between layers, left ones first, and their own values."""
        recorded = RecordedPlanes()
        both = np.concatenate([left, right], axis=-1)
        own = image_variances(self.network, both, recorded)
        return recorded.crossings, own


def columns_of_tile(plan: PlanePlan) -> int:
    """Columns of a tile, whose own covariances fit the memory."""
    return max(16, min(COLUMNS, TILE_BYTES // (8 * plan.numbers)))


def image_bytes(network: Network) -> int:
    """Bytes that blocks of a network of images take beside their values: what the images of a tile
    have behind every node, for each thread."""
    plan = network.base.planes
    return 0 if plan is None else threads() * 12 * columns_of_tile(plan) * plan.work


def _equal_rows(X: Array, Y: Array) -> Iterator[tuple[int, int]]:
    """Numbers of equal rows."""
    places: dict[bytes, list[int]] = {}
    for i, row in enumerate(X):
        places.setdefault(row.tobytes(), []).append(i)
    for j, row in enumerate(Y):
        for i in places.get(row.tobytes(), ()):
            yield i, j
