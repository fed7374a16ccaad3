"""Integration of the three moments over a factor of four in the variance.

Takes an activation and a level k; gives E[phi²], E[u phi' phi] and E[phi'²] at the Chebyshev
points of (4^(k-1), 4^k], with the unresolved part of each. The integration starts from the panels
of the numeric layers (`covariance.resolve`) and their kinks. Panels on which phi is not yet a
polynomial are bisected until their share of the integral is negligible: in one dimension a
thousand kinks are affordable.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from nngp import _chebyshev
from nngp._arrays import TINY, Array, Mask
from nngp.architecture import Activation
from nngp.covariance.hermite import legendre
from nngp.covariance.resolve import Resolved
from nngp.regimes.extrapolation import FLAT

POINTS = 24  # a level: 4.7^-24 = 1e-16
GAUSS = 20
SMOOTH = 1e-12  # of the largest value: tails of a panel below this are rounding
BENT = 1e-6  # of the change over a panel: with larger tails phi' is not resolved
ROUNDS, MOST_PANELS = 45, 8_000


@dataclass(frozen=True)
class LevelMoments:
    """The three moments over one level, and the parts of them from unresolved panels."""

    values: Array  # (3, POINTS)
    unresolved: float  # fraction of E[phi²]
    slope_unresolved: float  # fraction of E[phi'²]

    @property
    def outgrows_powers(self) -> bool:
        """Whether E[phi²] grows faster than any power of q, which no polynomial in log q fits."""
        second, radial, _ = self.values
        powers = radial / np.maximum(second, TINY)
        return bool(second.max() > 1e6 * second.min() and powers[-1] > powers[0])


def integrate(activation: Activation, resolved: Resolved, level: int, noise: float) -> LevelMoments:
    """Integrate the moments on (4^(level-1), 4^level], starting from panels of another level."""
    deviation = 2.0**level
    edges = _refined(activation, _mesh(resolved, deviation), deviation, noise)
    u, weight, phi = _nodes(activation, edges)
    rough = _rough(phi, edges, deviation, noise)
    rough[[0, -1]] = True  # the tails beyond the panels contribute no more than these
    bent = rough | (_tails(phi) > max(BENT, 1e3 * noise) * np.ptp(phi, axis=1))
    # Less its first value, so that a constant has no derivative to the last digit.
    dphi = (phi - phi[:, :1]) @ _differentiation().T / (0.5 * np.diff(edges)[:, None])
    values, fractions = np.empty((3, POINTS)), np.empty((2, POINTS))
    for i, q in enumerate(4.0 ** (level - 0.5 + 0.5 * _chebyshev.points(POINTS))):
        # phi times the root of the density: either squared alone may overflow
        root = np.sqrt(weight) * np.exp(-0.25 * u**2 / q) / (2 * np.pi * q) ** 0.25
        square, slope = (root * phi) ** 2, (root * dphi) ** 2
        # By parts: without a derivative of phi, so that jumps need no extra terms.
        radial = 0.5 * square * (u**2 / q - 1)
        second, steepness = square.sum(), slope.sum()
        values[:, i] = second, radial.sum(), steepness
        least = max(steepness, FLAT * second / q, TINY)  # a smaller slope is rounding of phi
        fractions[:, i] = square[rough].sum() / max(second, TINY), slope[bent].sum() / least
    unresolved = fractions.max(axis=1) if np.isfinite(values).all() else np.full(2, np.inf)
    return LevelMoments(values, *unresolved.tolist())


def noise_of(activation: Activation) -> float:
    """Relative noise of phi: its median distance from a polynomial over tiny intervals."""
    starts = np.linspace(-3.0, 3.0, 102)
    phi = activation((starts + 5e-4 * (1 + legendre(GAUSS)[0][:, None])).T)
    size = max(float(np.abs(phi).max()), TINY)
    return float(np.median(_tails(phi))) / size


def is_steep(activation: Activation, points: Array, noise: float) -> bool:
    """Whether E[phi'²] diverges at one of these points: (phi(x+h) - phi(x))²/h does not vanish."""
    far, near = 2.0**-10, 2.0**-30
    for at in points:
        for side in (-1, 1):
            x = at + side * np.array([far, far / 4, near, near / 4])
            phi = activation(x)
            wide, narrow = (phi[0] - phi[1]) ** 2 / far, (phi[2] - phi[3]) ** 2 / near
            least = (max(SMOOTH, 100 * noise) * np.abs(phi).max()) ** 2 / near
            if narrow > max(0.7 * wide, least):
                return True
    return False


def _mesh(resolved: Resolved, deviation: float) -> Array:
    """Panels in u that resolve phi and densities of standard deviation down to deviation / 2."""
    reach = np.sqrt(2) * resolved.reach
    bound = reach * deviation
    regular = np.linspace(-bound, bound, 1 + int(np.ceil(4 * reach)))
    own = resolved.piecewise.edges
    doublings = np.arange(1, 1 + max(0, int(np.ceil(np.log2(bound / own[-1])))))
    outer = own[-1] * 2.0**doublings
    kinks = np.array(resolved.activation.kinks)
    edges = np.unique(np.concatenate([regular, own, outer, -outer, kinks, [0.0]]))
    return edges[np.abs(edges) <= bound]


def _refined(activation: Activation, edges: Array, deviation: float, noise: float) -> Array:
    """Bisect panels on which phi is not a polynomial, repeatedly."""
    for _ in range(ROUNDS):
        _, _, phi = _nodes(activation, edges)
        rough = _rough(phi, edges, deviation, noise)
        middle = 0.5 * (edges[1:] + edges[:-1])[rough]
        if not middle.size or len(edges) + len(middle) > MOST_PANELS:
            break
        edges = np.unique(np.concatenate([edges, middle]))
    return edges


def _nodes(activation: Activation, edges: Array) -> tuple[Array, Array, Array]:
    """Gauss nodes, their weights, and phi there, each of shape (panels, GAUSS)."""
    t, w = legendre(GAUSS)
    half, middle = 0.5 * np.diff(edges)[:, None], 0.5 * (edges[1:] + edges[:-1])[:, None]
    u = middle + half * t
    return u, half * w, activation(u)


def _rough(phi: Array, edges: Array, deviation: float, noise: float) -> Mask:
    """Panels on which phi is not a polynomial, its error weighted by the Gaussian density."""
    nearest = np.minimum(np.abs(edges[1:]), np.abs(edges[:-1])) / deviation
    weight = np.exp(-0.25 * nearest**2)
    size = np.max(weight * np.abs(phi).max(axis=1))
    return ~(_tails(phi) * weight <= max(SMOOTH, 8 * noise) * size)


def _tails(phi: Array) -> Array:
    """Largest of the last three Legendre coefficients of each panel."""
    t, w = legendre(GAUSS)
    last = np.polynomial.legendre.legvander(t, GAUSS - 1)[:, -3:] * w[:, None]
    return np.abs(phi @ last).max(axis=1) * GAUSS


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
