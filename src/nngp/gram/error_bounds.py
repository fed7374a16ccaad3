"""The error of kernel entries at unequal norms, from the nearest pair of inputs in a matrix."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from nngp._arrays import EPS, Array
from nngp.architecture import Activation, Network
from nngp.architecture.flow import coarsened
from nngp.architecture.graph import Windowed
from nngp.architecture.walk import Number, output, walk
from nngp.gram.host.pair_layer import TOLERANCE, PairLayer, SlopePairLayer, pair_layer
from nngp.gram.triples import SNAP, moments, slope_moments

FAR_ENOUGH = 1e-6  # 1 - |c| below which the nearest pair of a matrix is looked for
ALL = slice(None)


class PairErrors(NamedTuple):
    """Sample pairs at a node, and the rounding errors that they have accumulated.

    Variances have relative errors, correlations absolute ones. They are kept apart because an
    error of a variance moves a covariance in proportion, which leaves the correlation as it is.
    """

    left: Array  # variances, (rows, 1)
    right: Array  # (1, columns)
    left_error: Array
    right_error: Array
    corr: Array  # (rows, columns)
    corr_error: Array

    @property
    def deviations(self) -> Array:
        return np.sqrt(self.left) * np.sqrt(self.right)

    @property
    def error(self) -> float:
        """Largest error of a covariance, relative to the deviations."""
        variance = 0.5 * (self.left_error + self.right_error)
        return float(np.max(np.maximum(variance, self.corr_error + np.abs(self.corr) * variance)))


def pairwise_error(network: Network, input_var: Array, nearest: float) -> float:
    """Error of the entries of a matrix whose nearest pair of inputs has 1 - |c| = nearest.

    Rounding errors are carried through the nodes to first order, for sample pairs: the smallest,
    the middle and the largest norms, with cosines from the nearest to the most distant.
    """
    positive = input_var[input_var > 0]
    if not len(positive):
        return 4 * EPS * (len(network.graph) + 1)
    norms = np.unique(np.quantile(positive, [0.0, 0.5, 1.0], method="nearest"))
    return _sampled_error(network, tuple(norms.tolist()), float(min(nearest, FAR_ENOUGH)))


@lru_cache(maxsize=64)
def _sampled_error(network: Network, norms: tuple[float, ...], nearest: float) -> float:
    fine = _output(network, norms, nearest)
    found = fine.error
    if (coarse := coarsened(network)) is not None:
        other = _output(coarse, norms, nearest)
        moved = other.corr * other.deviations / fine.deviations - fine.corr
        diagonal = np.abs(other.left / fine.left - 1)
        found += float(np.maximum(np.abs(moved), diagonal).max()) / 15
    return min(found, 2.0) if np.isfinite(found) else 2.0


def _output(network: Network, norms: tuple[float, ...], nearest: float) -> PairErrors:
    """The sample pairs at the output."""
    near = 1 - max(nearest, EPS)
    cosines = np.array([near, 0.5, 0.0, -0.5, -near])
    left, right = np.repeat(norms, len(cosines))[:, None], np.array(norms)[None, :]
    corr = np.broadcast_to(np.tile(cosines, len(norms))[:, None], (len(left), right.size))
    rounding = [np.full_like(values, 4 * EPS) for values in (left, right, corr)]
    inputs = PairErrors(left, right, rounding[0], rounding[1], corr, rounding[2])
    with np.errstate(all="ignore"):
        return output(walk(network, _Operations(), inputs))


class _Operations:
    """The operations of a walk on sample pairs with their errors."""

    def mix(
        self, weights: Sequence[Number], states: Sequence[PairErrors], constant: Number
    ) -> PairErrors:
        return _mixture(weights, states, constant)

    def times(self, one: PairErrors, other: PairErrors) -> PairErrors:
        return PairErrors(
            one.left * other.left,
            one.right * other.right,
            one.left_error + other.left_error + EPS,
            one.right_error + other.right_error + EPS,
            one.corr * other.corr,
            np.abs(one.corr) * other.corr_error + np.abs(other.corr) * one.corr_error + EPS,
        )

    def dual(self, phi: Activation, state: PairErrors) -> PairErrors:
        q = state.left[:, 0], state.right[0]
        return _through(pair_layer(phi, *q), state, moments(phi, q[0]), _rounding(phi))

    def slope(self, phi: Activation, state: PairErrors) -> PairErrors:
        q = state.left[:, 0], state.right[0]
        return _through(SlopePairLayer(phi, *q), state, slope_moments(phi, q[0]), _rounding(phi))

    def normalise(self, state: PairErrors, by: PairErrors) -> PairErrors:
        """Divided by the deviations, which makes the variances of `by` exactly one."""
        same = state is by
        return PairErrors(
            state.left / by.left,
            state.right / by.right,
            np.zeros_like(by.left) if same else state.left_error + by.left_error + EPS,
            np.zeros_like(by.right) if same else state.right_error + by.right_error + EPS,
            state.corr,
            state.corr_error + 2 * EPS,
        )

    def mask(self, state: PairErrors, keep: float) -> PairErrors:
        return state._replace(
            left=state.left / keep,
            right=state.right / keep,
            corr=state.corr * keep,
            corr_error=state.corr_error * keep,
        )

    def window(self, state: PairErrors, node: Windowed) -> PairErrors:
        """The sample pairs are images of one colour: means leave them, up to rounding."""
        return state._replace(corr_error=state.corr_error + 4 * EPS)


def _rounding(phi: Activation) -> float:
    """Error of E[phi(u) phi(v)] at given variances and correlation."""
    return 4 * EPS if phi.closed_form is not None else TOLERANCE


def _mixture(weights: Sequence[float], own: Sequence[PairErrors], bias: float) -> PairErrors:
    """A constant plus weighted covariances. Only where a part has another correlation than the
    whole, or another share of one variance than of the other, do errors of its variances move
    the correlation."""
    left = np.full_like(own[0].left, bias)
    right = np.full_like(own[0].right, bias)
    for w, one in zip(weights, own, strict=True):
        left, right = left + w * one.left, right + w * one.right
    scale = np.sqrt(left) * np.sqrt(right)
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    parts = [w * one.deviations * inverse for w, one in zip(weights, own, strict=True)]
    corr = bias * inverse
    for part, one in zip(parts, own, strict=True):
        corr = corr + part * one.corr
    error, left_error, right_error = (
        np.full_like(values, size) for values, size in ((corr, 4 * EPS), (left, EPS), (right, EPS))
    )
    for w, part, one in zip(weights, parts, own, strict=True):
        shares = [
            np.divide(w * q, whole, out=np.zeros_like(q), where=whole > 0)
            for q, whole in ((one.left, left), (one.right, right))
        ]
        error = error + part * one.corr_error
        error += 0.5 * np.abs(part * one.corr - corr * shares[0]) * one.left_error
        error += 0.5 * np.abs(part * one.corr - corr * shares[1]) * one.right_error
        left_error = left_error + shares[0] * one.left_error
        right_error = right_error + shares[1] * one.right_error
    return PairErrors(left, right, left_error, right_error, corr, error)


def _through(layer: PairLayer, before: PairErrors, moment: Array, own_error: float) -> PairErrors:
    """F of a layer. It is evaluated where the error of the correlation may have moved it, since F
    may have an infinite slope at ±1, and differentiated in the variances."""
    c = np.clip(before.corr, -1.0, 1.0)
    # Correlations beyond SNAP are rounded to ±1.
    doubt = before.corr_error + np.where(np.abs(c) > SNAP - 8 * EPS, 1 - SNAP, 0.0)
    value = layer.value(ALL, ALL, c)
    row, column = layer.radials(ALL, ALL, c)
    moved = [
        np.abs(layer.value(ALL, ALL, np.clip(c + sign * doubt, -1.0, 1.0)) - value)
        for sign in (-1, 1)
    ]
    left, step = moment[:, None], len(before.left) // before.right.size
    left_gain = np.divide(
        layer.radial_moment()[:, None], left, out=np.zeros_like(left), where=left > 0
    )
    right, right_gain = left[::step].T, left_gain[::step].T  # the rows repeat the columns' norms
    scale = np.sqrt(left) * np.sqrt(right)
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    corr = value * inverse
    error = np.maximum(*moved) * inverse + own_error
    error += 0.5 * np.abs(row * inverse - corr * left_gain) * before.left_error
    error += 0.5 * np.abs(column * inverse - corr * right_gain) * before.right_error
    return PairErrors(
        left,
        right,
        np.abs(left_gain) * before.left_error + own_error,
        np.abs(right_gain) * before.right_error + own_error,
        corr,
        error,
    )
