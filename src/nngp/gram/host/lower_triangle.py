"""The kernel matrix of some thousand points in memory, and its gradient: what a search calls.

For networks whose activations have closed forms. Nothing is forecast, planned or reported. The walk
runs through the lower triangle in strips of rows that stay in the cache, is recorded on a tape, and
goes back from there. At the bottom dE/dX is one product of matrices: derivatives in all inputs cost
no more than those in the variances, and relevances and maps of columns follow by the chain rule.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from nngp._arrays import EPS, Array
from nngp.architecture import Activation, Network
from nngp.architecture.activation import ClosedFormKey
from nngp.architecture.walk import Number, Parameter, output, walk
from nngp.covariance import closed_form
from nngp.errors import VarianceError
from nngp.gram.host.pair_gradient import Sums, Taped, TileTape, VarianceTape
from nngp.gram.host.pairwise import Crossing, RecordedVariances
from nngp.gram.inputs import input_vars
from nngp.gram.triples import output_variances

DEEPEST = 10  # layers up to which float64 keeps what tells inputs apart
# Pairs of a strip, and its rows: few enough for the cache, and so many that threads seldom wait for
# the interpreter's lock.
STRIP, TALLEST = 2**17, 128
KEPT = 1500  # points up to which tapes are kept for the way back; beyond they are recorded again
TWO_OVER_PI = 2.0 / np.pi


def has_lower_triangle(network: Network) -> bool:
    """Whether this network can be computed here: closed forms without jumps, not too deep."""
    if network.base is not network or network.is_tangent or network.is_infinite:
        return False
    forms = [phi.closed_form for phi in network.activations]
    smooth = all(form is not None and not closed_form(form).is_steep for form in forms)
    return smooth and network.depth <= DEEPEST


class EvaluationArrays:
    """Arrays that are used again by the next evaluation: new memory costs more than the sums."""

    def __init__(self) -> None:
        self._arrays: dict[tuple[object, ...], Array] = {}

    def array(self, shape: tuple[int, int], *key: object) -> Array:
        """The array of that key, with what it held last; zeros at first."""
        found = self._arrays.get(key)
        if found is None or found.size < shape[0] * shape[1]:
            found = self._arrays[key] = np.zeros(shape[0] * shape[1])
        return found[: shape[0] * shape[1]].reshape(shape)


class KernelGradient(NamedTuple):
    """dE/d of every variance of the network, of every input, and of K(x, x)."""

    weight_vars: Array  # of each affine map
    bias_vars: Array
    inputs: Array  # (n, d)
    diagonal: Array  # (n,)


class LowerTriangle:
    """The lower triangle of K(X, X). `pool` computes strips of large ones in threads; `workspace`
    is memory of the calling thread."""

    def __init__(
        self, network: Network, X: Array, pool: Executor | None, workspace: EvaluationArrays
    ) -> None:
        self.network, self.X, self._pool, self._workspace = network, X, pool, workspace
        self._input_var, recorded = input_vars(X), RecordedVariances(len(X))
        self.diagonal = output_variances(network, self._input_var, recorded)  # K(x, x)
        # The recorder takes what is behind the left points for the right ones: they are the same.
        self._crossings = [_symmetric(one) for one in recorded.crossings]
        sources = [source for node in network.graph for source in node.sources]
        self._in_place = len(sources) == len(set(sources))
        self._kept: dict[int, tuple[StripTape, Taped, Taped]] | None = (
            {} if len(X) <= KEPT else None
        )

    def matrix(self) -> Array:
        """K in the lower triangle; the diagonal and what is above are not set."""
        n = len(self.X)
        K = self._workspace.array((n, n), "kernel", n)

        def fill(rows: slice) -> None:
            found = self._forward(rows)
            K[rows, : rows.stop] = found[2].value
            if self._kept is not None:
                self._kept[rows.start] = found

        self._each(fill)
        return K

    def _each(self, work: Callable[[slice], None]) -> None:
        rows = list(strips(len(self.X)))
        if self._pool is None or len(rows) < 2:
            for some in rows:
                work(some)
        else:
            list(self._pool.map(work, rows[::-1]))

    def _forward(self, rows: slice) -> tuple["StripTape", Taped, Taped]:
        """The tape of a strip, its inputs and its output."""
        columns = slice(0, rows.stop)
        owner = threading.get_ident() if self._kept is None else rows.start
        tape = StripTape(
            self._crossings, rows, columns, self._workspace, owner, in_place=self._in_place
        )
        cov = tape.new_array()
        np.matmul(self.X[rows], self.X[columns].T, out=cov)
        cov *= 1.0 / self.X.shape[1]
        inputs = tape.put_inputs(cov)
        return tape, inputs, output(walk(self.network, tape, inputs))

    def backward(self, slope: Callable[[slice], Array]) -> KernelGradient:
        """The derivatives, given dE/dK of the pairs of a strip; the diagonal counts half."""
        if any((one.variances[0] == 0).any() for one in self._crossings):
            raise VarianceError("derivatives need a positive variance in every layer; add bias_var")
        n = len(self.X)
        below, diagonal = self._workspace.array((n, n), "pairs", n), np.empty(n)
        tapes: list[tuple[int, StripTape]] = []

        def work(rows: slice) -> None:
            G = slope(rows)
            square = G[:, rows]
            diagonal[rows] = 0.5 * square.diagonal()
            square *= np.tril(np.ones(square.shape), -1)
            kept = None if self._kept is None else self._kept.pop(rows.start)
            tape, inputs, out = kept or self._forward(rows)
            out.add(G)
            tape.backwards()
            below[rows, : rows.stop] = 0.0 if inputs.gradient is None else inputs.gradient
            tapes.append((rows.start, tape))

        self._each(work)
        reached = [np.zeros(n) for _ in self._crossings]
        sums: Sums = defaultdict(float)
        for _, tape in sorted(tapes, key=lambda found: found[0]):  # the same sums in any order
            for number, points, found in tape.reached:
                reached[number][points] += found
            for parameter, value in tape.sums.items():
                sums[parameter] += value
        return self._collect(sums, reached, below, diagonal)

    def _collect(
        self, sums: Sums, reached: Sequence[Array], below: Array, diagonal: Array
    ) -> KernelGradient:
        """Sums over pairs and the diagonal, as derivatives."""
        tape = VarianceTape(self._crossings, reached)
        inputs = tape.put(self._input_var)
        output(walk(self.network, tape, inputs)).add(diagonal.copy())
        tape.backwards()
        layers = range(len(self.network.weight_vars))
        weights, biases = (
            np.array([sums[kind, layer] + tape.sums[kind, layer] for layer in layers])
            for kind in ("weight_var", "bias_var")
        )
        moved = below @ self.X
        moved += below.T @ self.X
        if inputs.gradient is not None:
            moved += (2.0 * inputs.gradient)[:, None] * self.X
        moved *= 1.0 / self.X.shape[1]
        return KernelGradient(weights, biases, moved, diagonal)


def _symmetric(one: Crossing) -> Crossing:
    """State of a layer whose rows and columns are the same points."""
    return replace(one, variances=(one.variances[0],) * 2)


def strips(n: int) -> Iterator[slice]:
    """Rows of the lower triangle, about equally many pairs each."""
    start = 0
    while start < n:
        stop = start + max(16, min(TALLEST, STRIP // (start + TALLEST)))
        stop = n if n - stop < 16 else stop
        yield slice(start, stop)
        start = stop


class StripTape(TileTape):
    """The operations on a strip, in memory that is used again, with value and slope of a layer from
    one look at its correlations. With `in_place` no state is used twice, so an affine map may
    overwrite what entered it, unless the way back needs that."""

    def __init__(
        self,
        crossings: Sequence[Crossing],
        rows: slice,
        columns: slice,
        workspace: EvaluationArrays,
        owner: int,
        *,
        in_place: bool,
    ) -> None:
        self.reached: list[tuple[int, slice, Array]] = []
        super().__init__(crossings, rows, columns, lambda *found: self.reached.append(found))
        self._shape = rows.stop - rows.start, columns.stop - columns.start
        self._workspace, self._owner, self._used = workspace, owner, 0
        self._in_place = in_place

    def put_inputs(self, cov: Array) -> Taped:
        """Record x·x'/d of the strip."""
        return self._put_overwritable(cov, None)

    def _put_overwritable(self, value: Array, pull: Callable[[Array], None] | None) -> Taped:
        result = self.put(value, pull)
        result.is_overwritable = self._in_place
        return result

    def new_array(self) -> Array:
        """The next array of this strip."""
        self._used += 1
        return self._workspace.array(self._shape, self._owner, self._used)

    def mix(self, weights: Sequence[Number], states: Sequence[Taped], constant: Number) -> Taped:
        if not states[0].is_overwritable or len(states) > 1 or weights[0] == 0.0:
            return super().mix(weights, states, constant)
        (weight,), (state,) = weights, states
        value = state.value
        value *= weight
        value += constant

        def pull(G: Array) -> None:
            total = float(G.sum())
            if isinstance(weight, Parameter):
                product = float(np.vdot(G, value)) - constant * total
                self.sums[weight.kind, weight.layer] += product / weight
            if isinstance(constant, Parameter):
                self.sums[constant.kind, constant.layer] += total
            G *= weight
            state.add(G)

        return self.put(value, pull)

    def dual(self, phi: Activation, state: Taped) -> Taped:
        number, crossing = next(self._left)
        (q1, q2), rows, columns = crossing.variances, self._rows, self._columns
        q1, q2 = q1[rows], q2[columns]
        found = _layer_of(phi)(state.value, q1[:, None], q2, self.new_array)

        def pull(G: Array) -> None:
            # E[u phi'(u) phi(v)] - K F' moves F through a variance, at fixed covariance.
            if found.rest is None:
                G *= found.slope
                by_row = np.einsum("ij,ij->i", G, state.value) / (-1 - 2 * q1)
                by_column = np.einsum("ij,ij->j", G, state.value) / (-1 - 2 * q2)
            else:
                by_row = np.einsum("ij,ij->i", G, found.rest[0]) / (2 * q1)
                by_column = np.einsum("ij,ij->j", G, found.rest[1]) / (2 * q2)
                G *= found.slope
            self._to_variances(number, rows, by_row)
            self._to_variances(number, columns, by_column)
            state.add(G)

        return self._put_overwritable(found.value, pull)


class _Layer(NamedTuple):
    """F of a strip, F', and E[u phi'(u) phi(v)] - K F' for u of the row and of the column. The last
    is None for erf, where it is K F' / (1 + 2q) - K F'."""

    value: Array
    slope: Array
    rest: tuple[Array, Array] | None


def _layer_of(phi: Activation) -> Callable[[Array, Array, Array, Callable[[], Array]], _Layer]:
    """The function that computes a layer of a strip."""
    assert phi.closed_form is not None
    name, *slopes = phi.closed_form
    if name == "erf":
        return _erf
    if name == "leaky_relu":
        return partial(_leaky_relu, *slopes)
    return partial(_general, phi.closed_form)


def _general(
    key: ClosedFormKey, cov: Array, q1: Array, q2: Array, new_array: Callable[[], Array]
) -> _Layer:
    form, corr = closed_form(key), new_array()
    value, slope, first, second = (new_array() for _ in range(4))
    _correlation(cov, q1, q2, corr)
    np.clip(corr, EPS - 1, 1 - EPS, out=corr)
    value[...] = form.value(np, q1, q2, corr)
    slope[...], first[...], second[...] = form.rates(np, q1, q2, corr)
    np.multiply(cov, slope, out=corr)
    first -= corr
    second -= corr
    return _Layer(value, slope, (first, second))


def _leaky_relu(
    below: float,
    above: float,
    cov: Array,
    q1: Array,
    q2: Array,
    new_array: Callable[[], Array],
) -> _Layer:
    a2, b2 = (0.5 * (above + below)) ** 2, (0.5 * (above - below)) ** 2
    value, slope, sine = new_array(), new_array(), new_array()
    _correlation(cov, q1, q2, value)
    np.arcsin(value, out=slope)
    slope *= b2 * TWO_OVER_PI
    slope += a2
    # The sine: with the arcsine of the same c errors cancel near 1.
    np.subtract(1.0, value, out=sine)
    value += 1.0
    sine *= value
    np.sqrt(sine, out=sine)
    sine *= (b2 * TWO_OVER_PI) * np.sqrt(q1)
    sine *= np.sqrt(q2)
    np.multiply(slope, cov, out=value)
    value += sine
    return _Layer(value, slope, (sine, sine))


def _erf(cov: Array, q1: Array, q2: Array, new_array: Callable[[], Array]) -> _Layer:
    value, slope, spare = new_array(), new_array(), new_array()
    left, right = 1.0 / np.sqrt(1 + 2 * q1), 1.0 / np.sqrt(1 + 2 * q2)
    np.multiply(cov, 2.0 * left, out=value)
    value *= right
    np.subtract(1.0, value, out=slope)
    np.add(1.0, value, out=spare)
    slope *= spare
    # Coincident inputs of variance q have 1 - x² = (1 + 4q) / (1 + 2q)²: rounding leaves no less.
    np.maximum(slope, EPS, out=slope)
    np.sqrt(slope, out=slope)
    np.divide((2 * TWO_OVER_PI) * left, slope, out=slope)
    slope *= right
    np.clip(value, -1.0, 1.0, out=value)
    np.arcsin(value, out=value)
    value *= TWO_OVER_PI
    return _Layer(value, slope, None)


def _correlation(cov: Array, q1: Array, q2: Array, out: Array) -> None:
    with np.errstate(divide="ignore"):
        left, right = 1.0 / np.sqrt(q1), 1.0 / np.sqrt(q2)
    np.multiply(cov, np.where(q1 > 0, left, 0.0), out=out)
    out *= np.where(q2 > 0, right, 0.0)
    np.clip(out, -1.0, 1.0, out=out)
