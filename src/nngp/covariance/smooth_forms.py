"""Closed forms of smooth activations: erf, GELU, sine, cosine, Gaussian and exponential.

References: Williams 1997 (erf, Gaussian); the others are derived by Stein's lemma.
"""

from dataclasses import replace

import numpy as np

from nngp import _safe
from nngp._arrays import EPS, Array, Floats, Namespace
from nngp.covariance.form import TWO_OVER_PI, ClosedForm, Deficit, Expectation, Parity, Rates, scale
from nngp.covariance.homogeneous_forms import leaky_relu_form

LIKE_RELU = 1e15  # variance beyond which GELU is taken for ReLU in differences


def erf_form() -> ClosedForm:
    """The error function."""

    def root(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats) -> Floats:
        return _root(xp, 2 * q1, 2 * q2, _safe.sine2(xp, c, m))

    def value(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        # arcsin(2 rho / sqrt(...)) as arctan2: steady where the argument nears 1
        return TWO_OVER_PI * xp.arctan2(2 * scale(xp, q1, q2) * c, root(xp, q1, q2, c, m))

    def slope(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        return 2 * TWO_OVER_PI / root(xp, q1, q2, c, m)

    def radial(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        return slope(xp, q1, q2, c, m) * scale(xp, q1, q2) * c / (1 + 2 * q1)

    def deficit(q: float, m: Array) -> Array:
        return TWO_OVER_PI * _arcsin_deficit(2 * q, m)

    def deficit_in_var(q: float, m: Array) -> Array:
        return 2 * TWO_OVER_PI * _arcsin_deficit_in_var(2 * q, m)

    def together(xp: Namespace, q1: Floats, q2: Floats, c: Floats) -> Rates:
        both = slope(xp, q1, q2, c)
        moved = both * c * scale(xp, q1, q2)
        return both, moved / (1 + 2 * q1), moved / (1 + 2 * q2)

    return ClosedForm(value, slope, radial, deficit, deficit_in_var, "odd", together=together)


def _root(xp: Namespace, q1: Floats, q2: Floats, sine2: Floats) -> Floats:
    """sqrt(1 + q1 + q2 + q1 q2 sine2), without overflow of the product."""
    return xp.hypot(xp.sqrt(1 + q1 + q2), scale(xp, q1, q2) * xp.sqrt(sine2))


def _arcsin_deficit(q: float, m: Array) -> Array:
    """arcsin(x) - arcsin(x (1 - m)) for x = q / (1 + q)."""
    x, cos_x = q / (1 + q), np.sqrt(1 + 2 * q) / (1 + q)
    y, sine2 = x * (1 - m), m * (2 - m)
    cos_y = np.sqrt(cos_x**2 + x**2 * sine2)  # x² - y² = x² sine2
    return np.arctan2(x * sine2 / (cos_y + (1 - m) * cos_x), cos_x * cos_y + x * y)


def _arcsin_deficit_in_var(q: float, m: Array) -> Array:
    """Derivative of `_arcsin_deficit` in q, (1/root1 - c/root) / (1 + q), over one denominator."""
    sine2, root1, root = _roots(q, m)
    return sine2 * ((1 + q) / root) / root1 / (root + (1 - m) * root1)


def _roots(q: float, m: Array) -> tuple[Array, float, Array]:
    """1 - c², and (1 + q) cos of arcsin x and of arcsin(x c), for x = q / (1 + q)."""
    sine2 = m * (2 - m)
    return sine2, np.sqrt(1 + 2 * q), np.hypot(np.sqrt(1 + 2 * q), q * np.sqrt(sine2))


def gelu_form() -> ClosedForm:
    """x Phi(x), with Phi the distribution function of the standard normal."""
    # All but the value lose a factor sqrt(q) to rounding. At large q all agree with ReLU's to
    # 1/sqrt(q), the value to 1/q, which is then the smaller error.
    near, relu = _gelu_near(), leaky_relu_form(0.0, 1.0)

    def moment(name: str) -> Expectation:
        def either(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
            far = xp.minimum(q1, q2) > LIKE_RELU
            here = getattr(near, name)(xp, xp.where(far, 1.0, q1), xp.where(far, 1.0, q2), c, m)
            return xp.where(far, getattr(relu, name)(xp, q1, q2, c, m), here)

        return either

    def difference(name: str) -> Deficit:
        def either(q: float, m: Array) -> Array:
            here = getattr(near, name)(np.minimum(q, LIKE_RELU), m)
            return np.where(q > LIKE_RELU, getattr(relu, name)(q, m), here)

        return either

    return replace(
        near,
        value=moment("value"),
        slope=moment("slope"),
        radial=moment("radial"),
        deficit=difference("deficit"),
        deficit_in_var=difference("deficit_in_var"),
        surplus=difference("surplus"),
        loss=lambda q: 1 + (4 * np.sqrt(q) if q <= LIKE_RELU else 1 / (EPS * np.sqrt(q))),
    )


def _gelu_near() -> ClosedForm:
    # x Phi(x) = x/2 + x erf(x/sqrt 2)/2; E[uv erf erf] by Stein's lemma twice.
    def parts(
        xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats
    ) -> tuple[Floats, Floats, Floats, Floats]:
        size, sine2 = scale(xp, q1, q2), _safe.sine2(xp, c, m)
        root = _root(xp, q1, q2, sine2)
        # 1 + c² (1 - q1 q2) / ((1 + q1)(1 + q2)), whose last factor goes to -1 as variances grow
        top = sine2 + c * c * (1 / (1 + q1) + 1 / (1 + q2))
        return size, root, top, TWO_OVER_PI * xp.arctan2(size * c, root)

    def value(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        size, root, top, arc = parts(xp, q1, q2, c, m)
        return 0.25 * size * (c + c * arc + TWO_OVER_PI * (size / root) * top)

    def slope(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        size, root, top, arc = parts(xp, q1, q2, c, m)
        mix = (1 / (1 + q1)) * (1 / (1 + q2)) - (q1 / (1 + q1)) * (q2 / (1 + q2))
        ratio = size / root
        return 0.25 * (1 + arc + TWO_OVER_PI * c * ratio * (1 + 2 * mix + ratio**2 * top))

    def radial(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        size, root, top, _ = parts(xp, q1, q2, c, m)
        share = q1 / (1 + q1)
        rest = 1 - c * c * share * (1 / (1 + q1) + 0.5)
        rest = rest - 0.5 * top * (q1 / root) * ((1 + q2) / root)
        at_fixed_covariance = 0.5 * TWO_OVER_PI * (size / root) * rest
        return size * (at_fixed_covariance + c * slope(xp, q1, q2, c, m))

    def even_deficit(q: float, m: Array) -> Array:
        return q * _gelu_even_deficit_over_q(q, m)

    def deficit(q: float, m: Array) -> Array:
        return 0.25 * q * m + even_deficit(q, m)

    def surplus(q: float, m: Array) -> Array:
        even_moment = float(value(np, q, q, np.float64(1.0))) - 0.25 * q
        return 0.25 * q * m + (2 * even_moment - even_deficit(q, m))

    return ClosedForm(value, slope, radial, deficit, _gelu_deficit_in_var, surplus=surplus)


def _gelu_rest(q: float, m: Array) -> tuple[Array, Array]:
    """The two terms of the even part without an arc tangent, divided by 1 - c²."""
    _, root1, root = _roots(q, m)
    return 2 * q**2 / ((1 + q) * root * root1 * (root + root1)), (1 - q) / ((1 + q) * root)


def _gelu_even_deficit_over_q(q: float, m: Array) -> Array:
    sine2, _, root = _roots(q, m)
    arc = np.arctan2(q * (1 - m), root)
    rest = sine2 * sum(_gelu_rest(q, m))
    return 0.25 * TWO_OVER_PI * (_arcsin_deficit(q, m) + m * arc + q * rest)


def _gelu_deficit_in_var(q: float, m: Array) -> Array:
    # Term by term as in `_gelu_even_deficit_over_q`, by the product rule
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


def sine_form(odd: bool) -> ClosedForm:
    """The sine if `odd`, otherwise the cosine."""

    # E[sin sin] = exp(-h) sinh(rho), E[cos cos] = exp(-h) cosh(rho), h = (q1 + q2)/2. The exponents
    # |rho| - h and -|rho| - h are formed without subtracting large numbers.
    def parts(
        xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats
    ) -> tuple[Floats, Floats, Floats]:
        size, m = scale(xp, q1, q2), 1 - xp.abs(c) if m is None else m
        total = xp.sqrt(q1) + xp.sqrt(q2)
        gap = (q1 - q2) / xp.where(total > 0, total, 1.0)
        front = 0.5 * xp.exp(-(0.5 * gap**2 + size * m))
        return front, 2 * size * xp.abs(c), gap

    def value_of(odd: bool) -> Expectation:
        def value(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
            front, twice, _ = parts(xp, q1, q2, c, m)
            if odd:
                return -xp.sign(c) * front * xp.expm1(-twice)
            return front * (1 + xp.exp(-twice))

        return value

    value, slope = value_of(odd), value_of(not odd)

    def radial(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        # rho times slope less q1 times value, exponent by exponent
        front, twice, gap = parts(xp, q1, q2, c, m)
        m = 1 - xp.abs(c) if m is None else m
        near = -front * xp.sqrt(q1) * (gap + xp.sqrt(q2) * m)
        far = front * xp.exp(-twice) * (0.5 * twice + q1)
        return xp.sign(c) * (near + far) if odd else near - far

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
    return ClosedForm(
        value, slope, radial, deficit, deficit_in_var, parity, loss=lambda q: 1 + min(q, 745.0)
    )


def gaussian_form(shift: float = 0.0) -> ClosedForm:
    """exp(-(x + shift)²)."""
    t2 = shift**2

    # E[exp(-(u + t)² - (v + t)²)] = exp(-t² top / root²) / root, where root² = det(I + 2 Sigma)
    def root(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats) -> Floats:
        return _root(xp, 2 * q1, 2 * q2, _safe.sine2(xp, c, m))

    def top_of(xp: Namespace, q1: Floats, q2: Floats, c: Floats) -> Floats:
        spread = (xp.sqrt(q1) - xp.sqrt(q2)) ** 2 + 2 * scale(xp, q1, q2) * (1 - c)
        return 2 * (1 + spread)

    def value(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        whole = root(xp, q1, q2, c, m)
        if not t2:
            return 1 / whole
        return xp.exp(-t2 * (top_of(xp, q1, q2, c) / whole) / whole) / whole

    def slope(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        whole = root(xp, q1, q2, c, m)
        cov = c * (scale(xp, q1, q2) / whole)
        if not t2:
            return 4 * cov / whole / whole
        rest = 4 * cov - 8 * t2 * cov * (top_of(xp, q1, q2, c) / whole) / whole + 4 * t2 / whole
        return value(xp, q1, q2, c, m) * rest / whole

    def radial(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        whole = root(xp, q1, q2, c, m)
        rest = (1 + 2 * q2 * _safe.sine2(xp, c, m)) / whole
        if not t2:
            return -2 * (q1 / whole) * rest / whole
        top, cov = top_of(xp, q1, q2, c), c * (scale(xp, q1, q2) / whole)
        moved = (4 * q1 / whole) * rest * (t2 * (top / whole) / whole - 0.5)
        return value(xp, q1, q2, c, m) * (moved - 4 * t2 * (q1 / whole - cov) / whole)

    def deficit(q: float, m: Array) -> Array:
        sine2, root1, whole = _roots(2 * q, m)
        sine = 2 * q * np.sqrt(sine2)
        if not t2:
            return (sine / whole) * (sine / (whole + root1)) / root1
        fall = 0.5 * np.log1p((sine / root1) ** 2) + t2 * _shifted_gap(q, m)
        return -np.expm1(-fall) * np.exp(-2 * t2 / root1**2) / root1

    def deficit_in_var(q: float, m: Array) -> Array:
        sine2, root1, whole = _roots(2 * q, m)
        share, part = q / whole, root1 / whole
        if t2:
            gap = _shifted_gap(q, m)
            fall = 0.5 * np.log1p((2 * q / root1) ** 2 * sine2) + t2 * gap
            height = np.exp(-2 * t2 / root1**2) / root1
            grows = (-2 + 8 * t2 / root1**2) / root1**2  # d log of the value at 1
            in_gap = 1 / q + 2 * m / (1 + 2 * q * m) - (4 + 8 * q * sine2) / whole**2
            in_fall = 4 * (q / whole) * ((1 + 2 * q) / whole) * sine2 / root1**2
            in_fall = in_fall + t2 * gap * (in_gap - 4 / root1**2)
            return height * (-np.expm1(-fall) * grows + np.exp(-fall) * in_fall)
        cubes = (1 + part + part**2) / (1 + part)  # (whole³ - root1³) / (whole² - root1²) / whole
        return sine2 * share * (4 / whole / whole - 8 * share * cubes / root1**3)

    parity: Parity = "none" if t2 else "even"
    return ClosedForm(
        value, slope, radial, deficit, deficit_in_var, parity, loss=lambda var: 1 + 4 * t2
    )


def _shifted_gap(q: float, m: Array) -> Array:
    """The exponent of a shifted Gaussian at correlation 1 - m less that at 1, over shift²."""
    _, root1, whole = _roots(2 * q, m)
    return 4 * (q / whole) * m * ((1 + 2 * q * m) / whole) / root1**2


def exponential_form() -> ClosedForm:
    """exp(x)."""

    def value(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        return xp.exp(0.5 * (q1 + q2) + scale(xp, q1, q2) * c)

    def radial(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        return (q1 + scale(xp, q1, q2) * c) * value(xp, q1, q2, c, m)

    def deficit(q: float, m: Array) -> Array:
        return -np.expm1(-q * m) * np.exp(2 * np.float64(q))

    def deficit_in_var(q: float, m: Array) -> Array:
        return np.exp(2 * np.float64(q)) * (m * np.exp(-q * m) - 2 * np.expm1(-q * m))

    return ClosedForm(
        value, value, radial, deficit, deficit_in_var, loss=lambda q: 1 + min(2 * q, 745.0)
    )
