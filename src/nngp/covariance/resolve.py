"""An activation as a piecewise polynomial: its kinks, its length scales, and its reach.

Takes an activation and a variance; gives its piecewise polynomial on panels that resolve it to
rounding. Undeclared kinks are detected as panels that no bisection resolves. All integrals of the
numeric path use these panels.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from nngp import _chebyshev
from nngp._arrays import Array
from nngp._chebyshev import Piecewise
from nngp.architecture import Activation
from nngp.errors import ActivationError

ORDER = 16  # points a panel
RESOLVED = 4e-15  # of the root mean square of phi, far panels weighted by the Gaussian
MOST_KINKS, MOST_PANELS = 32, 400  # with more the function is taken for noise
MOST_ROUNDS = 200  # of finding one kink after another
DENSE = 16_385  # points of the last check
COARSEST = 1e-2  # of the root mean square: a noisier activation is an error
SMALLEST_JUMP = 1e-6  # of the root mean square: a smaller jump is taken for noise
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
    error: float  # unresolved part of phi, relative to its root mean square; mostly 0

    @property
    def edges(self) -> Array:
        """Inner edges of the panels."""
        return self.piecewise.edges[1:-1]

    @property
    def is_smooth(self) -> bool:
        """Whether phi has no kinks."""
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
        except (
            _NoisyError
        ):  # phi is not computed to this precision: accept less, and report it as error
            tolerance *= 10
            if tolerance > COARSEST:
                raise ActivationError(
                    f"activation '{activation.name}' has too much structure to integrate (more "
                    f"than {MOST_PANELS} pieces within {bound:.3g} of zero); use a smoother one"
                ) from None
    jumps = tuple(_jump(piecewise, k, scale) for k in kinks)
    error = tolerance if tolerance > RESOLVED else 0.0
    return Resolved(activation, piecewise, tuple(kinks), jumps, reach, error)


class _NoisyError(Exception):
    """phi needs so many panels or kinks that it must be noise."""


def _panels(activation: Activation, bound: float, scale: "_Scale") -> tuple[Piecewise, list[float]]:
    """Panels that resolve phi to the scale's tolerance, and its kinks."""
    kinks = [k for k in activation.kinks if abs(k) < bound]
    extra: list[float] = []
    narrow = bound * 2.0**-10
    for _ in range(MOST_ROUNDS):
        edges = np.unique([-bound, 0.0, bound, *kinks, *extra])
        piecewise, suspect = _bisect(activation, edges, narrow, scale)
        suspect = suspect or _rough_edge(activation, piecewise, kinks, scale)
        if suspect is None:
            missed = _missed(activation, piecewise, kinks, scale)
            if missed is None:
                return piecewise, kinks
            width = missed[1] - missed[0]
            extra += [x for x in missed if np.abs(edges - x).min() > 0.1 * width]
            continue
        found = _zoom(activation, *suspect, scale)
        if found is None:
            narrow *= 2.0**-8  # smooth, but narrower than the panels were allowed to be
        elif found in kinks:
            break
        else:
            kinks, extra = (
                sorted([*kinks, found]),
                [],
            )  # the kink may have caused the missed feature
        if len(kinks) > MOST_KINKS + len(activation.kinks):
            break
    raise _NoisyError


def _reach(activation: Activation, deviation: float) -> tuple[float, float]:
    """Standard deviations beyond which phi² is negligible, and the root mean square of phi."""
    step = 2.0**-8
    z = np.arange(-FARTHEST, FARTHEST + step, step)
    size = np.abs(activation(deviation * z))
    with np.errstate(divide="ignore"):
        log_term = 2 * np.log(size) - 0.5 * z**2
    finite = np.isfinite(size)
    inner = np.abs(z) < (np.abs(z[~finite]).min() if not finite.all() else np.inf)
    peak = log_term[inner].max(initial=-np.inf)
    if not inner.any():
        raise ActivationError(f"activation '{activation.name}' is infinite at 0")
    if peak == -np.inf:  # phi vanishes everywhere
        return 9.0, 1.0
    matters = np.abs(z[inner & (log_term > peak - NEGLIGIBLE)]).max() + 0.25
    if matters >= np.abs(z[inner]).max() or peak > 600:
        raise ActivationError(
            f"activation '{activation.name}' grows too fast: E[phi(u)²] at a variance "
            f"near {deviation**2:.3g} is infinite or past float64; use a smaller variance or an "
            "activation that grows at most exponentially"
        )
    rms = np.exp(0.5 * np.log(np.sum(np.exp(log_term[inner] - peak)) * step / 2.5066) + 0.5 * peak)
    return max(float(matters), 9.0), float(rms)


@dataclass(frozen=True)
class _Scale:
    """Weight of an error in phi at x: far out the Gaussian density makes it negligible."""

    deviation: float
    rms: float
    tolerance: float

    def relative(self, error: float, a: float, b: float) -> float:
        """An error on [a, b] relative to the root mean square, weighted by the density."""
        nearest = 0.0 if a <= 0 <= b else min(abs(a), abs(b)) / self.deviation
        return error / self.rms * float(np.exp(-0.25 * nearest**2))


def _bisect(
    activation: Activation, edges: Array, narrow: float, scale: "_Scale"
) -> tuple[Piecewise, tuple[float, float] | None]:
    """Panels no narrower than `narrow`, and the first that is not resolved, if any."""
    pending = list(pairwise(edges))[::-1]
    ends, rows, suspect = [float(edges[0])], [], None
    while pending:
        a, b = pending.pop()
        coefs = _coefficients(activation, a, b)
        resolved = scale.relative(float(_chebyshev.tail(coefs)), a, b) <= scale.tolerance
        if resolved or b - a <= narrow:
            ends.append(float(b))
            rows.append(coefs)
            if not resolved and suspect is None:
                suspect = (float(a), float(b))
            if len(rows) > MOST_PANELS:
                raise _NoisyError
        else:
            middle = 0.5 * (a + b)
            pending += [(middle, b), (a, middle)]
    return Piecewise(np.array(ends), np.array(rows)), suspect


def _coefficients(activation: Activation, a: float, b: float) -> Array:
    return _chebyshev.coefficients(
        activation(0.5 * (a + b) + 0.5 * (b - a) * _chebyshev.points(ORDER))
    )


def _zoom(activation: Activation, a: float, b: float, scale: _Scale) -> float | None:
    """Locate a kink in [a, b] by following the roughest half; None if phi is smooth there.

    The halves overlap, five at a time: a kink very near the end of a panel would otherwise lie
    between that end and the first of its points.
    """
    size = np.inf
    while b - a > 1e-15 * max(abs(a), abs(b), 1e-2 * scale.deviation):
        quarter = 0.25 * (b - a)
        centres = a + quarter * np.arange(5)
        tails = [_roughness(activation, c - quarter, c + quarter) for c in centres]
        if max(tails) <= scale.tolerance * scale.rms:
            # The effect of a jump of the k-th derivative shrinks like width^k.
            return _snap(0.5 * (a + b), b - a) if b - a < 1e-4 * scale.deviation else None
        size = max(tails)
        centre = float(centres[int(np.argmax(tails))])
        a, b = centre - quarter, centre + quarter
    if size < SMALLEST_JUMP * scale.rms:
        raise _NoisyError
    return _snap(0.5 * (a + b), b - a)


def _roughness(activation: Activation, a: float, b: float) -> float:
    return float(_chebyshev.tail(_coefficients(activation, a, b)))


def _snap(x: float, width: float) -> float:
    """The round number in the bracket, if there is one, as most kinks are at round numbers."""
    nearest = round(x, max(0, int(-np.log10(4 * width))))
    return nearest if abs(nearest - x) <= 4 * width else x


def _rough_edge(
    activation: Activation, piecewise: Piecewise, kinks: list[float], scale: _Scale
) -> tuple[float, float] | None:
    """An interval around a panel edge on which phi is not smooth, known kinks excepted."""
    edges = piecewise.edges
    for left, edge, right in zip(edges[:-2], edges[1:-1], edges[2:], strict=True):
        if edge not in kinks:
            half = 0.5 * min(edge - left, right - edge)
            rough = _roughness(activation, edge - half, edge + half)
            if scale.relative(rough, edge - half, edge + half) > 1e3 * scale.tolerance:
                return float(edge - half), float(edge + half)
    return None


def _missed(
    activation: Activation, piecewise: Piecewise, kinks: list[float], scale: _Scale
) -> tuple[float, float] | None:
    """An interval on which the panels differ from phi: a feature narrower than their nodes."""
    bound, step = piecewise.edges[-1], 2 * piecewise.edges[-1] / (DENSE - 1)
    x = np.linspace(-bound, bound, DENSE)[1:-1]
    error = np.abs(piecewise(x) - activation(x)) * np.exp(-0.25 * (x / scale.deviation) ** 2)
    for kink in kinks:  # at which either one-sided limit is right
        error[np.abs(x - kink) < 1e-9 * bound] = 0.0
    worst = int(np.argmax(error))
    if error[worst] <= 1e4 * scale.tolerance * scale.rms:
        return None
    return float(x[worst] - step), float(x[worst] + step)


def _jump(piecewise: Piecewise, kink: float, scale: _Scale) -> float:
    """Height of the jump of phi at a kink, 0 if it is within rounding."""
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
