"""Whether doubt is honest: intervals that hold what they promise, probabilities that come true.

Takes a fitted estimator and data it has not seen; gives the numbers of two figures.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from nngp.predictors.calibration import Reliability, expected_calibration_error, reliability

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Intervals:
    """Predictions in the order of their mean, with the ends of their intervals."""

    mean: Array
    lower: Array
    upper: Array
    observed: Array
    coverage: float  # promised

    @property
    def inside(self) -> float:
        """The share of observations that the intervals hold."""
        return float(np.mean((self.lower <= self.observed) & (self.observed <= self.upper)))


def intervals(model: Any, X: ArrayLike, y: ArrayLike, coverage: float = 0.95) -> Intervals:
    """Of a fitted regressor with one output."""
    mean = model.predict(X)
    lower, upper = model.predict_interval(X, coverage)
    order = np.argsort(mean)
    return Intervals(
        mean[order], lower[order], upper[order], np.asarray(y, dtype=float)[order], coverage
    )


@dataclass(frozen=True)
class Calibration:
    """One way of giving probabilities: its reliability diagram and its expected error."""

    name: str
    table: Reliability
    error: float


def calibrations(model: Any, X: ArrayLike, y: ArrayLike) -> list[Calibration]:
    """Of a fitted classifier: its own probabilities, and a plain softmax of its means."""
    ways = {
        "probability of being largest": model.predict_proba(X),
        "softmax of the means": softmax(model.predict_mean(X), axis=1),
    }
    out = []
    for name, table in ways.items():
        right = model.classes_[table.argmax(axis=1)] == np.asarray(y)
        confidence = np.minimum(table.max(axis=1), 1.0)
        out.append(
            Calibration(
                name,
                reliability(confidence, right),
                expected_calibration_error(confidence, right),
            )
        )
    return out
