"""One layer in closed form, for the activations where the Gaussian integral is known.

Each form gives, for u, v of variances q1, q2 and correlation c,

    value    E[phi(u) phi(v)]                   (eq. 5's F_phi)
    slope    E[phi'(u) phi'(v)]                 (dF / d covariance, the NTK's dual)
    radial   E[u phi'(u) phi(v)]                (2 q1 dF/dq1 at fixed c)
    deficit  F(q, q, 1) - F(q, q, 1 - m)        for 0 <= m <= 1, to relative precision
    deficit_in_var, its derivative in q         likewise

The first three are written once over the array namespace `xp`, for NumPy and JAX, and use
m = 1 - |c| where the caller knows it better than c; the deficit is
what the curve composes, and never subtracts large numbers. References: Cho and Saul 2009
(rectified powers), Williams 1997 (erf, Gaussian); the others are derived by Stein's lemma.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nngp import _safe

Array = NDArray[np.float64]
TWO_OVER_PI = 2.0 / np.pi
EPS = float(np.finfo(np.float64).eps)
LIKE_RELU = 1e15  # variance beyond which GELU is taken for ReLU in differences
Parity = Literal["odd", "even", "none"]


@dataclass(frozen=True)
class ClosedForm:
    """The expectations of one activation, and its symmetry under x -> -x."""

    value: Callable[..., Any]
    slope: Callable[..., Any]
    radial: Callable[..., Any]
    deficit: Callable[[float, Array], Array]
    deficit_in_var: Callable[[float, Array], Array]
    parity: Parity = "none"
    loss: Callable[[float], float] = lambda var: 1.0  # factor by which rounding grows
    # F(q, q, 1) + F(q, q, m - 1) where plain addition would cancel (phi nearly odd)
    surplus: Callable[[float, Array], Array] | None = None
    # slope and both radials at once, where they share work
    together: Callable[..., tuple[Any, Any, Any]] | None = None

    def rates(self, xp: Any, q1: Any, q2: Any, c: Any) -> tuple[Any, Any, Any]:
        """slope, and radial in q1 and in q2."""
        if self.together is not None:
            return self.together(xp, q1, q2, c)
        return self.slope(xp, q1, q2, c), self.radial(xp, q1, q2, c), self.radial(xp, q2, q1, c)


@cache
def closed_form(key: tuple[str, float]) -> ClosedForm:
    """The closed form behind `Activation.closed_form`."""
    name, parameter = key
    return _FORMS[name](parameter)


def _scale(xp: Any, q1: Any, q2: Any) -> Any:
    return xp.sqrt(q1) * xp.sqrt(q2)


def _leaky_relu(negative_slope: float) -> ClosedForm:
    # phi(x) = a x + b |x|; the cross terms vanish by symmetry.
    a2, b2 = (0.5 * (1 + negative_slope)) ** 2, (0.5 * (1 - negative_slope)) ** 2

    def value(xp: Any, q1: Any, q2: Any, c: Any, m: Any = None) -> Any:
        absolute = xp.sqrt(_safe.sine2(xp, c, m)) + c * _safe.arcsine(xp, c, m)
        return _scale(xp, q1, q2) * (a2 * c + b2 * TWO_OVER_PI * absolute)

    def slope(xp: Any, q1: Any, q2: Any, c: Any, m: Any = None) -> Any:
        return a2 + b2 * TWO_OVER_PI * _safe.arcsine(xp, c, m) + 0.0 * (q1 + q2)

    def deficit(q: float, m: Array) -> Array:
        return q * (a2 * m + b2 * even_deficit(m))

    def deficit_in_var(q: float, m: Array) -> Array:
        return deficit(1.0, m)

    def even_deficit(m: Array) -> Array:
        return m - TWO_OVER_PI * _safe.gap1(_safe.angle(m))

    def surplus(q: float, m: Array) -> Array:
        return q * (a2 * m + b2 * (2 - even_deficit(m)))

    def together(xp: Any, q1: Any, q2: Any, c: Any) -> tuple[Any, Any, Any]:
        slope = a2 + b2 * TWO_OVER_PI * _safe.arcsine(xp, c)
        root = (b2 * TWO_OVER_PI) * xp.sqrt(_safe.sine2(xp, c))
        radial = (root + c * slope) * _scale(xp, q1, q2)
        return slope, radial, radial

    parity: Parity = {-1.0: "even", 1.0: "odd"}.get(negative_slope, "none")  # type: ignore[assignment]
    return ClosedForm(
        value, slope, value, deficit, deficit_in_var, parity, surplus=surplus, together=together
    )


def _sign_like(offset: float, height: float) -> ClosedForm:
    # phi(x) = offset + height * sign(x)
    h2 = height**2

    def value(xp: Any, q1: Any, q2: Any, c: Any, m: Any = None) -> Any:
        return offset**2 + h2 * TWO_OVER_PI * _safe.arcsine(xp, c, m) + 0.0 * (q1 + q2)

    def slope(xp: Any, q1: Any, q2: Any, c: Any, m: Any = None) -> Any:
        return h2 * TWO_OVER_PI * _safe.inverse_root(xp, q1 * q2 * _safe.sine2(xp, c, m))

    def radial(xp: Any, q1: Any, q2: Any, c: Any, m: Any = None) -> Any:
        return 0.0 * (q1 + q2 + c)

    def deficit(q: float, m: Array) -> Array:
        return h2 * TWO_OVER_PI * _safe.angle(m)

    def deficit_in_var(q: float, m: Array) -> Array:
        return np.zeros_like(m)

    parity: Parity = "odd" if offset == 0 else "none"
    return ClosedForm(value, slope, radial, deficit, deficit_in_var, parity)


def _erf() -> ClosedForm:
    def root(xp: Any, q1: Any, q2: Any, c: Any, m: Any) -> Any:
        return xp.sqrt(1 + 2 * q1 + 2 * q2 + 4 * q1 * q2 * _safe.sine2(xp, c, m))

    def value(xp: Any, q1: Any, q2: Any, c: Any, m: Any = None) -> Any:
        # arcsin(2 rho / sqrt(...)) as arctan2: steady where the argument nears 1
        return TWO_OVER_PI * xp.arctan2(2 * _scale(xp, q1, q2) * c, root(xp, q1, q2, c, m))

    def slope(xp: Any, q1: Any, q2: Any, c: Any, m: Any = None) -> Any:
        return 2 * TWO_OVER_PI / root(xp, q1, q2, c, m)

    def radial(xp: Any, q1: Any, q2: Any, c: Any, m: Any = None) -> Any:
        return slope(xp, q1, q2, c, m) * _scale(xp, q1, q2) * c / (1 + 2 * q1)

    def deficit(q: float, m: Array) -> Array:
        return TWO_OVER_PI * _arcsin_deficit(2 * q, m)

    def deficit_in_var(q: float, m: Array) -> Array:
        return 2 * TWO_OVER_PI * _arcsin_deficit_in_var(2 * q, m)

    def together(xp: Any, q1: Any, q2: Any, c: Any) -> tuple[Any, Any, Any]:
        both = slope(xp, q1, q2, c)
        moved = both * c * _scale(xp, q1, q2)
        return both, moved / (1 + 2 * q1), moved / (1 + 2 * q2)

    return ClosedForm(value, slope, radial, deficit, deficit_in_var, "odd", together=together)


def _arcsin_deficit(q: float, m: Array) -> Array:
    """arcsin(x) - arcsin(x (1 - m)) for x = q / (1 + q)."""
    x, cos_x = q / (1 + q), np.sqrt(1 + 2 * q) / (1 + q)
    y, sine2 = x * (1 - m), m * (2 - m)
    cos_y = np.sqrt(cos_x**2 + x**2 * sine2)  # x² - y² = x² sine2
    return np.arctan2(x * sine2 / (cos_y + (1 - m) * cos_x), cos_x * cos_y + x * y)


def _arcsin_deficit_in_var(q: float, m: Array) -> Array:
    """Its derivative in q: (1/root1 - c/root) / (1 + q), put over one denominator."""
    sine2, root1, root = _roots(q, m)
    return sine2 * (1 + q) / (root * root1 * (root + (1 - m) * root1))


def _roots(q: float, m: Array) -> tuple[Array, float, Array]:
    """1 - c², and (1 + q) cos of arcsin x and of arcsin(x c), for x = q / (1 + q)."""
    sine2 = m * (2 - m)
    return sine2, np.sqrt(1 + 2 * q), np.sqrt(1 + 2 * q + q**2 * sine2)


def _gelu() -> ClosedForm:
    # All but the value lose sqrt(q) to rounding; far out they are relu's to 1/sqrt(q), which is
    # then the better way.
    near, relu = _gelu_near(), _leaky_relu(0.0)

    def moment(name: str) -> Callable[..., Any]:
        def either(xp: Any, q1: Any, q2: Any, c: Any, m: Any = None) -> Any:
            far = xp.minimum(q1, q2) > LIKE_RELU
            return xp.where(far, *(getattr(form, name)(xp, q1, q2, c, m) for form in (relu, near)))

        return either

    def difference(name: str) -> Callable[[float, Array], Array]:
        def either(q: float, m: Array) -> Array:
            here = getattr(near, name)(np.minimum(q, LIKE_RELU), m)
            return np.where(q > LIKE_RELU, getattr(relu, name)(q, m), here)

        return either

    return replace(
        near,
        slope=moment("slope"),
        radial=moment("radial"),
        deficit=difference("deficit"),
        deficit_in_var=difference("deficit_in_var"),
        surplus=difference("surplus"),
        loss=lambda q: 1 + (4 * np.sqrt(q) if q <= LIKE_RELU else 1 / (EPS * np.sqrt(q))),
    )


def _gelu_near() -> ClosedForm:
    # x Phi(x) = x/2 + x erf(x/sqrt 2)/2; E[uv erf erf] by Stein's lemma twice.
    def parts(xp: Any, q1: Any, q2: Any, c: Any, m: Any) -> tuple[Any, Any, Any, Any, Any]:
        rho = _scale(xp, q1, q2) * c
        sine2, ones = _safe.sine2(xp, c, m), (1 + q1) * (1 + q2)
        root = xp.sqrt(1 + q1 + q2 + q1 * q2 * sine2)
        mix = (1 - q1 * q2) / ones
        # q1 q2 (1 + c² mix), where mix goes to -1 as variances grow
        top = q1 * q2 * (sine2 + c * c * (2 + q1 + q2) / ones)
        return rho, root, mix, top, TWO_OVER_PI * xp.arctan2(rho, root)

    def value(xp: Any, q1: Any, q2: Any, c: Any, m: Any = None) -> Any:
        rho, root, _, top, arc = parts(xp, q1, q2, c, m)
        return 0.25 * (rho + rho * arc + TWO_OVER_PI * top / root)

    def slope(xp: Any, q1: Any, q2: Any, c: Any, m: Any = None) -> Any:
        rho, root, mix, top, arc = parts(xp, q1, q2, c, m)
        return 0.25 * (1 + arc + TWO_OVER_PI * rho / root * (1 + 2 * mix + top / root**2))

    def radial(xp: Any, q1: Any, q2: Any, c: Any, m: Any = None) -> Any:
        rho, root, _, top, _ = parts(xp, q1, q2, c, m)
        at_fixed_rho = (
            (q2 - (rho / (1 + q1)) ** 2) / root
            - 0.5 * rho**2 / ((1 + q1) * root)
            - 0.5 * top * (1 + q2) / root**3
        )
        return 0.5 * q1 * TWO_OVER_PI * at_fixed_rho + rho * slope(xp, q1, q2, c, m)

    def even_deficit(q: float, m: Array) -> Array:
        return q * _gelu_even_deficit_over_q(q, m)

    def deficit(q: float, m: Array) -> Array:
        return 0.25 * q * m + even_deficit(q, m)

    def surplus(q: float, m: Array) -> Array:
        even_moment = float(value(np, q, q, np.float64(1.0))) - 0.25 * q
        return 0.25 * q * m + (2 * even_moment - even_deficit(q, m))

    return ClosedForm(value, slope, radial, deficit, _gelu_deficit_in_var, surplus=surplus)


def _gelu_rest(q: float, m: Array) -> tuple[Array, Array]:
    """The two terms of the even part that are no arcs, over 1 - c²."""
    _, root1, root = _roots(q, m)
    return 2 * q**2 / ((1 + q) * root * root1 * (root + root1)), (1 - q) / ((1 + q) * root)


def _gelu_even_deficit_over_q(q: float, m: Array) -> Array:
    sine2, _, root = _roots(q, m)
    arc = np.arctan2(q * (1 - m), root)
    rest = sine2 * sum(_gelu_rest(q, m))
    return 0.25 * TWO_OVER_PI * (_arcsin_deficit(q, m) + m * arc + q * rest)


def _gelu_deficit_in_var(q: float, m: Array) -> Array:
    # term by term as in the even part, by the product rule
    sine2, root1, root = _roots(q, m)
    first, second = _gelu_rest(q, m)
    grow, grow1 = (1 + q * sine2) / root, 1 / root1  # of root and root1
    shrink = 1 / (1 + q) + grow / root + grow1 / root1 + (grow + grow1) / (root + root1)
    d_first = 4 * q / ((1 + q) * root * root1 * (root + root1)) - first * shrink
    d_second = -2 / ((1 + q) ** 2 * root) - second * grow / root
    d_rest = sine2 * (first + second + q * (d_first + d_second))
    d_arcs = _arcsin_deficit_in_var(q, m) + m * (1 - m) / ((1 + q) * root)
    moved = 0.25 * TWO_OVER_PI * q * (d_arcs + d_rest)
    return 0.25 * m + _gelu_even_deficit_over_q(q, m) + moved


def _sin_cos(odd: bool) -> ClosedForm:
    # E[sin sin] = exp(-h) sinh(rho), E[cos cos] = exp(-h) cosh(rho), h = (q1 + q2)/2
    def value_of(odd: bool) -> Callable[..., Any]:
        def value(xp: Any, q1: Any, q2: Any, c: Any, m: Any = None) -> Any:
            rho = _scale(xp, q1, q2) * c
            size = xp.abs(rho)
            front = 0.5 * xp.exp(size - 0.5 * (q1 + q2))
            if odd:
                return -xp.sign(rho) * front * xp.expm1(-2 * size)
            return front * (1 + xp.exp(-2 * size))

        return value

    value, slope = value_of(odd), value_of(not odd)

    def radial(xp: Any, q1: Any, q2: Any, c: Any, m: Any = None) -> Any:
        return _scale(xp, q1, q2) * c * slope(xp, q1, q2, c, m) - q1 * value(xp, q1, q2, c, m)

    def deficit(q: float, m: Array) -> Array:
        near = -np.expm1(-q * m)
        if odd:
            return 0.5 * (near + np.exp(-q * (2 - m)) * near)
        return 0.5 * near * -np.expm1(-q * (2 - m))

    def deficit_in_var(q: float, m: Array) -> Array:
        near, far, fall = np.exp(-q * m), np.exp(-q * (2 - m)), np.expm1(-q * m)
        apart = -m * near * np.expm1(-2 * q * (1 - m))  # m (near - far)
        return 0.5 * (apart + 2 * far * ((m + fall) if odd else -fall))

    parity: Parity = "odd" if odd else "even"
    return ClosedForm(value, slope, radial, deficit, deficit_in_var, parity, loss=lambda q: 1 + q)


def _gaussian() -> ClosedForm:
    # E[exp(-u² - v²)] = det(I + 2 Sigma)^(-1/2)
    def det(xp: Any, q1: Any, q2: Any, c: Any, m: Any) -> Any:
        return 1 + 2 * q1 + 2 * q2 + 4 * q1 * q2 * _safe.sine2(xp, c, m)

    def value(xp: Any, q1: Any, q2: Any, c: Any, m: Any = None) -> Any:
        return 1 / xp.sqrt(det(xp, q1, q2, c, m))

    def slope(xp: Any, q1: Any, q2: Any, c: Any, m: Any = None) -> Any:
        return 4 * _scale(xp, q1, q2) * c / det(xp, q1, q2, c, m) ** 1.5

    def radial(xp: Any, q1: Any, q2: Any, c: Any, m: Any = None) -> Any:
        return -2 * q1 * (1 + 2 * q2 * _safe.sine2(xp, c, m)) / det(xp, q1, q2, c, m) ** 1.5

    def deficit(q: float, m: Array) -> Array:
        growth = 4 * q**2 * m * (2 - m)
        root1, root = np.sqrt(1 + 4 * q), np.sqrt(1 + 4 * q + growth)
        return growth / (root * root1 * (root + root1))

    def deficit_in_var(q: float, m: Array) -> Array:
        sine2 = m * (2 - m)
        root1, root = np.sqrt(1 + 4 * q), np.sqrt(1 + 4 * q + 4 * q**2 * sine2)
        cubes = 4 * q**2 * (root**2 + root * root1 + root1**2) / ((root + root1) * root1**3)
        return sine2 * (4 * q - 2 * cubes) / root**3

    return ClosedForm(value, slope, radial, deficit, deficit_in_var, "even")


def _power_value(power: int, rectified: bool) -> Callable[..., Any]:
    """E[u^n v^n], or the same of max(u, 0)^n (Cho and Saul 2009)."""

    def value(xp: Any, q1: Any, q2: Any, c: Any, m: Any = None) -> Any:
        size = _scale(xp, q1, q2) ** power
        polynomial = {1: c, 2: 1 + 2 * c**2, 3: 9 * c + 6 * c**3}[power]
        if not rectified:
            return size * polynomial
        sine = xp.sqrt(_safe.sine2(xp, c, m))
        extra = {1: sine, 2: 3 * sine * c, 3: sine * (15 - 11 * sine**2)}[power]
        return size * (extra + (0.5 * np.pi + _safe.arcsine(xp, c, m)) * polynomial) / (2 * np.pi)

    return value


def _power(power: int, rectified: bool) -> ClosedForm:
    power = int(power)
    value = _power_value(power, rectified)
    lower = _power_value(power - 1, rectified) if power > 1 else None

    def slope(xp: Any, q1: Any, q2: Any, c: Any, m: Any = None) -> Any:
        return power**2 * lower(xp, q1, q2, c, m) if lower else 1.0 + 0.0 * (q1 + q2 + c)

    def radial(xp: Any, q1: Any, q2: Any, c: Any, m: Any = None) -> Any:
        return power * value(xp, q1, q2, c, m)

    def deficit(q: float, m: Array) -> Array:
        polynomial = {1: m, 2: 2 * m * (2 - m), 3: 9 * m + 6 * m * (3 - 3 * m + m**2)}[power]
        if not rectified:
            return q**power * polynomial
        gap = {2: _safe.gap2, 3: _safe.gap3}[power](_safe.angle(m))
        return q**power * (0.5 * polynomial - gap / (2 * np.pi))

    def deficit_in_var(q: float, m: Array) -> Array:
        return power / q * deficit(q, m)

    parity: Parity = "none" if rectified else ("odd" if power % 2 else "even")
    return ClosedForm(value, slope, radial, deficit, deficit_in_var, parity)


_FORMS: dict[str, Callable[[float], ClosedForm]] = {
    "leaky_relu": _leaky_relu,
    "step": lambda _: _sign_like(0.5, 0.5),
    "sign": lambda _: _sign_like(0.0, 1.0),
    "erf": lambda _: _erf(),
    "gelu": lambda _: _gelu(),
    "sin": lambda _: _sin_cos(odd=True),
    "cos": lambda _: _sin_cos(odd=False),
    "gaussian": lambda _: _gaussian(),
    "monomial": lambda power: _power(int(power), rectified=False),
    "rectified_power": lambda power: _power(int(power), rectified=True),
}
