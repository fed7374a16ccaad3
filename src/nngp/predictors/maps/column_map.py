"""Monotone maps of one column: identity, Yeo-Johnson, logarithm, ranks, and a bounded one.

A map is applied to values in units of the column, so that its scale does not matter. Beyond what
was seen in training a map never grows faster than a straight line.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import ndtri

from nngp._arrays import Array
from nngp._fields import Fields
from nngp.predictors.maps.yeo_johnson import POWERS, transformed

KINDS = ("identity", "yeo-johnson", "log", "ranks", "bounded")
MIDDLE, LARGEST = 4.0, 8.0  # deviations up to which the bounded map is the identity; its bound
KNOTS = 200  # of the map to ranks


@dataclass(frozen=True)
class ColumnMap:
    """A map of that kind: x -> u(t), with t = (x - center) / unit."""

    kind: str = "identity"
    center: float = 0.0
    unit: float = 1.0
    power: float = 1.0  # of Yeo-Johnson
    low: float = -np.inf  # range of t in training
    high: float = np.inf
    knots: Array = field(default_factory=lambda: np.empty(0))  # of ranks, in t
    scores: Array = field(default_factory=lambda: np.empty(0))  # normal scores at the knots

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

    def as_saved(self) -> dict[str, Any]:
        """Values that JSON can hold."""
        if self.kind == "identity":
            return {"kind": self.kind}
        out: dict[str, Any] = {"kind": self.kind, "center": self.center, "unit": self.unit}
        if self.kind in ("yeo-johnson", "log"):
            out |= {"power": self.power, "low": self.low, "high": self.high}
        if self.kind == "ranks":
            out |= {"knots": self.knots.tolist(), "scores": self.scores.tolist()}
        return out

    @classmethod
    def from_saved(cls, fields: Fields) -> "ColumnMap":
        """Read what `as_saved` gave, checked."""
        kind = fields.text("kind", KINDS)
        if kind == "identity":
            return cls()
        center, unit = fields.number("center"), fields.number("unit", 0, above=True)
        if kind == "bounded":
            return cls(kind, center, unit)
        if kind == "ranks":
            knots = np.array(fields.list("knots", float), dtype=float)
            scores = np.array(fields.list("scores", float, len(knots)), dtype=float)
            if len(knots) < 2 or not all(_increases(values) for values in (knots, scores)):
                raise fields.wrong("knots", "two or more increasing numbers, as are their scores")
            return cls(kind, center, unit, knots=knots, scores=scores)
        low = fields.number("low", 0, above=True) if kind == "log" else fields.number("low")
        high = fields.number("high", low)
        return cls(kind, center, unit, fields.number("power", *POWERS), low, high)


def _increases(values: Array) -> bool:
    return bool(np.isfinite(values).all() and (np.diff(values) > 0).all())


def bounded(t: Array) -> Array:
    """t in the middle, then smoothly towards a bound."""
    size, room = np.abs(t), LARGEST - MIDDLE
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
    return ColumnMap("ranks", center, unit, knots=values[apart], scores=scores[apart])
