"""Deficits D(e) = F(q, 1) - F(q, 1 - e) of one activation at many variances at once.

Takes an activation and an array of variances; gives functions of an array of e, one for each
variance. Closed forms are used as they are. For any other activation a layer costs up to a tenth
of a second to build, so many variances share few: D is analytic in log q in a strip of half-width
π/2, and layers at 24 Chebyshev points resolve a factor of nine in q to 1e-12.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nngp import _chebyshev
from nngp.architecture import Activation
from nngp.covariance import ClosedForm, closed_form, layer_at

Array = NDArray[np.float64]
Index = NDArray[np.intp]
WIDTH = np.log(9.0)  # of a panel in log q: 3.2^-24 = 1e-12
POINTS = 24


class Deficits(Protocol):
    """Deficits and their slopes at fixed variances, elementwise in e."""

    def __call__(self, e: Array) -> Array:
        """F(q, 1) - F(q, 1 - e) for 0 <= e <= 1."""
        ...

    def slope(self, e: Array) -> Array:
        """E[phi'(u) phi'(v)] at correlation 1 - e, for 0 < e <= 1."""
        ...

    def slope_at(self, corr: float) -> Array:
        """E[phi'(u) phi'(v)] at one correlation in [-1, 1)."""
        ...


def deficits_at(activation: Activation, q: Array) -> Deficits:
    """The deficits of an activation at the variances q."""
    if activation.closed_form is not None:
        return _Closed(closed_form(activation.closed_form), q)
    return _Layers(activation, q)


class _Closed:
    def __init__(self, form: ClosedForm, q: Array) -> None:
        self._form, self._q = form, q

    def __call__(self, e: Array) -> Array:
        deficit: Callable = self._form.deficit  # elementwise in q as well
        return deficit(self._q, e)

    def slope(self, e: Array) -> Array:
        return np.asarray(self._form.slope(np, self._q, self._q, 1 - e, e) + 0 * e)

    def slope_at(self, corr: float) -> Array:
        m = np.full_like(self._q, 1 - abs(corr))
        return np.asarray(self._form.slope(np, self._q, self._q, corr + 0 * m, m) + 0 * m)


class _Layers:
    def __init__(self, activation: Activation, q: Array) -> None:
        self._activation, self._q = activation, q
        self._panels = list(_panels(np.log(q)))

    def __call__(self, e: Array) -> Array:
        out = np.empty_like(e)
        for members, nodes, weights in self._panels:
            here, positive = e[members], np.zeros(len(members), bool)
            layers = [layer_at(self._activation, float(q)) for q in nodes]
            if weights is None:
                pairs = zip(layers, here, strict=True)
                out[members] = [la.deficit(positive[:1], np.array([x]))[0] for la, x in pairs]
            else:
                values = np.array([layer.deficit(positive, here) for layer in layers])
                out[members] = (weights * values.T).sum(axis=1)
        return out

    def slope(self, e: Array) -> Array:
        # D is analytic in the disc |1 - e| < 1: through points on [e/3, e] or so it is a
        # polynomial to rounding, and dD/de = q E[phi' phi'].
        top = np.minimum(1.5 * e, 1.0)
        middle, half = top * (2 / 3), top / 3
        values = np.array([self(middle + half * t) for t in _chebyshev.points(POINTS)]).T
        rate = _chebyshev.differentiate(_chebyshev.coefficients(values))
        return _chebyshev.evaluate(rate, (e - middle) / half) / half / self._q

    def slope_at(self, corr: float) -> Array:
        if corr >= 0:
            return self.slope(np.full_like(self._q, 1 - corr))
        m, negative = np.array([1 + corr]), np.ones(1, bool)
        layers = [layer_at(self._activation, float(q)) for q in self._q]
        return np.array([layer.slope(negative, m)[0] for layer in layers])


def _panels(log_q: Array) -> "list[tuple[Index, Array, Array | None]]":
    """Groups of variances, the variances at which to build layers, and how to weigh those."""
    out: list[tuple[Index, Array, Array | None]] = []
    panel = np.floor((log_q - log_q.min(initial=np.inf)) / WIDTH)
    for number in np.unique(panel):
        members = np.flatnonzero(panel == number)
        here = log_q[members]
        if len(np.unique(here)) <= POINTS:
            out.append((members, np.exp(here), None))
            continue
        middle, half = 0.5 * (here.max() + here.min()), 0.5 * (here.max() - here.min())
        nodes = np.exp(middle + half * _chebyshev.points(POINTS))
        out.append((members, nodes, _weights((here - middle) / half)))
    return out


def _weights(t: Array) -> Array:
    """The matrix that interpolates from the Chebyshev points to t."""
    return (
        np.polynomial.chebyshev.chebvander(t, POINTS - 1)
        @ _chebyshev.coefficients(np.eye(POINTS)).T
    )
