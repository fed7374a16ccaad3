"""Inputs of any norms: the recursion of eq. 5 for (q, q', c), pair by pair, tile by tile.

The variances of every node are known for each point beforehand; a tile carries its covariances, and
those of the tangent kernel, through the nodes in the cache. Where an activation has kinks and no
closed form, pairs near |c| = 1 get a two-dimensional quadrature each, which is slow: some hundred
pairs a second. Putting the inputs on one norm (`nngp.normalize`) avoids all of it.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nngp._arrays import EPS, Array, Index
from nngp.architecture import Network
from nngp.architecture.graph import (
    INPUT,
    Added,
    Affine,
    Joined,
    Masked,
    Multiplied,
    Node,
    Nonlinearity,
    Normalised,
    last_uses,
)
from nngp.covariance import expansion_terms
from nngp.curve import weighted_sum
from nngp.gram.error_bounds import FAR_ENOUGH, pairwise_error
from nngp.gram.host.pair_layer import PairLayer, SlopePairLayer, pair_layer
from nngp.gram.inputs import Inputs, InputSet, common_var
from nngp.gram.pair_recursion import SNAP, point_variances


def inverse_root(q: Array) -> Array:
    """1/sqrt(q), 0 where q is."""
    return np.divide(1.0, np.sqrt(q), out=np.zeros_like(q), where=q > 0)


class PairTile(NamedTuple):
    """A block at one node: the covariance, and Θ if it is asked for."""

    cov: Array
    tangent: Array | None


class LayerPair(NamedTuple):
    """A nonlinearity at the variances that enter it: F, and F' if Θ is asked for."""

    value: PairLayer
    slope: PairLayer | None


class NodeStep(NamedTuple):
    """What a block is at a node, and what entered: for a nonlinearity its correlations and F'."""

    node: Node
    tile: PairTile
    corr: Array | None = None
    slope: Array | None = None


def table_bytes(network: Network, inputs: InputSet) -> int:
    """Bytes a point that layers without a closed form hold where norms differ, and take while the
    largest is made. The widest distribution needs the most terms."""
    known = all(phi.closed_form is not None for phi in network.base.activations)
    if known or network.is_infinite or common_var(inputs) is not None:
        return 0
    largest = point_variances(network.base, np.array([inputs.var.max()]))
    terms = [
        expansion_terms(node.activation, float(largest[node.source].cov[0]))
        for node in network.base.graph
        if isinstance(node, Nonlinearity) and node.activation.closed_form is None
    ]
    return int(8 * (2 * sum(terms) + 3 * max(terms, default=0)))


class PairwiseTransform:
    """Cosines of the inputs to kernel values, in place on blocks."""

    def __init__(self, architecture: Network, left: Inputs, right: Inputs) -> None:
        self.architecture, self.left, self.right = architecture, left, right
        self.graph, self._unused = architecture.graph, last_uses(architecture.graph)
        both, size = np.concatenate([left.var, right.var]), len(left.var)
        found = point_variances(architecture, both)
        self.variances = [(one.cov[:size], one.cov[size:]) for one in found]
        self.diagonal: Array = found[-1].output[:size]
        self.tangent_variances = [None if v.tangent is None else v.tangent[:size] for v in found]
        self.roots = {
            node.source: tuple(map(inverse_root, self.variances[node.source]))
            for node in self.graph
            if isinstance(node, Nonlinearity | Normalised)
        }
        self.layers = {
            index: self._layer(node)
            for index, node in enumerate(self.graph, start=1)
            if isinstance(node, Nonlinearity)
        }
        self._nearest: list[float] = [1.0]

    def _layer(self, node: Nonlinearity) -> LayerPair:
        q = self.variances[node.source]
        wanted = self.architecture.is_tangent
        return LayerPair(
            pair_layer(node.activation, *q), SlopePairLayer(node.activation, *q) if wanted else None
        )

    def __call__(self, block: Array, rows: slice, columns: slice) -> None:
        same = self._duplicates(block, rows, columns)
        for step in self.steps(block, rows, columns):
            tile = step.tile
        out = tile.cov if tile.tangent is None else tile.tangent
        if same is not None and not self.architecture.has_masks:
            out[same] = self.diagonal[rows][same[0]]  # duplicates have the diagonal's exact value
        block[...] = out

    def steps(self, block: Array, rows: slice, columns: slice) -> Iterator[NodeStep]:
        """Every node for one block of cosines, from the input to the output."""
        tiles = {INPUT: self.input_tile(block, rows, columns)}
        for index, node in enumerate(self.graph, start=1):
            step = self._step(index, node, [tiles[s] for s in node.sources], rows, columns)
            tiles[index] = step.tile
            for source in self._unused[index - 1]:
                del tiles[source]
            yield step

    def input_tile(self, block: Array, rows: slice, columns: slice) -> PairTile:
        """The scaled inner products x·x'/d."""
        cov = np.sqrt(self.left.var[rows])[:, None] * np.sqrt(self.right.var[columns]) * block
        return PairTile(cov, np.zeros_like(cov) if self.architecture.is_tangent else None)

    def _step(
        self, index: int, node: Node, own: Sequence[PairTile], rows: slice, columns: slice
    ) -> NodeStep:
        cov, tangent = own[0]
        match node:
            case Affine(weight_var=weight, bias_var=bias):
                cov = bias + weight * cov
                theta = None if tangent is None else cov + weight * tangent
                return NodeStep(node, PairTile(cov, theta))
            case Nonlinearity():
                return self._through(index, node, own[0], rows, columns)
            case Added():
                return NodeStep(node, _mixed(own, [1.0] * len(own)))
            case Joined(shares=shares):
                return NodeStep(node, _mixed(own, shares))
            case Multiplied():
                return NodeStep(node, _multiplied(*own))
            case Normalised(source=source):
                scale = self.inverse_deviations(source, rows, columns)
                theta = None if tangent is None else tangent * scale
                return NodeStep(node, PairTile(cov * scale, theta))
            case Masked():  # masks of two rows are independent
                return NodeStep(node, own[0])

    def _through(
        self, index: int, node: Nonlinearity, tile: PairTile, rows: slice, columns: slice
    ) -> NodeStep:
        corr = self._correlation(node.source, tile.cov, rows, columns)
        layer = self.layers[index]
        value = layer.value.value(rows, columns, corr)
        if layer.slope is None or tile.tangent is None:
            return NodeStep(node, PairTile(value, None), corr)
        slope = layer.slope.value(rows, columns, corr)
        return NodeStep(node, PairTile(value, slope * tile.tangent), corr, slope)

    def inverse_deviations(self, source: int, rows: slice, columns: slice) -> Array:
        """1/sqrt(q q') of a block at a node."""
        left, right = self.roots[source]
        out: Array = left[rows][:, None] * right[columns]
        return out

    def _correlation(self, source: int, cov: Array, rows: slice, columns: slice) -> Array:
        """`snapped_correlation` with roots taken once for every point, and in place."""
        left, right = self.roots[source]
        corr = cov * left[rows][:, None]
        corr *= right[columns]
        np.clip(corr, -1.0, 1.0, out=corr)
        if corr.max(initial=0.0) > SNAP or corr.min(initial=0.0) < -SNAP:
            near = np.abs(corr) > SNAP
            corr[near] = np.sign(corr[near])
        out: Array = corr
        return out

    def error(self) -> float:
        both = np.concatenate([self.left.var, self.right.var])
        return self.noise + pairwise_error(self.architecture, both, self.nearest)

    @property
    def nearest(self) -> float:
        return min(self._nearest)

    def met(self, gap: float) -> None:
        self._nearest.append(gap)

    @property
    def noise(self) -> float:
        """The part of the error that comes from an activation that is itself inexact."""
        layers = [one for pair in self.layers.values() for one in pair if one is not None]
        return sum(2 * layer.noise for layer in layers)

    def _duplicates(self, block: Array, rows: slice, columns: slice) -> tuple[Index, Index] | None:
        if block.max(initial=0.0) < 1 - FAR_ENOUGH:
            return None
        i, j = np.nonzero(block > 1 - FAR_ENOUGH)
        equal = np.all(self.left.X[i + rows.start] == self.right.X[j + columns.start], axis=1)
        if not equal.all():
            near = block[i[~equal], j[~equal]]
            self._nearest.append(max(float(1 - near.max()), EPS))
        return i[equal], j[equal]


def _mixed(own: Sequence[PairTile], weights: Sequence[float]) -> PairTile:
    tangents = [one.tangent for one in own if one.tangent is not None]
    cov = weighted_sum(weights, [one.cov for one in own])
    return PairTile(cov, weighted_sum(weights, tangents) if tangents else None)


def _multiplied(one: PairTile, other: PairTile) -> PairTile:
    if one.tangent is None or other.tangent is None:
        return PairTile(one.cov * other.cov, None)
    return PairTile(one.cov * other.cov, one.tangent * other.cov + one.cov * other.tangent)
