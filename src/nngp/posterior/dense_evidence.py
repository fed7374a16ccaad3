"""Evidence, or leave-one-out density, with its gradient at one setting: what a search calls.

For up to some thousand points in memory, and networks whose activation has a closed form. Nothing
is forecast, planned or reported. The recursion of eq. 5 runs through the lower triangle in strips
of rows that stay in the cache. What the way back needs of a layer is its covariance and its slope:
with G = dE/dK of a layer, A = Σ_j G K and B = Σ_j G E[u phi'(u) phi(v)] of each point,

    dE/dK of the layer below    weight_var · slope · G
    dE/dq of the layer below    (B - A below) / 2q       the variances move the correlation, too

and at the bottom dE/dX is one product of matrices. So derivatives in all inputs cost no more than
those in the variances; relevances and maps of columns follow by the chain rule.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from nngp import _machine
from nngp._arrays import EPS, Array
from nngp.architecture import Architecture, Network
from nngp.covariance import closed_form
from nngp.errors import NotPositiveDefiniteError, VarianceError
from nngp.gram.inputs import input_vars
from nngp.gram.pair_recursion import layer_variances
from nngp.linsolve import dense
from nngp.linsolve.engines import blas
from nngp.posterior.criteria import (
    HeldOut,
    evidence_slope,
    held_out,
    held_out_density,
    held_out_rates,
    held_out_slope,
    log_evidence,
)

DEEPEST = 10  # layers up to which float64 keeps what tells inputs apart
JUMPS = ("sign", "step")  # their slope is infinite where inputs coincide
# Pairs of a strip, and its rows: few enough for the cache, and so many that threads seldom wait for
# the interpreter's lock.
STRIP, TALLEST = 2**17, 128
KEPT = 1500  # points up to which layers are kept for the way back; beyond they are computed anew
THREADED, MOST_THREADS = 800, 8  # points from which threads pay, and how many do
TWO_OVER_PI = 2.0 / np.pi


class DenseValue(NamedTuple):
    """The criterion, the log evidence, and the derivatives of the criterion, summed over outputs.

    Without a gradient they are empty.
    """

    value: float
    log_evidence: float
    weight_vars: Array = np.empty(0)  # of each layer
    bias_vars: Array = np.empty(0)
    noise: Array = np.empty(0)  # of each row
    inputs: Array = np.empty((0, 0))  # of every scaled input, (n, d)
    held_out: HeldOut | None = None  # predictions of each point from all the others


class _Layer(NamedTuple):
    """A strip of one layer: covariance that enters, slope, and the radials of rows and columns
    (None where they follow from the others)."""

    cov: Array
    slope: Array
    first: Array | None
    second: Array | None


class _Sums(NamedTuple):
    """Sums over the pairs of each point, by layer: of G, of G K, and of G radial."""

    plain: Array
    product: Array
    radial: Array


def is_supported(network: Network) -> bool:
    """Whether this network can be computed here: a chain of layers with a closed form without
    jumps, not too deep."""
    if not isinstance(network, Architecture):
        return False
    key = network.activation.closed_form
    return key is not None and key[0] not in JUMPS and network.depth <= DEEPEST


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


@contextmanager
def threaded_evidence(points: int) -> Iterator["DenseEvidence"]:
    """An evaluator for up to so many points, whose threads end with the block."""
    workers = min(_machine.threads(), MOST_THREADS)
    if points < THREADED or workers < 2:
        yield DenseEvidence()
        return
    with ThreadPoolExecutor(workers, initializer=_machine.limit_this_thread) as pool:
        yield DenseEvidence(pool)


class DenseEvidence:
    """The evidence of networks on small data. `pool` computes strips of large ones in threads."""

    def __init__(self, pool: Executor | None = None) -> None:
        self.pool, self._of_thread = pool, threading.local()

    @property
    def workspace(self) -> EvaluationArrays:
        """Memory of the calling thread, which has one evaluation under way at a time."""
        if not hasattr(self._of_thread, "workspace"):
            self._of_thread.workspace = EvaluationArrays()
        found: EvaluationArrays = self._of_thread.workspace
        return found

    def evaluate(
        self,
        network: Architecture,
        X: Array,
        Y: Array,
        noise: Array,
        *,
        criterion: str = "evidence",
        weights: Array | None = None,
        gradient: bool = True,
    ) -> DenseValue:
        """Evaluate at a setting; `noise` has a variance for each row.

        With `weights` each point's leave-one-out density counts so often. Raises
        NotPositiveDefiniteError, or VarianceError where a variance leaves float64.
        """
        net = _Recursion(network, X, self.pool, self.workspace)
        K = net.matrix()
        K.flat[:: len(K) + 1] = net.variances[-1] + noise
        factor, alpha, evidence = self._solve(K, Y)
        if criterion == "evidence" and not gradient:
            return DenseValue(evidence, evidence)
        P = self._inverse(factor)
        if criterion == "evidence":
            outputs = Y.shape[1]

            def slope(rows: slice) -> Array:
                minus_inverse = -outputs * P[rows, : rows.stop]
                return evidence_slope(alpha[rows], alpha[: rows.stop].T, minus_inverse)

            return net.backward(slope, evidence, evidence)
        found, p = _held_out(alpha, P), P.diagonal().copy()
        value = held_out_density(alpha, p, weights)
        if not gradient:
            return DenseValue(value, evidence, held_out=found)
        C, d = held_out_rates(alpha, p, weights)
        dense.mirror(P)
        whole = held_out_slope(dense.product(P * -C, P, self.pool), P @ d, alpha)

        def slope_of_density(rows: slice) -> Array:
            return whole[rows, : rows.stop].copy()

        return net.backward(slope_of_density, value, evidence)._replace(held_out=found)

    def log_evidence_of(self, K: Array, Y: Array, noise: Array) -> float:
        """The log evidence, given the lower triangle of a kernel matrix, which is left as it is."""
        return self._solve(_noisy(K, noise), Y)[2]

    def log_evidence_and_misfit(self, K: Array, Y: Array, noise: Array) -> tuple[float, float]:
        """The same, and Y·(K + noise)⁻¹Y, summed over outputs."""
        _, alpha, evidence = self._solve(_noisy(K, noise), Y)
        return evidence, float(np.vdot(Y, alpha))

    def held_out_of(self, K: Array, Y: Array, noise: Array) -> HeldOut:
        """Leave-one-out predictions of noisy targets, given the lower triangle of a kernel matrix,
        which is left as it is."""
        factor, alpha, _ = self._solve(_noisy(K, noise), Y)
        return _held_out(alpha, self._inverse(factor))

    def _solve(self, K: Array, Y: Array) -> tuple[Array, Array, float]:
        """The lower factor in place, K⁻¹Y and the log evidence."""
        factor = dense.factor(K, self.pool)
        rows = np.array(Y.T, order="C")
        alpha = blas.trsm(factor, blas.trsm(factor, rows), transposed=False).T.copy()
        n, outputs = Y.shape
        log_det = 2.0 * float(np.log(factor.diagonal()).sum())
        return factor, alpha, log_evidence(float(np.vdot(Y, alpha)), log_det, n, outputs)

    def _inverse(self, factor: Array) -> Array:
        """Its lower triangle, in place or in memory of its own."""
        out = None
        if self.pool is not None:
            out = self.workspace.array(factor.shape, "inverse")
        return dense.inverse(factor, self.pool, out)


def inverse_of(K: Array) -> Array:
    """The inverse of a positive definite matrix, in place of it; symmetric to the bit."""
    return dense.mirror(dense.inverse(dense.factor(K)))


def _noisy(K: Array, noise: Array) -> Array:
    system = K.copy()
    system.flat[:: len(K) + 1] += noise
    return system


def _held_out(alpha: Array, P: Array) -> HeldOut:
    """Leave-one-out predictions, from the diagonal of the inverse P."""
    precision = P.diagonal()
    if not (precision > 0).all():
        raise NotPositiveDefiniteError("the inverse of the kernel matrix lost its digits")
    return held_out(alpha, precision)


def strips(n: int) -> Iterator[slice]:
    """Rows of the lower triangle, about equally many pairs each."""
    start = 0
    while start < n:
        stop = start + max(16, min(TALLEST, STRIP // (start + TALLEST)))
        stop = n if n - stop < 16 else stop
        yield slice(start, stop)
        start = stop


class _Recursion:
    """Eq. 5 for all pairs, forwards and backwards."""

    def __init__(
        self,
        architecture: Architecture,
        X: Array,
        pool: Executor | None,
        workspace: EvaluationArrays,
    ) -> None:
        self.architecture, self.X, self.pool = architecture, X, pool
        self.workspace = workspace
        self.input_var = input_vars(X)
        self.variances = layer_variances(architecture, self.input_var)
        self.key = architecture.activation.closed_form or ("", 0.0)
        self.kept: dict[int, tuple[list[_Layer], Array]] | None = {} if len(X) <= KEPT else None

    def matrix(self) -> Array:
        """K in the lower triangle; the diagonal and what is above are not set."""
        n = len(self.X)
        K = self.workspace.array((n, n), "kernel", n)

        def fill(rows: slice) -> None:
            layers, cov = self._forward(rows)
            K[rows, : rows.stop] = cov
            if self.kept is not None:
                self.kept[rows.start] = layers, cov

        self._each(fill)
        return K

    def _each(self, work: Callable[[slice], None]) -> None:
        rows = list(strips(len(self.X)))
        if self.pool is None or len(rows) < 2:
            for some in rows:
                work(some)
        else:
            list(self.pool.map(work, rows[::-1]))

    def _forward(self, rows: slice) -> tuple[list[_Layer], Array]:
        """All layers of a strip, and the covariance that leaves them."""
        net, columns = self.architecture, slice(0, rows.stop)
        cov = self._array(rows, "cov", 0)
        np.matmul(self.X[rows], self.X[columns].T, out=cov)
        cov *= net.weight_vars[0] / self.X.shape[1]
        cov += net.bias_vars[0]
        layers = []
        for layer in range(1, net.depth + 1):
            q = self.variances[layer - 1]
            slope, value = self._array(rows, "slope", layer), self._array(rows, "cov", layer)
            out = slope, value, self._array(rows, "spare")
            layers.append(self._layer(cov, q[rows][:, None], q[columns][None, :], out))
            cov = value
            cov *= net.weight_vars[layer]
            cov += net.bias_vars[layer]
        return layers, cov

    def _array(self, rows: slice, *name: object) -> Array:
        """An array of a strip: its own where layers are kept, otherwise its thread's."""
        owner = threading.get_ident() if self.kept is None or name == ("spare",) else rows.start
        return self.workspace.array((rows.stop - rows.start, rows.stop), owner, *name)

    def _layer(self, cov: Array, q1: Array, q2: Array, out: tuple[Array, Array, Array]) -> _Layer:
        """F_phi of a strip to the second of `out`, and what the way back needs; the third is
        spare."""
        name, parameter = self.key
        slope, value, spare = out
        if name == "erf":
            return _erf(cov, q1, q2, *out)
        if name == "leaky_relu":
            return _leaky_relu(cov, q1, q2, parameter, *out)
        form = closed_form((name, parameter))
        _correlation(cov, q1, q2, spare)
        np.clip(spare, EPS - 1, 1 - EPS, out=spare)
        value[...] = form.value(np, q1, q2, spare)
        slope[...], first, second = form.rates(np, q1, q2, spare)
        return _Layer(cov, slope, *(np.broadcast_to(part, cov.shape) for part in (first, second)))

    def backward(
        self, slope: Callable[[slice], Array], value: float, log_evidence: float
    ) -> DenseValue:
        """The derivatives, given dE/dK of the pairs of a strip; the diagonal counts half."""
        n, layers = len(self.X), self.architecture.depth + 1
        if any((q == 0).any() for q in self.variances[:-1]):
            raise VarianceError("derivatives need a positive variance in every layer; add bias_var")
        below, diagonal = self.workspace.array((n, n), "pairs", n), np.empty(n)
        parts: list[tuple[slice, tuple[_Sums, _Sums]]] = []

        def work(rows: slice) -> None:
            G = slope(rows)
            square = G[:, rows]
            diagonal[rows] = 0.5 * square.diagonal()
            square *= _below(len(square))
            steps, cov = self._forward(rows) if self.kept is None else self.kept.pop(rows.start)
            parts.append((rows, self._down(G, steps, cov)))
            below[rows, : rows.stop] = G

        self._each(work)
        sums = _Sums(*(np.zeros((layers, n)) for _ in range(3)))
        for rows, (by_row, by_column) in sorted(parts, key=lambda part: part[0].start):
            for total, row, column in zip(sums, by_row, by_column, strict=True):
                total[:, rows] += row
                total[:, : rows.stop] += column
        return self._collect(sums, below, diagonal, value, log_evidence)

    def _down(self, G: Array, steps: list[_Layer], cov: Array) -> tuple[_Sums, _Sums]:
        """Carry G of a strip to the inputs, in place; sums of its rows and of its columns."""
        shape, net = G.shape, self.architecture
        sums = [_Sums(*np.zeros((3, net.depth + 1, size))) for size in shape]
        for layer in range(net.depth, -1, -1):
            above = cov if layer == net.depth else steps[layer].cov
            for axis, out in zip("ij", sums, strict=True):
                out.plain[layer] = G.sum(axis=1 if axis == "i" else 0)
                out.product[layer] = np.einsum(f"ij,ij->{axis}", G, above)
            if layer == 0:
                break
            step = steps[layer - 1]
            G *= net.weight_vars[layer]
            for axis, out, radial in zip("ij", sums, (step.first, step.second), strict=True):
                if radial is not None:
                    out.radial[layer] = np.einsum(f"ij,ij->{axis}", G, radial)
            G *= step.slope
        return sums[0], sums[1]

    def _collect(
        self, sums: _Sums, below: Array, diagonal: Array, value: float, log_evidence: float
    ) -> DenseValue:
        """Sums over pairs and the diagonal, as derivatives."""
        net, d, X = self.architecture, self.X.shape[1], self.X
        weights, biases = np.array(net.weight_vars), np.array(net.bias_vars)
        by_bias = 0.5 * sums.plain.sum(axis=1)  # every pair was met from both of its points
        by_weight = (0.5 * sums.product.sum(axis=1) - biases * by_bias) / weights
        down = diagonal
        for layer in range(net.depth, 0, -1):
            q, above = self.variances[layer - 1], self.variances[layer]
            by_bias[layer] += down.sum()
            by_weight[layer] += down @ (above - biases[layer]) / weights[layer]
            down = down * weights[layer] * self._radial_moment(q) / q
            down += self._by_variance(layer, sums, q)
        by_bias[0] += down.sum()
        by_weight[0] += down @ self.input_var
        moved = below @ X
        moved += below.T @ X
        moved += (2.0 * down)[:, None] * X
        moved *= weights[0] / d
        return DenseValue(value, log_evidence, by_weight, by_bias, diagonal, moved)

    def _by_variance(self, layer: int, sums: _Sums, q: Array) -> Array:
        """dE/dq of the variances that enter a layer, through its pairs."""
        name, _ = self.key
        A = sums.product[layer - 1]
        if name == "erf":  # B = A / (1 + 2q)
            return -A / (1 + 2 * q)
        B = sums.radial[layer]
        if name == "leaky_relu":  # the radial is the value
            B = sums.product[layer] - self.architecture.bias_vars[layer] * sums.plain[layer]
        return (B - A) / (2 * q)

    def _radial_moment(self, q: Array) -> Array:
        """q d E[phi²]/dq of every point."""
        return np.asarray(closed_form(self.key).radial(np, q, q, np.ones_like(q)))


def _below(size: int) -> Array:
    return np.tril(np.ones((size, size)), -1)


def _correlation(cov: Array, q1: Array, q2: Array, out: Array) -> None:
    with np.errstate(divide="ignore"):
        left, right = 1.0 / np.sqrt(q1), 1.0 / np.sqrt(q2)
    np.multiply(cov, np.where(q1 > 0, left, 0.0), out=out)
    out *= np.where(q2 > 0, right, 0.0)
    np.clip(out, -1.0, 1.0, out=out)


def _leaky_relu(
    cov: Array,
    q1: Array,
    q2: Array,
    negative_slope: float,
    slope: Array,
    value: Array,
    corr: Array,
) -> _Layer:
    a2, b2 = (0.5 * (1 + negative_slope)) ** 2, (0.5 * (1 - negative_slope)) ** 2
    _correlation(cov, q1, q2, corr)
    np.arcsin(corr, out=slope)
    slope *= b2 * TWO_OVER_PI
    slope += a2
    np.subtract(1.0, corr, out=value)
    corr += 1.0
    value *= corr
    np.sqrt(value, out=value)  # the sine: with the arcsine of the same c errors cancel near 1
    value *= (b2 * TWO_OVER_PI) * np.sqrt(q1)
    value *= np.sqrt(q2)
    np.multiply(slope, cov, out=corr)
    value += corr
    return _Layer(cov, slope, None, None)


def _erf(cov: Array, q1: Array, q2: Array, slope: Array, value: Array, spare: Array) -> _Layer:
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
    return _Layer(cov, slope, None, None)
