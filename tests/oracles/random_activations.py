"""Random activations with exact expectations: sums of steps, kinks, bumps, ramps, oscillations.

The mean of each term of phi(u), given v, is known in closed form. So E[phi(u) phi(v)] is an
integral over one variable, which mpmath does to 25 digits. Nothing of the package is used.
"""

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import mpmath as mp
import numpy as np
from mpmath.calculus.quadrature import GaussLegendre
from scipy.special import erf

KINDS = ("step", "kink", "bump", "ramp", "wave")


@dataclass(frozen=True)
class Term:
    """height times one feature at a place, of a width."""

    kind: str
    height: float
    place: float
    width: float

    def __call__(self, x):
        t = (x - self.place) / self.width
        if self.kind == "step":
            return self.height * np.where(x > self.place, 1.0, 0.0)
        if self.kind == "kink":
            return self.height * np.maximum(t, 0.0)
        if self.kind == "bump":
            return self.height * np.exp(-(t**2))
        if self.kind == "ramp":
            return self.height * erf(t)
        return self.height * np.cos(t)

    def mean(self, mu, sigma):
        """E of the term at a Gaussian variable, in mpmath."""
        a, w, h = mp.mpf(self.place), mp.mpf(self.width), mp.mpf(self.height)
        d = mu - a
        if self.kind == "bump":
            total = w**2 + 2 * sigma**2
            return h * w / mp.sqrt(total) * mp.exp(-(d**2) / total)
        if self.kind == "ramp":
            return h * mp.erf(d / mp.sqrt(w**2 + 2 * sigma**2))
        if self.kind == "wave":
            return h * mp.exp(-((sigma / w) ** 2) / 2) * mp.cos(d / w)
        if sigma == 0:
            return h * ((d > 0) if self.kind == "step" else max(d, 0) / w)
        below = mp.erfc(-d / sigma / mp.sqrt(2)) / 2
        if self.kind == "step":
            return h * below
        return h / w * (d * below + sigma * mp.npdf(d / sigma))

    @property
    def kinks(self):
        return [self.place] if self.kind in ("step", "kink") else []


class RandomActivation:
    """A sum of terms: a callable for the package, and exact expectations."""

    def __init__(self, terms):
        self.terms = tuple(terms)

    def __call__(self, x):
        return sum(term(x) for term in self.terms)

    def __repr__(self):
        return " + ".join(
            f"{t.height:.4g} {t.kind}((x - {t.place:.6g}) / {t.width:.4g})" for t in self.terms
        )

    @property
    def features(self):
        """Places to declare."""
        return [t.place for t in self.terms if t.kind in ("bump", "ramp")]

    def expectation(self, var1, var2, corr):
        """E[phi(u) phi(v)] by one integral in mpmath."""
        with mp.workdps(25):
            s1, s2, c = mp.sqrt(mp.mpf(var1)), mp.sqrt(mp.mpf(var2)), mp.mpf(corr)
            sigma = s1 * mp.sqrt((1 - c) * (1 + c))

            def mean(x, sd):
                return mp.fsum(term.mean(x, sd) for term in self.terms)

            def integrand(y):
                return mp.npdf(y / s2) / s2 * mean(y, mp.mpf(0)) * mean(c * s1 / s2 * y, sigma)

            ends = pairwise(self._cuts(s1, s2, c, sigma))
            return mp.fsum(_quad(integrand, pair) for pair in ends)

    def _cuts(self, s1, s2, c, sigma):
        """Ends of intervals on which the integrand is smooth and varies slowly."""
        reach = 20 * s2
        points = {mp.mpf(k) * s2 for k in range(-20, 21)}
        for term in self.terms:
            for scale, wide in ((mp.mpf(1), mp.mpf(0)), (c * s1 / s2, sigma)):
                if scale == 0:
                    continue
                centre = mp.mpf(term.place) / scale
                width = mp.sqrt(mp.mpf(term.width) ** 2 + wide**2) / abs(scale)
                if term.kind in ("step", "kink"):
                    width = max(wide / abs(scale), mp.mpf(10) ** -12 * s2)
                if term.kind == "wave":
                    step = 6 * mp.mpf(term.width) / abs(scale)
                    if wide == 0 and step < s2:
                        points |= {k * step for k in range(-int(reach / step), int(reach / step))}
                    continue
                points.add(centre)
                for k in range(60):
                    away = width * mp.mpf(2) ** k
                    if away > 2 * reach:
                        break
                    points |= {centre - away, centre + away}
        return sorted(p for p in points | {-reach, reach} if abs(p) <= reach)


@cache
def _nodes():
    """24 Gauss-Legendre nodes and weights on [-1, 1], for the precision in use below."""
    with mp.workdps(25):
        return GaussLegendre(mp.mp).calc_nodes(4, mp.mp.prec)


def _quad(integrand, ends):
    # A fixed rule: mp.quad stops early where an integrand is smaller than its absolute tolerance
    middle, half = (ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2
    return half * mp.fsum(w * integrand(middle + half * t) for t, w in _nodes())


def random_activation(rng):
    """One to four terms of random kinds, places and widths."""
    terms = []
    for _ in range(rng.integers(1, 5)):
        kind = KINDS[rng.integers(len(KINDS))]
        place = float(np.round(rng.normal(), 3)) if rng.random() < 0.5 else float(rng.normal())
        width = float(10 ** rng.uniform(-4, 0.5))
        if kind == "wave":
            width = float(10 ** rng.uniform(-1.3, 0.5))
        if kind == "kink":
            width = float(10 ** rng.uniform(-1, 0.5))
        terms.append(
            Term(kind, float(rng.choice([-1, 1]) * 10 ** rng.uniform(-2, 1)), place, width)
        )
    return RandomActivation(terms)


def random_pair(rng):
    """Two variances and a correlation, some at the ends of its range."""
    var1 = float(10 ** rng.uniform(-3, 4))
    var2 = var1 if rng.random() < 0.4 else float(var1 * 10 ** rng.uniform(-2, 2))
    corr = float(rng.uniform(-1, 1))
    kind = rng.integers(4)
    if kind == 0:
        corr = float(np.sign(corr) * (1 - 10 ** rng.uniform(-9, -1)))
    if kind == 1:
        corr = float(rng.choice([-1.0, 0.0, 1.0]))
    return var1, var2, corr
