"""Extrapolation of the moments beyond their table, by a power of q or a straight line.

Takes the moments at an end of the table and one level further in; gives them at variances
beyond. The growth of E[phi²] at large q decides which phases an activation has.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from nngp._arrays import TINY, Array

Growth = Literal["sublinear", "linear", "superlinear"]
FLAT = 1e-14  # relative variation of phi below which it counts as constant
LINEAR = 0.05  # distance of the power of q from 1 below which growth counts as linear
PREDICTED = 1e-3  # of a moment: largest error of a trend that is taken to hold


@dataclass(frozen=True)
class MomentValues:
    """E[phi²], E[u phi' phi] and E[phi'²] at some variances."""

    second: Array
    radial: Array
    slope: Array


def growth_of(power: float) -> Growth:
    """Class of the growth of E[phi²] when it follows this power of q."""
    if power < 1 - LINEAR:
        return "sublinear"
    return "linear" if power <= 1 + LINEAR else "superlinear"


class SmallVarianceTrend:
    """Moments at small variances: E[phi²] is phi(0)² plus a power of q."""

    def __init__(self, edge: float, at: MomentValues, inner: MomentValues, at_zero: float) -> None:
        self.edge, self.at_zero = edge, at_zero
        self.rise, self.slope = float(at.second) - at_zero, float(at.slope)
        varies = abs(self.rise) > FLAT * float(at.second)
        self.power = _snapped(float(at.radial) / self.rise) if varies else 0.0
        self.slope_power = -_power_between(inner, at)

    def extend(self, q: Array) -> tuple[Array, Array, Array]:
        """The second, radial and slope moments at smaller variances."""
        ratio = q / self.edge
        rise = self.rise * _power(ratio, self.power)
        return self.at_zero + rise, self.power * rise, self.slope * _power(ratio, self.slope_power)


class LargeVarianceTrend:
    """Moments at large variances: E[phi²] is a power of q or, where linear, a straight line."""

    def __init__(self, edge: float, at: MomentValues, inner: MomentValues) -> None:
        self.edge = edge
        self.second, self.rate, self.slope = float(at.second), float(at.radial), float(at.slope)
        self.power = _snapped(self.rate / self.second if self.second > 0 else 0.0)
        self.slope_power = _power_between(inner, at)

    def extend(self, q: Array) -> tuple[Array, Array, Array]:
        """The second, radial and slope moments at larger variances."""
        ratio = q / self.edge
        slope = self.slope * _power(ratio, self.slope_power)
        if growth_of(self.power) != "linear":
            second = self.second * _power(ratio, self.power)
            return second, self.power * second, slope
        # Where E[phi²] is linear, E[phi'²] tends to its derivative.
        rate = self.rate / self.edge
        if abs(self.slope - rate) < 1e-3 * rate:
            slope = np.full_like(q, rate)
        return self.second + self.rate * (ratio - 1), self.rate * ratio, slope

    def predicts(self, q: float, at: MomentValues, has_slope: bool) -> bool:
        """Whether the extrapolation to q agrees with the moments `at` q."""
        found = np.array([float(at.second), float(at.radial), q * float(at.slope)])
        second, radial, slope = (float(part[0]) for part in self.extend(np.array([q])))
        missed = np.abs(np.array([second, radial, q * slope]) - found)
        within = np.array([found[0], found[0], 10 * found[2] + FLAT * found[0]])
        return bool(np.all((missed <= PREDICTED * within)[: 3 if has_slope else 2]))


def _power_between(inner: MomentValues, at: MomentValues) -> float:
    """The power of q by which E[phi'²] changes over the last factor of four."""
    rise = np.log(max(float(at.slope), TINY) / max(float(inner.slope), TINY))
    return _snapped(float(rise / np.log(4.0)))


def _power(ratio: Array, power: float) -> Array:
    """ratio**power, clipped to avoid overflow."""
    return np.exp(np.clip(power * np.log(ratio), -500.0, 500.0))


def _snapped(power: float) -> float:
    """The power rounded to the nearest multiple of 1/2, if it is within 1e-3."""
    nearest = round(2 * power) / 2
    return nearest if abs(power - nearest) < 1e-3 else power
