"""Predictive distribution of new targets in the units of the data.

Each network predicts a Gaussian of the scaled, perhaps transformed targets. Its deviation is
multiplied by one of a few factors with a probability each (`blend`), which gives the tails that
held-out points have; so the whole is a mixture of transformed Gaussians. Where all training targets
were positive it is conditioned on that. Rows and outputs are taken one by one: what is said here
of correlations between them is nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri, ndtri_exp

from nngp._arrays import EPS, Array
from nngp._roots import find_roots
from nngp.predictive.targets import TargetScaling
from nngp.predictive.transforms import MAX_FLOAT, SMALLEST, transformed_moments

THINNEST = 1e-150  # a deviation, in scaled units: its square is a number


@dataclass(frozen=True)
class PredictivePart:
    """Predictions of one network in scaled units.

    Attributes
    ----------
    mean : array, (m, outputs)
    variance : array, (m, outputs) or (m, 1)
    targets : TargetScaling
    factors : array, (j,)
        Of the deviation.
    weights : array, (j,)
        Probability of this network with each factor. Those of all parts add up to one.
    """

    mean: Array
    variance: Array
    targets: TargetScaling
    factors: Array = field(default_factory=lambda: np.ones(1))
    weights: Array = field(default_factory=lambda: np.ones(1))

    @cached_property
    def std(self) -> Array:
        """Deviation with a factor of one, (m, outputs)."""
        std = np.maximum(np.sqrt(self.variance), THINNEST)
        return np.asarray(np.broadcast_to(std, self.mean.shape))

    @property
    def common_factor(self) -> float:
        """The factor that gives the variance of all."""
        if len(self.factors) == 1:
            return float(self.factors[0])
        return float(np.sqrt(self.weights @ self.factors**2 / self.weights.sum()))

    def standard(self, Y: Array) -> Array:
        """(scaled Y - mean) / deviation."""
        with np.errstate(over="ignore"):
            return np.asarray(np.clip((self.targets(Y) - self.mean) / self.std, -1e150, 1e150))


class MixedPart(NamedTuple):
    """A part with one factor, and its probability for each row and output."""

    part: int
    factor: float
    weight: Array


class Predictive:
    """Mixture of the predictions of several networks for the same rows."""

    def __init__(self, parts: Sequence[PredictivePart]) -> None:
        self.parts = tuple(parts)
        self._positive = all(part.targets.positive for part in parts)

    def __repr__(self) -> str:
        rows, outputs = self.shape
        return f"<Predictive of {rows} rows, {outputs} output(s), {len(self.parts)} network(s)>"

    @property
    def is_bounded(self) -> bool:
        """Whether predictions are conditioned on positive targets."""
        return self._positive

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and outputs."""
        return self.parts[0].mean.shape

    @cached_property
    def _log_above(self) -> Array:
        """Log probability of each part and factor to be above the bound, (parts and factors, m,
        outputs); zero without a bound."""
        count = sum(len(part.factors) for part in self.parts)
        if not self._positive:
            return np.zeros((count, *self.shape))
        zero = np.zeros(self.shape)
        return np.concatenate([log_ndtr(-_over(p.standard(zero), p.factors)) for p in self.parts])

    @cached_property
    def _log_weights(self) -> Array:
        weights = np.concatenate([part.weights for part in self.parts])
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(weights)[:, None, None])

    @cached_property
    def _log_total(self) -> Array:
        """Log probability to be above the bound, (m, outputs)."""
        return _log_sum(self._log_weights + self._log_above)

    def mean(self) -> Array:
        """Mean, (m, outputs).

        Where targets are transformed, mean and deviation take the factors of a network as one that
        gives the same variance before the transform: the exponential of a longer tail has a mean
        that says nothing.
        """
        return self._moments[0]

    def std(self) -> Array:
        """Standard deviation, (m, outputs)."""
        return self._moments[1]

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        cells = self.cells
        each = [self._moments_of(self.parts[one.part], one.factor) for one in cells]
        if len(each) == 1:
            return each[0]
        means, stds = (np.stack(values) for values in zip(*each, strict=True))
        weights = np.stack([one.weight for one in cells])
        size = np.maximum(np.abs(means).max(axis=0), stds.max(axis=0)) + SMALLEST
        means, stds = means / size, stds / size
        mean = (weights * means).sum(axis=0)
        variance = (weights * (stds**2 + (means - mean) ** 2)).sum(axis=0)
        return np.clip(mean * size, -MAX_FLOAT, MAX_FLOAT), np.sqrt(variance) * size

    @cached_property
    def cells(self) -> list["MixedPart"]:
        """Components of the mixture: networks, each with one factor; with all its
        factors where the bound makes the mean depend on them and no transform stretches them."""
        weights = np.exp(self._log_weights + self._log_above - self._log_total)
        out, start = [], 0
        for k, part in enumerate(self.parts):
            own = weights[start : start + len(part.factors)]
            start += len(part.factors)
            if self._positive and not part.targets.transforms:
                out += [MixedPart(k, float(f), w) for f, w in zip(part.factors, own, strict=True)]
            else:
                out.append(MixedPart(k, part.common_factor, own.sum(axis=0)))
        return out

    def _moments_of(self, part: PredictivePart, factor: float) -> tuple[Array, Array]:
        """Mean and deviation of a part with one factor, each (m, outputs)."""
        targets, std = part.targets, factor * part.std
        mean = part.mean * targets.spread + targets.center
        std = std * targets.spread
        if not targets.transforms and not self._positive:
            return mean, std
        columns = []
        for i, one in enumerate(targets.maps):
            bounded = self._positive and one.kind != "log"
            least = float(one(np.zeros(1))[0]) if bounded else -np.inf
            reach = None if targets.reach is None else (targets.reach[0][i], targets.reach[1][i])
            columns.append(transformed_moments(one, mean[:, i], std[:, i], least, reach))
        mean, std = np.stack(columns, axis=2)
        return mean, std

    def log_density(self, Y: Array) -> Array:
        """Log density of targets, (m, outputs)."""
        terms = []
        for part in self.parts:
            log_scale = part.targets.log_slopes(Y) - np.log(part.std) - 0.5 * np.log(2 * np.pi)
            z = _over(part.standard(Y), part.factors)
            terms.append(log_scale - np.log(part.factors)[:, None, None] - 0.5 * z**2)
        out = _log_sum(self._log_weights + np.concatenate(terms)) - self._log_total
        if self._positive:
            out = np.where(Y > 0, out, -np.inf)
        return np.asarray(out)

    def cdf(self, Y: Array) -> Array:
        """Probability of less than Y, (m, outputs)."""
        if self._positive:
            Y = np.maximum(Y, SMALLEST)
        below, above = self._log_tail(Y, 1.0), self._log_tail(Y, -1.0)
        rest = -np.expm1(np.minimum(above - self._log_total, 0.0))
        if self._positive:
            return np.asarray(rest)
        return np.asarray(np.where(below < above, np.exp(below), rest))

    def _log_tail(self, Y: Array, sign: Array | float) -> Array:
        """Log probability below Y (above it where the sign is -1), without the bound."""
        z = np.concatenate([_over(part.standard(Y), part.factors) for part in self.parts])
        return _log_sum(self._log_weights + log_ndtr(sign * z))

    def quantile(self, p: float) -> Array:
        """The value that a target exceeds with probability 1 - p, (m, outputs)."""
        if not 0 < p < 1:
            raise ValueError(f"p must be between 0 and 1, got {p}")
        if len(self.parts) > 1:
            return self._solved(p)
        part, out = self.parts[0], np.empty(self.shape)
        z = _quantile_of_factors(p, part)
        near = (self._log_total < -EPS).any(axis=1)  # rows that the bound matters to
        with np.errstate(over="ignore"):
            far = part.targets.undo(part.mean + z * part.std)
        out[~near] = far[~near]
        if near.any():
            some = replace(part, mean=part.mean[near], variance=part.variance[near])
            out[near] = Predictive([some])._solved(p)
        return np.maximum(out, SMALLEST) if self._positive else out

    def _solved(self, p: float) -> Array:
        """Quantiles by a search in every row."""
        above = np.log1p(-p) + self._log_total
        below = np.full(self.shape, np.log(p))
        if self._positive:
            below = np.log(-np.expm1(np.minimum(above, -1e-300)))
        return self._quantile(below, above)

    def interval(self, coverage: float = 0.95) -> tuple[Array, Array]:
        """Ends of the central interval that holds a target with that probability."""
        if not 0 < coverage < 1:
            raise ValueError(f"coverage must be between 0 and 1, got {coverage}")
        return self.quantile(0.5 - coverage / 2), self.quantile(0.5 + coverage / 2)

    def _quantile(self, below: Array, above: Array) -> Array:
        """Where the log probabilities, without the bound, are these."""
        z = np.where(below < above, ndtri_exp(np.minimum(below, 0)), -ndtri_exp(above))
        each = np.concatenate(
            [
                [p.targets.undo(p.mean + factor * p.std * z) for factor in p.factors]
                for p in self.parts
            ]
        )
        if len(each) == 1:
            out = each[0]
        else:  # between the quantiles of the parts
            scale = self.parts[0].targets
            low, high = scale(each.min(axis=0)), scale(each.max(axis=0))

            sign = np.where(below < above, 1.0, -1.0)  # by the smaller tail
            tail = np.minimum(below, above)

            def too_high(t: Array) -> Array:
                excess = sign * (self._log_tail(scale.undo(t), sign) - tail)
                return np.asarray(np.clip(excess, -1e100, 1e100))

            out = scale.undo(find_roots(too_high, low, high))
        return np.maximum(out, SMALLEST) if self._positive else out

    def sample(self, n: int = 1, seed: object = None) -> Array:
        """`n` independent draws for each row, (m, outputs, n)."""
        rng = np.random.default_rng(seed)  # type: ignore[arg-type]
        weights = np.exp(self._log_weights + self._log_above - self._log_total)
        edges = np.cumsum(weights, axis=0)[:-1, ..., None]
        which = (rng.random((*self.shape, n)) > edges).sum(axis=0)
        log_u = np.log1p(-rng.random((*self.shape, n)))
        out, index = np.empty((*self.shape, n)), 0
        for part in self.parts:
            for factor in part.factors:
                z = -ndtri_exp(log_u + self._log_above[index][..., None])
                drawn = part.mean[..., None] + factor * part.std[..., None] * z
                y = np.moveaxis(part.targets.undo(np.moveaxis(drawn, -1, 0)), 0, -1)
                out = np.where(which == index, y, out)
                index += 1
        return np.maximum(out, SMALLEST) if self._positive else out

    def from_process(self, draws: Array, k: int, factor: float = 1.0) -> Array:
        """Convert draws of the process of part k, (n, m, outputs) in scaled units, to the units of
        the data, with its deviations times a factor. Correlations between rows stay."""
        part = self.parts[k]
        z = (draws - part.mean) / part.std
        if self._positive:  # the draw of the same rank among those above the bound
            least = part.standard(np.zeros(self.shape)) / factor
            z = -ndtri_exp(log_ndtr(-z) + log_ndtr(-least))
        out = part.targets.undo(part.mean + factor * part.std * z)
        return np.maximum(out, SMALLEST) if self._positive else out


def _over(z: Array, factors: Array) -> Array:
    """z over each factor, (factors, ...)."""
    return np.asarray(z / factors.reshape(-1, *(1,) * z.ndim))


def _quantile_of_factors(p: float, part: PredictivePart) -> float:
    """Quantile of a Gaussian whose deviation is one of the factors, whatever its mean."""
    factors, weights = part.factors, part.weights / part.weights.sum()
    tail = min(p, 1 - p)  # the lower one: the distribution is symmetric
    z = float(ndtri(tail))
    if len(factors) > 1:
        ends = np.array([z * factors.max()]), np.array([z * factors.min()])

        def excess(x: Array) -> Array:
            return np.asarray(np.log(ndtr(x[:, None] / factors) @ weights) - np.log(tail))

        z = float(find_roots(excess, *ends)[0])
    else:
        z *= float(factors[0])
    return z if p <= 0.5 else -z


def _log_sum(terms: Array) -> Array:
    """Log of the sum of exponentials over the first axis."""
    most = np.maximum(terms.max(axis=0), -MAX_FLOAT)
    return np.asarray(most + np.log(np.exp(terms - most).sum(axis=0)))
