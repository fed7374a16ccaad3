"""Monotone transforms of one target, with their inverses and slopes.

The identity, the logarithm of positive targets, and the transform of Yeo and Johnson (2000) of
u = (y - origin) / unit,

    ψ(u) = sign(u) ((1 + |u|)^κ - 1) / κ,   κ = λ for u >= 0 and 2 - λ for u < 0,

with a logarithm where κ = 0. For λ in [0, 2] its range is the whole axis, so that every Gaussian
has an inverse; λ = 1 is the identity, smaller λ shorten the tail of large targets. In units of the
data λ does not depend on how they were measured. ψ and the choice of λ are those of `frames.maps`.

Mean and standard deviation of a target whose transform is Gaussian have closed forms for the
identity and the logarithm. For Yeo and Johnson's transform, and for targets
known to be positive, by Gauss-Legendre quadrature on both sides of the transform's kink: relative
error below 1e-8 for deviations up to 5 in units of ψ (tests/predictive/test_predictive.py).
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.special import erfcx, log_ndtr

from nngp._arrays import TINY, Array, Index
from nngp._records import Choice, Positive, Range
from nngp.frames.maps import MAX_EXPONENT, likeliest_power, transformed

DEEP = 3.0  # deviations below the bound, where its closed form loses digits
FAR = 9.0  # deviations; beyond lies 2e-19 of a Gaussian
NODES = 48  # of each side, for a range of 2 FAR
WIDEST = 40.0  # deviation in units of ψ whose tilt is followed
CHUNK = 2**20  # values computed at a time


def transformed_moments(
    one: "TargetMap",
    mean: Array,
    std: Array,
    least: float = -np.inf,
    reach: tuple[float, float] | None = None,
) -> tuple[Array, Array]:
    """Mean and standard deviation of y, for T(y) with these, (m,), given T(y) > `least`; with a
    `reach` those of y limited to it.

    What float64 cannot hold is limited to the largest number that it can.
    """
    ends = (-np.inf, np.inf)
    if reach is not None and one.kind != "identity":
        low, high = (float(end) for end in one(np.asarray(reach)))
        ends = (low if reach[0] > 0 or one.kind != "log" else -np.inf, high)
    if one.kind == "log":
        return _log_normal(mean, std, ends)
    if one.kind == "identity":
        out_mean, out_std = _truncated(mean, std, least)
        rows = np.flatnonzero(mean + DEEP * std < least)
    else:
        out_mean, out_std = np.empty(len(mean)), np.empty(len(mean))
        rows = np.arange(len(mean))
    for part in _chunks(rows, std):
        out_mean[part], out_std[part] = _by_quadrature(one, mean[part], std[part], least, ends)
    return out_mean, out_std


def _log_normal(mean: Array, std: Array, ends: tuple[float, float]) -> tuple[Array, Array]:
    """The exponential of a Gaussian, in closed form; by quadrature where it passes an end."""
    with np.errstate(over="ignore"):
        middle = np.minimum(np.exp(mean + 0.5 * std**2), MAX_FLOAT)
        spread = np.minimum(middle * np.sqrt(np.expm1(std**2)), MAX_FLOAT)
    # The density that the variance weighs is that of a Gaussian moved by two variances.
    far = FAR * std + 2 * std**2
    rows = np.flatnonzero((mean + far > ends[1]) | (mean - far < ends[0]))
    for part in _chunks(rows, std):
        middle[part], spread[part] = _by_quadrature(
            TargetMap("log"), mean[part], std[part], -np.inf, ends
        )
    return middle, spread


def _truncated(mean: Array, std: Array, least: float) -> tuple[Array, Array]:
    """Of a Gaussian above a bound, in a form that cancels where nearly all of it is below."""
    out_mean, out_std = mean.copy(), std.copy()
    rows = np.flatnonzero(mean - FAR * std < least)  # elsewhere the bound changes nothing
    if len(rows) == 0:
        return out_mean, out_std
    alpha = np.minimum((least - mean[rows]) / np.maximum(std[rows], TINY), 2 * DEEP)
    hazard = np.sqrt(2 / np.pi) / erfcx(alpha / np.sqrt(2))
    out_mean[rows] += std[rows] * hazard
    out_std[rows] *= np.sqrt(1 + alpha * hazard - hazard**2)
    return out_mean, out_std


def _chunks(rows: Index, std: Array) -> list[Index]:
    if len(rows) == 0:
        return []
    values = len(rows) * 2 * _count(float(std[rows].max()))
    return np.array_split(rows, -(-values // CHUNK))


def _count(widest: float) -> int:
    return NODES * int(np.ceil((2 * FAR + 4 * min(widest, WIDEST)) / (2 * FAR)))


def _by_quadrature(
    one: "TargetMap", mean: Array, std: Array, least: float, ends: tuple[float, float]
) -> tuple[Array, Array]:
    """Integrate over z = (t - mean) / std from the bound, on both sides of t = 0. What lies beyond
    the ends has their value, and the probability that is in closed form."""
    std = np.maximum(std, np.finfo(float).tiny)
    tilt = 2 * np.minimum(std, WIDEST) if one.kind != "identity" else np.zeros(len(std))
    with np.errstate(over="ignore"):
        low = np.maximum((least - mean) / std, -FAR - tilt)
        kink = -mean / std
    low = np.minimum(low, 1e100)  # all but certain to be below the bound
    start = np.maximum(low, 0.0)
    high = start + (FAR + tilt) ** 2 / (np.hypot(start, FAR + tilt) + start)
    with np.errstate(over="ignore"):
        cuts = [np.clip((end - mean) / std, low, high) for end in ends]
    middle = np.clip(kink, *cuts)
    nodes, weights = np.polynomial.legendre.leggauss(_count(float(std.max())))
    half = 0.5 * np.stack([middle - cuts[0], cuts[1] - middle], axis=1)[..., None]
    z = np.stack([cuts[0], middle], axis=1)[..., None] + half * (nodes + 1)
    z, w = z.reshape(len(mean), -1), (half * weights).reshape(len(mean), -1)
    # Relative to the density at the bound, which may be far out.
    w = w * np.exp(-0.5 * (z - start[:, None]) * (z + start[:, None]))
    beyond = np.stack([_mass(low, cuts[0], start), _mass(cuts[1], high, start)], axis=1)
    w = np.hstack([w, beyond])
    w /= w.sum(axis=1, keepdims=True)
    z = np.hstack([z, np.stack(cuts, axis=1)])
    return _weighted(one.inverse(mean[:, None] + std[:, None] * z), w)


def _mass(a: Array, b: Array, start: Array) -> Array:
    """Integral of exp(-z²/2 + start²/2) between a and b, one of which may be equal."""
    with np.errstate(over="ignore", invalid="ignore"):
        flip = (a + b) < 0  # the tail on the other side, where nothing cancels
        a, b = np.where(flip, -b, a), np.where(flip, -a, b)
        log_scale = 0.5 * start**2 + 0.5 * np.log(2 * np.pi)
        upper, lower = np.exp(log_ndtr(-a) + log_scale), np.exp(log_ndtr(-b) + log_scale)
    return np.maximum(upper - lower, 0.0)


def _weighted(y: Array, w: Array) -> tuple[Array, Array]:
    size = np.maximum(np.abs(y).max(axis=1, keepdims=True), np.finfo(float).tiny)
    scaled = y / size
    mean = (w * scaled).sum(axis=1, keepdims=True)
    std = np.sqrt((w * (scaled - mean) ** 2).sum(axis=1))
    return (mean * size)[:, 0], std * size[:, 0]


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
