"""Scaling of inputs.

A kernel depends on inputs through x·x'/d, so x·x/d is brought to about one: column by column
("standardize"), or row by row ("unit", as the paper does with images). Where columns share a unit,
as pixels do, their spreads carry information: "auto" tries with and without. "sphere" standardizes,
adds a constant input and normalizes rows: no information is lost, and any activation is fast. The
relevance of an input multiplies its column by a square root: it is the variance of the weights that
leave that input, relative to the others.
"""

from dataclasses import dataclass, replace

import numpy as np

from nngp._arrays import Array
from nngp.gram import normalize
from nngp.predictors.selection.space import RELEVANCE_BOUNDS
from nngp.predictors.targets import moments

INPUT_SCALINGS = ("auto", "standardize", "sphere", "unit", "none")


@dataclass(frozen=True)
class InputScaling:
    """(x - center) · factor of every column; then a constant column more if `constant`, and each
    row normalized if `unit`."""

    center: Array
    factor: Array  # with the square roots of the relevances
    relevance: Array
    unit: bool = False
    constant: bool = False

    @classmethod
    def learn(cls, X: Array, kind: str) -> "InputScaling":
        """Learn the scaling of that kind from the training inputs."""
        d = X.shape[1]
        if kind in ("unit", "none"):
            return cls(np.zeros(d), np.ones(d), np.ones(d), kind == "unit")
        center, spread = moments(X)
        # A column that is constant in training is ignored, whatever it holds later.
        factor = np.divide(1.0, spread, out=np.zeros(d), where=spread > 0)
        sphere = kind == "sphere"
        return cls(center, factor, np.where(factor > 0, 1.0, 0.0), sphere, sphere)

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

    def stretched(self, relevance: Array) -> "InputScaling":
        """Multiply the relevance of each input."""
        factor = self.factor * np.sqrt(relevance)
        return replace(self, factor=factor, relevance=self.relevance * relevance)

    def with_relevance(self, relevance: Array) -> "InputScaling":
        """Set the relevance of each input, which was one before."""
        return replace(self.stretched(relevance), relevance=relevance)

    def __call__(self, X: Array) -> Array:
        out = (X - self.center) * self.factor
        if self.constant:
            out = np.column_stack([out, np.ones(len(out))])
        return normalize(out) if self.unit else out
