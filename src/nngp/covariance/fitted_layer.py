"""One layer of an activation without a closed form, at one variance, by interpolation.

Takes an activation and a variance q; gives deficits, slopes and surpluses as functions of
m = 1 - |c|. Each is sampled at some dozens of Chebyshev points in sqrt(m), the variable in which
every F is smooth, kinks or not, and interpolated. Samples come from Mehler's series where it
converges, from the asymptotic form of large variances, or from quadrature.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nngp import _chebyshev
from nngp._arrays import EPS, TINY, Array, Mask
from nngp._chebyshev import Piecewise
from nngp.architecture import Activation
from nngp.covariance import asymptotic, hermite
from nngp.covariance.form import Parity
from nngp.covariance.pair import Pair
from nngp.covariance.resolve import resolve

TOLERANCE = 4e-15  # of each panel of a fit, relative
DIFFERENTIATED = 4e-13  # the same of derivatives, as differentiating panels costs digits
SAMPLED = 1e-14  # of samples by the asymptotic form, relative; its own error is an upper bound
TERMS_TIMES_M = 39.0  # with this many terms for m = 1 - |c| the rest is (1-m)^terms = 1e-17
PairExpectation = Callable[[Pair, float], tuple[float, float]]  # a method of Pair, of a tolerance


class FittedLayer:
    """Layer of any activation at one variance, interpolated in sqrt(m) for either sign of c."""

    def __init__(self, activation: Activation, var: float) -> None:
        self.resolved = resolve(activation, var)
        self.activation, self.var = activation, var
        self.series = asymptotic.expand(activation, var)
        self._phi = asymptotic.straighten(activation, np.array([var])).at(np.zeros(1, int))
        self._excess = asymptotic.excess_at_one(activation, var)
        z, w = hermite.nodes(self.resolved, var)
        u = np.sqrt(var) * z
        phi, mirrored = self.resolved.activation(u), self.resolved.activation(-u)
        self.second_moment = float(np.sum((np.sqrt(w) * phi) ** 2))  # phi² may be past float64
        self.parity: Parity = _parity(phi, mirrored)
        # Where phi jumps the deficit starts like sqrt(m), otherwise like m.
        self._order = 1 if any(self.resolved.jumps) else 2
        self._quadrature_error = 0.0
        # The spread of a nearly constant phi has few correct digits.
        self._spread = float(np.sum((np.sqrt(w) * (phi - w @ phi)) ** 2))
        spread = max(self._spread, EPS**2 * self.second_moment, TINY)
        self._noise = (EPS + self.resolved.error) * np.sqrt(self.second_moment / spread)

    @property
    def is_constant(self) -> bool:
        """Whether phi varies by no more than rounding where the Gaussian density matters."""
        return self._spread <= (4 * (EPS + self.resolved.error)) ** 2 * self.second_moment

    @property
    def surplus_error(self) -> float:
        """Relative error of F(1) + F(c): rounding of phi hides a very small even part."""
        even = max(float(self.surplus(np.zeros(1))[0]), EPS**2 * self.second_moment, TINY)
        hidden = 4 * EPS * float(np.sqrt(2 * self.second_moment / even))
        return self.error + self._surplus[1] + hidden

    @cached_property
    def _deficit(self) -> "SignedFit":
        return self._fit(Pair.deficit, self._order, 0)

    @property
    def error(self) -> float:
        return self._deficit.error + self._quadrature_error + 4 * float(self._noise)

    stretch = 1.0  # an estimate: the exact value would cost a quadrature

    @cached_property
    def radial_moment(self) -> float:
        pair = Pair(self.activation, self.var, self.var, False, 0.0)
        return pair.radial(0, 1e-14 * self.second_moment)[0]

    def deficit(self, negative: Mask, m: Array) -> Array:
        near = self._deficit(negative, m)
        if self.parity != "odd" or not negative.any():
            return near
        return np.where(negative, 2 * self.second_moment - near, near)

    @cached_property
    def _surplus(self) -> tuple[Piecewise, float]:
        def at(root: Array) -> Array:
            if self.series.is_complete:
                return hermite.surpluses(self.series, root**2)
            return self._sampled(Pair.surplus, True, root**2)

        return _chebyshev.fit(at, 0.0, 1.0, tol=max(TOLERANCE, 4 * self.resolved.error))

    def surplus(self, m: Array) -> Array:
        return self._surplus[0](np.sqrt(m))

    @cached_property
    def _slope(self) -> "SignedFit":
        return self._fit(Pair.slope, self._order - 2, self._order - 2)

    def slope(self, negative: Mask, m: Array) -> Array:
        slope = self._slope(negative, m)
        return np.where(negative, -slope, slope) if self.parity == "even" else slope

    @cached_property
    def _deficit_in_var(self) -> "SignedFit":
        return self._fit(Pair.deficit_in_var, self._order, 0)

    def deficit_in_var(self, negative: Mask, m: Array) -> Array:
        near = self._deficit_in_var(negative, m)
        if self.parity != "odd" or not negative.any():
            return near
        return np.where(negative, 2 * self.radial_moment / self.var - near, near)

    def _fit(self, expectation: PairExpectation, power: int, negative_power: int) -> "SignedFit":
        def sample(negative: bool, power: int) -> Callable[[Array], Array]:
            def at(root: Array) -> Array:
                m = root**2
                if self.series.is_complete:
                    return _from_series(self.series, self.var, expectation, negative, m)
                return self._sampled(expectation, negative, m)

            return lambda root: at(root) / root**power

        differentiated = expectation is not Pair.deficit
        tol = DIFFERENTIATED if differentiated else TOLERANCE
        if self.resolved.error > 0:  # deficits are no more exact than the spread of phi
            tol = max(tol, 4 * float(self._noise))
        plus, error = _chebyshev.fit(sample(False, power), 0.0, 1.0, tol=tol)
        if self.parity != "none":  # F at -c follows from F at c
            return SignedFit(plus, plus, power, power, error)
        size = self._size(expectation)
        minus, minus_error = _chebyshev.fit(
            sample(True, negative_power), 0.0, 1.0, tol=tol, size=size
        )
        return SignedFit(plus, minus, power, negative_power, max(error, minus_error))

    def _sampled(self, expectation: PairExpectation, negative: bool, m: Array) -> Array:
        """By the series where it has converged, the asymptotic form near ±1, or quadrature."""
        out, near = np.empty_like(m), m <= TERMS_TIMES_M / self.series.coefs.shape[-1]
        out[~near] = self._by_truncated_series(expectation, negative, m[~near])
        value, error = self._asymptotic(expectation, negative, m[near])
        tol = max(SAMPLED, float(self._noise)) if self.resolved.error > 0 else SAMPLED
        left = ~(error <= tol * np.maximum(np.abs(value), self._size(expectation)))
        value[left] = self._from_pairs(expectation, negative, m[near][left])
        out[near] = value
        return out

    def _asymptotic(
        self, expectation: PairExpectation, negative: bool, m: Array
    ) -> tuple[Array, Array]:
        """An expectation of the pair by the form of large variances, and its error."""
        phi, one = self._phi, self.second_moment
        corr = m - 1 if negative else 1 - m
        if expectation is Pair.slope:
            slope = phi.derivative()
            return asymptotic.bilinear(slope, slope, corr, m)
        if expectation is Pair.deficit_in_var:
            value, error = self._asymptotic_in_var(negative, corr, m)
            return value / self.var, error / self.var
        if expectation is Pair.deficit and not negative:
            return asymptotic.deficit(phi, phi, np.array(self._excess[0]), m)
        value, error = asymptotic.bilinear(phi, phi, corr, m)
        return (one + value if expectation is Pair.surplus else one - value), error

    def _asymptotic_in_var(self, negative: bool, corr: Array, m: Array) -> tuple[Array, Array]:
        phi, radial = self._phi, self._phi.radial()
        if not negative:
            return asymptotic.deficit(radial, phi, np.array(self._excess[1]), m)
        value, error = asymptotic.bilinear(radial, phi, corr, m)
        return self.radial_moment - value, error

    def _by_truncated_series(self, expectation: PairExpectation, negative: bool, m: Array) -> Array:
        """Far from ±1 the terms that are left out do not matter."""
        corr, coefs = m - 1 if negative else 1 - m, self.series.coefs
        if expectation is Pair.slope:
            return _from_series(self.series, self.var, expectation, negative, m)
        if expectation is Pair.deficit_in_var:
            terms = hermite.polynomial(corr, coefs * self.series.radial_coefs)
            return (self.radial_moment - terms) / self.var
        without_mean = hermite.polynomial(corr, np.concatenate([[0.0], coefs[1:] ** 2]))
        if expectation is Pair.deficit:
            return self._spread - without_mean
        return self.second_moment + coefs[0] ** 2 + without_mean

    def _from_pairs(self, expectation: PairExpectation, negative: bool, m: Array) -> Array:
        pairs = [Pair(self.activation, self.var, self.var, negative, float(x)) for x in m]
        wanted = self._wanted(expectation, negative, m)
        both = zip(pairs, wanted, strict=True)
        results = np.array([expectation(pair, tol) for pair, tol in both]).reshape(-1, 2)
        if expectation is Pair.deficit and len(m):
            worst = np.max(results[:, 1] / np.maximum(results[:, 0], TINY))
            self._quadrature_error = max(self._quadrature_error, float(worst))
        return results[:, 0]

    def _wanted(self, expectation: PairExpectation, negative: bool, m: Array) -> Array:
        """Absolute errors to aim at: 0 means rounding, however small the deficit is."""
        if expectation is Pair.deficit_in_var:
            return 0.1 * DIFFERENTIATED / self.var * self.deficit(np.full(m.shape, negative), m)
        return np.full(m.shape, 0.01 * DIFFERENTIATED * self._size(expectation))

    def _size(self, expectation: PairExpectation) -> float:
        """The scale that errors are relative to: near -1 a slope may vanish beside the one at
        +1."""
        return self._slope_at_one if expectation is Pair.slope else 0.0

    @cached_property
    def _slope_at_one(self) -> float:
        if any(self.resolved.jumps):  # it is infinite
            return 0.0
        return Pair(self.activation, self.var, self.var, False, 0.0).slope(0.0)[0]


@dataclass(frozen=True)
class SignedFit:
    """sqrt(m)**power times a piecewise polynomial in sqrt(m), one for each sign of c."""

    plus: Piecewise
    minus: Piecewise
    power: int
    negative_power: int
    error: float

    def __call__(self, negative: Mask, m: Array) -> Array:
        return by_sign(
            negative,
            m,
            self._reader(self.plus, self.power),
            self._reader(self.minus, self.negative_power),
        )

    @staticmethod
    def _reader(fitted: Piecewise, power: int) -> Callable[[Array], Array]:
        return lambda m: fitted(np.sqrt(m)) * np.sqrt(np.maximum(m, TINY)) ** power


def _from_series(
    series: hermite.Series, var: float, expectation: PairExpectation, negative: bool, m: Array
) -> Array:
    """Evaluate a deficit, its derivative in the variance, or a slope by Mehler's formula."""
    if expectation is Pair.deficit:
        return hermite.deficits(series, m, negative)
    if expectation is Pair.deficit_in_var:
        weights = series.coefs * series.radial_coefs / var
        return hermite.deficits(series, m, negative, weights)
    k = np.arange(1, len(series.coefs))
    corr = m - 1 if negative else 1 - m
    return hermite.polynomial(corr, k * series.coefs[1:] ** 2) / var


def _parity(phi: Array, mirrored: Array) -> Parity:
    """Symmetry of phi, from its values at nodes and at their negatives."""
    size = np.abs(phi).max() * 4 * EPS
    if np.abs(phi + mirrored).max() <= size:
        return "odd"
    return "even" if np.abs(phi - mirrored).max() <= size else "none"


def by_sign(
    negative: Mask,
    m: Array,
    plus: Callable[[Array], Array],
    minus: Callable[[Array], Array],
) -> Array:
    """Evaluate `plus` at the m of positive correlations and `minus` at those of negative ones."""
    if not negative.any():
        return plus(m)
    out = np.empty_like(m)
    out[~negative], out[negative] = plus(m[~negative]), minus(m[negative])
    return out
