"""One layer of any activation, to a tolerance: series, asymptotic form, or quadrature.

Takes flat arrays of variances and correlations; gives values (or derivatives) with an absolute
error for each. Mehler's series serves most pairs. Where it does not converge, the asymptotic form
of large variances serves activations with straight limits, and quadrature all others. The error
is an estimate by the method itself: the part of E[phi²] beyond the terms of the series, or the
difference of two orders, plus rounding and unresolved noise of phi.
"""

import numpy as np

from nngp._arrays import EPS, TINY, Array, Index
from nngp.architecture import Activation
from nngp.covariance import asymptotic, hermite
from nngp.covariance.hermite import Series
from nngp.covariance.pair import Pair
from nngp.covariance.resolve import resolve

CHUNK = 65_536
SHARED = 1e-13  # relative error of E[phi²] at which variances may share nodes


def covariance(
    activation: Activation, var1: Array, var2: Array, corr: Array, tol: float, method: str
) -> tuple[Array, Array]:
    """E[phi(u) phi(v)] for flat arrays; `method` is "auto", "series" or "quadrature"."""
    unique, inverse = np.unique(np.concatenate([var1, var2]), return_inverse=True)
    i1, i2 = inverse[: len(var1)], inverse[len(var1) :]
    table = Expansions(activation, unique)
    value, error = table.covariance(i1, i2, corr)
    if method != "series":
        scale = table.scale(i1, i2)
        poor = (var1 > 0) & (var2 > 0)  # at variance 0 the series is exact
        if method == "auto":
            poor &= error > (tol + 4 * table.noise) * scale
        where = var1[poor], var2[poor], corr[poor]
        beyond = by_quadrature if method == "quadrature" else beyond_series
        value[poor], error[poor] = beyond(activation, *where, scale[poor], tol)
    return value, error


def beyond_series(
    activation: Activation, var1: Array, var2: Array, corr: Array, scale: Array, tol: float
) -> tuple[Array, Array]:
    """E[phi(u) phi(v)] for flat arrays without the series, to tol * scale, and its error."""
    first, second = asymptotic.straighten_pairs(activation, var1, var2)
    value, error = asymptotic.bilinear(first, second, corr, 1 - np.abs(corr))
    noise = noise_at(activation, np.union1d(var1, var2))
    tol += noise  # quadrature cannot do better than phi itself
    poor = ~(error <= tol * scale)
    error += 2 * noise * scale
    where = var1[poor], var2[poor], corr[poor]
    value[poor], error[poor] = by_quadrature(activation, *where, scale[poor], tol)
    return value, error


def noise_at(activation: Activation, var: Array) -> float:
    """Unresolved part of phi at these variances, relative to its root mean square."""
    return max([resolve(activation, float(q)).error for q in var if q > 0], default=0.0)


def covariance_grid(activation: Activation, var: Array, corr: Array, tol: float) -> Array:
    """E[phi(u) phi(v)] for every variance with every correlation: one matrix product."""
    table = Expansions(activation, var, tol=0.1 * tol)
    powers = _powers(corr, table.coefs.shape[1])
    value = table.coefs**2 @ powers
    error = table.left_out[:, None] * np.abs(corr) ** table.terms[:, None]
    i, j = np.nonzero((error > tol * table.second_moment[:, None]) & (var[:, None] > 0))
    scale = table.second_moment[i]
    value[i, j] = beyond_series(activation, var[i], var[i], corr[j], scale, tol)[0]
    return value


def _powers(corr: Array, terms: int) -> Array:
    out = np.empty((terms, len(corr)))
    out[0] = 1.0
    for k in range(1, terms):
        np.multiply(out[k - 1], corr, out=out[k])
    return out


def by_quadrature(
    activation: Activation, var1: Array, var2: Array, corr: Array, scale: Array, tol: float
) -> tuple[Array, Array]:
    """E[phi(u) phi(v)] for flat arrays by quadrature alone, to tol * scale, and its error."""
    out = np.empty((2, len(corr)))
    for i, where in enumerate(zip(var1, var2, corr, strict=True)):
        pair = pair_at(activation, *where)
        out[:, i] = pair.product(tol * scale[i])
        out[1, i] += (2 * EPS + 2 * pair.resolved.error) * scale[i]
    return out[0], out[1]


def derivatives(
    activation: Activation, var1: Array, var2: Array, corr: Array, tol: float
) -> tuple[Array, Array, Array, Array]:
    """E[phi'(u) phi'(v)], E[u phi'(u) phi(v)], E[phi(u) v phi'(v)] and their error, elementwise.

    The error holds for the second and third, and for the first times sqrt(var1 var2).
    """
    moment1, moment2 = (hermite.second_moments(activation, q) for q in (var1, var2))
    scale = np.sqrt(moment1) * np.sqrt(moment2)
    out = _derivatives_at_large_variances(activation, var1, var2, corr)
    noise = noise_at(activation, np.union1d(var1, var2))
    out[3] += (1e3 * EPS + 2 * noise) * scale
    for i in np.flatnonzero(~(out[3] <= (tol + 4 * noise) * scale)):
        out[:, i] = _derivatives_of_pair(activation, var1[i], var2[i], corr[i], tol, scale[i])
    return out[0], out[1], out[2], out[3]


def _derivatives_at_large_variances(
    activation: Activation, var1: Array, var2: Array, corr: Array
) -> Array:
    """The asymptotic form of the three derivatives, and its error."""
    (first, second), m = asymptotic.straighten_pairs(activation, var1, var2), 1 - np.abs(corr)
    slope, e0 = asymptotic.bilinear(first.derivative(), second.derivative(), corr, m)
    radial1, e1 = asymptotic.bilinear(first.radial(), second, corr, m)
    radial2, e2 = asymptotic.bilinear(first, second.radial(), corr, m)
    size = np.sqrt(var1) * np.sqrt(var2)
    return np.stack([slope, radial1, radial2, np.maximum(np.maximum(e0 * size, e1), e2)])


def _derivatives_of_pair(
    activation: Activation, q1: float, q2: float, c: float, tol: float, scale: float
) -> tuple[float, float, float, float]:
    """The three derivatives of one pair by the series or by quadrature, and their error."""
    first, second = (asymptotic.expand(activation, float(q)) for q in (q1, q2))
    size, pair = float(np.sqrt(q1) * np.sqrt(q2)), pair_at(activation, q1, q2, c)
    # Differentiating panels or summing k a_k c^k costs some digits.
    floor = (1e3 * EPS + 2 * pair.resolved.error) * scale
    if first.is_complete and second.is_complete:
        slope, r1, r2 = map(float, hermite.derivatives(first, second, np.array(c)))
        return slope / size, r1, r2, floor
    slope, e0 = pair.slope(tol * scale / size)
    (r1, e1), (r2, e2) = (pair.radial(which, tol * scale) for which in (0, 1))
    return slope, r1, r2, max(e0 * size, e1, e2) + floor


def second_moment(activation: Activation, var: Array) -> Array:
    """E[phi(u)²] for many variances."""
    out = np.full(len(var), float(activation(np.zeros(1))[0] ** 2))
    out[var > 0] = hermite.second_moments(activation, var[var > 0])
    return out


def pair_at(activation: Activation, var1: float, var2: float, corr: float) -> Pair:
    """The pair of Gaussian variables with these variances and this correlation."""
    return Pair(activation, float(var1), float(var2), bool(corr < 0), float(1 - abs(corr)))


def expansion_terms(activation: Activation, var: float) -> int:
    """Terms of the series that `Expansions` has at a variance."""
    return int(Expansions(activation, np.array([var])).coefs.shape[1])


class Expansions:
    """Hermite series of one activation at many variances, which may include zero."""

    def __init__(self, activation: Activation, var: Array, tol: float = hermite.COMPLETE) -> None:
        self.activation, self.var = activation, var
        parts = _expand_by_bucket(activation, var, tol)
        terms = max([series.coefs.shape[-1] for _, series in parts], default=1)
        self.coefs = np.zeros((len(var), terms))
        self.second_moment, self.terms = np.zeros(len(var)), np.ones(len(var), dtype=np.int64)
        left_out = np.zeros(len(var))
        at_zero = activation(np.zeros(1))[0]
        self.coefs[var == 0, 0], self.second_moment[var == 0] = at_zero, at_zero**2
        for members, series in parts:
            self.coefs[members, : series.coefs.shape[-1]] = series.coefs
            self.second_moment[members] = series.second_moment
            left_out[members], self.terms[members] = series.left_out, series.coefs.shape[-1]
        # What the first k terms of each series leave out of E[phi²]
        rest = np.cumsum(self.coefs[:, ::-1] ** 2, axis=1)[:, ::-1]
        self.rests = np.concatenate([rest, np.zeros((len(var), 1))], axis=1) + left_out[:, None]
        self.noise = noise_at(activation, var)

    @property
    def left_out(self) -> Array:
        """The part of E[phi²] that all terms of each series miss."""
        return self.rests[:, -1]

    def scale(self, i1: Index, i2: Index) -> Array:
        """sqrt(F(q1,q1,1) F(q2,q2,1)), to which tolerances are relative."""
        return np.sqrt(self.second_moment[i1]) * np.sqrt(self.second_moment[i2])

    def covariance(self, i1: Index, i2: Index, corr: Array) -> tuple[Array, Array]:
        """The series summed for pairs of variances (by index), and a bound on its error."""
        value = np.empty_like(corr)
        for start in range(0, len(corr), CHUNK):
            part = slice(start, start + CHUNK)
            total = np.zeros_like(corr[part])
            for k in range(self.coefs.shape[1] - 1, -1, -1):
                total *= corr[part]
                total += self.coefs[i1[part], k] * self.coefs[i2[part], k]
            value[part] = total
        terms = np.minimum(self.terms[i1], self.terms[i2])
        error = np.sqrt(self.rests[i1, terms]) * np.sqrt(self.rests[i2, terms])
        error *= np.abs(corr) ** terms
        return value, error + (8 * EPS + 2 * self.noise) * self.scale(i1, i2)

    def tile(self, rows: Index, columns: Index, corr: Array) -> Array:
        """The series for a block of pairs, rows and columns given by index."""
        total = np.zeros_like(corr)
        terms = self._terms_for(rows, columns, float(np.abs(corr).max(initial=0.0)))
        for k in range(terms - 1, -1, -1):
            total *= corr
            total += self.coefs[rows, k][:, None] * self.coefs[columns, k]
        return total

    def tile_derivatives(
        self, rows: Index, columns: Index, corr: Array
    ) -> tuple[Array, Array, Array]:
        """dF/dc, and 2 q dF/dq at fixed c for either variance, for a block of pairs."""
        radial = self._radial_coefs()
        slope, first, second = np.zeros_like(corr), np.zeros_like(corr), np.zeros_like(corr)
        terms = self._terms_for(rows, columns, float(np.abs(corr).max(initial=0.0)), power=2)
        for k in range(terms - 1, -1, -1):
            a, b = self.coefs[rows, k][:, None], self.coefs[columns, k]
            if k > 0:
                slope *= corr
                slope += (k * a) * b
            first *= corr
            first += radial[rows, k][:, None] * b
            second *= corr
            second += a * radial[columns, k]
        return slope, first, second

    def radial_moment(self) -> Array:
        """E[u phi'(u) phi(u)], that is q d E[phi²]/dq, for each variance."""
        out = (self.coefs * self._radial_coefs()).sum(axis=1)
        moment = np.maximum(self.second_moment, TINY)
        poor = np.flatnonzero(self.left_out > 1e-13 * moment)
        one = np.ones(len(poor))
        out[poor] = derivatives(self.activation, self.var[poor], self.var[poor], one, 1e-12)[1]
        return out

    def _radial_coefs(self) -> Array:
        """2 q da_k/dq, by Stein's lemma."""
        return hermite.radial_coefficients(self.coefs)

    def tile_error(self, rows: Index, columns: Index, corr: Array) -> Array:
        """Truncation error of `tile`, relative to `scale`."""
        terms = np.minimum(self.terms[rows][:, None], self.terms[columns])
        i, j = rows[:, None], columns[None, :]
        moments = np.maximum(self.second_moment, TINY)
        shares = self.rests[i, terms] / moments[i], self.rests[j, terms] / moments[j]
        out: Array = np.sqrt(shares[0]) * np.sqrt(shares[1]) * np.abs(corr) ** terms
        return out

    def _terms_for(self, rows: Index, columns: Index, largest: float, power: int = 0) -> int:
        """Number of terms beyond which the sum, weighted by k^power, is below rounding."""
        used = np.union1d(rows, columns)
        moment = np.maximum(self.second_moment[used], TINY)
        share = np.max(self.coefs[used] ** 2 / moment[:, None], axis=0)
        k = np.arange(len(share))
        weight = share * largest**k * (1.0 + k) ** power
        beyond = np.cumsum(weight[::-1])[::-1]
        return min(int(np.searchsorted(-beyond, -0.25 * EPS)) + 1, len(share))


def _expand_by_bucket(activation: Activation, var: Array, tol: float) -> list[tuple[Index, Series]]:
    """Series for groups of similar variances that can share their nodes."""
    parts: list[tuple[Index, Series]] = []
    bucket = np.ceil(np.log2(np.where(var > 0, var, 1.0)) / 2)
    for level in np.unique(bucket[var > 0]):
        members = np.flatnonzero((bucket == level) & (var > 0))
        shared = _expand_together(activation, var[members], tol) if len(members) > 1 else None
        if shared is not None:
            parts.append((members, shared))
            continue
        for i in members:
            one = asymptotic.expand(activation, float(var[i]))
            column = Series(one.coefs[None], np.atleast_1d(one.second_moment), one.is_complete)
            parts.append((np.array([i]), column))
    return parts


def _expand_together(activation: Activation, var: Array, tol: float) -> Series | None:
    """Series with shared nodes; None if phi has kinks, or features too narrow for such nodes."""
    if not resolve(activation, float(var.max())).is_smooth:
        return None
    most = asymptotic.useful_terms(activation, float(var.max()))
    series = hermite.expand_many(activation, var, tol, most)
    exact = hermite.second_moments(activation, var)
    return series if np.all(np.abs(series.second_moment - exact) <= SHARED * exact) else None
