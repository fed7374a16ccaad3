"""One layer by Mehler's formula: one-dimensional integrals only.

With h_k the normalised Hermite polynomials and a_k(q) = E[phi(sqrt(q) z) h_k(z)],

    F(q, q', c) = sum_k a_k(q) a_k(q') c^k.

Two identities are used. The deficit F(1) - F(c) = sum a_k² (1 - c^k) has
no cancellation for q = q', c >= 0; and integrating by parts twice,

    d a_k / d log sqrt(q) = k a_k + sqrt((k+1)(k+2)) a_{k+2},

so derivatives in the variances need no derivative of phi. The part of E[phi²] beyond the last term
bounds the truncation error of the series (Cauchy-Schwarz).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import numpy as np

from nngp._arrays import EPS, TINY, Array
from nngp.architecture import Activation
from nngp.covariance.resolve import Resolved, level_of, resolve

MOST_TERMS = 16384
KINKED_TERMS = 256  # a kink leaves an algebraic tail: more terms would not end it
GAUSS = 20
COMPLETE = 1e-15
BLOCK = 256  # Hermite functions at a time


@dataclass(frozen=True)
class Series:
    """The Hermite coefficients of phi(sqrt(var) z), for one variance or a column of them."""

    coefs: Array  # (..., terms)
    second_moment: Array  # E[phi²], (...)
    is_complete: bool  # sum k a_k² has converged to rounding

    @property
    def left_out(self) -> Array:
        """sum of a_k² beyond the last term, and no less than rounding of E[phi²]."""
        missing = self.second_moment - np.sum(self.coefs**2, axis=-1)
        return np.maximum(missing, 8 * EPS * self.second_moment)

    @property
    def radial_coefs(self) -> Array:
        """Coefficients of x phi'(x), the derivative in log sqrt(var)."""
        return radial_coefficients(self.coefs)


def radial_coefficients(coefs: Array) -> Array:
    """Coefficients of x phi'(x) from those of phi, along the last axis."""
    k = np.arange(coefs.shape[-1])
    out = k * coefs
    out[..., :-2] += np.sqrt((k[:-2] + 1) * (k[:-2] + 2)) * coefs[..., 2:]
    return out


@lru_cache(maxsize=256)
def expand(activation: Activation, var: float, most: int = MOST_TERMS) -> Series:
    """The series at one variance, with as many terms as it needs, up to `most`."""
    series = expand_many(activation, np.array([var]), most=most)
    return Series(series.coefs[0], series.second_moment[0], series.is_complete)


def expand_many(
    activation: Activation, var: Array, tol: float = COMPLETE, most: int = MOST_TERMS
) -> Series:
    """The series at many variances: one matrix product (one variance only if there are kinks).

    Terms are added until the part of E[phi²] beyond them is below `tol` of it; with the default,
    until sum k a_k² has converged too, which derivatives and small deficits need.
    """
    resolved = resolve(activation, float(var.max()))
    if not resolved.is_smooth:
        return _expand_at(resolved, var, KINKED_TERMS, tol)
    terms, series = 64, _expand_at(resolved, var, 64, tol)
    while not series.is_complete and terms < most and _is_within_reach(series, tol):
        terms *= 2
        series = _expand_at(resolved, var, terms, tol)
    return series


def _expand_at(resolved: Resolved, var: Array, terms: int, tol: float) -> Series:
    # Shared nodes in z: for kinked functions the caller gives one variance at a time.
    z, weight = nodes(resolved, float(var.max()), widest=10.0 / np.sqrt(terms))
    values = resolved.activation(np.sqrt(var)[:, None] * z)
    weighted = values * weight
    coefs = [weighted @ block.T for block in hermite_blocks(z, terms)]
    moments = np.sum((values * np.sqrt(weight)) ** 2, axis=1)  # phi² alone may be past float64
    series = Series(np.concatenate(coefs, axis=1), moments, False)
    total, _, last = _slope_sums(series)
    noise = EPS**2 * terms * series.second_moment
    if tol > COMPLETE:
        is_complete = np.all(series.left_out <= tol * series.second_moment)
    else:
        is_complete = np.all(last <= COMPLETE * total + noise)
    return replace(series, is_complete=bool(is_complete))


def _slope_sums(series: Series) -> tuple[Array, Array, Array]:
    """sum of k a_k² over all terms, over their second quarter, and over their last half."""
    slopes = np.arange(series.coefs.shape[-1]) * series.coefs**2
    quarter = slopes.shape[-1] // 4
    return (
        slopes.sum(axis=-1),
        slopes[..., quarter : 2 * quarter].sum(axis=-1),
        slopes[..., 2 * quarter :].sum(axis=-1),
    )


def _is_within_reach(series: Series, tol: float) -> bool:
    """Whether the series would converge within MOST_TERMS terms, by extrapolation.

    For an analytic phi with poles log a_k² falls like -sqrt(k).
    """
    total, before, last = _slope_sums(series)
    terms = series.coefs.shape[-1]
    if terms < 2048:  # too early to tell
        return True
    fall = np.log(np.maximum(before, TINY) / np.maximum(last, TINY))
    missing = np.log(np.maximum(last, TINY) / (tol * total + TINY))
    if np.any(fall < 0.1):  # a plateau: noise of phi, or an undetected kink
        return False
    # sqrt(k) must grow by missing / rate, rate = fall / (sqrt(terms) - sqrt(terms/2))
    growth = missing * (1 - np.sqrt(0.5)) / fall
    return bool(np.all((1 + growth) ** 2 * terms < 2 * MOST_TERMS))


def second_moments(activation: Activation, var: Array) -> Array:
    """E[phi(u)²] at positive variances; those of one level share nodes on the panels of phi."""
    out, level = np.empty(len(var)), np.array([level_of(activation, float(q)) for q in var])
    for one in np.unique(level):
        here = level == one
        resolved = resolve(activation, float(one))
        least = float(np.sqrt(var[here].min()))
        bound = resolved.piecewise.edges[-1]
        regular = np.linspace(-bound, bound, 1 + int(np.ceil(2 * bound / least)))
        x, weight = plain_gauss(np.union1d(resolved.piecewise.edges, regular))
        # Roots of the density, since phi² alone may be past float64 where phi grows.
        roots = np.exp(-0.25 * x**2 / var[here, None])
        terms = weight * (roots * resolved.activation(x)) ** 2
        # A sum of each row by itself: rows of a product are added in an order that depends on how
        # many there are.
        out[here] = terms.sum(axis=1) / np.sqrt(2 * np.pi * var[here])
    return out


def nodes(resolved: Resolved, var: float, widest: float = 1.0) -> tuple[Array, Array]:
    """Gauss-Legendre nodes in z on the activation's panels, weighted by the normal density."""
    reach = np.sqrt(2) * resolved.reach
    breaks = resolved.edges / np.sqrt(var)
    regular = np.linspace(-reach, reach, 1 + int(np.ceil(2 * reach / widest)))
    return gauss(np.union1d(breaks[np.abs(breaks) < reach], regular))


@cache
def legendre(order: int) -> tuple[Array, Array]:
    """Gauss-Legendre nodes and weights on [-1, 1]; NumPy solves an eigenproblem every time."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    nodes.setflags(write=False)
    weights.setflags(write=False)
    return nodes, weights


def gauss(edges: Array, order: int = GAUSS) -> tuple[Array, Array]:
    """Composite Gauss-Legendre nodes between `edges`, with the normal density in the weights."""
    z, weight = plain_gauss(edges, order)
    return z, weight * np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)


def plain_gauss(edges: Array, order: int = GAUSS) -> tuple[Array, Array]:
    """Composite Gauss-Legendre nodes and weights between `edges`."""
    t, w = legendre(order)
    half, middle = 0.5 * np.diff(edges)[:, None], 0.5 * (edges[1:] + edges[:-1])[:, None]
    return (middle + half * t).ravel(), (half * w).ravel()


def hermite_blocks(z: Array, terms: int) -> Iterator[Array]:
    """h_0 .. h_{terms-1} at z, orthonormal under the normal density, in blocks (k, z)."""
    before, here = np.zeros_like(z), np.ones_like(z)
    for start in range(0, terms, BLOCK):
        block = np.empty((min(BLOCK, terms - start), len(z)))
        for row in range(len(block)):
            k = start + row
            block[row] = here
            before, here = here, (z * here - np.sqrt(k) * before) / np.sqrt(k + 1.0)
        yield block


def derivatives(first: Series, second: Series, corr: Array) -> tuple[Array, Array, Array]:
    """dF/dc, E[u phi'(u) phi(v)] and E[phi(u) v phi'(v)] at many correlations."""
    terms = min(first.coefs.shape[-1], second.coefs.shape[-1])
    a, b = first.coefs[:terms], second.coefs[:terms]
    slope = polynomial(corr, np.arange(1, terms) * a[1:] * b[1:])
    radial1 = polynomial(corr, first.radial_coefs[:terms] * b)
    radial2 = polynomial(corr, a * second.radial_coefs[:terms])
    return slope, radial1, radial2


def polynomial(x: Array, coefs: Array) -> Array:
    """sum_k coefs[k] x^k by Horner's rule."""
    return np.asarray(np.polynomial.polynomial.polyval(x, coefs), dtype=np.float64)


def deficits(series: Series, m: Array, negative: bool, weights: Array | None = None) -> Array:
    """F(1) - F(±(1 - m)) = sum w_k (1 - (±1)^k (1-m)^k), by default with w_k = a_k²."""
    w = series.coefs**2 if weights is None else weights
    k = np.arange(1, w.shape[-1])
    fall = -np.expm1(np.outer(np.log1p(-m), k))  # 1 - (1-m)^k, relative precision
    if not negative:
        return fall @ w[1:]
    signs = np.where(k % 2 == 0, 1.0, -1.0)
    return fall @ (signs * w[1:]) + 2 * np.sum(w[1::2])


def surpluses(series: Series, m: Array) -> Array:
    """F(1) + F(-(1 - m)) = sum a_k² (1 + (-1)^k (1-m)^k), without cancellation."""
    w = series.coefs**2
    k = np.arange(1, w.shape[-1])
    fall = -np.expm1(np.outer(np.log1p(-m), k))
    return 2 * w[0] + np.where(k % 2 == 0, 2 - fall, fall) @ w[1:]
