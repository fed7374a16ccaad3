"""Derivatives of the kernel of inputs of any norms: the walk on tiles, backwards.

Each operation is recorded with its transpose. With G = dE/d(result), what goes back is

    mix                w G, and Σ G K to the weight, Σ G to the constant
    product            G times the other factor
    dual, slope        G dF/dK to the pairs, what moves F through the variances to these
    layer norm         G / sqrt(q q'), and -½ Σ G K / q of the result to q

The same sweep, block by block, gives every layer's derivative. An entry of an input with itself is
a variance: what reaches variances goes back once for all points, when the blocks are done.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from nngp._arrays import Array, Index
from nngp.architecture import Activation, Network
from nngp.architecture.walk import Number, Parameter, output, walk
from nngp.errors import VarianceError
from nngp.gram.host.pairwise import CorrelationOfTile, Crossing, PairwiseTransform
from nngp.gram.host.tiles import Cosines, in_strips
from nngp.gram.inputs import Inputs
from nngp.gram.kernel_matrix import Gradient
from nngp.gram.sensitivities import by_name
from nngp.gram.split import TRIVIAL_SPLIT, KernelSplit
from nngp.gram.triples import mixture

Sums = dict[tuple[str, int], float]  # dE/d of each variance, by kind and layer


class Taped:
    """A result, dE/d(it), and what carries that to the operands.

    A gradient belongs to whoever holds it: `add` takes it over, and `pull` is given it, so either
    may overwrite it. On large tiles new memory would cost more than the arithmetic.
    """

    def __init__(self, value: Array, pull: Callable[[Array], None] | None = None) -> None:
        self.value, self.pull = value, pull
        self.gradient: Array | None = None
        self.is_overwritable = False  # whether the next operation may take its memory

    def add(self, gradient: Array) -> None:
        """Add to dE/d(this)."""
        if self.gradient is None:
            self.gradient = gradient
        else:
            self.gradient += gradient


class Tape:
    """The operations whose transpose is that of plain arithmetic, recorded in their order."""

    def __init__(self) -> None:
        self._results: list[Taped] = []
        self.sums: Sums = defaultdict(float)

    def put(self, value: Array, pull: Callable[[Array], None] | None = None) -> Taped:
        """Record a result."""
        self._results.append(Taped(value, pull))
        return self._results[-1]

    def backwards(self) -> None:
        """Carry all gradients to the first results; memory is given back on the way."""
        while self._results:
            result = self._results.pop()
            if result.pull is not None and result.gradient is not None:
                gradient, result.gradient = result.gradient, None
                result.pull(gradient)

    def mix(self, weights: Sequence[Number], states: Sequence[Taped], constant: Number) -> Taped:
        def pull(G: Array) -> None:
            if isinstance(constant, Parameter):
                self.sums[constant.kind, constant.layer] += float(G.sum())
            for weight, state in zip(weights, states, strict=True):
                if isinstance(weight, Parameter):
                    self.sums[weight.kind, weight.layer] += float(np.vdot(G, state.value))
            for weight, state in list(zip(weights, states, strict=True))[:-1]:
                state.add(weight * G)
            if weights[-1] != 1.0:
                G *= weights[-1]
            states[-1].add(G)

        return self.put(self._mixture(weights, [one.value for one in states], constant), pull)

    def _mixture(
        self, weights: Sequence[Number], parts: Sequence[Array], constant: Number
    ) -> Array:
        out: Array = mixture(weights, parts, constant)
        return out

    def times(self, one: Taped, other: Taped) -> Taped:
        def pull(G: Array) -> None:
            one.add(G * other.value)
            G *= one.value
            other.add(G)

        return self.put(one.value * other.value, pull)


class TileTape(Tape):
    """The operations on a tile. `to_variances` takes what reaches the variances that enter an
    operation: its number, the points, and a derivative for each."""

    def __init__(
        self,
        crossings: Sequence[Crossing],
        rows: slice,
        columns: slice,
        to_variances: Callable[[int, slice, Array], None],
    ) -> None:
        super().__init__()
        self._left, self._corr = enumerate(crossings), CorrelationOfTile(rows, columns)
        self._rows, self._columns, self._to_variances = rows, columns, to_variances

    def dual(self, phi: Activation, state: Taped) -> Taped:
        """F is a function of (q, q', K): the correlation moves with the variances too."""
        (number, crossing), rows, columns = next(self._left), self._rows, self._columns
        layer, corr = crossing.layer, self._corr(crossing, state.value)
        assert layer is not None

        def pull(G: Array) -> None:
            rates = layer.rates(rows, columns, corr)
            turned, (q1, q2) = corr * rates.corr, crossing.variances
            left = np.einsum("ij,ij->i", G, rates.row - turned) / (2 * q1[rows])
            right = np.einsum("ij,ij->j", G, rates.column - turned) / (2 * q2[columns])
            self._to_variances(number, rows, left)
            self._to_variances(number, columns, right)
            G *= rates.corr
            G *= crossing.inverse_deviations(rows, columns)
            state.add(G)

        return self.put(layer.value(rows, columns, corr), pull)

    slope = dual  # the layer of phi' is that of another crossing

    def normalise(self, state: Taped, by: Taped) -> Taped:
        (number, crossing), rows, columns = next(self._left), self._rows, self._columns
        scale = crossing.inverse_deviations(rows, columns)

        def pull(G: Array) -> None:
            G *= scale
            moved, (q1, q2) = -0.5 * G * state.value, crossing.variances
            self._to_variances(number, rows, moved.sum(axis=1) / q1[rows])
            self._to_variances(number, columns, moved.sum(axis=0) / q2[columns])
            state.add(G)

        return self.put(state.value * scale, pull)

    def mask(self, state: Taped, keep: float) -> Taped:
        return self.put(state.value, state.add)


class VarianceTape(Tape):
    """The operations on the variances of all points. `reached` is what blocks have brought to the
    variances that enter each operation, and goes back from there."""

    def __init__(self, crossings: Sequence[Crossing], reached: Sequence[Array]) -> None:
        super().__init__()
        self._crossings, self._reached = iter(crossings), iter(reached)

    def dual(self, phi: Activation, state: Taped) -> Taped:
        return self._through(state)

    slope = dual

    def _through(self, state: Taped) -> Taped:
        crossing = next(self._crossings)
        state.add(next(self._reached).copy())

        def pull(G: Array) -> None:
            assert crossing.layer is not None
            state.add(G * crossing.layer.radial_moment() / state.value)

        return self.put(crossing.result, pull)

    def normalise(self, state: Taped, by: Taped) -> Taped:
        crossing = next(self._crossings)
        by.add(next(self._reached).copy())
        q = by.value

        def pull(G: Array) -> None:
            if state is not by:  # whose own variance becomes one, whatever it is
                by.add(-G * state.value / q**2)
                state.add(G / q)

        return self.put(crossing.result, pull)

    def mask(self, state: Taped, keep: float) -> Taped:
        return self.put(state.value / keep, lambda G: state.add(G / keep))


class PairwiseGradient:
    """`GradientSums` of inputs of any norms."""

    def __init__(
        self,
        network: Network,
        inputs: Inputs,
        per_layer: bool,
        per_input: bool = False,
        split: KernelSplit = TRIVIAL_SPLIT,
    ) -> None:
        self.network, self.inputs, self.split = network, inputs, split
        self.per_layer, self.per_input = per_layer, per_input
        self.cosines = Cosines(inputs, inputs)
        self.forward = PairwiseTransform(network, inputs, inputs)
        crossings = self.forward.crossings
        if any((one.variances[0] == 0).any() for one in crossings):
            raise VarianceError("derivatives need a positive variance in every layer; add bias_var")
        self._reached = [np.zeros(len(inputs)) for _ in crossings]
        self._on_diagonal = np.zeros(len(inputs))
        self._sums: Sums = defaultdict(float)
        self._in_product = np.zeros(inputs.X.shape[1])  # Σ G x_ij x_kj of every input j
        self._lock = threading.Lock()

    def contract(self, G: Array, rows: slice, columns: slice) -> None:
        block, G = self.cosines.block(rows, columns), np.array(G)  # from a device too
        parts = zip(in_strips(block, rows, columns), in_strips(G, rows, columns), strict=True)
        for (cosines, strip), (weights, _) in parts:
            self._strip(weights, cosines, strip, columns)

    def _strip(self, G: Array, cosines: Array, rows: slice, columns: slice) -> None:
        # Duplicates, the diagonal among them, are variances: they go back another way.
        i, j = self.coincident(cosines, rows, columns)
        on_diagonal = G[i, j]
        G[i, j] = 0.0
        reached: list[tuple[int, slice, Array]] = []
        tape = TileTape(self.forward.crossings, rows, columns, lambda *found: reached.append(found))
        inputs = tape.put(self.forward.input_tile(cosines, rows, columns))
        output(walk(self.network, tape, inputs)).add(G)
        tape.backwards()
        in_product = np.zeros(())
        if self.per_input and inputs.gradient is not None:
            X = self.inputs.X
            in_product = np.einsum("ij,ij->j", X[rows], inputs.gradient @ X[columns])
        with self._lock:
            np.add.at(self._on_diagonal, i + rows.start, on_diagonal)
            self._in_product += in_product
            for number, points, found in reached:
                self._reached[number][points] += found
            _add(self._sums, tape.sums)

    def coincident(self, cosines: Array, rows: slice, columns: slice) -> tuple[Index, Index]:
        """The entries of a block that are variances: those of an input with itself."""
        i, j = np.nonzero(cosines > 1 - 1e-6)
        if self.network.has_masks:  # equal rows are two draws of the masks
            same = i + rows.start == j + columns.start
        else:
            X = self.inputs.X
            same = np.all(X[i + rows.start] == X[j + columns.start], axis=1)
        return i[same], j[same]

    def result(self, sum_of_all: float = 0.0) -> Gradient:
        """The sums; `sum_of_all` has no part in them, as the walk meets all entries of G."""
        tape = VarianceTape(self.forward.crossings, self._reached)
        inputs = tape.put(self.inputs.var)
        output(walk(self.network, tape, inputs)).add(self._on_diagonal.copy())
        tape.backwards()
        sums: Sums = defaultdict(float)
        _add(sums, self._sums)
        _add(sums, tape.sums)
        layers = range(len(self.network.weight_vars))
        found = [[sums[kind, layer] for layer in layers] for kind in ("weight_var", "bias_var")]
        totals = np.array(found) if self.per_layer else np.sum(found, axis=1)[:, None]
        out = by_name(totals.ravel(), self.per_layer)
        if self.per_input and inputs.gradient is not None:
            X, d = self.inputs.X, self.inputs.X.shape[1]
            out["relevance"] = (self._in_product + inputs.gradient @ (X * X)) / d
        return {name: value / self.split.scale for name, value in out.items()}


def _add(total: Sums, more: Sums) -> None:
    for parameter, value in more.items():
        total[parameter] += value
