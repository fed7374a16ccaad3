"""Deficits D(e) = F(q, 1) - F(q, 1 - e) of one activation at many variances at once.

Takes an activation and an array of variances; gives functions of an array of e, one for each
variance, and their slopes dD/de = q E[phi'(u) phi'(v)].

- Closed forms are evaluated directly.
- Far from c = 1, for e >= 0.04, 1024 terms of Mehler's series are enough for any activation. The
  coefficients are analytic in log q in a strip of half-width π/2, so those at 16 Chebyshev points
  give all within a factor of four in q, to 1e-11.
- For smaller e each pair is a quadrature, and below 1e-4, where differences of phi lose their
  digits, an interpolated layer.
"""

from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np

from nngp import _chebyshev
from nngp._arrays import Array, Index, Mask
from nngp.architecture import Activation
from nngp.covariance import ClosedForm, closed_form, layer_at
from nngp.covariance.hermite import hermite_blocks, nodes
from nngp.covariance.pair import Pair
from nngp.covariance.resolve import resolve

FAR, TERMS = 0.04, 1024  # 0.96^1024 = 1e-18
CLOSE = 1e-4
WIDTH, POINTS = np.log(4.0), 16  # of a panel in log q: 4.7^-16 = 1e-11


class Deficits(Protocol):
    """Deficits and slopes at fixed variances, elementwise in e."""

    def __call__(self, e: Array) -> Array:
        """F(q, 1) - F(q, 1 - e)."""
        ...

    def slope(self, e: Array) -> Array:
        """E[phi'(u) phi'(v)] at correlation 1 - e."""
        ...

    def only(self, which: Mask) -> "Deficits":
        """The same at some of the variances."""
        ...


def far_deficits(activation: Activation, q: Array) -> Deficits:
    """Deficits for FAR <= e <= 1, slopes for e up to 2 - FAR."""
    if activation.closed_form is not None:
        return _Closed(closed_form(activation.closed_form), q)
    return _series(activation, q)


def near_deficits(activation: Activation, q: Array) -> Deficits:
    """Deficits for e in (0, 1], slopes for e up to 2."""
    if activation.closed_form is not None:
        return _Closed(closed_form(activation.closed_form), q)
    return _Pairs(activation, q)


def at_one_variance(activation: Activation, q: float, e: Array) -> Array:
    """F(q, 1) - F(q, 1 - e) for many e in [0, 1], to 1e-4 where e is below 1e-4."""
    out, distant = np.zeros_like(e), e >= FAR
    near = np.maximum(e[~distant], CLOSE)
    shrunk = e[~distant] / near  # D is linear to 1e-4 that near 0
    out[distant] = far_deficits(activation, np.full(int(distant.sum()), q))(e[distant])
    out[~distant] = shrunk * near_deficits(activation, np.full(len(near), q))(near)
    return out


@dataclass(frozen=True)
class _Closed:
    """Closed forms."""

    form: ClosedForm
    q: Array

    def __call__(self, e: Array) -> Array:
        return self.form.deficit(cast(float, self.q), e)  # elementwise in the variance as well

    def slope(self, e: Array) -> Array:
        m = np.minimum(e, 2 - e)
        return np.asarray(self.form.slope(np, self.q, self.q, 1 - e, m) + 0 * e)

    def only(self, which: Mask) -> Deficits:
        return _Closed(self.form, self.q[which])


@dataclass(frozen=True)
class _Series:
    """E[phi²] - sum of a_k² c^k, truncated where terms are below rounding."""

    q: Array
    second: Array  # E[phi²]
    powers: Array  # a_k², shape (variances, terms)

    def __call__(self, e: Array) -> Array:
        mean = self.powers[:, 0]
        return self.second - mean - (1 - e) * _polynomials(1 - e, self.powers[:, 1:])

    def slope(self, e: Array) -> Array:
        return _polynomials(1 - e, np.arange(1, TERMS) * self.powers[:, 1:]) / self.q

    def only(self, which: Mask) -> Deficits:
        return _Series(self.q[which], self.second[which], self.powers[which])


@dataclass(frozen=True)
class _Pairs:
    """A quadrature for each variance."""

    activation: Activation
    q: Array

    def __call__(self, e: Array) -> Array:
        return np.array([self._deficit(pair) for pair in self._at(e)])

    def slope(self, e: Array) -> Array:
        return np.array([pair.slope(0.0)[0] for pair in self._at(e)])

    def only(self, which: Mask) -> Deficits:
        return _Pairs(self.activation, self.q[which])

    def _deficit(self, pair: Pair) -> float:
        if pair.m >= CLOSE:
            return pair.deficit(0.0)[0]
        layer = layer_at(self.activation, pair.var1)
        return float(layer.deficit(np.zeros(1, bool), np.array([pair.m]))[0])

    def _at(self, e: Array) -> list[Pair]:
        both = zip(self.q.tolist(), e.tolist(), strict=True)
        return [Pair(self.activation, q, q, x > 1, min(x, 2 - x)) for q, x in both]


def _series(activation: Activation, q: Array) -> _Series:
    powers, second = np.empty((len(q), TERMS)), np.empty(len(q))
    for members, at, weights in _panels(np.log(q)):
        terms = [_first_terms(activation, float(v)) for v in at]
        powers[members] = (weights @ np.array([coefs for coefs, _ in terms])) ** 2
        second[members] = weights @ np.array([moment for _, moment in terms])
    return _Series(q, second, powers)


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
    """Groups of similar variances: members, nodes in q, and interpolation weights of the nodes."""
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
