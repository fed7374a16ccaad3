"""The paper's method (sec. 2.5): a table of F over variance and correlation, interpolated.

Kept as an independent check, and because the published results were computed with it. Two ways to
fill it:

"sum"    step 2 of the paper, the normalised double sum over a truncated grid of u.
         Rotated to a+b and a-b the weight exp(...) is a product of two one-dimensional
         Gaussians, so that a variance's whole row is two matrix products instead of
         n_c n_g² exponentials.
"exact"  the integral itself.

Correlation 1 has a separate table (the paper's footnote 2), and so has -1. The authors' code uses
that table for variances only: a pair of correlation above max_corr has the value at max_corr
(`clamp`), even if it is a point and itself.

A kernel is the recursion of eq. 5 with F read from the table (steps 3 and 4). As inputs share one
norm, a layer has one variance, and the table one row for it. A row is a piecewise linear function,
and so are the layers together: `profile` has all knots of the whole network, and a pair costs one
interpolation at any depth.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nngp._arrays import EPS, TINY, Array, Index
from nngp._numbers import as_reals, whole_number
from nngp.architecture import (
    Activation,
    ActivationLike,
    Architecture,
    as_activation,
)
from nngp.covariance import numeric
from nngp.covariance.closed_form import closed_form

STRIP = 2**18  # pairs whose covariances are taken through the layers at a time
EQUAL = 256 * EPS  # relative spread of norms that rounding explains
_Fill = Literal["sum", "exact"]
# Index sets a + b and a - b, and products of phi over them (`_rotated`)
_RotatedProducts = tuple[NDArray[np.int_], NDArray[np.int_], Array]


@dataclass(frozen=True)
class _Grid:
    """Sizes of the table; equal grids give equal tables."""

    n_g: int
    n_v: int
    n_c: int
    s_max: float
    u_max: float
    max_corr: float
    s_min: float
    clamp: bool

    @property
    def variances(self) -> Array:
        return np.linspace(self.s_min, self.s_max, self.n_v)

    def row_place(self, var: Array) -> tuple[Index, Array]:
        """The cell of each variance, and how far into it; the ends hold for what lies beyond."""
        share = (var - self.s_min) / (self.s_max - self.s_min)
        return _cell(np.maximum(share, 0.0) * (self.n_v - 1), self.n_v)

    @property
    def correlations(self) -> Array:
        return np.linspace(-self.max_corr, self.max_corr, self.n_c)


class LookupTable:
    """Table of F over n_v variances in [s_min, s_max] and n_c correlations in ±max_corr.

    Parameters
    ----------
    activation : str, callable or Activation
    n_g : int
        Points of the grid of u, odd so that 0 is one of them.
    n_v, n_c : int
        Number of variances and of correlations.
    s_max : float
        Largest variance.
    u_max : float, optional
        The grid of u is [-u_max, u_max]. The default, six standard deviations of the largest
        variance, obeys the paper's s_max < u_max².
    max_corr : float
        Largest correlation of the two-dimensional table.
    s_min : float
        Smallest variance.
    clamp : bool
        Whether pairs of correlation above max_corr get the value at max_corr, as in the authors'
        code. By default they lie on the straight line to the table for correlation 1.
    fill : {"sum", "exact"}
        The paper's double sum, or the exact integral.

    Examples
    --------
    >>> import nngp
    >>> table = nngp.curves.LookupTable("relu", n_v=51, n_c=50, s_max=5.0, fill="exact")
    >>> round(float(table(1.0, 1.0)), 6)
    0.5
    """

    def __init__(
        self,
        activation: ActivationLike,
        n_g: int = 501,
        n_v: int = 501,
        n_c: int = 500,
        s_max: float = 100.0,
        u_max: float | None = None,
        max_corr: float = 0.99999,
        *,
        s_min: float = 0.0,
        clamp: bool = False,
        fill: _Fill = "sum",
    ) -> None:
        u_max = 6.0 * float(np.sqrt(s_max)) if u_max is None else float(u_max)
        self.activation = as_activation(activation)
        named = {"n_g": n_g, "n_v": n_v, "n_c": n_c}
        sizes = {name: whole_number(name, size, least=2) for name, size in named.items()}
        self.grid = _Grid(
            **sizes,
            s_max=float(s_max),
            u_max=u_max,
            max_corr=float(max_corr),
            s_min=float(s_min),
            clamp=bool(clamp),
        )
        self.fill = fill
        _check(self.grid, fill)
        build = _fill_sum if fill == "sum" else _fill_exact
        self.values, self.at_one, self.at_minus_one = build(self.activation, self.grid)
        # Of a pair whose correlation is 1 or -1; a variance is always read from `at_one`.
        self._pair_at_one, self._pair_at_minus_one = self.at_one, self.at_minus_one
        if clamp:
            self._pair_at_one = self.values[:, -1]
            self._pair_at_minus_one = _continued(self.values, self.grid)

    @classmethod
    def authors(cls, activation: ActivationLike) -> "LookupTable":
        """The table that the paper's authors published: u in ±10, variances from 1e-8 to 100.

        Its sum is truncated at one standard deviation of the largest variance, so that for ReLU F
        is 1.7% low at variance 10 and 71% at 100. Correlations above 0.99999 count as 0.99999, so
        that a deep network in the ordered phase cannot tell similar points apart. The published
        settings were found with this table. It does what `nngp.py` and `interp.py` of
        github.com/brain-research/nngp do.

        Examples
        --------
        >>> import nngp
        >>> coarse = nngp.curves.LookupTable(
        ...     "relu", n_g=101, n_v=11, n_c=10, s_max=100.0, u_max=10.0
        ... )
        >>> round(float(coarse(10.0, 1.0)), 2)  # truncated in the same way; exact: 5
        4.92
        """
        return cls(activation, 501, 501, 500, 100.0, 10.0, 0.99999, s_min=1e-8, clamp=True)

    def __call__(self, var: ArrayLike, corr: ArrayLike) -> Array:
        """Interpolate bilinearly; beyond ±max_corr linearly to the tables at ±1, or as `clamp`
        says."""
        var, corr = np.broadcast_arrays(as_reals(var, "var"), as_reals(corr, "corr"))
        self._check_range(var, corr)
        g = self.grid
        row, fv = g.row_place(var)
        ends = self._pair_at_one, self._pair_at_minus_one
        at_one, at_minus_one = (_lerp(end[row], end[row + 1], fv) for end in ends)
        position = (corr + g.max_corr) * (g.n_c - 1) / (2 * g.max_corr)
        col, fc = _cell(position, g.n_c)
        low = _lerp(self.values[row, col], self.values[row, col + 1], fc)
        high = _lerp(self.values[row + 1, col], self.values[row + 1, col + 1], fc)
        inside = _lerp(low, high, fv)
        # Between ±max_corr and ±1, on the straight line to the one-dimensional table
        edge = np.clip((np.abs(corr) - g.max_corr) / (1 - g.max_corr), 0.0, 1.0)
        return np.where(
            np.abs(corr) > g.max_corr,
            _lerp(inside, np.where(corr > 0, at_one, at_minus_one), edge),
            inside,
        )

    def row(self, var: float) -> Array:
        """F of pairs at one variance, for correlation -1, those of the table, and 1.

        Examples
        --------
        >>> import nngp
        >>> table = nngp.curves.LookupTable("relu", n_v=51, n_c=50, s_max=5.0, fill="exact")
        >>> row = table.row(1.0)
        >>> len(row), float(row[-1].round(6))
        (52, 0.5)
        """
        g = self.grid
        self._check_range(np.asarray(var), np.zeros(1))
        cell, fraction = g.row_place(np.asarray(var))
        parts = self._pair_at_minus_one[:, None], self.values, self._pair_at_one[:, None]
        return np.concatenate([_lerp(part[cell], part[cell + 1], fraction) for part in parts])

    def variance(self, var: float) -> float:
        """E[φ(u)²] at one variance of u.

        Examples
        --------
        >>> import nngp
        >>> table = nngp.curves.LookupTable("relu", n_v=51, n_c=50, s_max=5.0, fill="exact")
        >>> round(table.variance(3.0), 6)
        1.5
        """
        self._check_range(np.asarray(var), np.zeros(1))
        cell, fraction = self.grid.row_place(np.asarray(var))
        return float(_lerp(self.at_one[cell], self.at_one[cell + 1], fraction))

    def recursion(
        self,
        corr: ArrayLike,
        *,
        depth: int,
        weight_var: float | Sequence[float] = 1.6,
        bias_var: float | Sequence[float] = 0.1,
        input_var: float = 1.0,
    ) -> Iterator[Array]:
        """Iterate over K^0, K^1, ..., K^depth at cosines of inputs that share one norm.

        This is the recursion of eq. 5 with the table's F.

        Parameters
        ----------
        corr : array_like
            Cosines between inputs.
        depth, weight_var, bias_var
            As in `nngp.Architecture`.
        input_var : float
            x·x/d of every input; 1 after `nngp.normalize`.

        Examples
        --------
        >>> import nngp
        >>> table = nngp.curves.LookupTable("relu", n_v=51, n_c=50, s_max=5.0, fill="exact")
        >>> layers = table.recursion(1.0, depth=2, weight_var=2.0, bias_var=0.0)
        >>> [round(float(layer), 6) for layer in layers]
        [2.0, 2.0, 2.0]
        """
        cosines = as_reals(corr, "corr")
        self._check_range(np.zeros(1), cosines)
        maps = self._maps(depth, weight_var, bias_var, input_var)
        return self._layers(maps, input_var, cosines)

    def _maps(
        self,
        depth: int,
        weight_var: float | Sequence[float],
        bias_var: float | Sequence[float],
        input_var: float,
    ) -> list[tuple[float, float]]:
        """Variances of the weights and biases of each affine map."""
        if not 0 <= input_var < np.inf:
            raise ValueError(f"input_var must be finite and not negative, got {input_var}")
        network = Architecture(depth, self.activation, weight_var, bias_var)
        return list(zip(network.weight_vars, network.bias_vars, strict=True))

    def _layers(
        self, maps: Sequence[tuple[float, float]], input_var: float, corr: Array
    ) -> Iterator[Array]:
        """`recursion` with weight_var and bias_var of each affine map."""
        weight, bias = maps[0]
        cov = bias + weight * input_var * corr
        variance = bias + weight * input_var
        yield cov
        for weight, bias in maps[1:]:
            layer_corr = np.clip(cov / max(variance, TINY), -1.0, 1.0)
            cov = bias + weight * along_row(self.row(variance), self.grid.max_corr, layer_corr)
            variance = bias + weight * self.variance(variance)
            yield cov

    def profile(
        self,
        *,
        depth: int,
        weight_var: float | Sequence[float] = 1.6,
        bias_var: float | Sequence[float] = 0.1,
        input_var: float = 1.0,
    ) -> tuple[Array, Array]:
        """Compute a network's kernel as a piecewise linear function of the cosine: all its knots.

        Parameters
        ----------
        depth, weight_var, bias_var, input_var
            As in `recursion`.

        Returns
        -------
        tuple of ndarray
            Cosines from -1 to 1, and K there; `numpy.interp` gives K in between.

        Examples
        --------
        >>> import nngp, numpy as np
        >>> table = nngp.curves.LookupTable("relu", n_v=51, n_c=50, s_max=5.0, fill="exact")
        >>> network = {"depth": 20, "weight_var": 2.0, "bias_var": 0.1}
        >>> cosines, K = table.profile(**network)
        >>> *_, last = table.recursion(0.3, **network)
        >>> bool(abs(np.interp(0.3, cosines, K) - last) < 1e-12)
        True
        """
        (weight, bias), *maps = self._maps(depth, weight_var, bias_var, input_var)
        cosines = np.array([-1.0, 1.0])
        cov, variance = bias + weight * input_var * cosines, bias + weight * input_var
        for weight, bias in maps:
            corr = np.clip(cov / max(variance, TINY), -1.0, 1.0)
            cosines, corr = _with_crossings(cosines, corr, self.grid)
            cov = bias + weight * along_row(self.row(variance), self.grid.max_corr, corr)
            variance = bias + weight * self.variance(variance)
        return cosines, cov

    def kernel(
        self,
        X: ArrayLike,
        Y: ArrayLike | None = None,
        *,
        depth: int,
        weight_var: float | Sequence[float] = 1.6,
        bias_var: float | Sequence[float] = 0.1,
    ) -> Array:
        """Compute a network's kernel matrix by the paper's method.

        `nngp.kernel` gives the exact one. The error of a layer is the table's `error`; the paper
        states none for the matrix.

        Parameters
        ----------
        X : array_like, (n, d)
            Inputs that share one norm.
        Y : array_like, (m, d), optional
            Inputs of the same norm; X by default.
        depth, weight_var, bias_var
            As in `nngp.Architecture`.

        Returns
        -------
        ndarray of float64, (n, n) or (n, m)

        Examples
        --------
        >>> import nngp
        >>> table = nngp.curves.LookupTable("relu", n_v=51, n_c=50, s_max=5.0, fill="exact")
        >>> K = table.kernel([[1.0, 1.0], [1.0, -1.0]], depth=2, weight_var=2.0, bias_var=0.0)
        >>> K.round(2).tolist()
        [[2.0, 0.99], [0.99, 2.0]]
        """
        left = _rows(X, "X")
        right = left if Y is None else _rows(Y, "Y")
        if left.shape[1] != right.shape[1]:
            raise ValueError(
                f"X has {left.shape[1]} features and Y has {right.shape[1]}; they must agree"
            )
        input_var = _common_var(left, right)
        norm2 = input_var * left.shape[1]
        K = left @ right.T
        K *= 1 / norm2 if norm2 > 0 else 0.0

        cosines, values = self.profile(
            depth=depth, weight_var=weight_var, bias_var=bias_var, input_var=input_var
        )
        strip = max(1, STRIP // len(right))
        for start in range(0, len(K), strip):
            K[start : start + strip] = np.interp(K[start : start + strip], cosines, values)
        if Y is None:
            np.fill_diagonal(K, values[-1])
        return K

    @cached_property
    def error(self) -> float:
        """Largest absolute difference to the exact integral, sampled between the nodes.

        The samples cover all variances, the smallest cell densely, and all correlations.
        """
        rng = np.random.default_rng(0)
        cell = self.grid.s_max / (self.grid.n_v - 1)
        var = np.concatenate([rng.uniform(0, cell, 8), rng.uniform(0, self.grid.s_max, 16)])
        corr = np.concatenate([rng.uniform(-1, 1, 16), [-1.0, -0.999, 0.999, 1.0]])
        return float(np.abs(self(var[:, None], corr) - _exact(self.activation, var, corr)).max())

    def _check_range(self, var: Array, corr: Array) -> None:
        if not (np.all(var >= 0) and np.all(np.abs(corr) <= 1 + 1e-9)):
            raise ValueError("the table needs variances >= 0 and correlations in [-1, 1]")
        top = var.max(initial=0.0)
        if top > self.grid.s_max * (1 + 1e-12):
            raise ValueError(
                f"variance {top:.6g} is past the table's s_max = {self.grid.s_max:g}; build a "
                "table with a larger s_max, or use nngp.kernel, which needs no table"
            )

    def __repr__(self) -> str:
        return f"LookupTable('{self.activation.name}', fill='{self.fill}', {self.grid})"


@lru_cache(maxsize=8)
def default_table(activation: Activation) -> LookupTable:
    """The table of `layer_covariance(method="lookup")`, with the paper's sizes and sum."""
    return LookupTable(activation)


def _check(grid: _Grid, fill: str) -> None:
    if fill not in ("sum", "exact"):
        raise ValueError(f"fill must be 'sum' or 'exact', got {fill!r}")
    if grid.n_g < 3 or grid.n_g % 2 == 0:
        raise ValueError(f"n_g must be odd and at least 3 (the grid holds u = 0), got {grid.n_g}")
    if grid.n_v < 2 or grid.n_c < 2 or grid.s_max <= 0 or grid.u_max <= 0:
        raise ValueError("n_v and n_c must be at least 2, s_max and u_max positive")
    if not 0 <= grid.s_min < grid.s_max:
        raise ValueError(f"s_min must lie between 0 and s_max, got {grid.s_min}")
    if not 0 < grid.max_corr < 1:
        raise ValueError(f"max_corr must lie between 0 and 1, got {grid.max_corr}")


def _fill_sum(activation: Activation, grid: _Grid) -> tuple[Array, Array, Array]:
    """Step 2 of the paper for every variance and correlation."""
    u = np.linspace(-grid.u_max, grid.u_max, grid.n_g)
    phi = activation(u)
    parts = [_rotated(phi, parity) for parity in (0, 1)]
    ones = [_rotated(np.ones_like(phi), parity) for parity in (0, 1)]
    step = u[1] - u[0]
    values = np.full((grid.n_v, grid.n_c), activation(np.zeros(1))[0] ** 2)
    positive = [(i, s) for i, s in enumerate(grid.variances) if s > 0]
    for i, s in positive:
        values[i] = _sum_row(parts, ones, grid.correlations, s, step)
    at_one, at_minus_one = values[:, 0].copy(), values[:, 0].copy()
    for i, s in positive:
        weight = np.exp(-0.5 * u**2 / s)
        at_one[i] = weight @ phi**2 / weight.sum()
        at_minus_one[i] = weight @ (phi * phi[::-1]) / weight.sum()
    return values, at_one, at_minus_one


def _rotated(phi: Array, parity: int) -> _RotatedProducts:
    """phi(u_a) phi(u_b) over (a + b, a - b >= 0) of one parity, with both index sets.

    a and b count from the middle of the grid. Entries with a - b > 0 count twice.
    """
    half = len(phi) // 2
    total = np.arange(-2 * half + parity, 2 * half + 1, 2)
    difference = np.arange(parity, 2 * half + 1, 2)
    a, b = (total[:, None] + difference) // 2, (total[:, None] - difference) // 2
    inside = (np.abs(a) <= half) & (np.abs(b) <= half)
    product = np.where(inside, phi[np.clip(a + half, 0, 2 * half)], 0.0)
    product = product * np.where(inside, phi[np.clip(b + half, 0, 2 * half)], 0.0)
    return total, difference, product * np.where(difference > 0, 2.0, 1.0)


def _sum_row(
    parts: list[_RotatedProducts], ones: list[_RotatedProducts], corr: Array, s: float, step: float
) -> Array:
    """sum_ab phi phi exp(...) / sum_ab exp(...) at one variance, for all correlations."""
    top, bottom = np.zeros(len(corr)), np.zeros(len(corr))
    for (total, difference, product), (_, _, count) in zip(parts, ones, strict=True):
        # u_a² + u_b² - 2c u_a u_b = ((1-c)(u_a+u_b)² + (1+c)(u_a-u_b)²) / 2
        along = np.exp(-(step**2) / (4 * s) * np.square(total)[:, None] / (1 + corr))
        across = np.exp(-(step**2) / (4 * s) * np.square(difference)[:, None] / (1 - corr))
        top += np.einsum("ij,ij->j", along, product @ across)
        bottom += np.einsum("ij,ij->j", along, count @ across)
    return top / bottom


def _fill_exact(activation: Activation, grid: _Grid) -> tuple[Array, Array, Array]:
    corr = np.concatenate([grid.correlations, [1.0, -1.0]])
    values = _exact(activation, grid.variances, corr)
    return values[:, :-2].copy(), values[:, -2].copy(), values[:, -1].copy()


def _exact(activation: Activation, var: Array, corr: Array) -> Array:
    """F at every variance with every correlation, to 1e-10 or better."""
    if activation.closed_form is not None:
        form = closed_form(activation.closed_form)
        return np.asarray(form.value(np, var[:, None], var[:, None], corr))
    return numeric.covariance_grid(activation, var, corr, 1e-10)


def along_row(row: Array, max_corr: float, corr: Array) -> Array:
    """Interpolate linearly in a `LookupTable.row`."""
    count = len(row) - 2
    position = (corr + max_corr) * ((count - 1) / (2 * max_corr))
    cell = np.clip(np.floor(position), -1, count - 1)
    beyond = (np.abs(corr) - max_corr) / (1 - max_corr)  # of the way from max_corr to 1
    fraction = np.where(cell < 0, 1 - beyond, np.where(cell < count - 1, position - cell, beyond))
    left = cell.astype(int) + 1
    out: Array = row[left] + (row[left + 1] - row[left]) * np.clip(fraction, 0.0, 1.0)
    return out


def _with_crossings(cosines: Array, corr: Array, grid: _Grid) -> tuple[Array, Array]:
    """Knots of a piecewise linear function, and those where it crosses the table's correlations."""
    nodes = grid.correlations
    first = np.searchsorted(nodes, np.minimum(corr[:-1], corr[1:]), side="right")
    last = np.searchsorted(nodes, np.maximum(corr[:-1], corr[1:]), side="left")
    counts = np.maximum(last - first, 0)
    owner = np.repeat(np.arange(len(counts)), counts)
    crossed = nodes[first[owner] + np.arange(len(owner)) - (np.cumsum(counts) - counts)[owner]]
    share = (crossed - corr[owner]) / (corr[owner + 1] - corr[owner])
    found = cosines[owner] + share * (cosines[owner + 1] - cosines[owner])
    cosines, corr = np.concatenate([cosines, found]), np.concatenate([corr, crossed])
    order = np.argsort(cosines, kind="stable")
    cosines, corr = cosines[order], corr[order]
    kept = np.append(np.diff(cosines) > 0, True)  # rounding may make two of them one
    return cosines[kept], corr[kept]


def _continued(values: Array, grid: _Grid) -> Array:
    """F at correlation -1 as the authors' interpolation continues the first cell: with weights that
    are one minus the distance to each of the two nodes, divided by their sum."""
    beyond = (1 - grid.max_corr) / (2 * grid.max_corr) * (grid.n_c - 1)
    continued: Array = ((1 - beyond) * values[:, 0] - beyond * values[:, 1]) / (1 - 2 * beyond)
    return continued


def _rows(X: ArrayLike, name: str) -> Array:
    """Inputs as a finite matrix."""
    rows = as_reals(X, name)
    if rows.ndim != 2 or not rows.size:
        raise ValueError(
            f"{name} must be two-dimensional (points, features) and not empty, got shape "
            f"{rows.shape}"
        )
    if not np.isfinite(rows).all():
        raise ValueError(f"{name} holds NaN or infinity; drop or impute such values first")
    return rows


def _common_var(*sides: Array) -> float:
    """x·x/d of all rows; exactly 1 if it is 1 up to rounding, as after `nngp.normalize`."""
    with np.errstate(over="ignore"):
        found = np.concatenate([np.square(rows).sum(axis=1) / rows.shape[1] for rows in sides])
    low, high = float(found.min()), float(found.max())
    if high == np.inf:
        raise ValueError("X holds numbers so large that x·x overflows; rescale it first")
    if high - low > EQUAL * high:
        raise ValueError(
            "the look-up table needs inputs of equal norm; use nngp.normalize first, or "
            "nngp.kernel, which takes any"
        )
    return 1.0 if max(high - 1, 1 - low) <= EQUAL else float(np.median(found))


def _cell(position: Array, count: int) -> tuple[Index, Array]:
    index = np.clip(position.astype(np.intp), 0, count - 2)
    return index, np.clip(position - index, 0.0, 1.0)


def _lerp(a: Array, b: Array, fraction: Array) -> Array:
    return a + (b - a) * fraction
