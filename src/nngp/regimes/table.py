"""Moments of an activation without a closed form, tabulated over the variance.

Takes an activation; gives a function of q. The moments are one-dimensional integrals and analytic
in q > 0, kinks or not: the density is analytic in log q in a strip of half-width π/2. So on each
interval (4^(k-1), 4^k] they are polynomials of 24 Chebyshev coefficients to 1e-15. Far out (q
below 1e-30 or above 1e10, or where phi has more structure than can be integrated) they follow
their trend, and `trusted` says whether that was seen to hold.
"""

import numpy as np
from numpy.typing import NDArray

from nngp import _chebyshev
from nngp._chebyshev import Piecewise
from nngp.architecture import Activation
from nngp.covariance.resolve import Resolved, resolve
from nngp.errors import ActivationError
from nngp.regimes.integrals import POINTS, Level, integrate, is_steep, noise_of
from nngp.regimes.trends import FLAT, Growth, HighEnd, LowEnd, Values, growth_of

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
# Intervals (4^(k-1), 4^k]: of a phi with phi(0) = 0, of any other, up to infinity; and the
# last whose panels are searched for; those are halved where more is needed further out.
LOWEST_LEVEL, OFFSET_LEVEL, HIGHEST_LEVEL, FINEST = -50, -12, 17, 6
ENOUGH = 1e-9  # error of panels that are worth starting from
ROUGHLY = 1e-3  # of E[phi²] where it is not resolved
DOUBTFUL = 1e-6  # of a moment: above this it is not used, or said


class Table:
    """Moments of any activation, interpolated in log q."""

    def __init__(self, activation: Activation) -> None:
        self._activation, self._noise = activation, noise_of(activation)
        self._resolved = _resolved_levels(activation)
        self.finest = len(self._resolved) - 1
        known, at_zero = self._resolved[self.finest], float(activation(np.zeros(1))[0])
        kinks = np.array([*known.kinks, 0.0])
        self.is_steep = any(known.jumps) or is_steep(activation, kinks, self._noise)
        # With phi(0) != 0 the variance never vanishes, and rounding would hide phi' near zero.
        lowest, below = self._levels_below(OFFSET_LEVEL if at_zero else LOWEST_LEVEL)
        above, next_one = self._levels_above()
        levels = below[::-1] + above
        coefs = _chebyshev.coefficients(np.array([level.values for level in levels]))
        edges = np.log(4.0) * np.arange(lowest - 1, lowest + len(levels))
        self._fits = [Piecewise(edges, coefs[:, i]) for i in range(3)]
        self._low = LowEnd(float(np.exp(edges[0])), *self._both(edges[:2]), at_zero**2)
        self._high = self._high_end(edges)
        self.doubt = max(level.doubt for level in levels)
        if not self.is_steep:
            self.doubt = max(self.doubt, *(level.slope_doubt for level in levels))
        follows = self._is_foretold(edges) and self._is_likely(next_one)
        soars = next_one is not None and next_one.soars
        self.trusted = np.inf if soars or follows else self._high.edge

    @property
    def growth(self) -> Growth:
        return growth_of(self._high.power)

    def __call__(self, q: Array) -> Values:
        inside = self._inside(np.log(np.clip(q, self._low.edge, self._high.edge)))
        parts = [inside.second, inside.radial, inside.slope]
        ends: list[tuple[Mask, LowEnd | HighEnd]]
        ends = [(q < self._low.edge, self._low), (q > self._high.edge, self._high)]
        for where, end in ends:
            for part, values in zip(parts, end.extend(q[where]), strict=True):
                part[where] = values
        second, radial, slope = parts
        second[second < 0] = 0.0  # rounding, where it rises steeply from nothing
        radial[np.abs(radial) <= FLAT * second] = 0.0
        slope[slope * q <= FLAT**2 * second] = 0.0
        return Values(second, radial, np.full_like(q, np.inf) if self.is_steep else slope)

    def _levels_below(self, last: int) -> tuple[int, list[Level]]:
        """Moments at levels 0, -1, ..., and the last of them."""
        levels = [self._level(0)]
        for level in range(-1, last - 1, -1):
            found = self._level(level)
            if found.doubt > DOUBTFUL:
                return level + 1, levels
            levels.append(found)
        return last, levels

    def _levels_above(self) -> tuple[list[Level], Level | None]:
        """Moments at levels 1, 2, ..., and those of the next that are not good enough, if any."""
        levels: list[Level] = []
        for number in range(1, HIGHEST_LEVEL + 1):
            found = self._level(number)
            if found.doubt > DOUBTFUL or found.soars:
                return levels, found
            levels.append(found)
        return levels, None

    def _level(self, level: int) -> Level:
        known = self._resolved[min(max(level, 0), self.finest)]
        return integrate(self._activation, known, level, self._noise)

    def _high_end(self, edges: Array) -> HighEnd:
        return HighEnd(float(np.exp(edges[-1])), *self._both(edges[:-3:-1]))

    def _is_foretold(self, edges: Array) -> bool:
        """Whether the trend one level earlier gives the last level."""
        if len(edges) < 4:
            return False
        last, _ = self._both(edges[:-3:-1])
        return self._high_end(edges[:-1]).foretells(self._high.edge, last, not self.is_steep)

    def _is_likely(self, next_one: Level | None) -> bool:
        """Whether the trend goes through the level that ended the table, known roughly."""
        if next_one is None:
            return True
        q = self._high.edge * 4.0 ** (0.5 + 0.5 * _chebyshev.points(POINTS))
        return bool(np.allclose(self._high.extend(q)[0], next_one.values[0], rtol=ROUGHLY))

    def _both(self, log_q: Array) -> tuple[Values, Values]:
        """The moments at an edge and at the one before it."""
        at, before = log_q
        return self._inside(np.array(at)), self._inside(np.array(before))

    def _inside(self, log_q: Array) -> Values:
        return Values(*(fit(log_q) for fit in self._fits))


def _resolved_levels(activation: Activation) -> list[Resolved]:
    """The panels of phi at levels 0, 1, ... as long as they are about as good as at the first."""
    found = [resolve(activation, 1.0)]
    enough = max(found[0].error, ENOUGH)
    for level in range(1, FINEST + 1):
        try:
            resolved = resolve(activation, 4.0**level)
        except ActivationError:
            break
        if resolved.error > enough:
            break
        found.append(resolved)
    return found
