"""One layer of an activation without a closed form, at one variance, by interpolation.

Takes an activation and a variance q; gives deficits, slopes and surpluses as functions of
m = 1 - |c|. Each is sampled at some dozens of Chebyshev points in sqrt(m), the variable in which
every F is smooth, kinks or not, and interpolated. Samples come from Mehler's series where it
converges, otherwise from quadrature.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nngp import _chebyshev
from nngp._arrays import EPS, TINY, Array, Mask
from nngp._chebyshev import Piecewise
from nngp.architecture import Activation
from nngp.covariance import hermite
from nngp.covariance.form import Parity
from nngp.covariance.pair import Pair
from nngp.covariance.resolve import resolve

TOLERANCE = 4e-15  # of each panel of a fit, relative
FAR = 0.15  # 1 - |c| from which 256 terms are enough: 0.85^256 = 1e-18
PairExpectation = Callable[[Pair, float], tuple[float, float]]  # a method of Pair, of a tolerance


class FittedLayer:
    """Layer of any activation at one variance, interpolated in sqrt(m) for either sign of c."""

    def __init__(self, activation: Activation, var: float) -> None:
        self.activation, self.var = activation, var
        self.resolved = resolve(activation, var)
        self.series = hermite.expand(activation, var)
        z, w = hermite.nodes(self.resolved, var)
        u = np.sqrt(var) * z
        phi, mirrored = activation(u), activation(-u)
        self.second_moment = float(w @ phi**2)
        self.parity: Parity = _parity(phi, mirrored)
        # Where phi jumps the deficit starts like sqrt(m), otherwise like m.
        self._order = 1 if any(self.resolved.jumps) else 2
        self._quadrature_error = 0.0
        # The spread of a nearly constant phi has few correct digits.
        self._spread = float(w @ (phi - w @ phi) ** 2)
        spread = max(self._spread, EPS**2 * self.second_moment, TINY)
        self._noise = (EPS + self.resolved.error) * np.sqrt(self.second_moment / spread)

    @property
    def is_constant(self) -> bool:
        """Whether phi varies by no more than rounding where the Gaussian density matters."""
        return self._spread <= (4 * EPS) ** 2 * self.second_moment

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
        return self._deficit(negative, m)

    @cached_property
    def _surplus(self) -> tuple[Piecewise, float]:
        def at(root: Array) -> Array:
            if self.series.is_complete:
                return hermite.surpluses(self.series, root**2)
            return self._from_pairs(Pair.surplus, True, root**2)

        return _chebyshev.fit(at, 0.0, 1.0, tol=max(TOLERANCE, 4 * self.resolved.error))

    def surplus(self, m: Array) -> Array:
        return self._surplus[0](np.sqrt(m))

    @cached_property
    def _slope(self) -> "SignedFit":
        return self._fit(Pair.slope, self._order - 2, self._order - 2)

    def slope(self, negative: Mask, m: Array) -> Array:
        return self._slope(negative, m)

    @cached_property
    def _deficit_in_var(self) -> "SignedFit":
        return self._fit(Pair.deficit_in_var, self._order, 0)

    def deficit_in_var(self, negative: Mask, m: Array) -> Array:
        return self._deficit_in_var(negative, m)

    def _fit(self, expectation: PairExpectation, power: int, negative_power: int) -> "SignedFit":
        def sample(negative: bool, power: int) -> Callable[[Array], Array]:
            def at(root: Array) -> Array:
                m = root**2
                if self.series.is_complete:
                    return _from_series(self.series, self.var, expectation, negative, m)
                if expectation is Pair.deficit:
                    return self._deficits_by_distance(negative, m)
                return self._from_pairs(expectation, negative, m)

            return lambda root: at(root) / root**power

        tol = max(TOLERANCE, 4 * self.resolved.error)
        plus, error = _chebyshev.fit(sample(False, power), 0.0, 1.0, tol=tol)
        if expectation is Pair.deficit and self.parity != "none":
            return SignedFit(plus, plus, power, power, error)  # `both_sides` evaluates c >= 0 only
        minus, minus_error = _chebyshev.fit(sample(True, negative_power), 0.0, 1.0, tol=tol)
        return SignedFit(plus, minus, power, negative_power, max(error, minus_error))

    def _deficits_by_distance(self, negative: bool, m: Array) -> Array:
        """Deficits by the series for m > FAR, where it has converged, and by quadrature nearer."""
        out, far = np.empty_like(m), m > FAR
        corr = m[far] - 1 if negative else 1 - m[far]
        without_mean = np.concatenate([[0.0], self.series.coefs[1:] ** 2])
        out[far] = self._spread - hermite.polynomial(corr, without_mean)
        out[~far] = self._from_pairs(Pair.deficit, negative, m[~far])
        return out

    def _from_pairs(self, expectation: PairExpectation, negative: bool, m: Array) -> Array:
        # Tolerance 0: to rounding, relative to the integral, however small the deficit.
        pairs = [Pair(self.activation, self.var, self.var, negative, float(x)) for x in m]
        results = np.array([expectation(pair, 0.0) for pair in pairs]).reshape(-1, 2)
        if expectation is Pair.deficit and len(m):
            worst = np.max(results[:, 1] / np.maximum(results[:, 0], TINY))
            self._quadrature_error = max(self._quadrature_error, float(worst))
        return results[:, 0]


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
