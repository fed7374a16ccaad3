"""Monotone maps of columns, learned from training values: hyper-parameters like relevances.

`ColumnMap` is one column's map (identity, Yeo-Johnson, logarithm, ranks, or a bounded one), applied
to values in units of the column (`Units`, which one wild value does not move), so that its scale
does not matter. Beyond what was seen in training a map never grows faster than a straight line.
`MapFamily` holds the maps that a column may get.

The transformation of Yeo and Johnson (2000): with L = log(1 + |t|) and κ = λ where t >= 0, 2 - λ
where t < 0, it is sign(t) (e^(κL) - 1) / κ. Targets have it as well (`predictive.transforms`), with
λ in [0, 2], so that every value has an inverse.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtri

from nngp._arrays import Array, Mask
from nngp._records import Choice, Extended, Positive, Range

POWERS = (-2.0, 4.0)  # bounds of λ
POWER_STEP = 0.2  # of λ, before the best is refined
MAX_EXPONENT = 700.0  # of an exponent: exp of it is 1e304


def transformed(t: Array, power: Array) -> tuple[Array, Array]:
    """The transformed values, and their derivatives in the power; `power` broadcasts with t."""
    size = np.log1p(np.abs(t))
    return from_logs(size, t < 0, power)


def from_logs(size: Array, negative: Mask, power: Array) -> tuple[Array, Array]:
    """The same from L and the sign, which a search computes once."""
    exponent = np.where(negative, 2.0 - power, power)
    y = np.minimum(exponent * size, MAX_EXPONENT)
    grown = np.expm1(y)
    small = np.abs(y) < 1e-4
    safe = np.where(small, 1.0, y)
    value = size * np.where(small, 1.0 + y / 2 + y * y / 6, grown / safe)
    moved = np.where(small, 0.5 + y / 3 + y * y / 8, (y * (grown + 1.0) - grown) / (safe * safe))
    return np.where(negative, -value, value), size * size * moved


def likeliest_power(t: Array, bounds: tuple[float, float] = POWERS) -> float:
    """The power that makes t most like a normal sample (profile likelihood); one if none does."""
    size, negative = np.log1p(np.abs(t)), t < 0
    signed = float(np.where(negative, -size, size).sum())

    def likelihood(power: float) -> float:
        value = from_logs(size, negative, np.asarray(power))[0]
        largest = float(np.abs(value).max())
        if largest == 0.0 or largest >= np.exp(MAX_EXPONENT):
            return -np.inf
        variance = float(np.var(value / largest))  # so that no square overflows
        if variance <= 0.0:
            return -np.inf
        return (power - 1.0) * signed - len(t) * (0.5 * np.log(variance) + np.log(largest))

    powers = np.linspace(*bounds, 1 + round((bounds[1] - bounds[0]) / POWER_STEP))
    found = [likelihood(power) for power in powers]
    best = int(np.argmax(found))
    if not np.isfinite(found[best]):
        return 1.0
    around = powers[max(best - 1, 0)], powers[min(best + 1, len(powers) - 1)]
    refined = minimize_scalar(lambda power: -likelihood(power), bounds=around, method="bounded")
    return float(refined.x) if -refined.fun > found[best] else float(powers[best])


HEAVY = 50.0  # units from the center beyond which a column counts as heavy-tailed
QUARTILE = float(ndtri(0.75))  # of the standard normal distribution


class Units(NamedTuple):
    """Median, robust deviation (zero of a constant), and the largest distance in it."""

    center: float
    unit: float
    reach: float

    @property
    def is_heavy(self) -> bool:
        return self.reach > HEAVY


def units_of(x: Array) -> Units:
    """Units of a column: the width of its middle half, as that of a normal distribution; where half
    of the values are the same, the typical distance of the others from it."""
    low, center, high = (float(part) for part in np.quantile(x / 2, [0.25, 0.5, 0.75]))  # halves:
    unit = (high - low) / QUARTILE  # no overflow
    if not unit > 1e-12 * max(abs(low), abs(high)):
        others = np.abs(x / 2 - center)
        others = others[others > 1e-12 * np.abs(x).max()]
        unit = 2.0 * float(np.median(others)) if len(others) else 0.0
    if not unit > np.finfo(float).tiny:
        return Units(2 * center, 0.0, 0.0)
    with np.errstate(over="ignore"):
        reach = float(np.abs(x / unit - 2 * (center / unit)).max())
    return Units(2 * center, unit, reach)


KINDS = ("identity", "yeo-johnson", "log", "ranks", "bounded")
MIDDLE, MAX_BOUNDED_VALUE = (
    4.0,
    8.0,
)  # deviations up to which the bounded map is the identity; its bound
KNOTS = 200  # of the map to ranks


@dataclass(frozen=True)
class ColumnMap:
    """A map of that kind: x -> u(t), with t = (x - center) / unit."""

    kind: Annotated[str, Choice(*KINDS)] = "identity"
    center: float = 0.0
    unit: Positive = 1.0
    power: Annotated[float, Range(*POWERS)] = 1.0  # of Yeo-Johnson
    low: Extended = -np.inf  # range of t in training
    high: Extended = np.inf
    knots: tuple[float, ...] = ()  # of ranks, in t
    scores: tuple[float, ...] = ()  # normal scores at the knots

    def __call__(self, x: Array) -> Array:
        if self.kind == "identity":
            return x
        with np.errstate(over="ignore"):
            t = np.clip((x - self.center) / self.unit, -1e150, 1e150)
        if self.kind == "ranks":
            return np.interp(t, self.knots, self.scores)
        if self.kind == "bounded":
            return bounded(t)
        inside = np.clip(t, self.low, self.high)
        u, slope = self._curve(inside)
        return u + self._beyond(t, inside, slope)

    def _curve(self, t: Array) -> tuple[Array, Array]:
        if self.kind == "log":
            return np.log(t), 1.0 / t
        u, _ = transformed(t, np.full(t.shape, self.power))
        exponent = np.where(t >= 0, self.power, 2.0 - self.power)
        return u, np.exp((exponent - 1.0) * np.log1p(np.abs(t)))

    def _beyond(self, t: Array, inside: Array, slope: Array) -> Array:
        """How far the map goes on outside the range seen: along its tangent, or along the curve
        where that is flatter."""
        tangent = slope * (t - inside)
        if self.kind == "log":
            above = np.log(np.maximum(t, inside)) - np.log(inside)
        else:
            with np.errstate(over="ignore"):
                power = np.full(t.shape, self.power)
                above = transformed(t, power)[0] - transformed(inside, power)[0]
        low = np.where(np.abs(above) < np.abs(tangent), above, tangent)
        return np.where(t < inside, tangent if self.kind == "log" else low, low)

    def derivative(self, x: Array) -> Array:
        """du/dx at values; at a kink (a knot of the ranks, an end of what was seen) of its right
        side."""
        if self.kind == "identity":
            return np.ones_like(x)
        with np.errstate(over="ignore"):
            t = np.clip((x - self.center) / self.unit, -1e150, 1e150)
        if self.kind == "ranks":
            piece = np.searchsorted(self.knots, t, side="right")
            slopes = np.concatenate([[0.0], np.diff(self.scores) / np.diff(self.knots), [0.0]])
            return slopes[piece] / self.unit
        if self.kind == "bounded":
            beyond = np.maximum(np.abs(t) - MIDDLE, 0.0) / (MAX_BOUNDED_VALUE - MIDDLE)
            return np.asarray(1.0 / np.cosh(np.minimum(beyond, MAX_EXPONENT / 2)) ** 2 / self.unit)
        inside = np.clip(t, self.low, self.high)
        _, slope = self._curve(inside)
        with np.errstate(all="ignore"):
            own = self._curve(np.where(t < inside, inside, t))[1]
            own = np.where(t < inside, self._curve(t)[1] if self.kind != "log" else slope, own)
        # Beyond what was seen the map follows its tangent or its curve, whichever is flatter.
        return np.asarray(np.minimum(slope, own) / self.unit)

    @property
    def slope(self) -> float:
        """du/dx in the middle of the column; of a curved map over the range seen in training."""
        if self.kind == "identity":
            return 1.0
        if self.kind == "ranks":
            return float(np.ptp(self.scores) / np.ptp(self.knots)) / self.unit
        if self.kind == "yeo-johnson" and self.low < self.high:
            ends = np.array([self.low, self.high])
            return float(np.ptp(self._curve(ends)[0]) / np.ptp(ends)) / self.unit
        return 1.0 / self.unit

    @property
    def middle(self) -> float:
        """A typical value of the column."""
        if self.kind == "yeo-johnson":  # whose center is zero where no value is negative
            return self.center + self.unit * (self.low + self.high) / 2
        return self.unit if self.kind == "log" else self.center

    @property
    def name(self) -> str:
        """For tables: the kind, with its power."""
        return f"{self.kind}({self.power:.3g})" if self.kind == "yeo-johnson" else self.kind

    def check_saved(self) -> None:
        """Raise ValueError for a map that is never learned."""
        is_curve = self.kind in ("yeo-johnson", "log")
        least = 0.0 if self.kind == "log" else -np.inf
        if is_curve and not least < self.low <= self.high < np.inf:
            raise ValueError("the range of a map is empty, or not one of its values")
        if self.kind == "ranks" and not (
            len(self.knots) == len(self.scores) > 1
            and all((np.diff(part) > 0).all() for part in (self.knots, self.scores))
        ):
            raise ValueError("ranks need increasing knots, two or more, and scores for each")


def bounded(t: Array) -> Array:
    """t in the middle, then smoothly towards a bound."""
    size, room = np.abs(t), MAX_BOUNDED_VALUE - MIDDLE
    beyond = room * np.tanh(np.maximum(size - MIDDLE, 0.0) / room)
    return np.sign(t) * (np.minimum(size, MIDDLE) + beyond)


def learn_ranks(x: Array, center: float, unit: float) -> ColumnMap | None:
    """Normal scores of the ranks, interpolated; None for fewer than three values."""
    values, counts = np.unique((x - center) / unit, return_counts=True)
    if len(values) < 3:
        return None
    middle = np.cumsum(counts) - 0.5 * counts
    scores = ndtri(middle / len(x))
    if len(values) > KNOTS:
        keep = np.unique(np.linspace(0, len(values) - 1, KNOTS).astype(int))
        values, scores = values[keep], scores[keep]
    apart = np.concatenate([[True], np.diff(scores) > 0])
    knots, scores = values[apart].tolist(), scores[apart].tolist()
    return ColumnMap("ranks", center, unit, knots=tuple(knots), scores=tuple(scores))


SOME = 200
MIN_DISTINCT_VALUES = 10  # distinct values: of fewer a map would be a free parameter for each


@dataclass(frozen=True)
class MapFamily:
    """Maps of a column x; `mappable` says whether it may get any but the identity."""

    x: Array
    mappable: bool

    @cached_property
    def units(self) -> Units:
        return units_of(self.x)

    @cached_property
    def can_move(self) -> bool:
        """Whether a monotone map changes anything."""
        return self.mappable and self.units.unit > 0 and _has_several(self.x)

    @cached_property
    def is_heavy(self) -> bool:
        return self.mappable and self.units.is_heavy and self.can_move

    @cached_property
    def default(self) -> ColumnMap:
        """The identity, or the bounded map of a column with heavy tails."""
        return self.make("bounded") if self.is_heavy else ColumnMap()

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """Fixed maps that may be tried; a heavy-tailed column does not get the identity."""
        if not self.can_move:
            return ("identity",)
        positive = ("log",) if self.x.min() > 0 else ()
        return ("bounded" if self.is_heavy else "identity", *positive, "ranks")

    @cached_property
    def learnable(self) -> bool:
        """Whether the power of Yeo-Johnson can be learned."""
        return self.can_move and not self.is_heavy

    @cached_property
    def yeo_johnson(self) -> ColumnMap:
        """Yeo-Johnson of power one, which is the identity, in units of the column."""
        center, unit = self._origin()
        t = (self.x - center) / unit
        return ColumnMap("yeo-johnson", center, unit, 1.0, float(t.min()), float(t.max()))

    @cached_property
    def likeliest(self) -> float:
        """The power that makes the column most like a normal sample."""
        one = self.yeo_johnson
        return likeliest_power((self.x - one.center) / one.unit)

    def make(self, kind: str, power: float = 1.0) -> ColumnMap:
        """The map of that kind."""
        center, unit, _ = self.units
        if kind == "yeo-johnson":
            return replace(self.yeo_johnson, power=power)
        if kind == "bounded":
            return ColumnMap("bounded", center, unit)
        if kind == "log":
            low, high = float(self.x.min()), float(self.x.max())
            return ColumnMap("log", 0.0, center, 1.0, low / center, high / center)
        if kind == "ranks":
            return learn_ranks(self.x, center, unit) or ColumnMap()
        return ColumnMap()

    def _origin(self) -> tuple[float, float]:
        """Zero of a column without negative values, otherwise its median; and the unit."""
        center, unit, _ = self.units
        return (0.0, unit) if self.x.min() >= 0 else (center, unit)


def _has_several(x: Array) -> bool:
    """Whether there are MIN_DISTINCT_VALUES distinct values or more; the first rows mostly tell."""
    return any(len(np.unique(x[:count])) >= MIN_DISTINCT_VALUES for count in (SOME, len(x)))
