"""Scaling of inputs.

A kernel depends on inputs through x·x'/d, so x·x/d is brought to about one: column by column
("standardize"), or row by row ("unit", as the paper does with images). Where columns share a unit,
as pixels do, their spreads carry information: "auto" tries with and without. "sphere" standardizes,
adds a constant input and normalizes rows: no information is lost, and any activation is fast. The
relevance of an input multiplies its column by a square root: it is the variance of the weights that
leave that input, relative to the others. A column may have a monotone map, which comes first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nngp._arrays import Array
from nngp._fields import Fields
from nngp.gram import normalize
from nngp.predictors.column_moments import moments
from nngp.predictors.maps import ColumnMap

INPUT_SCALINGS = ("auto", "standardize", "sphere", "unit", "none")
RELEVANCE_BOUNDS = (1e-6, 1e4)
INPUT_ARRAYS = ("input_center", "input_factor", "relevance")  # in a saved model


@dataclass(frozen=True)
class InputScaling:
    """(map(x) - center) · factor of every column; then a constant column more if `constant`, and
    each row normalized if `unit`. Without `maps` all are the identity."""

    center: Array
    factor: Array  # with the square roots of the relevances
    relevance: Array
    unit: bool = False
    constant: bool = False
    maps: tuple[ColumnMap, ...] = ()

    @classmethod
    def learn(
        cls, X: Array, kind: str, maps: Sequence[ColumnMap] = (), weights: Array | None = None
    ) -> "InputScaling":
        """Learn the scaling of that kind from the training inputs, with weights of the rows."""
        d = X.shape[1]
        chosen = tuple(maps) if any(one.kind != "identity" for one in maps) else ()
        X = _mapped(X, chosen)
        if kind in ("unit", "none"):
            return cls(np.zeros(d), np.ones(d), np.ones(d), kind == "unit", maps=chosen)
        center, spread = moments(X, weights)
        # A column that is constant in training is ignored, whatever it holds later.
        factor = np.divide(1.0, spread, out=np.zeros(d), where=spread > 0)
        sphere = kind == "sphere"
        return cls(center, factor, np.where(factor > 0, 1.0, 0.0), sphere, sphere, chosen)

    @property
    def own_spread(self) -> Array:
        """Relevances that give columns their original relative spreads; one on average."""
        some = self.factor > 0
        if not some.any():
            return np.ones_like(self.factor)
        relative = self.factor[some].min() / self.factor[some]  # one at most: no overflow
        out = np.ones_like(self.factor)
        out[some] = np.clip(relative**2 / np.mean(relative**2), *RELEVANCE_BOUNDS)
        return out

    @property
    def raw_factor(self) -> Array:
        """What a unit of each column counts for, in the middle of it."""
        if not self.maps:
            return self.factor
        return self.factor * np.array([one.slope for one in self.maps])

    @property
    def raw_center(self) -> Array:
        """Center of each column in its own units; of a mapped one that of its map."""
        maps = self.maps or (ColumnMap(),) * len(self.center)
        pairs = zip(maps, self.center, strict=True)
        return np.array([c if one.kind == "identity" else one.middle for one, c in pairs])

    def stretched(self, relevance: Array) -> "InputScaling":
        """Multiply the relevance of each input."""
        factor = self.factor * np.sqrt(relevance)
        return replace(self, factor=factor, relevance=self.relevance * relevance)

    def with_relevance(self, relevance: Array) -> "InputScaling":
        """Set the relevance of each input, which was one before."""
        return replace(self.stretched(relevance), relevance=relevance)

    def __call__(self, X: Array) -> Array:
        out = (_mapped(X, self.maps) - self.center) * self.factor
        if self.constant:
            out = np.column_stack([out, np.ones(len(out))])
        return normalize(out) if self.unit else out

    def as_saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Plain values and arrays for a file."""
        values = {
            "unit": self.unit,
            "constant": self.constant,
            "maps": {str(j): one.as_saved() for j, one in enumerate(self.maps)},
        }
        arrays = (self.center, self.factor, self.relevance)
        return values, dict(zip(INPUT_ARRAYS, arrays, strict=True))

    @classmethod
    def from_saved(cls, fields: Fields, arrays: Mapping[str, Array]) -> "InputScaling":
        """Read what `as_saved` gave, checked; the arrays are finite, with one entry an input."""
        center, factor, relevance = (arrays[name] for name in INPUT_ARRAYS)
        unit, constant = fields.flag("unit"), fields.flag("constant")
        if constant > unit:
            raise fields.wrong("constant", "false, as rows are not normalized")
        if (factor < 0).any() or (relevance < 0).any():
            raise fields.fail("its factors or relevances of the inputs are negative")
        with np.errstate(over="ignore"):  # a column's spread is not below the rounding of its mean
            far = np.abs(center) * factor > np.sqrt(relevance) / np.finfo(float).eps
        if far.any():
            raise fields.fail("its centers and factors of the inputs contradict each other")
        maps = fields.fields("maps")
        if maps.values and list(maps.values) != [str(j) for j in range(len(center))]:
            raise fields.fail("its maps are not those of its inputs")
        read = tuple(ColumnMap.from_saved(maps.fields(name)) for name in maps.values)
        return cls(center, factor, relevance, unit, constant, read)


def _mapped(X: Array, maps: Sequence[ColumnMap]) -> Array:
    if not maps:
        return X
    out = X.copy()
    for j, one in enumerate(maps):
        if one.kind != "identity":
            out[:, j] = one(X[:, j])
    return out
