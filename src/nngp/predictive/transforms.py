"""Monotone transforms of one target, with their inverses and slopes.

The identity, the logarithm of positive targets, and the transform of Yeo and Johnson (2000) of
u = (y - origin) / unit,

    ψ(u) = sign(u) ((1 + |u|)^κ - 1) / κ,   κ = λ for u >= 0 and 2 - λ for u < 0,

with a logarithm where κ = 0. For λ in [0, 2] its range is the whole axis, so that every Gaussian
has an inverse; λ = 1 is the identity, smaller λ shorten the tail of large targets. In units of the
data λ does not depend on how they were measured. ψ and the choice of λ are those of `frames.maps`.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from nngp._arrays import Array
from nngp._records import Choice, Positive, Range
from nngp.frames.maps import MAX_EXPONENT, likeliest_power, transformed

TRANSFORMS = ("identity", "log", "yeo-johnson")
MAX_FLOAT = float(np.finfo(float).max)
SMALLEST = float(np.finfo(float).tiny)
FLAT = 1e-100  # a power below it is a logarithm
POWERS = (0.0, 2.0)  # bounds of λ


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
        return cls(kind, likeliest_power(u, POWERS), origin, unit)

    def __call__(self, y: Array) -> Array:
        if self.kind == "identity":
            return y
        if self.kind == "log":
            return np.asarray(np.log(np.maximum(y, SMALLEST)))
        return transformed(_units(y, self.origin, self.unit), np.asarray(self.power))[0]

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


def inverse_yeo_johnson(t: Array, power: float) -> Array:
    """The u whose ψ(u) is t."""
    size = np.abs(t)
    log_size = np.where(t >= 0, _lowered(size, power), _lowered(size, 2.0 - power))
    return np.asarray(np.sign(t) * np.expm1(np.minimum(log_size, MAX_EXPONENT)))


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
