"""Expectations over one pair (u, v) by quadrature: products, deficits and derivatives.

Takes an activation, two variances, and the correlation as its sign and m = 1 - |c|. Where phi
jumps, its derivative contains a delta function, and the integrals along those lines are added.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nngp._arrays import TINY, Array
from nngp._chebyshev import Piecewise
from nngp.architecture import Activation
from nngp.covariance import hermite, quadrature
from nngp.covariance.asymptotic import growth_of
from nngp.covariance.resolve import Resolved, resolve

Function = Callable[[Array], Array]


@dataclass(frozen=True)
class Pair:
    """Gaussian variables u and v of variances var1, var2 and correlation ±(1 - m)."""

    activation: Activation
    var1: float
    var2: float
    negative: bool
    m: float

    @cached_property
    def resolved(self) -> Resolved:
        """phi on panels, for the larger of the two variances."""
        return resolve(self.activation, max(self.var1, self.var2))

    @cached_property
    def functions(self) -> tuple[Activation, Activation]:
        """phi as it is computed at either variance."""
        first, second = (resolve(self.activation, q) for q in (self.var1, self.var2))
        return first.activation, second.activation

    @cached_property
    def derivatives(self) -> tuple[Piecewise, Piecewise]:
        """phi' between the jumps, on the panels of either variance."""
        first, second = (resolve(self.activation, q) for q in (self.var1, self.var2))
        return first.piecewise.derivative(), second.piecewise.derivative()

    @property
    def corr(self) -> float:
        """The correlation of u and v."""
        return self.m - 1 if self.negative else 1 - self.m

    def expect(
        self, integrand: Callable[[Array, Array], Array], tol: float, exchangeable: bool = True
    ) -> tuple[float, float]:
        """E[integrand(u, v)] and its absolute error; `tol` is the error aimed at."""
        panels = resolve(self.activation, self.var1), resolve(self.activation, self.var2)
        first, second = quadrature.sides(*panels, self.var1, self.var2, self.negative)
        return quadrature.expectation(
            integrand, first, second, self.m, tol, exchangeable=exchangeable
        )

    def product(self, tol: float) -> tuple[float, float]:
        """E[phi(u) phi(v)]."""
        f, g = self.functions
        return self.expect(lambda u, v: f(u) * g(v), tol)

    def deficit(self, tol: float) -> tuple[float, float]:
        """E[phi(u)²] - E[phi(u) phi(v)] at equal variances, as half a mean square.

        The part of phi that grows is taken out: its rounding far out would hide small differences.
        """
        grows = growth_of(self.activation, self.var1)
        if grows is None or self.negative:
            phi = self.functions[0]
            return self.expect(lambda u, v: 0.5 * (phi(u) - phi(v)) ** 2, tol)

        def integrand(u: Array, v: Array) -> Array:
            rest = grows.bounded(u) - grows.bounded(v)
            return rest * (grows.straight(u) - grows.straight(v) + 0.5 * rest)

        total, error = self.expect(integrand, tol)
        return grows.deficit(self.var1, self.m) + total, error

    def surplus(self, tol: float) -> tuple[float, float]:
        """E[phi(u)²] + E[phi(u) phi(v)] at equal variances, as half a mean square."""
        phi = self.functions[0]
        return self.expect(lambda u, v: 0.5 * (phi(u) + phi(v)) ** 2, tol)

    def deficit_in_var(self, tol: float) -> tuple[float, float]:
        """Derivative of the deficit in the variance that u and v share."""
        phi, dphi = self.functions[0], self.derivatives[0]
        grows = growth_of(self.activation, self.var1)
        if grows is None or self.negative:

            def integrand(u: Array, v: Array) -> Array:
                return (phi(u) - phi(v)) * (u * dphi(u) - v * dphi(v)) / (2 * self.var1)

            total, error = self.expect(integrand, tol)
        else:

            def integrand(u: Array, v: Array) -> Array:
                straight = grows.straight(u) - grows.straight(v)
                rest = grows.bounded(u) - grows.bounded(v)
                moved = grows.radial(u, dphi) - grows.radial(v, dphi)
                return (straight * moved + rest * (straight + moved)) / (2 * self.var1)

            total, error = self.expect(integrand, tol)
            total += grows.deficit(1.0, self.m)
        for kink, jump in self.jumps:
            at_kink = self.resolved.midpoint(kink) * self.along(kink, 0, np.ones_like)
            total += kink * jump * (at_kink - self.along(kink, 0, phi)) / self.var1
        return total, error

    def slope(self, tol: float) -> tuple[float, float]:
        """E[phi'(u) phi'(v)]."""
        f, g = self.derivatives
        total, error = self.expect(lambda u, v: f(u) * g(v), tol)
        for kink, jump in self.jumps:
            total += jump * (self.along(kink, 0, g) + self.along(kink, 1, f))
            for other, height in self.jumps:
                total += jump * height * self.density(kink, other)
        return total, error

    def radial(self, which: int, tol: float) -> tuple[float, float]:
        """E[u phi'(u) phi(v)] for which = 0, E[phi(u) v phi'(v)] for which = 1."""
        dphi, phi = self.derivatives[which], self.functions[1 - which]

        def integrand(u: Array, v: Array) -> Array:
            this, other = (u, v) if which == 0 else (v, u)
            return this * dphi(this) * phi(other)

        total, error = self.expect(integrand, tol, exchangeable=False)
        for kink, jump in self.jumps:
            total += kink * jump * self.along(kink, which, phi)
        return total, error

    @property
    def jumps(self) -> list[tuple[float, float]]:
        """Position and height of each jump of phi."""
        both = zip(self.resolved.kinks, self.resolved.jumps, strict=True)
        return [(kink, jump) for kink, jump in both if jump]

    def density(self, x: float, y: float) -> float:
        """The joint density of (u, v) at (x, y), large but finite at m = 0."""
        rest = max(self.m * (2 - self.m), TINY)
        x, y = x / np.sqrt(self.var1), y / np.sqrt(self.var2)
        with np.errstate(over="ignore"):
            distance = (x**2 + y**2 - 2 * self.corr * x * y) / rest
        size = 2 * np.pi * np.sqrt(self.var1) * np.sqrt(self.var2) * np.sqrt(rest)
        return float(np.exp(-0.5 * distance) / size)

    def along(self, kink: float, which: int, function: Function) -> float:
        """Density of one variable at `kink` times E[function(other) | it equals `kink`]."""
        variances = (self.var1, self.var2)
        deviation, other = np.sqrt(variances[which]), np.sqrt(variances[1 - which])
        density = np.exp(-0.5 * (kink / deviation) ** 2) / (deviation * np.sqrt(2 * np.pi))
        mean = self.corr * kink / deviation * other
        spread = other * np.sqrt(self.m * (2 - self.m))
        if spread == 0:
            return float(density * function(np.array([mean]))[0])
        breaks = (self.resolved.edges - mean) / spread
        regular = np.linspace(-9.0, 9.0, 19)
        z, w = hermite.gauss(np.union1d(breaks[np.abs(breaks) < 9], regular))
        return float(density * (w @ function(mean + spread * z)))
