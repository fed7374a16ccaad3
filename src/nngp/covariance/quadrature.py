"""One layer by two-dimensional quadrature, in coordinates without boundary layers.

For c >= 0 rotate to u = s1 (α z1 + β z2), v = s2 (α z1 - β z2) with α² = (1+c)/2, β² = (1-c)/2.
As c -> 1, β vanishes and u and v merge, but z1 and z2 stay independent standard normals, so the
integrand develops no boundary layer. For each z2 the line in z1 is cut where u or v crosses a panel
edge of phi, so every piece is smooth; z2 is cut where two kink lines cross. Negative c is positive
c with v -> -v. Every integral is done twice, the second time with more nodes; the difference is the
error.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nngp._arrays import EPS, Array
from nngp.covariance.hermite import gauss, legendre
from nngp.covariance.resolve import Resolved

ORDERS = (10, 14, 20)  # Gauss points a piece, tried in turn
CHUNK = 32_768  # nodes at a time: the temporaries stay in the cache
CONVERGED = 4e-15  # of the integral of the absolute value: agreement beyond rounding means nothing


@dataclass(frozen=True)
class Side:
    """One of the two arguments of an integrand: panels of phi, standard deviation, reflection."""

    resolved: Resolved
    deviation: float
    mirrored: bool = False

    @property
    def sign(self) -> float:
        """-1 if the argument is reflected, otherwise 1."""
        return -1.0 if self.mirrored else 1.0

    def is_like(self, other: "Side") -> bool:
        """Whether both have the same distribution and panels."""
        same = self.deviation == other.deviation and self.mirrored == other.mirrored
        return same and self.resolved is other.resolved

    def lines(self, points: Array) -> Array:
        """Positions of points of phi's axis in units of the standard deviation, those in reach."""
        z = np.sort(self.sign * points / self.deviation)
        return z[np.abs(z) < np.sqrt(2) * self.resolved.reach]

    @property
    def features(self) -> tuple[Array, Array]:
        """Panel edges and the length scale at each, in standard deviations."""
        return self.sign * self.resolved.edges / self.deviation, (
            self.resolved.widths / self.deviation
        )


def sides(
    first: Resolved, second: Resolved, var1: float, var2: float, negative: bool
) -> tuple[Side, Side]:
    """The two arguments of variances var1, var2; v mirrored where the correlation is negative."""
    return Side(first, np.sqrt(var1)), Side(second, np.sqrt(var2), negative)


def expectation(
    integrand: Callable[[Array, Array], Array],
    first: Side,
    second: Side,
    m: float,
    tol: float,
    *,
    exchangeable: bool = False,
) -> tuple[float, float]:
    """E[integrand(u, v)] at correlation ±(1 - m), and its error.

    The order of the rule is raised until two in a row agree to `tol` (absolute) or to rounding.
    `exchangeable` promises integrand(u, v) = integrand(v, u), which halves the work where u and v
    have the same variance and c >= 0.
    """
    fold = exchangeable and first.is_like(second)
    previous, error = np.nan, np.inf
    for order in ORDERS:
        total, size = _integrate(integrand, first, second, m, order, fold)
        error = abs(total - previous)
        previous = total
        if error <= max(tol, CONVERGED * size):
            break
    return previous, max(error if np.isfinite(error) else size, 8 * EPS * size)


def _integrate(
    integrand: Callable[[Array, Array], Array],
    first: Side,
    second: Side,
    m: float,
    order: int,
    fold: bool,
) -> tuple[float, float]:
    """The integral, and the integral of the absolute value; with `fold`, from z2 > 0 alone."""
    alpha, beta = np.sqrt(1 - 0.5 * m), np.sqrt(0.5 * m)
    z2, w2 = _outer_nodes(first, second, beta, order)
    if fold and beta > 0:  # exchanging u and v is z2 -> -z2, and 0 is an edge of the panels
        z2, w2 = z2[z2 > 0], 2 * w2[z2 > 0]
    lines1, lines2 = first.lines(first.resolved.edges), second.lines(second.resolved.edges)
    reach = _reach(first, second)
    regular = np.linspace(-reach, reach, 1 + int(np.ceil(reach)))
    count = (len(lines1) + len(lines2) + len(regular) - 1) * order
    total = size = 0.0
    for start in range(0, len(z2), max(1, CHUNK // count)):
        part = slice(start, start + max(1, CHUNK // count))
        shift = beta * z2[part, None]
        everywhere = np.broadcast_to(regular, (len(shift), len(regular)))
        crossings = [(lines1 - shift) / alpha, (lines2 + shift) / alpha, everywhere]
        z1, weight = _inner_nodes(np.concatenate(crossings, axis=1), reach, order)
        shift = shift[..., None]
        u = first.deviation * (alpha * z1 + shift)
        v = second.sign * second.deviation * (alpha * z1 - shift)
        values = integrand(u, v) * weight * w2[part, None, None]
        total += float(values.sum())
        size += float(np.abs(values).sum())
    return total, size


def _reach(first: Side, second: Side) -> float:
    return max(first.resolved.reach, second.resolved.reach)


def _inner_nodes(edges: Array, reach: float, order: int) -> tuple[Array, Array]:
    """Nodes in z1 between the edges of each row, with the normal density in the weights."""
    t, w = legendre(order)
    edges = np.sort(np.clip(edges, -reach, reach), axis=1)
    half, middle = 0.5 * np.diff(edges), 0.5 * (edges[:, 1:] + edges[:, :-1])
    z1 = middle[..., None] + half[..., None] * t
    return z1, half[..., None] * w * np.exp(-0.5 * z1**2) / np.sqrt(2 * np.pi)


def _outer_nodes(first: Side, second: Side, beta: float, order: int) -> tuple[Array, Array]:
    """Nodes and weights in z2, cut where two kink lines cross."""
    reach = _reach(first, second)
    if beta == 0.0:  # u and v are one variable
        return np.zeros(1), np.ones(1)
    kinks1, kinks2 = (side.lines(np.array(side.resolved.kinks)) for side in (first, second))
    crossings = (kinks1[:, None] - kinks2).ravel() / (2 * beta)
    edges = np.union1d(crossings[np.abs(crossings) < reach], np.linspace(-reach, reach, 11))
    return gauss(_grade(edges, *_coincidences(first, second, beta)), order)


def _coincidences(first: Side, second: Side, beta: float) -> tuple[Array, Array]:
    """Values of z2 at which features of phi(u) and phi(v) coincide, and their length scales."""
    (x, dx), (y, dy) = first.features, second.features
    centre = (x[:, None] - y) / (2 * beta)
    scale = np.maximum(dx[:, None], dy) / (2 * beta)  # the wider one smooths the other
    counts = (scale > 0) & (np.abs(centre) - scale < _reach(first, second))
    return centre[counts], scale[counts]


def _grade(edges: Array, centre: Array, scale: Array) -> Array:
    """Bisect panels until each is at most twice as wide as distance plus scale of any feature."""
    done = [edges[0]]
    pending = list(pairwise(edges))[::-1]
    while pending:
        a, b = pending.pop()
        distance = np.maximum(np.maximum(a - centre, centre - b), 0.0)
        if len(centre) == 0 or b - a <= 2 * np.min(distance + scale):
            done.append(b)
        else:
            pending += [(0.5 * (a + b), b), (a, 0.5 * (a + b))]
    return np.array(done)
