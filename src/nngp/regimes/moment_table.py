"""Moments of an activation without a closed form, tabulated over the variance.

Takes an activation; gives a function of q. The moments are one-dimensional integrals and analytic
in q > 0, kinks or not: the density is analytic in log q in a strip of half-width π/2. So on each
interval (4^(k-1), 4^k] they are polynomials of 24 Chebyshev coefficients to 1e-15. Far out (q
below 1e-30 or above 1e10, or where phi has more structure than can be integrated) they are
extrapolated; `valid_up_to` is infinite if the extrapolation was seen to agree with integrals.
"""

import numpy as np

from nngp import _chebyshev
from nngp._arrays import Array, Mask
from nngp._chebyshev import Piecewise
from nngp.architecture import Activation
from nngp.covariance.resolve import Resolved, resolve
from nngp.errors import ActivationError
from nngp.regimes.extrapolation import (
    FLAT,
    Growth,
    LargeVarianceTrend,
    MomentValues,
    SmallVarianceTrend,
    growth_of,
)
from nngp.regimes.moment_integrals import POINTS, LevelMoments, integrate, is_steep, noise_of

# Levels are intervals (4^(k-1), 4^k] of the variance: the lowest k of a phi with phi(0) = 0, that
# of any other phi, the highest k, and the highest k for which panels of phi are searched for.
LOWEST_LEVEL, OFFSET_LEVEL, HIGHEST_LEVEL, FINEST = -50, -12, 17, 6
ENOUGH = 1e-9  # error of panels that are good enough to start from
ROUGHLY = 1e-3  # of E[phi²] where it is not resolved
MOST_UNRESOLVED = 1e-6  # fraction of a moment: a level with more is not used, or leads to a warning


class MomentTable:
    """Moments of any activation, interpolated in log q and extrapolated beyond."""

    def __init__(self, activation: Activation) -> None:
        self._activation, self._noise = activation, noise_of(activation)
        self._resolved = _resolved_levels(activation)
        self.finest = len(self._resolved) - 1
        known, at_zero = self._resolved[self.finest], float(activation(np.zeros(1))[0])
        kinks = np.array([*known.kinks, 0.0])
        self.is_steep = any(known.jumps) or is_steep(activation, kinks, self._noise)
        # With phi(0) != 0 the variance never vanishes, and near zero phi' is lost in rounding.
        lowest, below = self._levels_below(OFFSET_LEVEL if at_zero else LOWEST_LEVEL)
        above, next_one = self._levels_above()
        levels = below[::-1] + above
        coefs = _chebyshev.coefficients(np.array([level.values for level in levels]))
        edges = np.log(4.0) * np.arange(lowest - 1, lowest + len(levels))
        self._fits = [Piecewise(edges, coefs[:, i]) for i in range(3)]
        self._low = SmallVarianceTrend(float(np.exp(edges[0])), *self._both(edges[:2]), at_zero**2)
        self._high = self._high_end(edges)
        self.unresolved = self._largest_unresolved(levels)
        self.valid_up_to = self._validity(edges, next_one)

    @property
    def growth(self) -> Growth:
        """Growth of E[phi²] at large variances."""
        return growth_of(self._high.power)

    def __call__(self, q: Array) -> MomentValues:
        inside = self._inside(np.log(np.clip(q, self._low.edge, self._high.edge)))
        parts = [inside.second, inside.radial, inside.slope]
        ends: list[tuple[Mask, SmallVarianceTrend | LargeVarianceTrend]]
        ends = [(q < self._low.edge, self._low), (q > self._high.edge, self._high)]
        for outside, end in ends:
            for part, values in zip(parts, end.extend(q[outside]), strict=True):
                part[outside] = values
        second, radial, slope = parts
        second[second < 0] = 0.0  # rounding, where it rises steeply from zero
        radial[np.abs(radial) <= FLAT * second] = 0.0
        slope[slope * q <= FLAT**2 * second] = 0.0
        return MomentValues(second, radial, np.full_like(q, np.inf) if self.is_steep else slope)

    def _largest_unresolved(self, levels: list[LevelMoments]) -> float:
        """Largest unresolved fraction of a moment; E[phi'²] is left out where it is infinite."""
        out = max(level.unresolved for level in levels)
        return out if self.is_steep else max(out, *(level.slope_unresolved for level in levels))

    def _validity(self, edges: Array, next_one: LevelMoments | None) -> float:
        """The variance up to which the moments hold: infinite if the extrapolation does."""
        agrees = self._trend_holds_inside(edges) and self._trend_holds_beyond(next_one)
        outgrows = next_one is not None and next_one.outgrows_powers
        return np.inf if outgrows or agrees else self._high.edge

    def _levels_below(self, last: int) -> tuple[int, list[LevelMoments]]:
        """The lowest level that is resolved, and the moments at levels 0, -1, ... down to it."""
        levels = [self._level(0)]
        for level in range(-1, last - 1, -1):
            found = self._level(level)
            if found.unresolved > MOST_UNRESOLVED:
                return level + 1, levels
            levels.append(found)
        return last, levels

    def _levels_above(self) -> tuple[list[LevelMoments], LevelMoments | None]:
        """Moments at levels 1, 2, ..., and at the first level that is not resolved, if any."""
        levels: list[LevelMoments] = []
        for number in range(1, HIGHEST_LEVEL + 1):
            found = self._level(number)
            if found.unresolved > MOST_UNRESOLVED or found.outgrows_powers:
                return levels, found
            levels.append(found)
        return levels, None

    def _level(self, level: int) -> LevelMoments:
        known = self._resolved[min(max(level, 0), self.finest)]
        return integrate(self._activation, known, level, self._noise)

    def _high_end(self, edges: Array) -> LargeVarianceTrend:
        return LargeVarianceTrend(float(np.exp(edges[-1])), *self._both(edges[:-3:-1]))

    def _trend_holds_inside(self, edges: Array) -> bool:
        """Whether extrapolation from the last level but one agrees with the last."""
        if len(edges) < 4:
            return False
        last, _ = self._both(edges[:-3:-1])
        return self._high_end(edges[:-1]).predicts(self._high.edge, last, not self.is_steep)

    def _trend_holds_beyond(self, next_one: LevelMoments | None) -> bool:
        """Whether extrapolation agrees roughly with the first level that is not resolved."""
        if next_one is None:
            return True
        q = self._high.edge * 4.0 ** (0.5 + 0.5 * _chebyshev.points(POINTS))
        return bool(np.allclose(self._high.extend(q)[0], next_one.values[0], rtol=ROUGHLY))

    def _both(self, log_q: Array) -> tuple[MomentValues, MomentValues]:
        """The moments at an edge and at the one before it."""
        at, before = log_q
        return self._inside(np.array(at)), self._inside(np.array(before))

    def _inside(self, log_q: Array) -> MomentValues:
        return MomentValues(*(fit(log_q) for fit in self._fits))


def _resolved_levels(activation: Activation) -> list[Resolved]:
    """The panels of phi at levels 0, 1, ... up to the first that is much worse than level 0."""
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
