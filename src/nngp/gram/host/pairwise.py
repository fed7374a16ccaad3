"""Inputs of any norms: the walk on triples, tile by tile.

The variances of every node are known for each point beforehand, and with them the layers. So a tile
carries its covariances alone through the nodes, and those of the tangent kernel, while they are in
the cache. Where an activation has kinks and no closed form, pairs near |c| = 1 get a
two-dimensional quadrature each, which is slow: some hundred pairs a second. Putting the inputs on
one norm (`nngp.normalize`) avoids all of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nngp._arrays import EPS, Array, Index
from nngp.architecture import Activation, Network
from nngp.architecture.walk import Number, output, walk
from nngp.covariance import expansion_terms
from nngp.gram.error_bounds import FAR_ENOUGH, pairwise_error
from nngp.gram.host.pair_layer import PairLayer, SlopePairLayer, pair_layer
from nngp.gram.inputs import Inputs, InputSet, common_var
from nngp.gram.triples import SNAP, Triple, Variances, mixture, output_variances


def inverse_root(q: Array) -> Array:
    """1/sqrt(q), 0 where q is."""
    return np.divide(1.0, np.sqrt(q), out=np.zeros_like(q), where=q > 0)


@dataclass(frozen=True)
class Crossing:
    """One operation of a walk that needs the variances which enter it, of all points: the left
    ones, then the right ones. A layer norm has no layer."""

    variances: tuple[Array, Array]
    layer: PairLayer | None
    result: Array  # the variances behind it

    @cached_property
    def roots(self) -> tuple[Array, Array]:
        """1/sqrt of the variances, taken once for every point."""
        left, right = self.variances
        return inverse_root(left), inverse_root(right)

    def inverse_deviations(self, rows: slice, columns: slice) -> Array:
        """1/sqrt(q q') of a block."""
        left, right = self.roots
        out: Array = left[rows][:, None] * right[columns]
        return out

    def correlation(self, cov: Array, rows: slice, columns: slice) -> Array:
        """`snapped_correlation` with roots taken once for every point, and in place."""
        left, right = self.roots
        corr = cov * left[rows][:, None]
        corr *= right[columns]
        np.clip(corr, -1.0, 1.0, out=corr)
        if corr.max(initial=0.0) > SNAP or corr.min(initial=0.0) < -SNAP:
            near = np.abs(corr) > SNAP
            corr[near] = np.sign(corr[near])
        out: Array = corr
        return out


class RecordedVariances(Variances):
    """The operations on variances, which note what crosses each nonlinearity and layer norm."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self._left, self.crossings = left, list[Crossing]()

    def dual(self, phi: Activation, state: Triple) -> Triple:
        layer = pair_layer(phi, *self._sides(state.rows))
        return self._record(state.rows, layer, super().dual(phi, state))

    def slope(self, phi: Activation, state: Triple) -> Triple:
        layer = SlopePairLayer(phi, *self._sides(state.rows))
        return self._record(state.rows, layer, super().slope(phi, state))

    def normalise(self, state: Triple, by: Triple) -> Triple:
        return self._record(by.rows, None, super().normalise(state, by))

    def _sides(self, q: Array) -> tuple[Array, Array]:
        return q[: self._left], q[self._left :]

    def _record(self, q: Array, layer: PairLayer | None, result: Triple) -> Triple:
        self.crossings.append(Crossing(self._sides(q), layer, result.rows[: self._left]))
        return result


class CorrelationOfTile:
    """The correlations of a tile that enter a layer, computed once for phi and phi'."""

    def __init__(self, rows: slice, columns: slice) -> None:
        self._rows, self._columns = rows, columns
        self._last: tuple[Array | None, Array] = (None, np.empty(0))

    def __call__(self, crossing: Crossing, cov: Array) -> Array:
        if self._last[0] is not cov:
            self._last = cov, crossing.correlation(cov, self._rows, self._columns)
        return self._last[1]


class TileOperations:
    """The operations of a walk on the covariances of a tile: variances are those recorded."""

    def __init__(self, crossings: Sequence[Crossing], rows: slice, columns: slice) -> None:
        self.rows, self.columns, self._left = rows, columns, iter(crossings)
        self.correlation_of = CorrelationOfTile(rows, columns)

    def mix(self, weights: Sequence[Number], states: Sequence[Array], constant: Number) -> Array:
        out: Array = mixture(weights, states, constant)
        return out

    def times(self, one: Array, other: Array) -> Array:
        return one * other

    def dual(self, phi: Activation, state: Array) -> Array:
        return self._value(state)

    def slope(self, phi: Activation, state: Array) -> Array:
        return self._value(state)

    def normalise(self, state: Array, by: Array) -> Array:
        return state * next(self._left).inverse_deviations(self.rows, self.columns)

    def mask(self, state: Array, keep: float) -> Array:
        return state  # masks of two rows are independent

    def _value(self, cov: Array) -> Array:
        crossing = next(self._left)
        assert crossing.layer is not None
        corr = self.correlation_of(crossing, cov)
        return crossing.layer.value(self.rows, self.columns, corr)


def table_bytes(network: Network, inputs: InputSet) -> int:
    """Bytes a point that layers without a closed form hold where norms differ, and take while the
    largest is made. The widest distribution needs the most terms."""
    known = all(phi.closed_form is not None for phi in network.base.activations)
    if known or network.is_infinite or common_var(inputs) is not None:
        return 0
    counted = _TermCount()
    output_variances(network.base, np.array([inputs.var.max()]), counted)
    return int(8 * (2 * sum(counted.terms) + 3 * max(counted.terms, default=0)))


class _TermCount(Variances):
    """The operations on variances, which note the terms of each layer without a closed form."""

    def __init__(self) -> None:
        super().__init__()
        self.terms: list[int] = []

    def dual(self, phi: Activation, state: Triple) -> Triple:
        if phi.closed_form is None:
            self.terms.append(expansion_terms(phi, float(state.rows[0])))
        return super().dual(phi, state)


class PairwiseTransform:
    """Cosines of the inputs to kernel values, in place on blocks."""

    def __init__(self, network: Network, left: Inputs, right: Inputs) -> None:
        self.network, self.left, self.right = network, left, right
        recorded = RecordedVariances(len(left))
        both = np.concatenate([left.var, right.var])
        self.diagonal: Array = output_variances(network, both, recorded)[: len(left)]
        self.crossings = recorded.crossings
        self._gaps: list[float] = [1.0]

    def __call__(self, block: Array, rows: slice, columns: slice) -> None:
        same = self._duplicates(block, rows, columns)
        operations = TileOperations(self.crossings, rows, columns)
        inputs = self.input_tile(block, rows, columns)
        out: Array = output(walk(self.network, operations, inputs))
        if same is not None and not self.network.has_masks:
            out[same] = self.diagonal[rows][same[0]]  # duplicates have the diagonal's exact value
        block[...] = out

    def input_tile(self, block: Array, rows: slice, columns: slice) -> Array:
        """The scaled inner products x·x'/d."""
        out: Array = np.sqrt(self.left.var[rows])[:, None] * np.sqrt(self.right.var[columns])
        out *= block
        return out

    def error(self) -> float:
        both = np.concatenate([self.left.var, self.right.var])
        return self.noise + pairwise_error(self.network, both, self.smallest_gap)

    @property
    def smallest_gap(self) -> float:
        """The smallest positive 1 - |c| met so far, if it is small."""
        return min(self._gaps)

    @property
    def noise(self) -> float:
        """The part of the error that comes from an activation that is itself inexact."""
        return sum(2 * one.layer.noise for one in self.crossings if one.layer is not None)

    def _duplicates(self, block: Array, rows: slice, columns: slice) -> tuple[Index, Index] | None:
        if block.max(initial=0.0) < 1 - FAR_ENOUGH:
            return None
        i, j = np.nonzero(block > 1 - FAR_ENOUGH)
        equal = np.all(self.left.X[i + rows.start] == self.right.X[j + columns.start], axis=1)
        if not equal.all():
            near = block[i[~equal], j[~equal]]
            self._gaps.append(max(float(1 - near.max()), EPS))
        return i[equal], j[equal]
