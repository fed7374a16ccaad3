"""Where a callable needs attention: its kinks, its length scale, and how far out it matters.

Takes an activation and a variance; gives its piecewise polynomial on panels that resolve it to
rounding. Kinks nobody declared show as panels that no bisection resolves. All integrals of the
numeric path are laid out on these panels.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nngp import _chebyshev
from nngp._chebyshev import Piecewise
from nngp.architecture import Activation, ActivationError

Array = NDArray[np.float64]

ORDER = 16  # points a panel
RESOLVED = 4e-15  # of the root mean square of phi, far panels weighted by the Gaussian
MOST_KINKS, MOST_PANELS = 32, 400  # beyond these it is noise, not structure
SMALLEST_JUMP = 1e-6  # of the root mean square: what never shrinks and is smaller is noise
FARTHEST = 38.0  # standard deviations: exp(-38²/2) is the smallest float64
NEGLIGIBLE = 43.0  # nats: 2e-19 of the largest contribution


@dataclass(frozen=True)
class Resolved:
    """phi on panels, valid for variances in (var/4, var]."""

    activation: Activation
    piecewise: Piecewise
    kinks: tuple[float, ...]
    jumps: tuple[float, ...]  # height of the jump in value at each kink, 0 if continuous
    reach: float  # standard deviations beyond which phi(u)² is negligible
    error: float  # what no panel resolves, relative to the root mean square of phi; mostly 0

    @property
    def edges(self) -> Array:
        return self.piecewise.edges[1:-1]

    @property
    def is_smooth(self) -> bool:
        return not self.kinks

    def midpoint(self, kink: float) -> float:
        """Mean of phi's two limits at a kink."""
        panel = int(np.searchsorted(self.piecewise.edges, kink))
        return 0.5 * sum(_one_sided(self.piecewise, panel))

    @property
    def widths(self) -> Array:
        """The length scale of phi at each inner edge: its narrower panel, 0 at a kink."""
        panels = np.diff(self.piecewise.edges)
        at_kink = np.isin(self.edges, self.kinks)
        return np.where(at_kink, 0.0, np.minimum(panels[:-1], panels[1:]))


def resolve(activation: Activation, var: float) -> Resolved:
    """The panels of `activation` for pre-activations of variance `var`."""
    return _resolve(activation, 4.0 ** np.ceil(np.log2(var) / 2))


@lru_cache(maxsize=512)
def _resolve(activation: Activation, var: float) -> Resolved:
    reach, rms = _reach(activation, np.sqrt(var))
    bound = np.sqrt(2) * reach * np.sqrt(var)  # Hermite functions reach further than phi² does
    tolerance = RESOLVED
    while True:
        scale = _Scale(float(np.sqrt(var)), rms, tolerance)
        try:
            piecewise, kinks = _panels(activation, bound, scale)
            break
        except _NoisyError:  # phi is not computed to this precision: ask for less, and say so
            tolerance *= 10
    jumps = tuple(_jump(piecewise, k, scale) for k in kinks)
    error = tolerance if tolerance > RESOLVED else 0.0
    return Resolved(activation, piecewise, tuple(kinks), jumps, reach, error)


class _NoisyError(Exception):
    """More panels or kinks than structure can explain."""


def _panels(activation: Activation, bound: float, scale: "_Scale") -> tuple[Piecewise, list[float]]:
    """Panels that resolve phi to the scale's tolerance, and its kinks."""
    kinks = [k for k in activation.kinks if abs(k) < bound]
    while True:
        panels, suspect = _bisect(activation, _initial_edges(kinks, bound), scale)
        found = None if suspect is None else _zoom(activation, *suspect, scale)
        if found is None or found in kinks:
            break
        kinks = sorted([*kinks, found])
        if len(kinks) > MOST_KINKS:
            raise _NoisyError
    edges = np.array([panels[0][0]] + [b for _, b, _ in panels])
    piecewise = Piecewise(edges, np.array([c for _, _, c in panels]))
    return piecewise, _true_kinks(activation, piecewise, kinks, scale)


def _reach(activation: Activation, deviation: float) -> tuple[float, float]:
    """How many standard deviations matter, and the root mean square of phi."""
    z = np.arange(-FARTHEST, FARTHEST + 0.01, 0.125)
    size = np.abs(activation(deviation * z))
    with np.errstate(divide="ignore"):
        log_term = 2 * np.log(size) - 0.5 * z**2
    finite = np.isfinite(size)
    inner = np.abs(z) < (np.abs(z[~finite]).min() if not finite.all() else np.inf)
    peak = log_term[inner].max()
    if peak == -np.inf:  # phi vanishes everywhere
        return 9.0, 1.0
    matters = np.abs(z[inner & (log_term > peak - NEGLIGIBLE)]).max() + 0.25
    if matters >= np.abs(z[inner]).max() or peak > 600:
        raise ActivationError(
            f"activation '{activation.name}' grows too fast: E[phi(u)²] at variance "
            f"{deviation**2:.3g} is infinite or past float64; use a smaller variance or an "
            "activation that grows at most exponentially"
        )
    rms = np.exp(0.5 * np.log(np.sum(np.exp(log_term[inner] - peak)) * 0.125 / 2.5066) + 0.5 * peak)
    return max(float(matters), 9.0), float(rms)


@dataclass(frozen=True)
class _Scale:
    """What an error in phi at x amounts to: far out the Gaussian weight forgives it."""

    deviation: float
    rms: float
    tolerance: float

    def relative(self, error: float, a: float, b: float) -> float:
        nearest = 0.0 if a <= 0 <= b else min(abs(a), abs(b)) / self.deviation
        return error / self.rms * float(np.exp(-0.25 * nearest**2))


def _initial_edges(kinks: list[float], bound: float) -> Array:
    return np.unique([-bound, 0.0, bound, *kinks])


def _bisect(
    activation: Activation, edges: Array, scale: "_Scale"
) -> tuple[list[tuple[float, float, Array]], tuple[float, float] | None]:
    """Panels (a, b, coefficients), and one that seems to hold a kink."""
    pending = list(pairwise(edges))[::-1]
    narrow, panels, suspect = (edges[-1] - edges[0]) * 2.0**-11, [], None
    while pending:
        a, b = pending.pop()
        coefs = _coefficients(activation, a, b)
        error = scale.relative(float(_chebyshev.tail(coefs)), a, b)
        if error <= scale.tolerance or b - a <= narrow:
            panels.append((float(a), float(b), coefs))
            if error > scale.tolerance and suspect is None:
                suspect = (float(a), float(b))
            if len(panels) > MOST_PANELS:
                raise _NoisyError
        else:
            middle = 0.5 * (a + b)
            pending += [(middle, b), (a, middle)]
    return panels, suspect


def _coefficients(activation: Activation, a: float, b: float) -> Array:
    return _chebyshev.coefficients(
        activation(0.5 * (a + b) + 0.5 * (b - a) * _chebyshev.points(ORDER))
    )


def _zoom(activation: Activation, a: float, b: float, scale: _Scale) -> float | None:
    """Follow the unresolved half down to a point; None if it turns out to be smooth."""
    size = np.inf
    while b - a > 8 * np.spacing(max(abs(a), abs(b))) and b - a > 1e-300:
        middle = 0.5 * (a + b)
        left = float(_chebyshev.tail(_coefficients(activation, a, middle)))
        right = float(_chebyshev.tail(_coefficients(activation, middle, b)))
        if max(left, right) <= scale.tolerance * scale.rms:
            # Both halves are smooth: the kink, if any, is where they meet.
            return middle if b - a < 1e-6 * max(1.0, abs(middle)) else None
        size, (a, b) = max(left, right), (a, middle) if left > right else (middle, b)
    if size < SMALLEST_JUMP * scale.rms:
        raise _NoisyError
    return 0.5 * (a + b)


def _true_kinks(
    activation: Activation, piecewise: Piecewise, kinks: list[float], scale: _Scale
) -> list[float]:
    """Kinks that are declared or found, and panel edges that no polynomial crosses."""
    edges = piecewise.edges
    for left, edge, right in zip(edges[:-2], edges[1:-1], edges[2:], strict=True):
        half = 0.5 * min(edge - left, right - edge)
        a, b = edge - half, edge + half
        straddling = float(_chebyshev.tail(_coefficients(activation, a, b)))
        if scale.relative(straddling, a, b) > 1e3 * scale.tolerance and edge not in kinks:
            kinks = sorted([*kinks, float(edge)])
    if len(kinks) > MOST_KINKS:
        raise _NoisyError
    return kinks


def _jump(piecewise: Piecewise, kink: float, scale: _Scale) -> float:
    panel = int(np.searchsorted(piecewise.edges, kink))
    if piecewise.edges[panel] != kink or not 0 < panel < len(piecewise.edges) - 1:
        return 0.0
    below, above = _one_sided(piecewise, panel)
    return above - below if scale.relative(abs(above - below), kink, kink) > 1e-10 else 0.0


def _one_sided(piecewise: Piecewise, panel: int) -> tuple[float, float]:
    """phi just below and just above the left edge of a panel."""
    below = _chebyshev.evaluate(piecewise.coefs[panel - 1], np.array(1.0))
    above = _chebyshev.evaluate(piecewise.coefs[panel], np.array(-1.0))
    return float(below), float(above)
