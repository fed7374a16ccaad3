"""The law by which a sequence over depth approaches its limit, from its last octaves.

Takes values y_0, y_1, ... of a positive quantity; gives a `DepthLaw`. With g the size of a step
from y_l to y_{l+1}, and λ = -d log g / dl its rate of decay, the inverse 1/λ tells laws apart:

    y - y* ~ exp(-l / ξ)            1/λ is constant, ξ
    y - y* ~ (l + l0)^-a            1/λ = (l + l0) / (a + 1) is linear; growth is a < 0
    y ~ (log l)^-b                  as a power whose a falls with l: 1/a grows by log(2) / (b + 1)
                                    with each octave

so l0 needs no fit. Steps below 1e-8 of y are not used where y has a limit other than zero: they
are differences of rounded numbers.
"""

import math
from dataclasses import dataclass

import numpy as np

from nngp._arrays import Array

NOISE = 1e-8  # smallest step that is used, relative to the value
SAME = 1e-13  # a relative step below this is none
FEWEST = 64  # steps without which a law cannot be told from another
WINDOW = 32  # λ at l is a difference quotient over l ± l / 32
STEEPEST = 0.04  # slope of 1/λ below which a law is exponential: powers above 24 do not occur
STILL = 1e-4  # slope of log g in log l below which steps are equal
SLOWEST = 0.1  # exponent below which an extrapolation says nothing
STEADY = 0.03  # how much limits from half and from all of the steps may differ, relative
VANISHING = 0.05  # an extrapolated limit below this, relative to the last value, is zero


@dataclass(frozen=True)
class DepthLaw:
    """How a quantity depends on the number of repetitions l, when l is large.

    Attributes
    ----------
    kind : str
        "constant", "exponential", "power", "logarithmic", or "unclear" where the depth does not
        tell.
    limit : float
        0, infinity, or the number that the law extrapolates to; the last value where the law is
        unclear.
    rate : float
        For an exponential law the depth scale xi: the distance to the limit falls (a quantity
        without a limit grows) by a factor e over so many repetitions. For a power law the exponent
        a: the distance falls like l^-a (the quantity grows like l^a). For a logarithmic law the
        power of the logarithm. Otherwise 0.

    Examples
    --------
    >>> import nngp
    >>> block = nngp.Residual(nngp.Act("relu"), nngp.Dense(2.0))
    >>> law = nngp.regimes.propagate(block, 500).variance_law
    >>> law.kind, round(law.rate, 6), law.limit  # it doubles: 1 / log 2
    ('exponential', 1.442695, inf)
    """

    kind: str
    limit: float
    rate: float = 0.0

    def __str__(self) -> str:
        rate, grows = f"{self.rate:.3g}", math.isinf(self.limit)
        if self.kind == "constant":
            return f"stays at {self.limit:.4g}"
        if self.kind == "unclear":
            return f"unclear at this depth, where it is {self.limit:.4g}"
        tends = "grows" if grows else f"tends to {self.limit:.4g}"
        laws = {
            "exponential": f"exp(l / {rate})" if grows else f"exp(-l / {rate})",
            "power": f"l^{rate}" if grows else f"l^-{rate}",
            "logarithmic": f"(log l)^{rate}" if grows else f"(log l)^-{rate}",
        }
        return f"{tends} like {laws[self.kind]}"


def depth_law(values: Array, most: float = math.inf) -> DepthLaw:
    """Find the law of a positive quantity from its values after 0, 1, 2, ... repetitions; `most` is
    the largest value that it can have."""
    law = _law(values)
    return law if law.limit <= most else _unclear(values)


def _law(values: Array) -> DepthLaw:
    values = np.asarray(values, dtype=np.float64)
    steps = np.diff(values)
    used = _usable(values, steps)
    if used < 2:
        return DepthLaw("constant", float(values[-1]))
    converged = used < len(steps)
    if used < FEWEST:
        return _exponential(values, steps, used) if converged else _unclear(values)
    sizes = np.log(np.abs(steps[:used]))
    if abs(_decay(sizes, used) * used) < STILL:  # equal steps
        return DepthLaw("power", math.inf if steps[used - 1] > 0 else 0.0, 1.0)
    slopes = [_slope_of_inverse(sizes, used // 2**octave) for octave in range(3)]
    if abs(slopes[0]) < STEEPEST:
        return _exponential(values, steps, used)
    if converged:
        return _unclear(values)
    return _power(values, steps, sizes, slopes)


def _usable(values: Array, steps: Array) -> int:
    """How many steps are more than rounding, from the first on."""
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.abs(steps) / np.maximum(values[1:], values[:-1])
    large = relative > NOISE
    if not np.any(relative > SAME):
        return 0
    return len(large) if large.all() else int(np.argmin(large))


def _unclear(values: Array) -> DepthLaw:
    return DepthLaw("unclear", float(values[-1]))


def _exponential(values: Array, steps: Array, used: int) -> DepthLaw:
    last, before = steps[used - 1], steps[used - 2]
    ratio = float(last / before)
    if not 0 < abs(ratio) < math.inf or abs(abs(ratio) - 1) < SAME:
        return _unclear(values)
    scale = 1 / abs(math.log(abs(ratio)))
    if abs(ratio) > 1:
        return DepthLaw("exponential", math.inf, scale)
    limit = float(values[used] + last * ratio / (1 - ratio))
    vanishes = abs(limit) < VANISHING * abs(values[used])
    return DepthLaw("exponential", 0.0 if vanishes else limit, scale)


def _power(values: Array, steps: Array, sizes: Array, slopes: list[float]) -> DepthLaw:
    falls, exponents = bool(steps[-1] < 0), [1 / slope - 1 for slope in slopes]
    exponent, inverse = exponents[0], [1 / one for one in exponents]
    later, earlier = inverse[0] - inverse[1], inverse[1] - inverse[2]
    if falls and exponent > 0 and 0 < 0.75 * earlier < later < math.log(2):
        return DepthLaw("logarithmic", 0.0, math.log(2) / later - 1)
    if abs(exponent - exponents[1]) > 0.25 * max(abs(exponent), 0.25):
        return _unclear(values)
    if exponent < 0:
        return _unclear(values) if falls else DepthLaw("power", math.inf, -exponent)
    if exponent < SLOWEST:
        return _unclear(values)
    ends = len(sizes), len(sizes) // 2
    limits = [_limit(values, steps, sizes, *at) for at in zip(ends, slopes[:2], strict=True)]
    if abs(limits[0]) < VANISHING * values[-1]:
        return DepthLaw("power", 0.0, exponent)
    if abs(limits[0] - limits[1]) > STEADY * abs(limits[0]):
        return _unclear(values)
    return DepthLaw("power", limits[0], exponent)


def _limit(values: Array, steps: Array, sizes: Array, end: int, slope: float) -> float:
    """The limit that a power law has, from the steps before `end`: all later ones are added."""
    left = float(steps[end - 1]) / _decay(sizes, end) / (1 - slope)
    return float(values[end]) + left


def _decay(sizes: Array, end: int) -> float:
    """λ at the middle of a window that ends at `end`, per step."""
    width = max(2 * (end // WINDOW), 2)
    return float(sizes[end - 1 - width] - sizes[end - 1]) / width


def _slope_of_inverse(sizes: Array, end: int) -> float:
    """Slope of 1/λ between half of `end` and `end`."""
    ends = np.array([end // 2, end])
    widths = np.maximum(2 * (ends // WINDOW), 2)
    inverse = [1 / _decay(sizes, one) for one in ends]
    middle = ends - widths / 2
    return float((inverse[1] - inverse[0]) / (middle[1] - middle[0]))
