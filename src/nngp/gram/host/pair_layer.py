"""One nonlinearity at the variances of many points: F and its derivatives for blocks of pairs.

Takes an activation and the variances of the left and the right points; gives E[phi(u) phi(v)] of
blocks. A closed form is evaluated as it is. A smooth numeric activation is a sum over Hermite
terms; pairs that the series does not serve get a quadrature each (`beyond_series`).
"""

from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from nngp._arrays import EPS, Array, Index
from nngp.architecture import Activation
from nngp.covariance import (
    Expansions,
    beyond_series,
    closed_form,
    derivative_of,
    derivatives,
)

TOLERANCE = 1e-12


class PairRates(NamedTuple):
    """dF/dc, and 2 q dF/dq at fixed c for the variance of the row and of the column."""

    corr: Array
    row: Array
    column: Array


class PairLayer(Protocol):
    """E[phi(u) phi(v)] for blocks of pairs; rows and columns are points of either side."""

    @property
    def noise(self) -> float:
        """The part of the error that comes from an activation that is itself inexact."""

    def value(self, rows: slice, columns: slice, corr: Array) -> Array:
        """F of a block, given its correlations."""

    def rates(self, rows: slice, columns: slice, corr: Array) -> PairRates:
        """The derivatives of F."""

    def radials(self, rows: slice, columns: slice, corr: Array) -> tuple[Array, Array]:
        """The derivatives of F in the variances alone, as `rates` has them."""

    def radial_moment(self) -> Array:
        """q d E[phi²]/dq of the left points."""


def pair_layer(phi: Activation, left: Array, right: Array) -> PairLayer:
    """The layer of an activation at these variances."""
    if phi.closed_form is not None:
        return ClosedPairLayer(phi, left, right)
    return ExpandedPairLayer(phi, left, right)


class ClosedPairLayer:
    """An activation with a closed form."""

    noise = 0.0

    def __init__(self, phi: Activation, left: Array, right: Array) -> None:
        assert phi.closed_form is not None
        self._form, self._left, self._right = closed_form(phi.closed_form), left, right

    def _variances(self, rows: slice, columns: slice) -> tuple[Array, Array]:
        return self._left[rows][:, None], self._right[columns][None, :]

    def value(self, rows: slice, columns: slice, corr: Array) -> Array:
        return np.asarray(self._form.value(np, *self._variances(rows, columns), corr))

    def slope(self, rows: slice, columns: slice, corr: Array) -> Array:
        """E[phi'(u) phi'(v)] of a block."""
        found = self._form.slope(np, *self._variances(rows, columns), corr)
        return np.broadcast_to(found, corr.shape)

    def rates(self, rows: slice, columns: slice, corr: Array) -> PairRates:
        q1, q2 = self._variances(rows, columns)
        c = corr.clip(EPS - 1, 1 - EPS)  # where phi jumps the slope at ±1 is infinite
        slope, first, second = self._form.rates(np, q1, q2, c)
        return PairRates(np.sqrt(q1) * np.sqrt(q2) * slope, first, second)

    def radials(self, rows: slice, columns: slice, corr: Array) -> tuple[Array, Array]:
        (q1, q2), form = self._variances(rows, columns), self._form
        return form.radial(np, q1, q2, corr), form.radial(np, q2, q1, corr)

    def radial_moment(self) -> Array:
        q = self._left
        return np.asarray(self._form.radial(np, q, q, np.ones_like(q)))


class ExpandedPairLayer:
    """An activation without a closed form, by Hermite series and quadrature."""

    def __init__(self, phi: Activation, left: Array, right: Array) -> None:
        self._phi, self._left, self._right = phi, left, right
        unique, index = np.unique(np.concatenate([left, right]), return_inverse=True)
        self._table = Expansions(phi, unique)
        self._rows, self._columns = index[: len(left)], index[len(left) :]

    @property
    def noise(self) -> float:
        return self._table.noise

    def value(self, rows: slice, columns: slice, corr: Array) -> Array:
        i, j = self._rows[rows], self._columns[columns]
        out = self._table.tile(i, j, corr)
        poor = np.nonzero(self._table.tile_error(i, j, corr) > TOLERANCE)
        if len(poor[0]):
            scale = self._table.scale(i[poor[0]], j[poor[1]])
            pairs = *self._poor(poor, rows, columns), corr[poor]
            out[poor] = beyond_series(self._phi, *pairs, scale, TOLERANCE)[0]
        return out

    def rates(self, rows: slice, columns: slice, corr: Array) -> PairRates:
        i, j = self._rows[rows], self._columns[columns]
        out = self._table.tile_derivatives(i, j, corr)
        poor = np.nonzero(self._table.tile_error(i, j, corr) > TOLERANCE)
        if len(poor[0]):
            q1, q2 = self._poor(poor, rows, columns)
            slope, first, second, _ = derivatives(self._phi, q1, q2, corr[poor], TOLERANCE)
            parts = np.sqrt(q1) * np.sqrt(q2) * slope, first, second
            for tile, part in zip(out, parts, strict=True):
                tile[poor] = part
        return PairRates(*out)

    def radials(self, rows: slice, columns: slice, corr: Array) -> tuple[Array, Array]:
        found = self.rates(rows, columns, corr)
        return found.row, found.column

    def _poor(self, poor: tuple[Index, ...], rows: slice, columns: slice) -> tuple[Array, Array]:
        """The variances of pairs that the series does not serve."""
        return self._left[rows][poor[0]], self._right[columns][poor[1]]

    def radial_moment(self) -> Array:
        out: Array = self._table.radial_moment()[self._rows]
        return out


class SlopePairLayer:
    """E[phi'(u) phi'(v)]: by the closed form of phi where it has one, otherwise as the layer of
    phi', which has the derivatives in either case."""

    def __init__(self, phi: Activation, left: Array, right: Array) -> None:
        largest = float(max(left.max(initial=1e-300), right.max(initial=1e-300)))
        self._slope, self._sides = derivative_of(phi, largest), (left, right)
        self._known = None if phi.closed_form is None else ClosedPairLayer(phi, left, right)

    @cached_property
    def _layer(self) -> PairLayer:
        """The layer of phi'."""
        return pair_layer(self._slope, *self._sides)

    @property
    def noise(self) -> float:
        return 0.0 if self._known is not None else self._layer.noise

    def value(self, rows: slice, columns: slice, corr: Array) -> Array:
        if self._known is not None:
            return self._known.slope(rows, columns, corr)
        return self._layer.value(rows, columns, corr)

    def rates(self, rows: slice, columns: slice, corr: Array) -> PairRates:
        return self._layer.rates(rows, columns, corr)

    def radials(self, rows: slice, columns: slice, corr: Array) -> tuple[Array, Array]:
        return self._layer.radials(rows, columns, corr)

    def radial_moment(self) -> Array:
        return self._layer.radial_moment()
