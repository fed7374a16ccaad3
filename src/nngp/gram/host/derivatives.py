"""dK/d(weight_var) and dK/d(bias_var) as matrices, for scikit-learn's kernel: the walk on tiles in
forward mode."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from nngp._arrays import Array
from nngp.architecture import Activation, Network
from nngp.architecture.walk import Number, Parameter, output, walk
from nngp.gram.host.pair_gradient import PairwiseGradient
from nngp.gram.host.pairwise import Crossing, TileOperations
from nngp.gram.host.tiles import fill, in_strips
from nngp.gram.inputs import Inputs
from nngp.gram.triples import mixture


class Moved(NamedTuple):
    """A value and its derivative."""

    value: Array
    rate: Array


class _Forward:
    """The operations whose derivative is that of plain arithmetic; one kind of variance moves."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def mix(self, weights: Sequence[Number], states: Sequence[Moved], constant: Number) -> Moved:
        value = mixture(weights, [one.value for one in states], constant)
        rate = np.asarray(mixture(weights, [one.rate for one in states], 0.0))
        for weight, state in zip(weights, states, strict=True):
            if self._moves(weight):
                rate = rate + state.value
        return Moved(value, rate + 1.0 if self._moves(constant) else rate)

    def _moves(self, number: Number) -> bool:
        return isinstance(number, Parameter) and number.kind == self._kind

    def times(self, one: Moved, other: Moved) -> Moved:
        rate = one.rate * other.value + one.value * other.rate
        return Moved(one.value * other.value, rate)


class VarianceRates(_Forward):
    """The operations on the variances of all points; `entering` are the derivatives of those that
    enter each nonlinearity and layer norm."""

    def __init__(self, kind: str, crossings: Sequence[Crossing]) -> None:
        super().__init__(kind)
        self._left, self.entering = iter(crossings), list[Array]()

    def dual(self, phi: Activation, state: Moved) -> Moved:
        crossing = next(self._left)
        assert crossing.layer is not None
        self.entering.append(state.rate)
        rate = crossing.layer.radial_moment() / state.value * state.rate
        return Moved(crossing.result, rate)

    slope = dual

    def normalise(self, state: Moved, by: Moved) -> Moved:
        value = next(self._left).result
        self.entering.append(by.rate)
        return Moved(value, (state.rate - value * by.rate) / by.value)

    def mask(self, state: Moved, keep: float) -> Moved:
        return Moved(state.value / keep, state.rate / keep)


class TileRates(_Forward):
    """The operations on a tile."""

    def __init__(
        self,
        kind: str,
        crossings: Sequence[Crossing],
        entering: Sequence[Array],
        rows: slice,
        columns: slice,
    ) -> None:
        super().__init__(kind)
        self._values, self._rows, self._columns = (
            TileOperations(crossings, rows, columns),
            rows,
            columns,
        )
        self._left = zip(crossings, entering, strict=True)

    def dual(self, phi: Activation, state: Moved) -> Moved:
        return self._through(self._values.dual(phi, state.value), state)

    def slope(self, phi: Activation, state: Moved) -> Moved:
        return self._through(self._values.slope(phi, state.value), state)

    def _through(self, value: Array, state: Moved) -> Moved:
        crossing, row, column, scale = self._next()
        assert crossing.layer is not None
        corr = self._values.correlation_of(crossing, state.value)
        rates = crossing.layer.rates(self._rows, self._columns, corr)
        turned = state.rate * scale - 0.5 * corr * (row + column)
        rate = rates.corr * turned + 0.5 * (rates.row * row + rates.column * column)
        return Moved(value, rate)

    def normalise(self, state: Moved, by: Moved) -> Moved:
        value = self._values.normalise(state.value, by.value)
        _, row, column, scale = self._next()
        return Moved(value, state.rate * scale - 0.5 * value * (row + column))

    def mask(self, state: Moved, keep: float) -> Moved:
        return state

    def _next(self) -> tuple[Crossing, Array, Array, Array]:
        """Input of a layer: its relative change for rows and columns, and 1/sqrt(q q')."""
        crossing, rate = next(self._left)
        relative = rate / crossing.variances[0]
        scale = crossing.inverse_deviations(self._rows, self._columns)
        return crossing, relative[self._rows][:, None], relative[self._columns], scale


def kernel_derivatives(network: Network, inputs: Inputs) -> dict[str, Array]:
    """dK/d(weight_var) and dK/d(bias_var), the variances of all layers together."""
    source, n = PairwiseGradient(network, inputs, per_layer=False), len(inputs)
    out = {}
    for kind in ("weight_var", "bias_var"):
        operations = VarianceRates(kind, source.forward.crossings)
        zero = np.zeros(n)
        diagonal = output(walk(network, operations, Moved(inputs.var, zero))).rate
        block = partial(_block, source, kind, operations.entering, diagonal)
        out[kind] = fill(n, n, block, symmetric=True)
    return out


def _block(
    source: PairwiseGradient,
    kind: str,
    entering: Sequence[Array],
    diagonal: Array,
    rows: slice,
    columns: slice,
) -> Array:
    """The derivative of one block."""
    block = source.cosines.block(rows, columns)
    for cosines, strip in in_strips(block, rows, columns):
        i, j = source.coincident(cosines, strip, columns)
        operations = TileRates(kind, source.forward.crossings, entering, strip, columns)
        tile = source.forward.input_tile(cosines, strip, columns)
        rate = output(walk(source.network, operations, Moved(tile, np.zeros_like(tile)))).rate
        rate[i, j] = diagonal[i + strip.start]
        cosines[...] = rate
    return block
