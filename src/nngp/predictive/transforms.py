"""Monotone transforms of one target, with their inverses and slopes.

The identity, the logarithm of positive targets, and the transform of Yeo and Johnson (2000) of
u = (y - origin) / unit,

    ψ(u) = sign(u) ((1 + |u|)^κ - 1) / κ,   κ = λ for u >= 0 and 2 - λ for u < 0,

with a logarithm where κ = 0. For λ in [0, 2] its range is the whole axis, so that every Gaussian
has an inverse; λ = 1 is the identity, smaller λ shorten the tail of large targets. In units of the
data λ does not depend on how they were measured. `maps.yeo_johnson` is the same function of inputs,
with other bounds of λ, with derivatives in λ, and without an inverse.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.optimize import minimize_scalar

from nngp._arrays import Array
from nngp._records import Choice, Positive, Range

TRANSFORMS = ("identity", "log", "yeo-johnson")
MAX_FLOAT = float(np.finfo(float).max)
SMALLEST = float(np.finfo(float).tiny)
MAX_EXPONENT = 700.0  # of an exponent: exp of it is 1e304
FLAT = 1e-8  # a power below it is a logarithm to rounding
STARTS = np.linspace(0.0, 2.0, 21)  # powers tried before the best is refined


@dataclass(frozen=True)
class TargetMap:
    """A strictly increasing function of one target. What float64 cannot hold is limited to the
    largest number that it can."""

    kind: Annotated[str, Choice(*TRANSFORMS)] = "identity"
    power: Annotated[float, Range(0.0, 2.0)] = 1.0  # λ
    origin: float = 0.0
    unit: Positive = 1.0

    @classmethod
    def learn(cls, y: Array, kind: str) -> "TargetMap":
        """Learn the transform of that kind from training targets, (n,)."""
        if kind != "yeo-johnson":
            return cls(kind)
        origin, unit = _typical(y)
        u = _units(y, origin, unit)
        return cls(kind, _best_power(u), origin, unit)

    def __call__(self, y: Array) -> Array:
        if self.kind == "identity":
            return y
        if self.kind == "log":
            return np.asarray(np.log(np.maximum(y, SMALLEST)))
        return yeo_johnson(_units(y, self.origin, self.unit), self.power)

    def inverse(self, t: Array) -> Array:
        """The target that has this value."""
        if self.kind == "identity":
            return t
        if self.kind == "log":
            return np.asarray(np.exp(np.clip(t, np.log(SMALLEST), np.log(MAX_FLOAT))))
        u = inverse_yeo_johnson(t, self.power)
        with np.errstate(over="ignore"):
            return np.asarray(np.clip(self.origin + self.unit * u, -MAX_FLOAT, MAX_FLOAT))

    def log_slope(self, y: Array) -> Array:
        """Logarithm of the derivative."""
        if self.kind == "identity":
            return np.zeros(np.shape(y))
        if self.kind == "log":
            return np.asarray(-np.log(np.maximum(y, SMALLEST)))
        u = _units(y, self.origin, self.unit)
        slope = np.where(u >= 0, self.power - 1.0, 1.0 - self.power) * np.log1p(np.abs(u))
        return np.asarray(slope - np.log(self.unit))


def yeo_johnson(u: Array, power: float) -> Array:
    """ψ(u); values past exp(700) are limited to that."""
    size = np.log1p(np.abs(u))
    return np.asarray(np.sign(u) * np.where(u >= 0, _raised(size, power), _raised(size, 2 - power)))


def inverse_yeo_johnson(t: Array, power: float) -> Array:
    """The u whose ψ(u) is t."""
    size = np.abs(t)
    log_size = np.where(t >= 0, _lowered(size, power), _lowered(size, 2.0 - power))
    return np.asarray(np.sign(t) * np.expm1(np.minimum(log_size, MAX_EXPONENT)))


def _raised(log_size: Array, power: float) -> Array:
    """(exp(log_size)^power - 1) / power."""
    if power < FLAT:
        return log_size
    return np.asarray(np.expm1(np.minimum(power * log_size, MAX_EXPONENT)) / power)


def _lowered(t: Array, power: float) -> Array:
    """log(1 + power t) / power."""
    if power < FLAT:
        return t
    return np.asarray(np.log1p(power * np.minimum(t, MAX_FLOAT / 2)) / power)


def _units(y: Array, origin: float, unit: float) -> Array:
    """(y - origin) / unit, limited to what float64 holds."""
    with np.errstate(over="ignore"):
        return np.asarray(np.clip(y / unit - origin / unit, -MAX_FLOAT, MAX_FLOAT))


def _typical(y: Array) -> tuple[float, float]:
    """Median and half the distance of the quartiles, which wild values do not move."""
    low, middle, high = np.quantile(y / 2, [0.25, 0.5, 0.75])  # halves: no overflow
    spread = float(high - low)
    if spread <= np.finfo(float).eps * abs(middle):  # half of the targets are equal
        spread = float(np.mean(np.abs(y / 2 - middle)))
    return 2.0 * float(middle), max(spread, SMALLEST)


def _best_power(u: Array) -> float:
    """λ by maximum likelihood, mean and variance being those of the transformed values."""
    found = [_log_likelihood(u, power) for power in STARTS]
    best = int(np.argmax(found))
    if not np.isfinite(found[best]):
        return 1.0
    bounds = (STARTS[max(best - 1, 0)], STARTS[min(best + 1, len(STARTS) - 1)])
    refined = minimize_scalar(
        lambda power: -_log_likelihood(u, float(power)), bounds=bounds, method="bounded"
    )
    return float(refined.x) if -refined.fun > found[best] else float(STARTS[best])


def _log_likelihood(u: Array, power: float) -> float:
    """Of independent targets whose transform is Gaussian, but for a constant."""
    t = yeo_johnson(u, power)
    size = float(np.abs(t).max())
    if size == 0.0 or size >= np.exp(MAX_EXPONENT):
        return -np.inf
    variance = float(np.var(t / size))
    if variance <= 0.0:
        return -np.inf
    slopes = float(((power - 1.0) * np.sign(u) * np.log1p(np.abs(u))).sum())
    return slopes - len(u) * (0.5 * float(np.log(variance)) + float(np.log(size)))
