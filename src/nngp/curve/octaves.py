"""Interpolation of a function of the correlation on octaves of 1 - |c|, for any network.

F_phi is a power series in c with non-negative coefficients (Mehler), and so is any composition of
layers. Such a function is analytic in the unit disc, with |f(c)| <= f(1): however deep or chaotic
the network, all its sharp features lie at c = ±1, and at distance m from there it is smooth on the
scale m. So the panels are the octaves 2^-(j+1) <= m <= 2^-j of m = 1 - |c|, on either side of 0.
On an octave the Bernstein ellipse has rho = 3 + sqrt(8): 20 Chebyshev points give 5.8^-20 ~ 5e-16.

`Octaves` is that representation. `FastTable` is derived from it for bulk work: cubics on 512 equal
parts of each octave, indexed by the leading bits of the float64 m.
"""

from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from nngp import _chebyshev
from nngp._arrays import Array, Floats, Mask, Namespace

POINTS = 20
DEEPEST = 1022  # the last octave of normal float64


def nodes(octaves: int) -> tuple[Mask, Array]:
    """Signs and m of all nodes, flat: for each sign Chebyshev points of all octaves, then m = 0."""
    low = np.ldexp(1.0, -np.arange(1, octaves + 1))
    m = np.append(low[:, None] * (1.5 + 0.5 * _chebyshev.points(POINTS)), 0.0)
    return np.repeat([False, True], len(m)), np.tile(m, 2)


def from_values(values: Array) -> "Octaves":
    """The function with these values at `nodes`."""
    both = values.reshape(2, -1)
    coefs = _chebyshev.coefficients(both[:, :-1].reshape(2, -1, POINTS))
    draft = Octaves(coefs, (float(both[0, -1]), float(both[1, -1])))
    return replace(draft, exponent=(_exponent(draft, False), _exponent(draft, True)))


def _exponent(function: "Octaves", negative: bool) -> float:
    """d log f / d log m over the last octave, 0 where f tends to a constant."""
    lowest = np.ldexp(1.0, -function.coefs.shape[1])
    low, high = np.abs(function(np.array([negative] * 2), np.array([1.0, 1.99]) * lowest))
    if low == 0 or high == 0 or (negative and abs(high - low) < 1e-4 * low):
        return 0.0
    found = float(np.log(high / low) / np.log(1.99))
    return 1.0 if abs(found - 1.0) < 1e-11 else found  # rounding, which 1000 octaves would amplify


@dataclass(frozen=True)
class Octaves:
    """A function on all octaves of either sign, continued below the last by a power law in m."""

    coefs: Array  # (2, octaves, POINTS): c >= 0, then c < 0
    ends: tuple[float, float]  # the values at c = 1 and c = -1, stored separately
    exponent: tuple[float, float] = (0.0, 0.0)  # of the power law below the last octave

    def times(self, factor: float) -> "Octaves":
        """The function times a number."""
        ends = self.ends[0] * factor, self.ends[1] * factor
        return replace(self, coefs=self.coefs * factor, ends=ends)

    def __call__(self, negative: Mask, m: Array) -> Array:
        """The function at c = ±(1 - m)."""
        out: Array = evaluate(np, self.coefs, self.ends, self.exponent, negative, m)
        return out


def evaluate(
    xp: Namespace, coefs: Floats, ends: Floats, exponents: Floats, negative: Floats, m: Floats
) -> Floats:
    """`Octaves.__call__` over the array namespace, for NumPy and JAX."""
    count = coefs.shape[1]
    lowest = 2.0**-count
    inside = xp.maximum(m, lowest)
    _, exponent = xp.frexp(inside)  # inside in [2^(exponent-1), 2^exponent)
    octave = xp.clip(-exponent, 0, count - 1)
    t = xp.clip(4.0 * xp.ldexp(inside, octave) - 3.0, -1.0, 1.0)
    row = xp.where(negative, count, 0) + octave
    out = _chebyshev.evaluate(coefs.reshape(-1, POINTS)[row], t)
    power = xp.where(negative, exponents[1], exponents[0])
    ratio = xp.where((m > 0) & (m < lowest), m / lowest, 1.0)
    return xp.where(m > 0, out * ratio**power, xp.where(negative, ends[1], ends[0]))


@dataclass(frozen=True)
class Profile:
    """A function of the correlation, f(c) = at_one - deficit(c), exact at c = ±1."""

    at_one: float
    deficit: Octaves

    def scaled(self, scale: float, at_one: float) -> "Profile":
        """The function at_one - deficit / scale."""
        return Profile(at_one, self.deficit.times(1.0 / scale))

    def at_signed(self, negative: Mask, m: Array) -> Array:
        """f at c = 1 - m, or -(1 - m) where `negative`."""
        return self.at_one - self.deficit(negative, m)

    @cached_property
    def fast(self) -> "FastTable":
        """The function as a table for bulk look-up."""
        return self.table(SHALLOW)

    def table(self, octaves: int) -> "FastTable":
        """A table down to m = 2^-octaves."""
        coefs = -self.deficit.coefs[:, :octaves]
        coefs[..., 0] += self.at_one
        return FastTable(Octaves(coefs, self.deficit.ends), octaves)


BITS = 9  # an octave has 2^BITS cubics
SHALLOW = 16  # octaves in the fast table: m >= 2^-16; smaller m are left to `Octaves`
NEAR = 2.0**-SHALLOW
_SHIFT = 52 - BITS
_MASK = np.int64((1 << _SHIFT) - 1)
_ONE = np.int64(1023 << 52)


@cache
def _cell_basis() -> tuple[Array, Array]:
    """Chebyshev polynomials at four points of every cell of an octave, and the cubic's fit."""
    width = 2.0**-BITS
    x = 0.5 * width * (1 + _chebyshev.points(4))
    mantissa = width * np.arange(1 << BITS)[:, None] + x  # in [0, 1): m = low (1 + mantissa)
    basis = np.cos(np.arange(POINTS)[:, None] * np.arccos(2 * mantissa.ravel() - 1))
    fit = np.linalg.inv(np.vander(x, 4, increasing=True)).T
    return basis, np.asarray(fit, dtype=np.float64)


def first_bits(octaves: int) -> int:
    """The leading bits of the first cell of a table that goes down to m = 2^-octaves."""
    return (1023 - octaves) << BITS


def cell_cubics(coefs: Floats) -> Floats:
    """Cubics of all cells, ascending in m, from coefficients of octaves that descend in m.

    The result has shape (2, cells, 4) and is of NumPy or JAX, as the coefficients are.
    """
    basis, fit = _cell_basis()
    return (coefs[:, ::-1] @ basis).reshape(2, -1, 4) @ fit


class FastTable:
    """Table of cubics indexed by the leading bits of m, evaluated in place on small blocks."""

    def __init__(self, function: Octaves, octaves: int = SHALLOW) -> None:
        cubics = cell_cubics(function.coefs[:, :octaves])
        at_one = function(np.array([False]), np.array([1.0]))[0]
        last = np.broadcast_to([at_one, 0.0, 0.0, 0.0], (2, 1, 4))  # for m = 1 alone
        both = np.concatenate([cubics, last], axis=1).reshape(-1, 4)
        self.columns = np.ascontiguousarray(both.T)
        self.cells = len(both) // 2  # of one side
        self.first = np.int64(first_bits(octaves))

    def apply(self, corr: Array, work: "Workspace", *, any_negative: bool) -> None:
        """Replace correlations by the function, in place.

        Entries with m < NEAR are not valid afterwards; the caller computes them by `Octaves`.
        """
        m, bits, part = work.floats[: corr.size], work.integers[: corr.size], work.more[: corr.size]
        np.abs(corr, out=m)
        np.subtract(1.0, m, out=m)
        raw = m.view(np.int64)
        np.right_shift(raw, _SHIFT, out=bits)
        np.subtract(bits, self.first, out=bits)
        np.bitwise_and(raw, _MASK, out=raw)
        np.bitwise_or(raw, _ONE, out=raw)
        np.subtract(m, 1.0, out=m)  # now the offset in the cell
        if any_negative:
            flags = np.less(corr, 0.0, out=work.flags[: corr.size])
            np.add(bits, self.cells, out=bits, where=flags)
        columns = self.columns
        np.take(columns[3], bits, out=corr, mode="clip")
        for k in (2, 1, 0):
            np.multiply(corr, m, out=corr)
            np.take(columns[k], bits, out=part, mode="clip")
            np.add(corr, part, out=corr)


class Workspace:
    """Scratch arrays of one thread."""

    def __init__(self, size: int) -> None:
        self.floats, self.more = np.empty(size), np.empty(size)
        self.integers, self.flags = np.empty(size, np.int64), np.empty(size, np.bool_)
