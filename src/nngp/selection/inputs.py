"""Inputs of the search: mapped, standardized and stretched at every setting, with the chain rule.

A column's map has fixed values (identity, bounded, logarithm, ranks), which are standardized once,
or a power that moves (Yeo-Johnson). A moving column is standardized again at each setting, on the
reference rows: its mean and deviation move with the power, and are part of the derivative.
"""

from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nngp._arrays import Array, Index
from nngp._threads import in_threads
from nngp.frames.column_moments import moments
from nngp.frames.maps import ColumnMap, MapFamily, from_logs
from nngp.frames.scaling import InputScaling
from nngp.frames.whitening import DEFAULT_STRENGTH, InputSpectrum
from nngp.selection.problem import YEO_JOHNSON, HyperparameterPoint, SelectionProblem

REFERENCE = 2000  # rows on which moving columns are standardized, at most


class Scaled(NamedTuple):
    """Scaled rows, and the derivatives of the moving columns in their powers."""

    X: Array
    by_power: Array  # (rows, moving)
    moving: Index


class SearchInputs:
    """The raw inputs of a search, and their scalings; `order` is that in which subsets grow."""

    def __init__(self, problem: SelectionProblem, order: Index) -> None:
        self.X, self.order, self._weights = problem.X, order, problem.weights
        d = self.X.shape[1]
        mapped = problem.maps == "auto" and problem.scaling not in ("unit", "whiten", "none")
        allowed = np.ones(d, bool) if problem.mappable is None else problem.mappable
        self.families = [MapFamily(self.X[:, j], mapped and bool(allowed[j])) for j in range(d)]
        self.defaults = tuple(in_threads(lambda family: family.default, self.families))
        self._spectrum: InputSpectrum | None = None
        self._whitened: dict[float, InputScaling] = {}
        if problem.scaling == "whiten":
            self._spectrum = InputSpectrum.learn(self.X, problem.weights)
            given = problem.whitening
            self.base = self.at_strength(DEFAULT_STRENGTH if given is None else given)
        else:
            self.base = InputScaling.learn(self.X, problem.scaling, self.defaults, problem.weights)
        if problem.relevance is not None:
            self.base = self.base.with_relevance(np.asarray(problem.relevance, dtype=float))
        self.groups = np.arange(d) if problem.groups is None else np.asarray(problem.groups)
        self._fixed: dict[tuple[int, str], Array] = {}
        self._rows: dict[tuple[int, float | None], Array] = {}
        self._logs: dict[int, tuple[Array, Array]] = {}
        self._reference = order[:REFERENCE]
        self._position = np.full(len(self.X), -1)
        self._position[self._reference] = np.arange(len(self._reference))

    def on(self, order: Index) -> "SearchInputs":
        """The same scalings for subsets of some rows only, in that order."""
        out = copy(self)
        out.order, out._rows = order, {}
        return out

    @property
    def default_kinds(self) -> tuple[str, ...]:
        """Kinds of the maps before any is chosen."""
        return tuple(one.kind for one in self.defaults)

    @property
    def strength(self) -> float | None:
        """Strength of whitening before any is chosen; None where inputs are not whitened."""
        return None if self.base.whitening is None else self.base.whitening.strength

    def scaled(self, setting: HyperparameterPoint, count: int) -> Scaled:
        """The first `count` rows of the order (sorted), scaled as the setting says."""
        rows = self.rows(count)
        Z = self._base_rows(count, setting.whitening)
        if not setting.kinds and setting.relevance is None:
            return Scaled(Z, np.empty((len(rows), 0)), np.empty(0, np.intp))
        Z = Z.copy()
        for j, kind in enumerate(setting.kinds):
            if kind not in (YEO_JOHNSON, self.defaults[j].kind):
                Z[:, j] = self._fixed_column(j, kind)[rows]
        moving = setting.moving
        by_power = np.empty((len(rows), len(moving)))
        if len(moving):
            Z[:, moving], by_power, _ = self._moving(moving, setting.powers[moving], count)
        if setting.relevance is not None:
            root = np.sqrt(setting.relevance)
            Z *= root
            by_power *= root[moving]
        return Scaled(Z, by_power, moving)

    def rows(self, count: int) -> Index:
        """The first `count` rows of the order, sorted."""
        return np.sort(self.order[:count])

    def scaling(self, setting: HyperparameterPoint) -> InputScaling:
        """The scaling of any rows at a setting."""
        out = self.at_strength(setting.whitening)
        if setting.kinds and setting.kinds != self.default_kinds:
            out = self._mapped_scaling(setting)
        return out if setting.relevance is None else out.stretched(setting.relevance)

    def _mapped_scaling(self, setting: HyperparameterPoint) -> InputScaling:
        maps, center, factor = list(self.defaults), self.base.center.copy(), self.base.factor.copy()
        for j, kind in enumerate(setting.kinds):
            if kind not in (YEO_JOHNSON, self.defaults[j].kind):
                maps[j] = self.families[j].make(kind)
                mean, spread = moments(maps[j](self.X[:, j])[:, None], self._weights)
                center[j], factor[j] = mean[0], self._root(j) / spread[0]
        moving = setting.moving
        if len(moving):
            _, _, (mean, spread) = self._moving(moving, setting.powers[moving], 1)
            center[moving], factor[moving] = mean, self._root(moving) / spread
            for j in moving:
                maps[j] = self.families[j].make(YEO_JOHNSON, float(setting.powers[j]))
        chosen = tuple(maps) if any(one.kind != "identity" for one in maps) else ()
        return replace(self.base, center=center, factor=factor, maps=chosen)

    def _root(self, j: int | Index) -> Array:
        return np.asarray(np.sqrt(self.base.relevance[j]))

    def at_strength(self, strength: float | None) -> InputScaling:
        """The scaling before maps and relevances, with whitening of that strength."""
        if strength is None or self._spectrum is None:
            return self.base
        if strength not in self._whitened:
            self._whitened[strength] = InputScaling.whitened(self._spectrum, strength)
        return self._whitened[strength]

    def _base_rows(self, count: int, strength: float | None) -> Array:
        if (count, strength) not in self._rows:
            scaling = self.at_strength(strength)
            self._rows[count, strength] = scaling(self.X[self.rows(count)])
        return self._rows[count, strength]

    def _fixed_column(self, j: int, kind: str) -> Array:
        """A whole column with a map of that kind, standardized."""
        if (j, kind) not in self._fixed:
            values = self.families[j].make(kind)(self.X[:, j])[:, None]
            mean, spread = moments(values, self._weights)
            scaled = (values - mean) / np.where(spread > 0, spread, 1.0) * self._root(j)
            self._fixed[j, kind] = scaled[:, 0]
        return self._fixed[j, kind]

    def _moving(
        self, moving: Index, powers: Array, count: int
    ) -> tuple[Array, Array, tuple[Array, Array]]:
        """Columns with these powers, standardized, their derivatives, and mean and deviation."""
        size, negative = (
            np.stack(part, axis=1) for part in zip(*map(self._logs_of, moving), strict=True)
        )
        u, du = from_logs(size, negative, powers)
        mean = u.mean(axis=0)
        u -= mean
        spread = np.sqrt(np.square(u).mean(axis=0))
        spread = np.where(spread > 0, spread, 1.0)
        u /= spread
        du -= du.mean(axis=0)
        du /= spread
        du -= u * (u * du).mean(axis=0)
        rows, root = self._position[self.rows(count)], self._root(moving)
        return u[rows] * root, du[rows] * root, (mean, spread)

    def _logs_of(self, j: int) -> tuple[Array, Array]:
        if j not in self._logs:
            one: ColumnMap = self.families[j].yeo_johnson
            t = (self.X[self._reference, j] - one.center) / one.unit
            self._logs[j] = np.log1p(np.abs(t)), t < 0
        return self._logs[j]
