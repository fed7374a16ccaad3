"""The search space as coordinates: what a surrogate sees of Optuna's parameters.

A point has one coordinate a parameter: from 0 to 1 for a number (by its logarithm where the
distribution says so; the levels of an integer or a step are the centers of equal parts), the index
of the choice for a categorical one. An input has one column a number, from -1 to 1, and one a
choice. A parameter that some trials lack is inactive there: its columns are 0, and a column of its
own says whether it is active. Which parameters a point has is learned from the trials: a
conditional parameter belongs to values of one other parameter, if any explains all trials.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FrozenTrial

from nngp._arrays import Array, Mask

FEW_LEVELS = 20  # of a number, below which levels are tried one by one


@dataclass(frozen=True)
class Rule:
    """A parameter is active where the coordinate of another one, its parent, has these values."""

    parent: int
    values: frozenset[float]


@dataclass(frozen=True)
class SearchSpace:
    """All parameters of a study, in the order of their names."""

    distributions: tuple[tuple[str, BaseDistribution], ...]
    conditional: tuple[bool, ...]  # whether some trial lacks the parameter
    rules: tuple[Rule | None, ...]

    @classmethod
    def of(cls, trials: Sequence[FrozenTrial]) -> "SearchSpace":
        """The space of all parameters that trials have, each as the last of them has it."""
        found: dict[str, BaseDistribution] = {}
        for trial in trials:
            found.update(trial.distributions)
        named = tuple(sorted((n, d) for n, d in found.items() if not d.single()))
        every = tuple(False for _ in named)
        plain = cls(named, every, tuple(None for _ in named))
        if not trials or not named:
            return plain
        points = plain.points([trial.params for trial in trials])
        active = ~np.isnan(points)
        lacking = tuple(not active[:, j].all() for j in range(len(named)))
        rules = tuple(
            plain._rule(points, active, j) if lacks else None for j, lacks in enumerate(lacking)
        )
        return cls(named, lacking, rules)

    @property
    def by_name(self) -> dict[str, BaseDistribution]:
        return dict(self.distributions)

    def __len__(self) -> int:
        return len(self.distributions)

    @cached_property
    def choices(self) -> list[int]:
        """Number of choices of each categorical parameter, 0 of a number."""
        kinds = [one for _, one in self.distributions]
        return [len(d.choices) if isinstance(d, CategoricalDistribution) else 0 for d in kinds]

    @cached_property
    def levels(self) -> list[Array | None]:
        """Coordinates of the values of each parameter that has few, None for other numbers."""
        return [_levels(one) for _, one in self.distributions]

    @cached_property
    def is_continuous(self) -> Mask:
        """Which parameters are moved along gradients."""
        return np.array([one is None for one in self.levels], dtype=bool)

    @cached_property
    def columns(self) -> list[slice]:
        """The columns of inputs that each parameter has."""
        sizes = [max(n, 1) + lacks for n, lacks in zip(self.choices, self.conditional, strict=True)]
        ends = np.cumsum([0, *sizes])
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]

    def points(self, trials: Sequence[Mapping[str, Any]]) -> Array:
        """Coordinates of the parameters of trials; NaN where one is inactive."""
        out = np.full((len(trials), len(self)), np.nan)
        for row, values in zip(out, trials, strict=True):
            for j, (name, distribution) in enumerate(self.distributions):
                if name in values:
                    row[j] = _coordinate(distribution, values[name])
        return out

    def values(self, point: Array) -> dict[str, Any]:
        """Parameters at a point, those that are active; numbers are rounded to what there is."""
        return {
            name: _value(distribution, float(one))
            for (name, distribution), one in zip(self.distributions, point, strict=True)
            if not np.isnan(one)
        }

    def rounded(self, points: Array) -> Array:
        """Points moved to what can be tried; parameters that are inactive there are NaN."""
        out = np.clip(points, 0.0, np.maximum(np.array(self.choices, dtype=float) - 1, 1.0))
        for j, (_, distribution) in enumerate(self.distributions):
            if not (isinstance(distribution, FloatDistribution) and distribution.step is None):
                some = np.flatnonzero(~np.isnan(out[:, j]))
                values = [_value(distribution, float(one)) for one in out[some, j]]
                out[some, j] = [_coordinate(distribution, one) for one in values]
        for j in self._parents_first:
            rule = self.rules[j]
            if rule is not None:
                near = [
                    any(abs(v - one) < 1e-9 for one in rule.values) for v in out[:, rule.parent]
                ]
                out[~np.array(near, dtype=bool), j] = np.nan
        return out

    def inputs(self, points: Array) -> Array:
        """Inputs of the surrogate at points."""
        out = np.zeros((len(points), self.columns[-1].stop if self.columns else 0))
        for j, columns in enumerate(self.columns):
            active, first = ~np.isnan(points[:, j]), columns.start
            if self.choices[j]:
                some = np.flatnonzero(active)
                out[some, first + points[some, j].astype(int)] = 1.0
            else:
                out[active, first] = 2.0 * points[active, j] - 1.0
            if self.conditional[j]:
                out[active, columns.stop - 1] = 1.0
        return out

    def in_points(self, in_inputs: Array) -> Array:
        """Derivatives in the coordinates of numbers, from those in the inputs."""
        first = [columns.start for columns in self.columns]
        out: Array = 2.0 * in_inputs[:, first] * self.is_continuous
        return out

    def random(self, uniform: Array) -> Array:
        """Points from numbers between 0 and 1, (m, parameters)."""
        counts = np.array(self.choices)
        return self.rounded(np.where(counts > 0, np.floor(uniform * counts), uniform))

    @cached_property
    def _parents_first(self) -> list[int]:
        """Parameters in an order in which a parent comes before its children, as far as rules are
        not in a ring."""
        order: list[int] = []
        for _ in range(len(self)):
            for j, rule in enumerate(self.rules):
                if j not in order and (rule is None or rule.parent in order):
                    order.append(j)
        return order

    def _rule(self, points: Array, active: Mask, j: int) -> Rule | None:
        """A parent whose values tell where parameter j is active, of those with few values."""
        for k, levels in enumerate(self.levels):
            if k == j or levels is None:
                continue
            inside = set(points[active[:, j], k].tolist())
            outside = set(points[~active[:, j], k].tolist())
            if inside and not any(np.isnan(list(inside))) and not inside & outside:
                return Rule(k, frozenset(inside))
        return None


def _levels(distribution: BaseDistribution) -> Array | None:
    if isinstance(distribution, CategoricalDistribution):
        return np.arange(len(distribution.choices), dtype=float)
    low, high, step = _range(distribution)
    if step is None or (high - low) / step >= FEW_LEVELS:
        return None
    values = low + step * np.arange(round((high - low) / step) + 1)
    return np.array([_coordinate(distribution, value) for value in values.tolist()])


def _range(distribution: BaseDistribution) -> tuple[float, float, float | None]:
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    return float(distribution.low), float(distribution.high), distribution.step


def _ends(distribution: BaseDistribution) -> tuple[float, float, bool]:
    """The ends of the coordinate, half a step outside where there are steps, and whether they are
    logarithms."""
    low, high, step = _range(distribution)
    half, is_log = 0.0 if step is None else 0.5 * step, bool(getattr(distribution, "log", False))
    if is_log:
        return float(np.log(low - half)), float(np.log(high + half)), True
    return low - half, high + half, False


def _coordinate(distribution: BaseDistribution, value: Any) -> float:
    if isinstance(distribution, CategoricalDistribution):
        return float(distribution.choices.index(value)) if value in distribution.choices else np.nan
    low, high, is_log = _ends(distribution)
    number = float(np.log(value)) if is_log else float(value)
    return float(np.clip((number - low) / (high - low), 0.0, 1.0))


def _value(distribution: BaseDistribution, coordinate: float) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[int(coordinate)]
    start, end, is_log = _ends(distribution)
    number = start + coordinate * (end - start)
    low, high, step = _range(distribution)
    number = float(np.exp(number)) if is_log else number
    if step is not None:
        number = low + step * round((number - low) / step)
    number = min(max(number, low), high)
    return round(number) if isinstance(distribution, IntDistribution) else number
