"""How the moments go on beyond a table of them: a power of q, or a straight line.

Takes the moments at an end of the table and one level further in; gives them at variances
beyond. `Growth` is what decides the kind of phase diagram an activation has.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nngp._safe import TINY

Array = NDArray[np.float64]
Growth = Literal["sublinear", "linear", "superlinear"]
FLAT = 1e-14  # a phi that varies less than this, relative to itself, does not vary
LINEAR = 0.05  # how near to 1 the power of q must be to be taken for 1
FORETOLD = 1e-3  # of a moment: within this a trend has set in


@dataclass(frozen=True)
class Values:
    """The three moments at some variances."""

    second: Array
    radial: Array
    slope: Array


def growth_of(power: float) -> Growth:
    """How E[phi²] grows, if as this power of q."""
    if power < 1 - LINEAR:
        return "sublinear"
    return "linear" if power <= 1 + LINEAR else "superlinear"


class LowEnd:
    """Towards zero: E[phi²] is phi(0)² and a power of q."""

    def __init__(self, edge: float, at: Values, inner: Values, at_zero: float) -> None:
        self.edge, self.at_zero = edge, at_zero
        self.rise, self.slope = float(at.second) - at_zero, float(at.slope)
        varies = abs(self.rise) > FLAT * float(at.second)
        self.power = _snapped(float(at.radial) / self.rise) if varies else 0.0
        self.slope_power = -_power_between(inner, at)

    def extend(self, q: Array) -> tuple[Array, Array, Array]:
        """second, radial and slope at smaller variances."""
        ratio = q / self.edge
        rise = self.rise * _power(ratio, self.power)
        return self.at_zero + rise, self.power * rise, self.slope * _power(ratio, self.slope_power)


class HighEnd:
    """Towards infinity: a power of q, which may be a straight line."""

    def __init__(self, edge: float, at: Values, inner: Values) -> None:
        self.edge = edge
        self.second, self.rate, self.slope = float(at.second), float(at.radial), float(at.slope)
        self.power = _snapped(self.rate / self.second if self.second > 0 else 0.0)
        self.slope_power = _power_between(inner, at)

    def extend(self, q: Array) -> tuple[Array, Array, Array]:
        """second, radial and slope at larger variances."""
        ratio = q / self.edge
        slope = self.slope * _power(ratio, self.slope_power)
        if growth_of(self.power) != "linear":
            second = self.second * _power(ratio, self.power)
            return second, self.power * second, slope
        # Straight lines far out: E[phi'²] tends to the derivative of E[phi²].
        rate = self.rate / self.edge
        if abs(self.slope - rate) < 1e-3 * rate:
            slope = np.full_like(q, rate)
        return self.second + self.rate * (ratio - 1), self.rate * ratio, slope

    def foretells(self, q: float, at: Values, has_slope: bool) -> bool:
        """Whether going on from here gives the moments that were found at q."""
        found = np.array([float(at.second), float(at.radial), q * float(at.slope)])
        second, radial, slope = (float(part[0]) for part in self.extend(np.array([q])))
        missed = np.abs(np.array([second, radial, q * slope]) - found)
        within = np.array([found[0], found[0], 10 * found[2] + FLAT * found[0]])
        return bool(np.all((missed <= FORETOLD * within)[: 3 if has_slope else 2]))


def _power_between(inner: Values, at: Values) -> float:
    """The power of q that E[phi'²] follows over the last factor of four."""
    rise = np.log(max(float(at.slope), TINY) / max(float(inner.slope), TINY))
    return _snapped(float(rise / np.log(4.0)))


def _power(ratio: Array, power: float) -> Array:
    """ratio**power, kept within float64."""
    return np.exp(np.clip(power * np.log(ratio), -500.0, 500.0))


def _snapped(power: float) -> float:
    """The nearest half, if that is what the power tends to."""
    nearest = round(2 * power) / 2
    return nearest if abs(power - nearest) < 1e-3 else power
