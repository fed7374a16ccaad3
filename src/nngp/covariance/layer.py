"""One layer at one variance, as the curve needs it: deficits to relative precision.

Takes an activation and the variance q that all points share; gives a `Layer`, which maps
1 - |c| and the sign of c to F(q,q,1) - F(q,q,c) and its derivatives. Closed forms are used as
they are. A numeric activation is sampled at some dozens of Chebyshev points in sqrt(1 - |c|),
the variable in which every F is smooth, kinks or not, and interpolated.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nngp import _chebyshev
from nngp._chebyshev import Piecewise
from nngp._safe import TINY
from nngp.architecture import Activation
from nngp.covariance import hermite
from nngp.covariance.closed_form import ClosedForm, Parity, closed_form
from nngp.covariance.hermite import EPS
from nngp.covariance.pair import Pair
from nngp.covariance.resolve import resolve

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
TOLERANCE = 4e-15  # of each panel of a fit, relative
FAR = 0.15  # 1 - |c| from which 256 terms are enough: 0.85^256 = 1e-18


class Layer(Protocol):
    """F_phi at equal variances q. `negative` says where c = -(1 - m), else c = 1 - m."""

    @property
    def second_moment(self) -> float:
        """F(q, q, 1)."""
        ...

    @property
    def radial_moment(self) -> float:
        """E[u phi'(u) phi(u)]."""
        ...

    @property
    def error(self) -> float:
        """Of every deficit, relative."""
        ...

    @property
    def surplus_error(self) -> float:
        """Of every surplus, relative."""
        ...

    @property
    def stretch(self) -> float:
        """d log deficit / d log q: how the deficit takes up an error of the variance."""
        ...

    @property
    def parity(self) -> Parity:
        """Symmetry of phi."""
        ...

    def deficit(self, negative: Mask, m: Array) -> Array:
        """F(q, q, 1) - F(q, q, c)."""
        ...

    def surplus(self, m: Array) -> Array:
        """F(q, q, 1) + F(q, q, m - 1), asked for only where phi has no symmetry."""
        ...

    def slope(self, negative: Mask, m: Array) -> Array:
        """E[phi'(u) phi'(v)]."""
        ...

    def deficit_in_var(self, negative: Mask, m: Array) -> Array:
        """Derivative of the deficit in q at fixed c."""
        ...


@lru_cache(maxsize=512)
def layer_at(activation: Activation, var: float) -> Layer:
    """The layer map of `activation` at variance `var`."""
    if activation.closed_form is not None:
        return ClosedLayer(closed_form(activation.closed_form), var)
    fitted = FittedLayer(activation, var)
    return ConstantLayer(fitted.second_moment) if fitted.is_constant else fitted


def both_sides(layer: Layer, negative: Mask, m: Array) -> tuple[Array, Array]:
    """F(1) - F(c) and F(1) + F(c), each without cancellation where the activation allows it."""
    total = 2 * layer.second_moment
    if layer.parity == "odd":  # F(-c) = -F(c): near -1 the sum is the small one
        small = layer.deficit(np.zeros_like(negative), m)
        return np.where(negative, total - small, small), np.where(negative, small, total - small)
    if layer.parity == "even":
        negative = np.zeros_like(negative)
    deficit = layer.deficit(negative, m)
    plus = total - deficit
    if layer.parity == "none" and negative.any():
        plus[negative] = layer.surplus(m[negative])
    return deficit, plus


def _split(
    negative: Mask,
    m: Array,
    plus: Callable[[Array], Array],
    minus: Callable[[Array], Array],
) -> Array:
    if not negative.any():
        return plus(m)
    out = np.empty_like(m)
    out[~negative], out[negative] = plus(m[~negative]), minus(m[negative])
    return out


def _signed(negative: Mask, m: Array) -> Array:
    return np.where(negative, m - 1, 1 - m)


@dataclass(frozen=True)
class ClosedLayer:
    """A closed form at one variance."""

    form: ClosedForm
    var: float

    @property
    def error(self) -> float:
        return 4 * EPS * self.form.loss(self.var)

    @property
    def surplus_error(self) -> float:
        return self.error

    @cached_property
    def stretch(self) -> float:
        """Sampled at c = 0: exact for homogeneous activations, of the right size for others."""
        m, negative = np.ones(1), np.zeros(1, bool)
        change = self.var * self.deficit_in_var(negative, m) / self.deficit(negative, m)
        return float(change[0])

    @property
    def parity(self) -> Parity:
        return self.form.parity

    @cached_property
    def second_moment(self) -> float:
        return float(self.form.value(np, self.var, self.var, np.float64(1.0)))

    @cached_property
    def radial_moment(self) -> float:
        return float(self.form.radial(np, self.var, self.var, np.float64(1.0)))

    def deficit(self, negative: Mask, m: Array) -> Array:
        return _split(
            negative,
            m,
            lambda m: self.form.deficit(self.var, m),
            lambda m: self.second_moment - self.form.value(np, self.var, self.var, m - 1, m),
        )

    def surplus(self, m: Array) -> Array:
        if self.form.surplus is not None:
            return self.form.surplus(self.var, m)
        return self.second_moment + self.form.value(np, self.var, self.var, m - 1, m)

    def slope(self, negative: Mask, m: Array) -> Array:
        c = _signed(negative, m)
        out = self.form.slope(np, self.var, self.var, c, m)
        return np.broadcast_to(out, m.shape)

    def deficit_in_var(self, negative: Mask, m: Array) -> Array:
        def far(m: Array) -> Array:
            return self.radial_moment - self.form.radial(np, self.var, self.var, m - 1, m)

        return _split(
            negative,
            m,
            lambda m: self.form.deficit_in_var(self.var, m),
            lambda m: far(m) / self.var,
        )


@dataclass(frozen=True)
class ConstantLayer:
    """An activation that does not vary where it matters: nothing of the input is left."""

    second_moment: float
    radial_moment: float = 0.0
    error: float = EPS
    surplus_error: float = EPS
    stretch: float = 0.0
    parity: Parity = "even"

    def deficit(self, negative: Mask, m: Array) -> Array:
        return np.zeros_like(m)

    slope = deficit_in_var = deficit

    def surplus(self, m: Array) -> Array:
        return np.full_like(m, 2 * self.second_moment)


class FittedLayer:
    """Any activation at one variance, interpolated in sqrt(m) on either side of c = 0."""

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
        # A nearly constant phi keeps few digits of what varies.
        self._spread = float(w @ (phi - w @ phi) ** 2)
        spread = max(self._spread, EPS**2 * self.second_moment, TINY)
        self._noise = (EPS + self.resolved.error) * np.sqrt(self.second_moment / spread)

    @property
    def is_constant(self) -> bool:
        return self._spread <= (4 * EPS) ** 2 * self.second_moment

    @property
    def surplus_error(self) -> float:
        """Of F(1) + F(c): rounding of phi hides an even part that is very small."""
        even = max(float(self.surplus(np.zeros(1))[0]), EPS**2 * self.second_moment, TINY)
        hidden = 4 * EPS * float(np.sqrt(2 * self.second_moment / even))
        return self.error + self._surplus[1] + hidden

    @cached_property
    def _deficit(self) -> "_Fit":
        return self._fit(Pair.deficit, self._order, 0)

    @property
    def error(self) -> float:
        return self._deficit.error + self._quadrature_error + 4 * float(self._noise)

    stretch = 1.0  # not worth a quadrature

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
    def _slope(self) -> "_Fit":
        return self._fit(Pair.slope, self._order - 2, self._order - 2)

    def slope(self, negative: Mask, m: Array) -> Array:
        return self._slope(negative, m)

    @cached_property
    def _deficit_in_var(self) -> "_Fit":
        return self._fit(Pair.deficit_in_var, self._order, 0)

    def deficit_in_var(self, negative: Mask, m: Array) -> Array:
        return self._deficit_in_var(negative, m)

    def _fit(self, expectation: Callable, power: int, negative_power: int) -> "_Fit":
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
            return _Fit(plus, plus, power, power, error)  # `both_sides` asks for c >= 0 only
        minus, minus_error = _chebyshev.fit(sample(True, negative_power), 0.0, 1.0, tol=tol)
        return _Fit(plus, minus, power, negative_power, max(error, minus_error))

    def _deficits_by_distance(self, negative: bool, m: Array) -> Array:
        """Far from ±1 even a series that does not end has converged, and nothing cancels."""
        out, far = np.empty_like(m), m > FAR
        corr = m[far] - 1 if negative else 1 - m[far]
        without_mean = np.concatenate([[0.0], self.series.coefs[1:] ** 2])
        out[far] = self._spread - hermite.polynomial(corr, without_mean)
        out[~far] = self._from_pairs(Pair.deficit, negative, m[~far])
        return out

    def _from_pairs(self, expectation: Callable, negative: bool, m: Array) -> Array:
        # Tolerance 0: to rounding, relative to the integral, however small the deficit.
        pairs = [Pair(self.activation, self.var, self.var, negative, float(x)) for x in m]
        results = np.array([expectation(pair, 0.0) for pair in pairs]).reshape(-1, 2)
        if expectation is Pair.deficit and len(m):
            worst = np.max(results[:, 1] / np.maximum(results[:, 0], TINY))
            self._quadrature_error = max(self._quadrature_error, float(worst))
        return results[:, 0]


@dataclass(frozen=True)
class _Fit:
    """sqrt(m)**power times a piecewise polynomial in sqrt(m), one for either sign of c."""

    plus: Piecewise
    minus: Piecewise
    power: int
    negative_power: int
    error: float

    def __call__(self, negative: Mask, m: Array) -> Array:
        return _split(
            negative,
            m,
            self._reader(self.plus, self.power),
            self._reader(self.minus, self.negative_power),
        )

    @staticmethod
    def _reader(fitted: Piecewise, power: int) -> Callable[[Array], Array]:
        return lambda m: fitted(np.sqrt(m)) * np.sqrt(np.maximum(m, TINY)) ** power


def _from_series(
    series: hermite.Series, var: float, expectation: Callable, negative: bool, m: Array
) -> Array:
    """The same expectation by Mehler's formula."""
    if expectation is Pair.deficit:
        return hermite.deficits(series, m, negative)
    if expectation is Pair.deficit_in_var:
        weights = series.coefs * series.radial_coefs / var
        return hermite.deficits(series, m, negative, weights)
    k = np.arange(1, len(series.coefs))
    corr = m - 1 if negative else 1 - m
    return hermite.polynomial(corr, k * series.coefs[1:] ** 2) / var


def _parity(phi: Array, mirrored: Array) -> Parity:
    size = np.abs(phi).max() * 4 * EPS
    if np.abs(phi + mirrored).max() <= size:
        return "odd"
    return "even" if np.abs(phi - mirrored).max() <= size else "none"
