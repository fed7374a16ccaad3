"""One layer at large variances, for activations with straight limits on both sides.

Write phi = p + r. The asymptote p is straight on either side of 0,

    p(x) = mean + slope x + half sgn(x) + fold |x|,

and the remainder r vanishes outside a short interval. This holds for sigmoids, which become
constant, and for the smooth relatives of ReLU, which become linear. Then E[phi(u) phi(v)] has four
parts. E[p p] is a closed form. In the others r is an integral over its interval, on which the
densities of u and v hardly vary. With w² = 1 - c² and t = c / (s w), for either variable,

    E[p(u) r(v)]  needs the moments R_j = ∫ r(x) x^j exp(-x²/2q) dx, multiplied by powers of t,
    E[r(u) r(v)]  = sum_i (c / (s1 s2 w²))^i / i! P_i(t1) P_i(t2) / (2π s1 s2 w),
                    P_i(t) = sum_l R_{i+2l} (-t²/2)^l / l!.

Both are asymptotic series in the length of r over s w, the deviation of u when v is known. Each is
summed to two orders, and the difference is the error. phi' and x phi' are of the same kind, with
moments that follow from those of r by parts, so slopes and radial derivatives come from the same
bilinear form.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nngp import _safe
from nngp._arrays import EPS, TINY, Array, Index, Mask
from nngp.architecture import Activation
from nngp.covariance import hermite
from nngp.covariance.hermite import KINKED_TERMS, MOST_TERMS, Series, plain_gauss
from nngp.covariance.homogeneous_forms import absolute_deficit
from nngp.covariance.resolve import Resolved, level_of, resolve

ORDERS = (6, 12, 20, 32)  # of the series, tried in turn
MOMENTS = ORDERS[-1] + 4
NEAREST = 0.5  # largest t in units of the length of r
SHORT = 0.25  # largest length of r in standard deviations
SERIES_ENDS = 1 / 48  # length of r in standard deviations below which the series is out of reach
ROUNDING = 8 * EPS
SAFETY = 4.0  # the error in units of the difference of two orders
STRAIGHT = 32 * EPS  # relative distance of phi from its asymptote that is rounding
ROOT = float(np.sqrt(2 / np.pi))


@dataclass(frozen=True)
class Asymptote:
    """p(x) = mean + slope x + half sgn(x) + fold |x|; each field may be an array."""

    mean: Array
    slope: Array
    half: Array
    fold: Array

    def __call__(self, x: Array) -> Array:
        return self.mean + self.slope * x + self.half * np.sign(x) + self.fold * np.abs(x)


@dataclass(frozen=True)
class Straightened:
    """A function p + r as seen at each of many variances (the leading axis)."""

    p: Asymptote
    var: Array
    is_straight: Mask  # whether phi has straight limits at all
    length: Array  # of r
    moments: Array  # (..., MOMENTS): R_j in units of length^j

    @property
    def deviation(self) -> Array:
        """Square root of the variance."""
        return np.sqrt(self.var)

    def at(self, index: Index, axis: int | None = None) -> "Straightened":
        """The variances in `index`, with a new axis of length one at `axis`."""

        def taken(values: NDArray[Any]) -> NDArray[Any]:
            out = values[index]
            return out if axis is None else np.expand_dims(out, axis)

        p = Asymptote(*(taken(x) for x in (self.p.mean, self.p.slope, self.p.half, self.p.fold)))
        rest = (self.var, self.is_straight, self.length, self.moments)
        return Straightened(p, *(taken(x) for x in rest))

    def derivative(self) -> "Straightened":
        """phi', where p' jumps and r' makes up for the jump of p at 0."""
        zero, moments = np.zeros_like(self.var), self._by_parts(0) / self.length[..., None]
        moments[..., 0] += 2 * self.p.half
        return replace(self, p=Asymptote(self.p.slope, zero, self.p.fold, zero), moments=moments)

    def radial(self) -> "Straightened":
        """x phi'."""
        zero = np.zeros_like(self.var)
        p = Asymptote(zero, self.p.slope, zero, self.p.fold)
        return replace(self, p=p, moments=self._by_parts(1))

    def _by_parts(self, power: int) -> Array:
        """Moments of x^power r' from those of r, two fewer of which are known."""
        out, j = np.zeros_like(self.moments), np.arange(MOMENTS)
        lower = np.zeros_like(self.moments)
        lower[..., 1 - power :] = self.moments[..., : MOMENTS - 1 + power]
        out[...] = -(j + power) * lower
        shrink = (self.length**2 / self.var)[..., None]
        out[..., : -1 - power] += shrink * self.moments[..., 1 + power :]
        return out


def straighten(activation: Activation, var: Array) -> Straightened:
    """phi as p + r at each variance."""
    level = np.array([level_of(activation, float(q)) for q in var])
    columns, is_straight = np.zeros((4, len(var))), np.zeros(len(var), bool)
    length, moments = np.ones(len(var)), np.zeros((len(var), MOMENTS))
    for one in np.unique(level):
        split, here = _split(activation, float(one)), level == one
        if split is None:
            continue
        columns[:, here] = np.array(split.p)[:, None]
        is_straight[here], length[here] = True, split.length
        weight = split.weight * split.r * np.exp(-0.5 * split.x**2 / var[here, None])
        moments[here] = weight @ (split.x[:, None] / split.length) ** np.arange(MOMENTS)
    return Straightened(Asymptote(*columns), var, is_straight, length, moments)


def straighten_pairs(
    activation: Activation, var1: Array, var2: Array
) -> tuple[Straightened, Straightened]:
    """phi as p + r at the variances of u and at those of v; equal ones are computed once."""
    unique, inverse = np.unique(np.concatenate([var1, var2]), return_inverse=True)
    phi = straighten(activation, unique)
    return phi.at(inverse[: len(var1)]), phi.at(inverse[len(var1) :])


def excess_at_one(activation: Activation, var: float) -> tuple[float, float]:
    """E[phi² - p²] and q d/dq of it, for functions that `straighten` calls straight."""
    split = _split(activation, level_of(activation, var))
    if split is None:
        return 0.0, 0.0
    x, p = split.x, Asymptote(*map(np.asarray, split.p))(split.x)
    density = np.exp(-0.5 * x**2 / var) / np.sqrt(2 * np.pi * var)
    square = density * split.weight * split.r * (2 * p + split.r)
    return float(square.sum()), float(np.sum(0.5 * square * (x**2 / var - 1)))


@dataclass(frozen=True)
class Growth:
    """phi = slope x + fold |x| + a bounded function that is constant outside (low, high)."""

    activation: Activation
    slope: float
    fold: float
    low: float
    high: float
    below: float  # value of the bounded function up to low
    above: float  # its value from high on

    def straight(self, x: Array) -> Array:
        """The part that grows."""
        return self.slope * x + self.fold * np.abs(x)

    def bounded(self, x: Array) -> Array:
        """The rest, constant to the bit outside (low, high)."""
        rest = self.activation(x) - self.straight(x)
        return np.where(x <= self.low, self.below, np.where(x >= self.high, self.above, rest))

    def radial(self, x: Array, slope: Callable[[Array], Array]) -> Array:
        """x times the derivative of the bounded function, from the derivative of phi."""
        inside = (x > self.low) & (x < self.high)
        return np.where(inside, x * slope(x) - self.straight(x), 0.0)

    def deficit(self, var: float, m: float) -> float:
        """Deficit of the part that grows."""
        even = float(absolute_deficit(np.array(m)))
        return var * (self.slope**2 * m + self.fold**2 * even)


def growth_of(activation: Activation, var: float) -> Growth | None:
    """The part of phi that grows on either side; None if there is none or it is not straight."""
    split = _split(activation, level_of(activation, var))
    if split is None or (split.p[1] == 0 and split.p[3] == 0):
        return None
    mean, slope, half, fold = split.p
    return Growth(
        resolve(activation, var).activation,
        slope,
        fold,
        split.low,
        split.high,
        mean - half,
        mean + half,
    )


def useful_terms(activation: Activation, var: float) -> int:
    """How many terms of Mehler's series are worth computing at a variance.

    Where phi has straight limits and a short remainder, the series would not converge in any
    number of terms, and is only needed where this form is not: for few digits.
    """
    split = _split(activation, level_of(activation, var))
    short = split is not None and split.length < SERIES_ENDS * np.sqrt(var)
    return KINKED_TERMS if short else MOST_TERMS


def expand(activation: Activation, var: float) -> Series:
    """Mehler's series at one variance, with as many terms as are worth computing."""
    return hermite.expand(activation, var, useful_terms(activation, var))


@dataclass(frozen=True)
class _Split:
    p: tuple[float, float, float, float]
    x: Array  # nodes on the interval of r
    weight: Array
    r: Array
    length: float
    low: float
    high: float


@lru_cache(maxsize=512)
def _split(activation: Activation, var: float) -> _Split | None:
    """phi = p + r for the panels of one level of the variance; None if no limits are found."""
    resolved = resolve(activation, var)
    low, high = _straight_end(resolved, -1), _straight_end(resolved, 1)
    if low is None or high is None:
        return None
    mean, half = 0.5 * (high[1] + low[1]), 0.5 * (high[1] - low[1])
    slope, fold = 0.5 * (high[0] + low[0]), 0.5 * (high[0] - low[0])
    p = Asymptote(*map(np.asarray, (mean, slope, half, fold)))
    edges = np.union1d(resolved.piecewise.edges, [low[2], high[2]])
    edges = edges[(edges >= low[2]) & (edges <= high[2])]
    x, weight = plain_gauss(edges)
    phi, line = resolved.activation(x), p(x)
    r = phi - line
    short = np.abs(r) > max(STRAIGHT, 4 * resolved.error) * np.maximum(np.abs(phi), np.abs(line))
    x, r, weight = x[short], r[short], weight[short]
    size = weight * np.abs(r)
    length = float(np.sqrt(size @ x**2 / max(size.sum(), TINY)))
    if length == 0.0:  # phi is its own asymptote
        length = float(np.sqrt(var)) * EPS
    return _Split((mean, slope, half, fold), x, weight, r, length, low[2], high[2])


def _straight_end(resolved: Resolved, side: int) -> tuple[float, float, float] | None:
    """Slope, value at 0 and start of the line that phi is on one side of 0; None if it is none."""
    phi, edges = resolved.activation, side * resolved.piecewise.edges
    far = float(edges.max())
    starts = np.union1d(
        edges[(edges >= 0) & (edges < far)], far * 2.0 ** -np.arange(0.25, 60, 0.25)
    )
    found, straight = None, max(STRAIGHT, 4 * resolved.error)
    for near in starts[::-1].tolist():
        # Just beside an edge, where phi may jump
        x = np.linspace(near * (1 + 4 * EPS) + TINY, far, 65)
        values = phi(side * x)
        # The line is that of the far half, as phi approaches it
        rise = (values[-1] - values[32]) / (x[-1] - x[32])
        start = values[-1] - rise * far
        size = np.abs(phi(np.linspace(-near, near, 257))).max()
        size = np.maximum(np.maximum(np.abs(values), np.abs(phi(-side * x))), size)
        if np.any(np.abs(start + rise * x - values) > straight * size):
            break
        found = (float(side * rise), float(start), side * near)
    return found


def bilinear(f: Straightened, g: Straightened, corr: Array, m: Array) -> tuple[Array, Array]:
    """E[f(u) g(v)] and its error, infinite where the series is of no use; arrays broadcast."""
    straight, size = _straight_part(f.p, g.p, f.deviation, g.deviation, corr, m)
    rest, error = _with_remainder(f, g, corr, m)
    return straight + rest, error + ROUNDING * size + STRAIGHT * np.abs(rest)


def deficit(f: Straightened, g: Straightened, at_one: Array, m: Array) -> tuple[Array, Array]:
    """E[f(u) g(u)] - E[f(u) g(v)] at equal variances and correlation 1 - m, and its error.

    `at_one` is E[f(u) g(u) - p(u) p(u)]. Nothing large is subtracted.
    """
    rest, error = _with_remainder(f, g, 1 - m, m)
    q, s = f.var, f.deviation
    even = absolute_deficit(m)
    straight = f.p.slope * g.p.slope * q * m + f.p.fold * g.p.fold * q * even
    straight = straight + f.p.half * g.p.half * (2 / np.pi) * _safe.angle(m)
    straight = straight + ROOT * m * s * (f.p.slope * g.p.half + f.p.half * g.p.slope)
    return straight + (at_one - rest), error


def _with_remainder(f: Straightened, g: Straightened, corr: Array, m: Array) -> tuple[Array, Array]:
    """The three parts of E[f(u) g(v)] with a remainder, and their error, without rounding."""
    near = _nearness(f, corr, m), _nearness(g, corr, m)
    usable = np.maximum(np.abs(near[0]), np.abs(near[1])) <= NEAREST
    usable = usable & (np.maximum(f.length / f.deviation, g.length / g.deviation) <= SHORT)
    usable = usable & f.is_straight & g.is_straight
    near = np.where(usable, near[0], 0.0), np.where(usable, near[1], 0.0)
    corr, m = np.where(usable, corr, 0.0), np.where(usable, m, 1.0)
    before = best = np.zeros(usable.shape)
    error = np.full(usable.shape, np.inf)
    for order in ORDERS:
        here = _mixed_part(f, g, near[1], corr, m, order)
        here = here + _mixed_part(g, f, near[0], corr, m, order)
        here = here + _short_part(f, g, near, corr, m, order)
        change = SAFETY * np.abs(here - before) if order > ORDERS[0] else error
        best, before = np.where(change < error, here, best), here
        error = np.minimum(change, error)
        if np.all(~usable | (error <= EPS * np.abs(best))):
            break
    return best, np.where(usable, error, np.inf)


def _nearness(g: Straightened, corr: Array, m: Array) -> Array:
    """t = c / (s w) in units of the length of r."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        out: Array = corr * g.length / (g.deviation * np.sqrt(_safe.sine2(np, corr, m)))
    return np.where(np.isfinite(out), out, np.inf)


def _straight_part(
    f: Asymptote, g: Asymptote, s1: Array, s2: Array, c: Array, m: Array
) -> tuple[Array, Array]:
    """E[p(u) p(v)], and the sum of the sizes of its terms."""
    arc = _safe.arcsine(np, c, m) * (2 / np.pi)
    both = s1 * s2
    absolute = both * (np.sqrt(_safe.sine2(np, c, m)) * (2 / np.pi) + c * arc)
    terms = [
        f.mean * g.mean,
        f.slope * g.slope * both * c,
        f.half * g.half * arc,
        f.fold * g.fold * absolute,
        ROOT * (f.mean * g.fold * s2 + f.fold * g.mean * s1),
        ROOT * c * (f.slope * g.half * s1 + f.half * g.slope * s2),
    ]
    return np.asarray(sum(terms)), np.asarray(sum(np.abs(term) for term in terms))


def _mixed_part(
    f: Straightened, g: Straightened, t: Array, c: Array, m: Array, order: int
) -> Array:
    """E[p_f(u) r_g(v)], from the mean of p_f(u) when v is known."""
    odd = even = np.zeros(np.shape(t))
    for k in range(order // 2 - 1, -1, -1):
        odd = _odd_term(k) * g.moments[..., 2 * k + 1] + t**2 * odd
        even = _even_term(k) * g.moments[..., 2 * k] + t**2 * even
    known = f.p.mean * g.moments[..., 0]
    known = known + f.p.slope * c * f.deviation / g.deviation * g.length * g.moments[..., 1]
    rest = f.deviation * np.sqrt(_safe.sine2(np, c, m))  # deviation of u when v is known
    unknown = ROOT * (f.p.half * t * odd + f.p.fold * rest * even)
    out: Array = (known + unknown) / (np.sqrt(2 * np.pi) * g.deviation)
    return out


def _odd_term(k: int) -> float:
    """Coefficient of t^(2k+1) in sqrt(π/2) erf(t/√2)."""
    return (-0.5) ** k / (factorial(k) * (2 * k + 1))


def _even_term(k: int) -> float:
    """Coefficient of t^(2k) in sqrt(π/2) E|t + z|."""
    return -((-0.5) ** k) / (factorial(k) * (2 * k - 1))


def _short_part(
    f: Straightened,
    g: Straightened,
    near: tuple[Array, Array],
    c: Array,
    m: Array,
    order: int,
) -> Array:
    """E[r_f(u) r_g(v)]."""
    rest2, both = _safe.sine2(np, c, m), f.deviation * g.deviation
    joint = f.length * g.length * c / (both * rest2)
    total = np.zeros(np.shape(joint))
    for i in range(order - 1, -1, -1):
        total = _power(f, near[0], i, order) * _power(g, near[1], i, order) + total * joint / (
            i + 1
        )
    out: Array = total / (2 * np.pi * both * np.sqrt(rest2))
    return out


def _power(g: Straightened, t: Array, i: int, order: int) -> Array:
    """P_i(t) up to the moment of this order."""
    terms = (order - i + 1) // 2
    total = np.zeros(np.shape(t))
    for k in range(terms - 1, -1, -1):
        total = g.moments[..., i + 2 * k] + total * (-0.5 * t**2) / (k + 1)
    return total
