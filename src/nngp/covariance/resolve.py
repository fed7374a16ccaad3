"""An activation as a piecewise polynomial: its kinks, its length scales, and its reach.

Takes an activation and a variance; gives its piecewise polynomial on panels that resolve it to
rounding. All integrals of the numeric path use these panels.

1. `survey`: phi at points of all scales, for its reach and its root mean square.
2. Panels are bisected until phi is a polynomial on each.
3. A panel that no bisection resolves holds a jump. Panels that shrink towards a point, and on
   which phi fades slowly, like a power of their width, hold a kink. Kinks become edges, and step 2
   starts again.
4. The result is compared with phi at the points of the survey and at many more. Where it differs,
   panels are cut, and step 2 starts again.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from nngp import _chebyshev
from nngp._arrays import TINY, Array, Index, Mask
from nngp._chebyshev import Piecewise
from nngp.architecture import Activation
from nngp.covariance.survey import Survey, survey
from nngp.errors import ActivationError

ORDER = 16  # points a panel
RESOLVED = 4e-15  # of the root mean square of phi, far panels weighted by the Gaussian
MOST_KINKS, MOST_PANELS = 32, 600  # with more the function is taken for noise
LEVELS_IN_OCTAVE = 8  # of the variance, where phi grows too fast for the next power of four
MOST_LEVELS = 40  # of the variance that are tried for phi'
MOST_ROUNDS = 40  # of finding kinks and missed features
COARSEST = 1e-5  # of the root mean square: a noisier activation is an error
NEAR_JUMP = 1e-9  # relative distance at which two jumps are one
SMALLEST_JUMP = 1e-10  # of the root mean square: a smaller change between neighbours is rounding
NARROWEST = 1e-15  # relative width of a panel that still has distinct points
WINDOWS = 4.0 ** np.arange(3, 6)  # of the narrowest panel beside a kink
KINK_GROWS = (2.5, 100.0)  # how tails grow from one window to the next, for kinks of order 1 to 3
CASCADE = 2.0**-9  # of the widest panel near it: a narrower panel may end at a kink


@dataclass(frozen=True)
class Resolved:
    """phi on panels, valid for variances in (var/4, var]."""

    activation: Activation  # a derivative phi' as computed for these variances
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
    return _resolve(activation, level_of(activation, var))


def level_of(activation: Activation, var: float) -> float:
    """The variance whose panels serve `var`: a power of four, unless phi grows too fast for it.

    Levels are fixed beforehand, so that no value depends on the other variances of a batch.
    """
    level = float(4.0 ** np.ceil(np.log2(var) / 2))
    if _is_finite_at(activation, level):
        return level
    steps = np.ceil(LEVELS_IN_OCTAVE * np.log2(var) - 1e-9)  # a level has itself as its level
    return min(level, float(2.0 ** (steps / LEVELS_IN_OCTAVE)))


@lru_cache(maxsize=512)
def _is_finite_at(activation: Activation, level: float) -> bool:
    """Whether E[phi²] is within float64 at the largest variance of a level."""
    if isinstance(activation.fn, SlopeFunction):
        activation = activation.fn.activation
    try:
        survey(activation, float(np.sqrt(level)))
    except ActivationError:
        return False
    return True


@dataclass(frozen=True)
class SlopeFunction:
    """phi' of an activation, from its panels for variances of one level."""

    activation: Activation
    level: float

    def __call__(self, x: Array) -> Array:
        slope = _slope_panels(self.activation, self.level)
        return slope(np.clip(x, slope.edges[0], slope.edges[-1]))

    def at(self, level: float) -> "SlopeFunction":
        """phi' for variances of another level."""
        return replace(self, level=level)


@lru_cache(maxsize=256)
def _slope_panels(activation: Activation, level: float) -> Piecewise:
    """phi' on panels, up to the bound of one level, from the panels of the level that suits best.

    The values of phi are rounded to eps max|phi|, so phi' is inexact by that over the width of a
    panel: the panels of a small variance are poor where phi does not vanish at 0, those of a large
    one where phi grows.
    """
    own = best = _resolve(activation, level)
    bound, loss = own.piecewise.edges[-1], np.inf
    for steps in range(MOST_LEVELS):
        try:
            here = _resolve(activation, level * 4.0**steps)
        except ActivationError:  # phi grows too fast for a larger variance
            break
        edges, coefs = here.piecewise.edges, here.piecewise.coefs
        used = (edges[:-1] < bound) & (edges[1:] > -bound)
        noise = float(np.max(np.abs(coefs[used]).max(axis=1) / np.diff(edges)[used]))
        if here.error > own.error or noise > 0.7 * loss:
            break
        best, loss = here, noise
    if best is own:
        return own.piecewise.derivative()
    slope, edges = best.piecewise.derivative(), best.edges
    edges = np.union1d(edges[np.abs(edges) < bound], [-bound, bound])
    return Piecewise(edges, _coefficients(slope, edges[:-1], edges[1:]))


def _resolved_slope(activation: Activation, slope: SlopeFunction, var: float) -> Resolved:
    """The panels of phi', which are those of phi. Its error is what it differs by on the two sides
    of edges where it should not, as a root mean square over the panels beside them."""
    whole = _resolve(slope.activation, var)
    if any(whole.jumps):
        raise infinite_slope(slope.activation)
    panels = _slope_panels(slope.activation, var)
    at = panels.edges[1:-1]
    before, behind = panels(np.nextafter(at, -np.inf)), panels(at)
    rms = max(_root_mean_square(panels, float(np.sqrt(var))), TINY)
    widths = np.diff(panels.edges)
    share = np.maximum(widths[:-1], widths[1:]) * np.exp(-0.5 * at**2 / var) / np.sqrt(var)
    smooth = ~np.isin(at, whole.kinks)
    known = max(float(np.sqrt(share[smooth] @ (behind - before)[smooth] ** 2)) / rms, RESOLVED)
    gaps = dict(zip(at.tolist(), (behind - before).tolist(), strict=True))
    heights = [gaps.get(kink, 0.0) for kink in whole.kinks]
    jumps = tuple(h if abs(h) > max(SMALLEST_JUMP, 4 * known) * rms else 0.0 for h in heights)
    here = replace(activation, fn=slope.at(var))
    return Resolved(here, panels, whole.kinks, jumps, whole.reach, known + whole.error)


def infinite_slope(activation: Activation) -> ActivationError:
    """The error for phi' of an activation that jumps."""
    return ActivationError(
        f"activation '{activation.name}' jumps, so its gradient and the tangent kernel are "
        "infinite; take an activation without jumps, or the kernel of the network itself"
    )


@lru_cache(maxsize=512)
def _resolve(activation: Activation, var: float) -> Resolved:
    if isinstance(activation.fn, SlopeFunction):
        return _resolved_slope(activation, activation.fn, var)
    seen = survey(activation, float(np.sqrt(var)))
    tolerance = RESOLVED
    while True:
        try:
            return _resolved_to(activation, seen, tolerance)
        except _NoisyError:  # phi is not computed to this precision: accept less, and report it
            tolerance *= 10
        if tolerance > COARSEST:
            raise ActivationError(
                f"activation '{activation.name}' has too much structure to integrate (more "
                f"than {MOST_PANELS} pieces within {seen.bound:.3g} of zero); use a smoother one"
            )


def _resolved_to(activation: Activation, seen: Survey, tolerance: float) -> Resolved:
    ratios = tuple((s, size / seen.rms) for s, size in seen.smaller if size < seen.rms)
    scale = _Scale(seen.deviation, seen.rms, seen.peak, tolerance, ratios)
    piecewise, kinks = _panels(activation, seen, scale)
    rms = _root_mean_square(piecewise, seen.deviation)
    if rms < 0.5 * scale.rms:  # the survey counted a narrow feature for too much
        scale = replace(scale, rms=max(rms, TINY))
        piecewise, kinks = _panels(activation, seen, scale)
    jumps = tuple(_jump(piecewise, k, scale) for k in kinks)
    error = tolerance if tolerance > RESOLVED else 0.0
    return Resolved(activation, piecewise, tuple(kinks), jumps, seen.reach, error)


class _NoisyError(Exception):
    """phi needs so many panels or kinks that it must be noise."""


def _root_mean_square(piecewise: Piecewise, deviation: float) -> float:
    """sqrt(E[phi²]) from Chebyshev points on the panels, to a per cent or so."""
    low, high = piecewise.edges[:-1, None], piecewise.edges[1:, None]
    angle = np.pi * (np.arange(64) + 0.5) / 64
    x = 0.5 * (low + high) - 0.5 * (high - low) * np.cos(angle)
    weight = 0.5 * (high - low) * np.sin(angle) * np.pi / 64
    density = np.exp(-0.5 * (x / deviation) ** 2) / (np.sqrt(2 * np.pi) * deviation)
    size = max(float(np.abs(piecewise.coefs).max()), TINY)
    return size * float(np.sqrt(np.sum(weight * density * (piecewise(x) / size) ** 2)))


@dataclass(frozen=True)
class _Scale:
    """Weight of an error in phi at x: far out the Gaussian density makes it negligible."""

    deviation: float
    rms: float
    peak: float  # largest |phi|, weighted
    tolerance: float
    smaller: tuple[tuple[float, float], ...]  # lesser deviations, and rms there in units of rms

    def weight(self, a: Array, b: Array) -> Array:
        """Root of the density on [a, b] in units of rms; the largest of those of deviations
        down to half, as the panels serve these too, and phi may be much smaller there."""
        nearest = np.where((a <= 0) & (b >= 0), 0.0, np.minimum(np.abs(a), np.abs(b)))
        out: Array = np.exp(-0.25 * (nearest / self.deviation) ** 2)
        for deviation, ratio in self.smaller:
            out = np.maximum(out, np.exp(-0.25 * (nearest / deviation) ** 2) / ratio)
        return out

    def unresolved(self, tail: Array, a: Array, b: Array) -> Array:
        """An error of phi on [a, b] in units of the tolerance.

        The tolerance is relative to the root mean square of phi. An error on a narrow panel
        counts for the root of its share of the axis, as mean squares are what is integrated, but
        is never allowed to exceed the tolerance relative to the largest phi.
        """
        width = np.maximum(b - a, NARROWEST * self.deviation)
        wide = self.rms * np.sqrt(np.maximum(self.deviation / width, 1.0))
        size = np.maximum(self.rms, np.minimum(wide, self.peak))
        out: Array = self.weight(a, b) * tail / (self.tolerance * size)
        return out


def _panels(activation: Activation, seen: Survey, scale: _Scale) -> tuple[Piecewise, list[float]]:
    """Panels that resolve phi to the scale's tolerance, and its kinks."""
    kinks = [k for k in activation.kinks if abs(k) < seen.bound]
    cuts = [f for f in activation.features if abs(f) < seen.bound]
    for _ in range(MOST_ROUNDS):
        edges = np.unique([-seen.bound, 0.0, seen.bound, *kinks, *cuts])
        piecewise, jumps = _bisect(activation, edges, scale)
        found = [x for x in jumps if not _is_known(x, kinks, scale)]
        if jumps and not found:  # phi is not a polynomial beside a kink either
            raise _NoisyError
        missed = [] if found else _missed(piecewise, kinks, seen, scale)
        if not (found or missed):
            found = _kinks(activation, piecewise, kinks, scale)
        if not (found or missed):
            return piecewise, kinks
        found = [_sharpened(activation, x, scale) for x in found]
        cuts, kinks = cuts + missed, sorted({*kinks, *found})
        if len(kinks) > MOST_KINKS + len(activation.kinks):
            raise _NoisyError
    raise _NoisyError


def _bisect(activation: Activation, edges: Array, scale: _Scale) -> tuple[Piecewise, list[float]]:
    """Panels on which phi is a polynomial, and the jumps that no bisection resolves.

    All panels of one width are evaluated together.
    """
    a, b = edges[:-1], edges[1:]
    done: list[tuple[Array, Array, Array]] = []
    jumps: list[float] = []
    count = 0
    while len(a):
        coefs = _coefficients(activation, a, b)
        resolved = scale.unresolved(_chebyshev.tail(coefs), a, b) <= 1
        narrow = ~resolved & (b - a <= _narrowest(a, b, scale))
        jumps += _middles(a[narrow], b[narrow])
        ended = resolved | narrow
        done.append((a[ended], b[ended], coefs[ended]))
        count += int(ended.sum())
        a, b = a[~ended], b[~ended]
        if count + len(a) > MOST_PANELS or len(jumps) > MOST_KINKS:
            raise _NoisyError
        middle = 0.5 * (a + b)
        a, b = np.concatenate([a, middle]), np.concatenate([middle, b])
    low, high, rows = (np.concatenate(part) for part in zip(*done, strict=True))
    order = np.argsort(low)
    return Piecewise(np.append(low[order], high.max()), rows[order]), jumps


def _narrowest(a: Array, b: Array, scale: _Scale) -> Array:
    out: Array = NARROWEST * np.maximum(np.maximum(np.abs(a), np.abs(b)), 1e-4 * scale.deviation)
    return 16 * out


def _middles(a: Array, b: Array) -> list[float]:
    """One point for each run of adjacent intervals."""
    order = np.argsort(a)
    runs = np.split(order, np.flatnonzero(a[order][1:] > b[order][:-1]) + 1) if len(a) else []
    return [_snap(float(a[run[0]]), float(b[run[-1]])) for run in runs]


def _coefficients(activation: Callable[[Array], Array], a: Array, b: Array) -> Array:
    x = 0.5 * (a + b)[:, None] + 0.5 * (b - a)[:, None] * _chebyshev.points(ORDER)
    return _chebyshev.coefficients(activation(x))


def _tails(activation: Activation, a: Array, b: Array, scale: _Scale) -> Array:
    """How far phi is from a polynomial on each interval, in units of the tolerance."""
    return scale.unresolved(_chebyshev.tail(_coefficients(activation, a, b)), a, b)


def _snap(a: float, b: float) -> float:
    """The roundest number in or next to [a, b], as most kinks are at round numbers."""
    middle, slack = 0.5 * (a + b), 4 * (b - a)
    for digits in range(16):
        nearest = round(middle, digits)
        if abs(nearest - middle) <= slack:
            return float(nearest)
    return float(middle)


def _is_known(x: float, kinks: list[float], scale: _Scale) -> bool:
    near = 2 * NEAR_JUMP * max(abs(x), 1e-3 * scale.deviation)
    return any(abs(x - kink) <= near for kink in kinks)


def _sharpened(activation: Activation, x: float, scale: _Scale) -> float:
    """The place of a jump to the last digit, by bisection; x itself if phi does not jump there."""
    size = max(abs(x), 1e-3 * scale.deviation)
    for half in size * 10.0 ** np.arange(-12, -4):
        a, b, height = _bisected(activation, x - half, x + half)
        if height > SMALLEST_JUMP * scale.rms:
            return _snap(a, b)
    return x


def _bisected(activation: Activation, a: float, b: float) -> tuple[float, float, float]:
    """Neighbouring numbers between which phi changes most, and by how much it does."""
    low, high = activation(np.array([a, b]))
    while (middle := 0.5 * (a + b)) not in (a, b):
        value = float(activation(np.array([middle]))[0])
        if abs(value - low) < abs(high - value):
            a, low = middle, value
        else:
            b, high = middle, value
    return a, b, abs(high - low)


def _kinks(
    activation: Activation, piecewise: Piecewise, known: list[float], scale: _Scale
) -> list[float]:
    """Kinks on the edges of panels, and those towards which panels shrink."""
    found = _rough_edges(activation, piecewise, known, scale)
    return found + _ends_of_cascades(activation, piecewise, [*known, *found], scale)


def _rough_edges(
    activation: Activation, piecewise: Piecewise, known: list[float], scale: _Scale
) -> list[float]:
    """Kinks at or very near edges, on both sides of which phi is a polynomial."""
    edges, widths = piecewise.edges, np.diff(piecewise.edges)
    inner, half = edges[1:-1], 0.5 * np.minimum(widths[:-1], widths[1:])
    rough = _tails(activation, inner - half, inner + half, scale) > 1e3
    both = zip(inner[rough].tolist(), half[rough].tolist(), strict=True)
    found = [_centre_of_kink(activation, x, 0.25 * h, scale) for x, h in both]
    return [x for x in found if not _is_known(x, known, scale)]


def _ends_of_cascades(
    activation: Activation, piecewise: Piecewise, known: list[float], scale: _Scale
) -> list[float]:
    """Points towards which panels shrink, and where phi fades like a power of their width."""
    edges, widths = piecewise.edges, np.diff(piecewise.edges)
    lowest = _local_minima(widths)
    near = np.array([widths[max(i - 16, 0) : i + 17].max() for i in lowest])
    lowest = lowest[widths[lowest] < CASCADE * near]
    centre, width = edges[lowest + 1], widths[lowest]
    sizes = [_tails(activation, centre - w, centre + w, scale) for w in WINDOWS[:, None] * width]
    growth = np.array(sizes[1:]) / np.maximum(sizes[:-1], 1e-3)
    fades = np.all((growth > KINK_GROWS[0]) & (growth < KINK_GROWS[1]), axis=0)
    fades &= np.abs(growth[1] - growth[0]) < 0.3 * growth[0]  # a power of the width
    fades &= np.all(np.abs(centre[:, None] - np.array(known)) > 4 * width[:, None], axis=1)
    both = zip(centre[fades], width[fades], strict=True)
    return [_centre_of_kink(activation, float(x), float(w), scale) for x, w in both]


def _local_minima(widths: Array) -> Index:
    """Indices of the narrowest panels of each cascade, one of equal neighbours."""
    padded = np.concatenate([[np.inf], widths, [np.inf]])
    is_lowest = (padded[1:-1] <= padded[:-2]) & (padded[1:-1] < padded[2:])
    return np.flatnonzero(is_lowest[:-1])


def _centre_of_kink(activation: Activation, x: float, width: float, scale: _Scale) -> float:
    """Follow the roughest of five overlapping intervals while their roughness can be seen."""
    a, b = x - 4 * width, x + 4 * width
    while True:
        quarter = 0.25 * (b - a)
        centres = a + quarter * np.arange(5.0)
        tails = _tails(activation, centres - quarter, centres + quarter, scale)
        if tails.max() < 0.5 or b - a < NARROWEST * max(abs(a), abs(b)):
            return _snap(a, b)
        centre = float(centres[int(np.argmax(tails))])
        a, b = centre - quarter, centre + quarter


def _missed(piecewise: Piecewise, kinks: list[float], seen: Survey, scale: _Scale) -> list[float]:
    """Where to cut panels that differ from phi: around features narrower than their nodes."""
    x = seen.checks
    panel, _ = piecewise.locate(x)
    low, high = piecewise.edges[panel], piecewise.edges[panel + 1]
    error = scale.unresolved(np.abs(piecewise(x) - seen.values), low, high)
    error[_beside(x, kinks, seen.bound)] = 0.0  # either one-sided limit is right there
    wrong = np.flatnonzero(error > 30)
    if not len(wrong):
        return []
    # The ends of each run of wrong points; the worst runs first
    runs = np.split(wrong, np.flatnonzero(np.diff(wrong) > 1) + 1)
    runs.sort(key=lambda run: -float(error[run].max()))
    ends = [(max(run[0] - 1, 0), min(run[-1] + 1, len(x) - 1)) for run in runs[:MOST_KINKS]]
    return [float(x[i]) for pair in ends for i in pair]


def _beside(x: Array, kinks: list[float], bound: float) -> Mask:
    out = np.zeros(len(x), bool)
    for kink in kinks:
        out |= np.abs(x - kink) < 1e-13 * max(abs(kink), 1e-3 * bound)
    return out


def _jump(piecewise: Piecewise, kink: float, scale: _Scale) -> float:
    """Height of the jump of phi at a kink, 0 if it is within rounding."""
    panel = int(np.searchsorted(piecewise.edges, kink))
    if piecewise.edges[panel] != kink or not 0 < panel < len(piecewise.edges) - 1:
        return 0.0
    below, above = _one_sided(piecewise, panel)
    weight = float(scale.weight(np.array(kink), np.array(kink)))
    return above - below if weight * abs(above - below) > 1e-10 * scale.rms else 0.0


def _one_sided(piecewise: Piecewise, panel: int) -> tuple[float, float]:
    """phi just below and just above the left edge of a panel."""
    below = _chebyshev.evaluate(piecewise.coefs[panel - 1], np.array(1.0))
    above = _chebyshev.evaluate(piecewise.coefs[panel], np.array(-1.0))
    return float(below), float(above)
