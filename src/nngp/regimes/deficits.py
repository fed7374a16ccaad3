"""Deficits D(e) = F(q, 1) - F(q, 1 - e) of one activation at many variances at once.

Takes an activation and an array of variances; gives functions of an array of e, one for each
variance, and their slopes dD/de = q E[phi'(u) phi'(v)].

- Closed forms are used as they are.
- Far from c = 1, for e >= 0.04, 1024 terms of Mehler's series are enough for any activation. The
  coefficients are analytic in log q in a strip of half-width π/2, so those at 16 Chebyshev points
  give all within a factor of four in q, to 1e-11.
- Nearer, every pair is a quadrature.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nngp import _chebyshev
from nngp.architecture import Activation
from nngp.covariance import ClosedForm, closed_form
from nngp.covariance.hermite import hermite_blocks, nodes
from nngp.covariance.pair import Pair
from nngp.covariance.resolve import resolve

Array = NDArray[np.float64]
Index = NDArray[np.intp]
FAR, TERMS = 0.04, 1024  # 0.96^1024 = 1e-18
WIDTH, POINTS = np.log(4.0), 16  # of a panel in log q: 4.7^-16 = 1e-11


class Deficits(Protocol):
    """Deficits and slopes at fixed variances, elementwise in e."""

    def __call__(self, e: Array) -> Array:
        """F(q, 1) - F(q, 1 - e)."""
        ...

    def slope(self, e: Array) -> Array:
        """E[phi'(u) phi'(v)] at correlation 1 - e."""
        ...


def far_deficits(activation: Activation, q: Array) -> Deficits:
    """For FAR <= e <= 1; slopes up to 2 - FAR."""
    if activation.closed_form is not None:
        return _Closed(closed_form(activation.closed_form), q)
    return _Series(activation, q)


def near_deficits(activation: Activation, q: Array) -> Deficits:
    """For any e in (0, 1]; slopes up to 2."""
    if activation.closed_form is not None:
        return _Closed(closed_form(activation.closed_form), q)
    return _Pairs(activation, q)


class _Closed:
    def __init__(self, form: ClosedForm, q: Array) -> None:
        self._form, self._q = form, q

    def __call__(self, e: Array) -> Array:
        q: Any = self._q  # elementwise in the variance as well
        return self._form.deficit(q, e)

    def slope(self, e: Array) -> Array:
        m = np.minimum(e, 2 - e)
        return np.asarray(self._form.slope(np, self._q, self._q, 1 - e, m) + 0 * e)


class _Series:
    """E[phi²] - sum of a_k² c^k, whose later terms no longer count."""

    def __init__(self, activation: Activation, q: Array) -> None:
        self._q = q
        self._powers, self._second = np.empty((len(q), TERMS)), np.empty(len(q))
        for members, at, weights in _panels(np.log(q)):
            terms = [_first_terms(activation, float(v)) for v in at]
            coefs, second = (np.array(part) for part in zip(*terms, strict=True))
            self._powers[members] = (weights @ coefs) ** 2
            self._second[members] = weights @ second

    def __call__(self, e: Array) -> Array:
        mean = self._powers[:, 0]
        return self._second - mean - _polynomials(1 - e, self._powers[:, 1:]) * (1 - e)

    def slope(self, e: Array) -> Array:
        return _polynomials(1 - e, np.arange(1, TERMS) * self._powers[:, 1:]) / self._q


class _Pairs:
    """Quadrature for each variance."""

    def __init__(self, activation: Activation, q: Array) -> None:
        self._activation, self._q = activation, q

    def __call__(self, e: Array) -> Array:
        return np.array([pair.deficit(0.0)[0] for pair in self._at(e)])

    def slope(self, e: Array) -> Array:
        return np.array([pair.slope(0.0)[0] for pair in self._at(e)])

    def _at(self, e: Array) -> list[Pair]:
        both = zip(self._q.tolist(), e.tolist(), strict=True)
        return [Pair(self._activation, q, q, x > 1, min(x, 2 - x)) for q, x in both]


def _first_terms(activation: Activation, q: float) -> tuple[Array, float]:
    """The Hermite coefficients of phi(sqrt(q) z), and E[phi²]."""
    z, weight = nodes(resolve(activation, q), q, widest=10.0 / np.sqrt(TERMS))
    phi = activation(np.sqrt(q) * z)
    # einsum: for products this thin, starting the threads of BLAS takes longer
    coefs = [np.einsum("kz,z->k", block, weight * phi) for block in hermite_blocks(z, TERMS)]
    return np.concatenate(coefs), float(np.sum(weight * phi**2))


def _polynomials(x: Array, coefs: Array) -> Array:
    """sum of coefs[:, k] x^k, one polynomial for each x."""
    total = np.zeros_like(x)
    for column in coefs.T[::-1]:
        total = total * x + column
    return total


def _panels(log_q: Array) -> list[tuple[Index, Array, Array]]:
    """Groups of variances, the variances that stand for a group, and how to weigh those."""
    out = []
    panel = np.floor((log_q - log_q.min(initial=0.0)) / WIDTH)
    for number in np.unique(panel):
        members = np.flatnonzero(panel == number)
        own, which = np.unique(log_q[members], return_inverse=True)
        if len(own) <= POINTS:
            out.append((members, np.exp(own), np.eye(len(own))[which]))
            continue
        middle, half = 0.5 * (own[-1] + own[0]), 0.5 * (own[-1] - own[0])
        at = np.exp(middle + half * _chebyshev.points(POINTS))
        out.append((members, at, _weights((log_q[members] - middle) / half)))
    return out


def _weights(t: Array) -> Array:
    """The matrix that takes values at the Chebyshev points to values at t."""
    to_coefs = _chebyshev.coefficients(np.eye(POINTS)).T
    return np.polynomial.chebyshev.chebvander(t, POINTS - 1) @ to_coefs
