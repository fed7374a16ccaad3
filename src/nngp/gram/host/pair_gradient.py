"""Derivatives of the kernel of inputs of any norms: the recursion of eq. 5, differentiated.

`PairwiseGradient` runs it backwards, block by block, which gives every layer's derivative in one
pass: with G = dE/dK and H = dE/dΘ of a node,

    affine map      b and w get ΣG', Σ(G'K + HΘ) with G' = G + H; below it w G' and w H
    nonlinearity    G F' + H Θ F'' and H F'; q of either point gets what moves F and F' through it
    sum, product    what the product rule says
    layer norm      G / sqrt(q q'), H / sqrt(q q'); q gets -½ Σ(G K + H Θ) / q of the result

An entry of an input with itself is a variance: what reaches variances goes down once for all
points, when the blocks are done.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nngp._arrays import Array, Index
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
)
from nngp.errors import VarianceError
from nngp.gram.host.cosines import Cosines, in_strips
from nngp.gram.host.pair_layer import PairLayer, PairRates
from nngp.gram.host.pairwise import NodeStep, PairTile, PairwiseTransform
from nngp.gram.inputs import Inputs
from nngp.gram.kernel_matrix import Gradient
from nngp.gram.pair_recursion import slope_moments
from nngp.gram.sensitivities import by_name
from nngp.gram.split import TRIVIAL_SPLIT, KernelSplit


@dataclass
class Adjoint:
    """dE/dK and dE/dΘ at a node, of a block or of the variances of points; None is zero."""

    cov: Array | None = None
    tangent: Array | None = None

    def add(self, cov: Array | None = None, tangent: Array | None = None) -> None:
        """Add to either."""
        if cov is not None:
            self.cov = cov if self.cov is None else self.cov + cov
        if tangent is not None:
            self.tangent = tangent if self.tangent is None else self.tangent + tangent


class Totals:
    """Sums for every affine map, and what reaches the variances of every node and point."""

    def __init__(self, graph: Sequence[Node], points: int) -> None:
        maps = [i for i, node in enumerate(graph, start=1) if isinstance(node, Affine)]
        self.place = {index: layer for layer, index in enumerate(maps)}
        self.weights, self.biases = np.zeros(len(maps)), np.zeros(len(maps))
        self.in_var = np.zeros((len(graph) + 1, points))
        self.in_tangent_var = np.zeros(points)  # of the output's own tangent kernel

    def to_affine(
        self, index: int, node: Affine, own: PairTile, below: Adjoint, above: Adjoint
    ) -> None:
        """The rule of an affine map; `own` is what entered it."""
        G, H = above.cov, above.tangent
        if H is not None:
            G = H if G is None else G + H
        if G is None:
            return
        layer = self.place[index]
        self.biases[layer] += G.sum()
        self.weights[layer] += np.vdot(G, own.cov)
        if H is not None and own.tangent is not None:
            self.weights[layer] += np.vdot(H, own.tangent)
        below.add(node.weight_var * G, None if H is None else node.weight_var * H)


class PairwiseGradient:
    """`GradientSums` of inputs of any norms."""

    def __init__(
        self,
        architecture: Network,
        inputs: Inputs,
        per_layer: bool,
        per_input: bool = False,
        split: KernelSplit = TRIVIAL_SPLIT,
    ) -> None:
        self.architecture, self.inputs, self.split = architecture, inputs, split
        self.per_layer, self.per_input = per_layer, per_input
        self.cosines = Cosines(inputs, inputs)
        self.forward = PairwiseTransform(architecture, inputs, inputs)
        self.graph = architecture.graph
        if any((self.forward.variances[source][0] == 0).any() for source in self.forward.roots):
            raise VarianceError("derivatives need a positive variance in every layer; add bias_var")
        self._totals = Totals(self.graph, len(inputs))
        self._in_product = np.zeros(inputs.X.shape[1])  # Σ G x_ij x_kj of every input j
        self._lock = threading.Lock()

    def contract(self, G: Array, rows: slice, columns: slice) -> None:
        block, G = self.cosines.block(rows, columns), np.array(G)  # from a device too
        parts = zip(in_strips(block, rows, columns), in_strips(G, rows, columns), strict=True)
        for (cosines, strip), (weights, _) in parts:
            self._strip(weights, cosines, strip, columns)

    def _strip(self, G: Array, cosines: Array, rows: slice, columns: slice) -> None:
        totals = Totals(self.graph, len(self.inputs))
        # Duplicates, the diagonal among them, are variances: they go down another way.
        i, j = self.coincident(cosines, rows, columns)
        out = totals.in_tangent_var if self.architecture.is_tangent else totals.in_var[-1]
        np.add.at(out, i + rows.start, G[i, j])
        G[i, j] = 0.0
        tiles = [self.forward.input_tile(cosines, rows, columns)]
        steps = []
        for step in self.forward.steps(cosines, rows, columns):
            steps.append(step)
            tiles.append(step.tile)
        bottom = self._down(G, tiles, steps, totals, rows, columns)
        X = self.inputs.X
        in_product = np.zeros(())
        if self.per_input and bottom is not None:
            in_product = np.einsum("ij,ij->j", X[rows], bottom @ X[columns])
        with self._lock:
            self._in_product += in_product
            self._totals.weights += totals.weights
            self._totals.biases += totals.biases
            self._totals.in_var += totals.in_var
            self._totals.in_tangent_var += totals.in_tangent_var

    def _down(
        self,
        G: Array,
        tiles: list[PairTile],
        steps: list[NodeStep],
        totals: Totals,
        rows: slice,
        columns: slice,
    ) -> Array | None:
        """Carry G of a strip from the output to the inputs; dE/d(x·x'/d)."""
        adjoints = [Adjoint() for _ in tiles]
        adjoints[-1].add(*((None, G) if self.architecture.is_tangent else (G, None)))
        for index in range(len(steps), 0, -1):
            node, above = self.graph[index - 1], adjoints[index]
            if above.cov is None and above.tangent is None:
                continue
            own = [tiles[source] for source in node.sources]
            below = [adjoints[source] for source in node.sources]
            match node:
                case Affine():
                    totals.to_affine(index, node, own[0], below[0], above)
                case Nonlinearity():
                    step = steps[index - 1]
                    self._through(index, node, step, own[0], below[0], above, totals, rows, columns)
                case Normalised(source=source):
                    tile = steps[index - 1].tile
                    self._divided(source, tile, below[0], above, totals, rows, columns)
                case Masked():
                    below[0].add(above.cov, above.tangent)
                case _:
                    spread(node, own, below, above)
            adjoints[index] = Adjoint()  # not needed any more
        return adjoints[INPUT].cov

    def _through(
        self,
        index: int,
        node: Nonlinearity,
        step: NodeStep,
        own: PairTile,
        below: Adjoint,
        above: Adjoint,
        totals: Totals,
        rows: slice,
        columns: slice,
    ) -> None:
        """The rule of a nonlinearity. F is a function of (q, q', cov): the correlation moves with
        the variances too."""
        assert step.corr is not None
        layer, source = self.forward.layers[index], node.source
        if above.tangent is not None and step.slope is not None:
            below.add(None, above.tangent * step.slope)
        weighted: list[tuple[Array, PairLayer]] = []
        if above.cov is not None:
            weighted.append((above.cov, layer.value))
        if above.tangent is not None and layer.slope is not None and own.tangent is not None:
            weighted.append((above.tangent * own.tangent, layer.slope))
        for G, one in weighted:
            rates = one.rates(rows, columns, step.corr)
            self._to_variances(G, rates, step.corr, totals.in_var[source], source, rows, columns)
            below.add(G * rates.corr * self.forward.inverse_deviations(source, rows, columns))

    def _to_variances(
        self,
        G: Array,
        rates: PairRates,
        corr: Array,
        out: Array,
        source: int,
        rows: slice,
        columns: slice,
    ) -> None:
        q1, q2 = self.forward.variances[source]
        turned = corr * rates.corr
        out[rows] += np.einsum("ij,ij->i", G, rates.row - turned) / (2 * q1[rows])
        out[columns] += np.einsum("ij,ij->j", G, rates.column - turned) / (2 * q2[columns])

    def _divided(
        self,
        source: int,
        tile: PairTile,
        below: Adjoint,
        above: Adjoint,
        totals: Totals,
        rows: slice,
        columns: slice,
    ) -> None:
        scale = self.forward.inverse_deviations(source, rows, columns)
        q, moved = self.forward.variances[source][0], np.zeros_like(scale)
        for G, value in ((above.cov, tile.cov), (above.tangent, tile.tangent)):
            if G is not None and value is not None:
                moved += G * value
        totals.in_var[source, rows] -= 0.5 * moved.sum(axis=1) / q[rows]
        totals.in_var[source, columns] -= 0.5 * moved.sum(axis=0) / q[columns]
        cov = None if above.cov is None else above.cov * scale
        below.add(cov, None if above.tangent is None else above.tangent * scale)

    def coincident(self, cosines: Array, rows: slice, columns: slice) -> tuple[Index, Index]:
        """The entries of a block that are variances: those of an input with itself."""
        i, j = np.nonzero(cosines > 1 - 1e-6)
        if self.architecture.has_masks:  # equal rows are two draws of the masks
            same = i + rows.start == j + columns.start
        else:
            X = self.inputs.X
            same = np.all(X[i + rows.start] == X[j + columns.start], axis=1)
        return i[same], j[same]

    def result(self, sum_of_all: float = 0.0) -> Gradient:
        """The sums; `sum_of_all` has no part in them, as the recursion meets all entries of G."""
        totals = Totals(self.graph, len(self.inputs))
        totals.weights += self._totals.weights
        totals.biases += self._totals.biases
        bottom = self._variances_down(totals)
        per_layer = np.concatenate([totals.weights, totals.biases])
        summed = np.array([totals.weights.sum(), totals.biases.sum()])
        out = by_name(per_layer, True) if self.per_layer else by_name(summed, False)
        if self.per_input:
            X, d = self.inputs.X, self.inputs.X.shape[1]
            out["relevance"] = (self._in_product + bottom @ (X * X)) / d
        return {name: value / self.split.scale for name, value in out.items()}

    def _variances_down(self, totals: Totals) -> Array:
        """Carry what reached the variances of points from the output to the inputs."""
        forward = self.forward
        values = [
            PairTile(q[0], theta)
            for q, theta in zip(forward.variances, forward.tangent_variances, strict=True)
        ]
        adjoints = [Adjoint(column.copy()) for column in self._totals.in_var]
        if self.architecture.is_tangent:
            adjoints[-1].add(None, self._totals.in_tangent_var)
        for index in range(len(self.graph), 0, -1):
            node, above = self.graph[index - 1], adjoints[index]
            own = [values[source] for source in node.sources]
            below = [adjoints[source] for source in node.sources]
            match node:
                case Affine():
                    totals.to_affine(index, node, own[0], below[0], above)
                case Nonlinearity():
                    self._variance_through(index, node, own[0], below[0], above)
                case Normalised():
                    if above.tangent is not None and own[0].tangent is not None:
                        q = own[0].cov
                        below[0].add(-above.tangent * own[0].tangent / q**2, above.tangent / q)
                case Masked(keep=keep):
                    cov = None if above.cov is None else above.cov / keep
                    below[0].add(cov, None if above.tangent is None else above.tangent / keep)
                case _:
                    spread(node, own, below, above)
        found = adjoints[INPUT].cov
        assert found is not None
        return found

    def _variance_through(
        self, index: int, node: Nonlinearity, own: PairTile, below: Adjoint, above: Adjoint
    ) -> None:
        layer = self.forward.layers[index]
        if above.cov is not None:
            below.add(above.cov * layer.value.radial_moment() / own.cov)
        if above.tangent is not None and layer.slope is not None and own.tangent is not None:
            moved = layer.slope.radial_moment() / own.cov
            slope = slope_moments(node.activation, own.cov)
            below.add(above.tangent * own.tangent * moved, above.tangent * slope)


def spread(node: Node, own: Sequence[PairTile], below: Sequence[Adjoint], above: Adjoint) -> None:
    """The rules of sums and products."""
    G, H = above.cov, above.tangent
    match node:
        case Added():
            for one in below:
                one.add(G, H)
        case Joined(shares=shares):
            for share, one in zip(shares, below, strict=True):
                one.add(None if G is None else share * G, None if H is None else share * H)
        case Multiplied():
            for other, into in ((own[1], below[0]), (own[0], below[1])):
                if G is not None:
                    into.add(G * other.cov)
                if H is not None and other.tangent is not None:
                    into.add(H * other.tangent, H * other.cov)
