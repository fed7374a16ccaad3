"""Closed forms of homogeneous activations: phi(a x) = a^n phi(x) for a > 0.

Linear and leaky rectifiers, sign and step, rectified powers (Cho and Saul 2009).
"""

import numpy as np

from nngp import _safe
from nngp._arrays import Array, Floats, Namespace
from nngp.covariance.form import TWO_OVER_PI, ClosedForm, Expectation, Parity, Rates, scale


def leaky_relu_form(below: float, above: float) -> ClosedForm:
    """Two slopes: above·x where x is positive, below·x where it is negative."""
    # phi(x) = a x + b |x|; the cross terms vanish by symmetry.
    a2, b2 = (0.5 * (above + below)) ** 2, (0.5 * (above - below)) ** 2

    def value(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        absolute = xp.sqrt(_safe.sine2(xp, c, m)) + c * _safe.arcsine(xp, c, m)
        return scale(xp, q1, q2) * (a2 * c + b2 * TWO_OVER_PI * absolute)

    def slope(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        return a2 + b2 * TWO_OVER_PI * _safe.arcsine(xp, c, m) + 0.0 * (q1 + q2)

    def deficit(q: float, m: Array) -> Array:
        return q * (a2 * m + b2 * absolute_deficit(m))

    def deficit_in_var(q: float, m: Array) -> Array:
        return deficit(1.0, m)

    def surplus(q: float, m: Array) -> Array:
        return q * (a2 * m + b2 * (2 - absolute_deficit(m)))

    def together(xp: Namespace, q1: Floats, q2: Floats, c: Floats) -> Rates:
        slope = a2 + b2 * TWO_OVER_PI * _safe.arcsine(xp, c)
        root = (b2 * TWO_OVER_PI) * xp.sqrt(_safe.sine2(xp, c))
        radial = (root + c * slope) * scale(xp, q1, q2)
        return slope, radial, radial

    parity: Parity = "even" if a2 == 0 else ("odd" if b2 == 0 else "none")
    return ClosedForm(
        value, slope, value, deficit, deficit_in_var, parity, surplus=surplus, together=together
    )


def absolute_deficit(m: Array) -> Array:
    """The deficit of |x| at variance 1."""
    return m - TWO_OVER_PI * _safe.gap1(_safe.angle(m))


def sign_form(offset: float, height: float) -> ClosedForm:
    """offset + height sign(x)."""
    h2 = height**2

    def value(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        return offset**2 + h2 * TWO_OVER_PI * _safe.arcsine(xp, c, m) + 0.0 * (q1 + q2)

    def slope(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        root = scale(xp, q1, q2) * xp.sqrt(_safe.sine2(xp, c, m))
        return h2 * TWO_OVER_PI * _safe.inverse(xp, root)

    def radial(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        return 0.0 * (q1 + q2 + c)

    def deficit(q: float, m: Array) -> Array:
        return h2 * TWO_OVER_PI * _safe.angle(m)

    def deficit_in_var(q: float, m: Array) -> Array:
        return np.zeros_like(m)

    parity: Parity = "odd" if offset == 0 else "none"
    return ClosedForm(value, slope, radial, deficit, deficit_in_var, parity)


def _rectified_value(power: int) -> Expectation:
    """E[max(u, 0)^n max(v, 0)^n] (Cho and Saul 2009)."""

    def value(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        size = scale(xp, q1, q2) ** power
        polynomial = {1: c, 2: 1 + 2 * c**2, 3: 9 * c + 6 * c**3}[power]
        sine = xp.sqrt(_safe.sine2(xp, c, m))
        extra = {1: sine, 2: 3 * sine * c, 3: sine * (15 - 11 * sine**2)}[power]
        return size * (extra + (0.5 * np.pi + _safe.arcsine(xp, c, m)) * polynomial) / (2 * np.pi)

    return value


def rectified_power_form(power: int) -> ClosedForm:
    """max(x, 0)^power, for powers 2 and 3."""
    value, lower = _rectified_value(power), _rectified_value(power - 1)

    def slope(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        return power**2 * lower(xp, q1, q2, c, m)

    def radial(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        return power * value(xp, q1, q2, c, m)

    def deficit(q: float, m: Array) -> Array:
        polynomial = {2: 2 * m * (2 - m), 3: 9 * m + 6 * m * (3 - 3 * m + m**2)}[power]
        scale = np.float64(q) ** power  # infinite where a Python float would raise OverflowError
        gap = {2: _safe.gap2, 3: _safe.gap3}[power](_safe.angle(m))
        return scale * (0.5 * polynomial - gap / (2 * np.pi))

    def deficit_in_var(q: float, m: Array) -> Array:
        return power / q * deficit(q, m)

    return ClosedForm(value, slope, radial, deficit, deficit_in_var)
