"""Inputs of any norms: the recursion of eq. 5 for (q, q', c), pair by pair, tile by tile.

The variances of every layer are known for each point beforehand; a tile carries its correlations
through the layers in the cache. Closed forms are evaluated as they are; a smooth numeric
activation is a sum over Hermite terms; pairs that neither serves (kinks, or very large variances,
near |c| = 1) get a two-dimensional quadrature each, which is slow: some hundred pairs a second.
Putting the inputs on one norm (`nngp.normalize`) avoids all of it.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nngp._arrays import EPS, Array, Index
from nngp.architecture import Architecture
from nngp.covariance import Expansions, beyond_series, closed_form
from nngp.gram.error_bounds import FAR_ENOUGH, pairwise_error
from nngp.gram.inputs import Inputs
from nngp.gram.pair_recursion import SNAP, layer_variances

TOLERANCE = 1e-12


def _inverse_root(q: Array) -> Array:
    """1/sqrt(q), 0 where q is."""
    return np.divide(1.0, np.sqrt(q), out=np.zeros_like(q), where=q > 0)


class LayerStep(NamedTuple):
    """One layer of a block: the correlation that enters, F_phi of it (in layer 0 the scaled inner
    product), and the covariance that leaves."""

    corr: Array
    value: Array
    cov: Array


class PairwiseTransform:
    """Cosines of the inputs to kernel values, in place on blocks."""

    def __init__(self, architecture: Architecture, left: Inputs, right: Inputs) -> None:
        self.architecture, self.left, self.right = architecture, left, right
        both = layer_variances(architecture, np.concatenate([left.var, right.var]))
        self.size = len(left.var)
        self.variances = [(q[: self.size], q[self.size :]) for q in both]
        self.inverse_roots = [(_inverse_root(a), _inverse_root(b)) for a, b in self.variances]
        self.expansions = self._expand(both)
        self._nearest: list[float] = [1.0]

    @property
    def diagonal(self) -> Array:
        """K^L(x, x) of the left points."""
        return self.variances[-1][0]

    def _expand(self, variances: list[Array]) -> list[tuple[Expansions, Index]]:
        if self.architecture.activation.closed_form is not None:
            return []
        out = []
        for q in variances[:-1]:
            unique, index = np.unique(q, return_inverse=True)
            out.append((Expansions(self.architecture.activation, unique), index))
        return out

    def __call__(self, block: Array, rows: slice, columns: slice) -> None:
        same = self._duplicates(block, rows, columns)
        for step in self.steps(block, rows, columns):
            cov = step.cov
        if same is not None:  # duplicates have the diagonal's exact value
            cov[same] = self.variances[-1][0][rows][same[0]]
        block[...] = cov

    def steps(self, block: Array, rows: slice, columns: slice) -> Iterator[LayerStep]:
        """Every layer for one block of cosines, from the input to the output."""
        weights, biases = self.architecture.weight_vars, self.architecture.bias_vars
        scale = np.sqrt(self.left.var[rows])[:, None] * np.sqrt(self.right.var[columns])
        value = scale * block
        step = LayerStep(value, value, biases[0] + weights[0] * value)
        yield step
        for layer in range(1, self.architecture.depth + 1):
            q1, q2 = self.entering(layer, rows, columns)
            corr = self._correlation(layer, step.cov, rows, columns)
            value = self._layer(layer - 1, q1, q2, corr, rows, columns)
            step = LayerStep(corr, value, biases[layer] + weights[layer] * value)
            yield step

    def _correlation(self, layer: int, cov: Array, rows: slice, columns: slice) -> Array:
        """`snapped_correlation` with roots taken once for every point, and in place."""
        left, right = self.inverse_roots[layer - 1]
        corr = cov * left[rows][:, None]
        corr *= right[columns]
        np.clip(corr, -1.0, 1.0, out=corr)
        if corr.max(initial=0.0) > SNAP or corr.min(initial=0.0) < -SNAP:
            near = np.abs(corr) > SNAP
            corr[near] = np.sign(corr[near])
        return corr

    def error(self) -> float:
        near = pairwise_error(self.architecture, self.left.var, self.nearest)
        return self.noise + near

    @property
    def nearest(self) -> float:
        return min(self._nearest)

    def met(self, gap: float) -> None:
        self._nearest.append(gap)

    @property
    def noise(self) -> float:
        """The part of the error that comes from an activation that is itself inexact."""
        return sum(2 * table.noise for table, _ in self.expansions)

    def entering(self, layer: int, rows: slice, columns: slice) -> tuple[Array, Array]:
        """The variances that enter a layer, as a column and a row."""
        q1, q2 = self.variances[layer - 1]
        return q1[rows][:, None], q2[columns][None, :]

    def _layer(
        self, layer: int, q1: Array, q2: Array, corr: Array, rows: slice, columns: slice
    ) -> Array:
        phi = self.architecture.activation
        if phi.closed_form is not None:
            return np.asarray(closed_form(phi.closed_form).value(np, q1, q2, corr))
        table, index = self.expansions[layer]
        i, j = index[: self.size][rows], index[self.size :][columns]
        value = table.tile(i, j, corr)
        poor = np.nonzero(table.tile_error(i, j, corr) > TOLERANCE)
        if len(poor[0]):
            pairs = q1[poor[0], 0], q2[0, poor[1]], corr[poor]
            scale = table.scale(i[poor[0]], j[poor[1]])
            value[poor] = beyond_series(phi, *pairs, scale, TOLERANCE)[0]
        return value

    def _duplicates(self, block: Array, rows: slice, columns: slice) -> tuple[Index, Index] | None:
        if block.max(initial=0.0) < 1 - FAR_ENOUGH:
            return None
        i, j = np.nonzero(block > 1 - FAR_ENOUGH)
        equal = np.all(self.left.X[i + rows.start] == self.right.X[j + columns.start], axis=1)
        if not equal.all():
            near = block[i[~equal], j[~equal]]
            self._nearest.append(max(float(1 - near.max()), EPS))
        return i[equal], j[equal]
