"""Closed forms made of others: a φ(b x + c) + d, sums of an even and an odd part, polynomials."""

from dataclasses import replace
from math import factorial

import numpy as np

from nngp._arrays import EPS, Array, Floats, Namespace
from nngp.covariance.form import ClosedForm, Parity, Rates, scale


def scaled_form(form: ClosedForm, a: float, b: float) -> ClosedForm:
    """a φ(b x) from the form of φ: variances are multiplied by b², values by a². The sign of b does
    not matter, since (u, v) and (-u, -v) have one distribution."""
    a2, b2 = np.float64(a) ** 2, np.float64(b) ** 2

    def value(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        return a2 * form.value(xp, b2 * q1, b2 * q2, c, m)

    def slope(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        return a2 * b2 * form.slope(xp, b2 * q1, b2 * q2, c, m)

    def radial(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        return a2 * form.radial(xp, b2 * q1, b2 * q2, c, m)

    def together(xp: Namespace, q1: Floats, q2: Floats, c: Floats) -> Rates:
        slope, first, second = form.rates(xp, b2 * q1, b2 * q2, c)
        return a2 * b2 * slope, a2 * first, a2 * second

    surplus = form.surplus
    return replace(
        form,
        value=value,
        slope=slope,
        radial=radial,
        deficit=lambda q, m: a2 * form.deficit(b2 * q, m),
        deficit_in_var=lambda q, m: a2 * b2 * form.deficit_in_var(b2 * q, m),
        loss=lambda var: form.loss(b2 * var),
        surplus=None if surplus is None else lambda q, m: a2 * surplus(b2 * q, m),
        together=together,
    )


def sum_form(even: ClosedForm, odd: ClosedForm) -> ClosedForm:
    """The sum of an even and an odd activation, between which there is no covariance."""

    def value(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        return even.value(xp, q1, q2, c, m) + odd.value(xp, q1, q2, c, m)

    def slope(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        return even.slope(xp, q1, q2, c, m) + odd.slope(xp, q1, q2, c, m)

    def radial(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        return even.radial(xp, q1, q2, c, m) + odd.radial(xp, q1, q2, c, m)

    def surplus(q: float, m: Array) -> Array:
        return 2 * even.value(np, q, q, np.float64(1.0)) - even.deficit(q, m) + odd.deficit(q, m)

    return ClosedForm(
        value,
        slope,
        radial,
        lambda q, m: even.deficit(q, m) + odd.deficit(q, m),
        lambda q, m: even.deficit_in_var(q, m) + odd.deficit_in_var(q, m),
        loss=lambda var: max(even.loss(var), odd.loss(var)),
        surplus=surplus,
    )


def polynomial_form(coefficients: tuple[float, ...]) -> ClosedForm:
    """Σ p_j x^j, by Mehler's formula, which ends at the degree.

    With x^j = Σ_k M_jk q^((j-k)/2) He_k, the coefficients of φ are B_k(q) q^(k/2) with polynomials
    B_k, so that F = Σ_k B_k(q1) B_k(q2) K^k for a covariance K: no root of a variance is taken.
    """
    degree = len(coefficients) - 1
    rows = [_hermite_row(coefficients, k) for k in range(degree + 1)]
    used = [k for k in range(degree + 1) if rows[k].any()] or [0]

    def at(k: int, q: Floats, row: Array | None = None) -> Floats:
        """B_k(q) by Horner's rule."""
        total = 0.0 * q
        for number in (rows[k] if row is None else row)[::-1]:
            total = total * q + float(number)
        return total

    def moved(k: int, q: Floats) -> Floats:
        """2 q d/dq of B_k(q) q^(k/2), over q^(k/2)."""
        return at(k, q, (k + 2 * np.arange(len(rows[k]))) * rows[k])

    def value(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        cov = c * scale(xp, q1, q2)
        return sum(at(k, q1) * at(k, q2) * cov**k for k in used)

    def slope(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        cov = c * scale(xp, q1, q2)
        return sum(
            (k * at(k, q1) * at(k, q2) * cov ** (k - 1) for k in used if k),
            start=0.0 * cov,
        )

    def radial(xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None) -> Floats:
        cov = c * scale(xp, q1, q2)
        return sum(moved(k, q1) * at(k, q2) * cov**k for k in used)

    def falling(q: float, m: Array, squares: dict[int, Floats]) -> Array:
        """Σ squares_k q^k (1 - (1 - m)^k), all terms in relative precision."""
        fall, power, total = np.zeros_like(m), np.float64(1.0), np.zeros_like(m)
        for k in range(1, degree + 1):
            fall, power = m + (1 - m) * fall, power * q
            if k in squares:
                total = total + squares[k] * power * fall
        return total

    def deficit(q: float, m: Array) -> Array:
        return falling(q, m, {k: at(k, q) ** 2 for k in used})

    def deficit_in_var(q: float, m: Array) -> Array:
        return falling(q, m, {k: at(k, q) * moved(k, q) / q for k in used})

    def surplus(q: float, m: Array) -> Array:
        signed = {k: at(k, q) ** 2 * (-1.0 if k % 2 == 0 else 1.0) for k in used}
        even = sum((at(k, q) ** 2 * q**k for k in used if k % 2 == 0), start=0.0 * q)
        return 2 * even + falling(q, m, signed)

    def loss(var: float) -> float:
        """Largest sum of absolute terms over the largest coefficient: 1 where nothing cancels."""
        with np.errstate(all="ignore"):
            size = np.float64(var) ** (0.5 * (np.array(used) - degree * (var > 1)))
            terms = size * [at(k, np.float64(var), np.abs(rows[k])) for k in used]
            ratio = terms.max() / np.abs(size * [at(k, np.float64(var)) for k in used]).max()
        return min(float(ratio), 1 / EPS) if np.isfinite(ratio) else 1.0

    parity: Parity = "none"
    if all(k % 2 == 0 for k in used):
        parity = "even"
    elif all(k % 2 == 1 for k in used):
        parity = "odd"
    return ClosedForm(
        value, slope, radial, deficit, deficit_in_var, parity, loss=loss, surplus=surplus
    )


def _hermite_row(coefficients: tuple[float, ...], k: int) -> Array:
    """Coefficients of B_k(q): those of p_j with j = k, k + 2, ..."""
    terms = range((len(coefficients) - 1 - k) // 2 + 1)
    weights = [
        factorial(k + 2 * i) / (2**i * factorial(i) * np.sqrt(float(factorial(k)))) for i in terms
    ]
    return np.array([weights[i] * coefficients[k + 2 * i] for i in terms])
