"""The three moments behind every regime, as functions of the variance q.

Takes an activation; gives, for u Gaussian of variance q,

    second   E[phi(u)²]              the variance map is V(q) = bias_var + weight_var · second
    radial   E[u phi'(u) phi(u)]     = q d second / dq
    slope    E[phi'(u)²]             the correlation map's slope at 1 is weight_var · slope

All are one-dimensional integrals and analytic in q > 0, kinks or not: the density is analytic in
log q in a strip of half-width π/2. So on each interval (4^(k-1), 4^k] they are polynomials of 24
Chebyshev coefficients to 1e-15. Far out (q below 1e-30 or above 1e10, or where the activation
has more structure than can be integrated) they follow their trend: a power of q, or a line.
"""

from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nngp import _chebyshev
from nngp._chebyshev import Piecewise
from nngp._safe import TINY
from nngp.architecture import Activation, ActivationError
from nngp.covariance import ClosedForm, closed_form
from nngp.covariance.hermite import legendre
from nngp.covariance.resolve import Resolved, resolve

Array = NDArray[np.float64]
Growth = Literal["sublinear", "linear", "superlinear"]
LOWEST, HIGHEST = 1e-60, 1e60  # stand for a variance of zero and of infinity
# Intervals (4^(k-1), 4^k]: of a phi with phi(0) = 0, of any other, up to infinity; and the
# last whose panels are searched for, beyond which phi should be its asymptotes.
LOWEST_LEVEL, OFFSET_LEVEL, HIGHEST_LEVEL, FINEST = -50, -12, 17, 8
POINTS = 24  # a level: 4.7^-24 = 1e-16
GAUSS = 20
STEEPEST = 1e6  # growth of E[phi²] within a level, that of q^10
INFINITE = 1e100  # what closed forms give for an infinite slope is above
FLAT = 1e-14  # a phi that varies less than this, relative to itself, does not vary
LINEAR = 0.05  # how near to 1 the power of q must be to be taken for 1


@dataclass(frozen=True)
class Values:
    """The three moments at some variances."""

    second: Array
    radial: Array
    slope: Array


class Moments:
    """The moments of one activation at any variance; 0 and infinity mean the limits."""

    def __init__(self, activation: Activation) -> None:
        self.activation = activation
        self.form = _exact_form(activation)
        self._table = None if self.form else _Table(activation)

    def __call__(self, q: Array) -> Values:
        q = np.clip(q, LOWEST, HIGHEST)
        if self._table is not None:
            return self._table(q)
        form, one = self.form, np.ones(())
        assert form is not None
        values = [f(np, q, q, one, 0.0) for f in (form.value, form.radial, form.slope)]
        second, radial, slope = (np.broadcast_to(v, q.shape) for v in values)
        return Values(second, radial, np.full_like(q, np.inf) if self.jumps else slope)

    @cached_property
    def jumps(self) -> bool:
        """Whether phi itself jumps: E[phi'²] is then infinite."""
        if self._table is not None:
            return self._table.jumps
        assert self.form is not None
        at_one = self.form.slope(np, 1.0, 1.0, np.ones(()), 0.0)
        return bool(np.max(at_one) > INFINITE)

    @cached_property
    def growth(self) -> Growth:
        """How E[phi²] grows as q -> infinity, which decides the kind of phase diagram."""
        if self._table is not None:
            return self._table.growth
        end = self(np.array([HIGHEST]))
        return _growth(float(end.radial[0] / max(end.second[0], TINY)))

    @property
    def highest_layer(self) -> float:
        """The largest variance at which a layer of this activation can be integrated."""
        return HIGHEST**0.25 if self._table is None else 4.0 ** min(self._table.finest, 4)


@lru_cache(maxsize=64)
def moments_of(activation: Activation) -> Moments:
    """The moments of an activation, tabulated once."""
    return Moments(activation)


def _exact_form(activation: Activation) -> ClosedForm | None:
    """The closed form, unless its rounding grows with q."""
    if activation.closed_form is None:
        return None
    form = closed_form(activation.closed_form)
    return form if form.loss(HIGHEST) == 1.0 else None


def _growth(power: float) -> Growth:
    if power < 1 - LINEAR:
        return "sublinear"
    return "linear" if power <= 1 + LINEAR else "superlinear"


class _Table:
    """Moments of any activation, interpolated in log q."""

    def __init__(self, activation: Activation) -> None:
        lowest, self.finest = _resolved_levels(activation)
        self.jumps = any(resolve(activation, 4.0**self.finest).jumps)
        rows: list[Array] = []
        for level in range(lowest, HIGHEST_LEVEL + 1):
            row = _at_level(activation, level, min(level, self.finest))
            if row is None or row[0].max() > STEEPEST * row[0].min():
                break  # phi has not reached its asymptotes, or outgrows every power
            rows.append(row)
        coefs = _chebyshev.coefficients(np.array(rows))
        edges = np.log(4.0) * np.arange(lowest - 1, lowest + len(rows))
        self._fits = [Piecewise(edges, coefs[:, i]) for i in range(3)]
        self._low, self._high = self._end(edges[:2], -1), self._end(edges[:-3:-1], 1)

    @property
    def growth(self) -> Growth:
        return _growth(self._high.power)

    def __call__(self, q: Array) -> Values:
        inside = self._inside(np.log(np.clip(q, self._low.edge, self._high.edge)))
        parts = [inside.second, inside.radial, inside.slope]
        beyond = (q < self._low.edge, self._low), (q > self._high.edge, self._high)
        for where, end in beyond:
            for part, values in zip(parts, end.extend(q[where]), strict=True):
                part[where] = values
        second, radial, slope = parts
        radial[np.abs(radial) <= FLAT * second] = 0.0
        slope[slope * q <= FLAT**2 * second] = 0.0
        return Values(second, radial, np.full_like(q, np.inf) if self.jumps else slope)

    def _end(self, log_q: Array, sign: int) -> "_End":
        """From the logarithms of an end and of the edge before it."""
        at, inner = (self._inside(np.array(x)) for x in log_q)
        return _End(np.exp(log_q[0]), inner, at, sign)

    def _inside(self, log_q: Array) -> Values:
        return Values(*(fit(log_q) for fit in self._fits))


class _End:
    """How the moments go on beyond an end of the table: `sign` is 1 at the upper end."""

    def __init__(self, edge: Array, inner: Values, at: Values, sign: int) -> None:
        self.edge, self.sign = float(edge), sign
        self.second, self.rate, self.slope = (float(v) for v in (at.second, at.radial, at.slope))
        self.power = _snapped(self.rate / self.second if self.second > 0 else 0.0)
        rise = np.log(max(self.slope, TINY) / max(float(inner.slope), TINY)) / np.log(4.0)
        self.slope_power = _snapped(sign * float(rise))

    def extend(self, q: Array) -> tuple[Array, Array, Array]:
        """second, radial and slope at variances beyond the end."""
        ratio = q / self.edge
        if self.sign > 0 and _growth(self.power) == "linear":
            # Straight lines far out: E[phi'²] tends to the derivative of E[phi²].
            rate, slope = self.rate / self.edge, self.slope
            slope = rate if abs(slope - rate) < 1e-3 * rate else slope
            return self.second + self.rate * (ratio - 1), self.rate * ratio, slope + 0 * ratio
        second = self.second * _power(ratio, self.power)
        return second, self.power * second, self.slope * _power(ratio, self.slope_power)


def _power(ratio: Array, power: float) -> Array:
    """ratio**power, kept within float64."""
    return np.exp(np.clip(power * np.log(ratio), -500.0, 500.0))


def _snapped(power: float) -> float:
    """The nearest half, if that is what the power tends to."""
    nearest = round(2 * power) / 2
    return nearest if abs(power - nearest) < 1e-3 else power


def _resolved_levels(activation: Activation) -> tuple[int, int]:
    """The levels around 1 at which phi is resolved as well as at variance 1."""
    error = resolve(activation, 1.0).error

    def is_resolved(level: int) -> bool:
        try:
            return resolve(activation, 4.0**level).error <= error
        except ActivationError:
            return False

    # With phi(0) != 0 the variance never vanishes, and rounding would hide phi' near zero.
    vanishes = activation(np.zeros(1))[0] == 0
    low, high = 0, 0
    while low > (LOWEST_LEVEL if vanishes else OFFSET_LEVEL) and is_resolved(low - 1):
        low -= 1
    while high < FINEST and is_resolved(high + 1):
        high += 1
    return low, high


def _at_level(activation: Activation, level: int, finest: int) -> Array | None:
    """The moments at the Chebyshev points of one level, shape (3, POINTS).

    Beyond the `finest` level that was resolved: None where phi is not smooth out there.
    """
    edges = _mesh(resolve(activation, 4.0**finest), 2.0**level)
    t, w = legendre(GAUSS)
    half, middle = 0.5 * np.diff(edges)[:, None], 0.5 * (edges[1:] + edges[:-1])[:, None]
    phi = activation(middle + half * t)
    if level > finest and not _is_smooth(phi):
        return None
    dphi = phi @ _differentiation().T / half
    u, weight = (middle + half * t).ravel(), (half * w).ravel()
    q = 4.0 ** (level - 0.5 + 0.5 * _chebyshev.points(POINTS))[:, None]
    # phi times the root of the density: their squares alone may overflow
    root = np.sqrt(weight) * np.exp(-0.25 * u**2 / q) / (2 * np.pi * q) ** 0.25
    square, slope = (root * phi.ravel()) ** 2, (root * dphi.ravel()) ** 2
    # By parts: no derivative of phi, so jumps need no care.
    radial = 0.5 * square * (u**2 / q - 1)
    return np.stack([part.sum(axis=1) for part in (square, radial, slope)])


def _is_smooth(phi: Array) -> bool:
    """Whether the values at the Gauss nodes of each panel are a polynomial to rounding."""
    if not np.isfinite(phi).all():
        return False
    t, w = legendre(GAUSS)
    last = np.polynomial.legendre.legvander(t, GAUSS - 1)[:, -3:] * w[:, None]
    return bool(np.all(np.abs(phi @ last) * GAUSS <= 1e-12 * np.abs(phi).max()))


def _mesh(resolved: Resolved, deviation: float) -> Array:
    """Panels in u that resolve phi and a density of standard deviation down to half of this."""
    reach = np.sqrt(2) * resolved.reach
    bound = reach * deviation
    regular = np.linspace(-bound, bound, 1 + int(np.ceil(4 * reach)))
    own = resolved.piecewise.edges
    doublings = np.arange(1, 1 + max(0, int(np.ceil(np.log2(bound / own[-1])))))
    outer = own[-1] * 2.0**doublings
    kinks = np.array(resolved.activation.kinks)
    edges = np.unique(np.concatenate([regular, own, outer, -outer, kinks]))
    return edges[np.abs(edges) <= bound]


@cache
def _differentiation() -> Array:
    """The matrix that differentiates the polynomial through values at the Gauss nodes."""
    t, _ = legendre(GAUSS)
    gaps = t[:, None] - t + np.eye(GAUSS)
    weight = 1 / gaps.prod(axis=1)
    out = weight / weight[:, None] / gaps
    np.fill_diagonal(out, 0.0)
    np.fill_diagonal(out, -out.sum(axis=1))
    return out
