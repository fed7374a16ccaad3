"""Inputs and targets on the scale that the networks expect, and back.

A network sees x·x/d, so inputs are brought to about one there: each column on its own
("standardize"), or each row ("unit", the paper's way with images). Where columns share a unit, as
pixels do, their spreads mean something: "auto" tries with and without. "sphere" standardizes, adds
a constant input and puts rows on one norm: no information is lost, and any activation is fast. A
relevance for each input stretches its column: it is the variance of the weights that leave that
input, relative to the rest.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nngp.gram import normalize
from nngp.predictors.space import RELEVANCE_BOUNDS

Array = NDArray[np.float64]
INPUT_SCALINGS = ("auto", "standardize", "sphere", "unit", "none")
TARGET_SCALINGS = ("standardize", "none")


@dataclass(frozen=True)
class InputScaling:
    """(x - center) · factor of every column; then, if `unit`, each row to one norm, on the way
    there with a constant input more if `constant`, so that nothing is lost."""

    center: Array
    factor: Array
    unit: bool = False
    constant: bool = False

    @classmethod
    def learn(cls, X: Array, kind: str) -> "InputScaling":
        d = X.shape[1]
        if kind in ("unit", "none"):
            return cls(np.zeros(d), np.ones(d), kind == "unit")
        center, spread = _moments(X)
        # A column that was constant in training says nothing, whatever it holds later.
        factor = np.divide(1.0, spread, out=np.zeros(d), where=spread > 0)
        return cls(center, factor, kind == "sphere", kind == "sphere")

    @property
    def own_spread(self) -> Array:
        """Relevances that undo the scaling of columns against each other, one on average."""
        some = self.factor > 0
        if not some.any():
            return np.ones_like(self.factor)
        relative = self.factor[some].min() / self.factor[some]  # one at most: no overflow
        out = np.ones_like(self.factor)
        out[some] = np.clip(relative**2 / np.mean(relative**2), *RELEVANCE_BOUNDS)
        return out

    def stretched(self, relevance: Array) -> "InputScaling":
        """With each input's weights of another variance."""
        return replace(self, factor=self.factor * np.sqrt(relevance))

    def __call__(self, X: Array) -> Array:
        out = (X - self.center) * self.factor
        if self.constant:
            out = np.column_stack([out, np.ones(len(out))])
        return normalize(out) if self.unit else out


@dataclass(frozen=True)
class TargetScaling:
    """(y - center) / spread of every output."""

    center: Array
    spread: Array

    @classmethod
    def learn(cls, Y: Array, kind: str) -> "TargetScaling":
        outputs = Y.shape[1]
        if kind == "none":
            return cls(np.zeros(outputs), np.ones(outputs))
        center, spread = _moments(Y)
        return cls(center, np.where(spread > 0, spread, 1.0))

    @classmethod
    def common(cls, Y: Array) -> "TargetScaling":
        """One spread for all outputs, and no shift: of one-hot targets, whose order counts."""
        spread = float(np.sqrt(Y.var(axis=0).mean()))
        outputs = Y.shape[1]
        return cls(np.zeros(outputs), np.full(outputs, spread if spread > 0 else 1.0))

    def __call__(self, Y: Array) -> Array:
        return (Y - self.center) / self.spread

    def undo(self, mean: Array) -> Array:
        """A mean of scaled targets, (m, outputs), in the units of the data."""
        return mean * self.spread + self.center


def _moments(X: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of every column, without overflow; zero if it is constant."""
    size = np.maximum(np.abs(X).max(axis=0), np.finfo(float).tiny)
    scaled = X / size
    mean = scaled.mean(axis=0)
    spread = scaled.std(axis=0)
    constant = spread <= 16 * np.finfo(float).eps * len(X) ** 0.5
    spread = np.where(constant, 0.0, spread * size)
    # so small that one over it overflows: nothing that float64 can tell apart
    return mean * size, np.where(spread < np.finfo(float).tiny, 0.0, spread)


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """Refuse a value that is none of the choices."""
    if not any(value is choice or value == choice for choice in choices):
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {listed}, got {value!r}")
