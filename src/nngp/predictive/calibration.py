"""Calibration of predicted probabilities: reliability and the expected calibration error."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nngp._arrays import Array, Index
from nngp._numbers import as_reals, whole_number


class Reliability(NamedTuple):
    """Mean confidence, accuracy and number of points of each bin of confidence."""

    confidence: Array
    accuracy: Array
    points: Index


def reliability(confidence: ArrayLike, right: ArrayLike, bins: int = 15) -> Reliability:
    """Accuracy in bins of equal confidence, over [0, 1]; empty bins are left out.

    Parameters
    ----------
    confidence : array_like, (m,)
        Probability of the predicted class.
    right : array_like of bool, (m,)
        Whether the prediction was right.
    """
    p, hit = as_reals(confidence, "confidence"), as_reals(right, "right")
    if p.shape != hit.shape or p.ndim != 1 or len(p) == 0:
        raise ValueError(f"confidence and right must be equally long, got {p.shape}, {hit.shape}")
    if not (np.isfinite(p).all() and p.min() >= 0 and p.max() <= 1 + 1e-9):
        raise ValueError("confidence must be probabilities between 0 and 1")
    whole_number("bins", bins)
    index = np.minimum((p * bins).astype(int), bins - 1)
    count = np.bincount(index, minlength=bins)
    some = count > 0
    mean, accuracy = (
        np.bincount(index, weights=w, minlength=bins)[some] / count[some] for w in (p, hit)
    )
    return Reliability(mean, accuracy, count[some])


def expected_calibration_error(confidence: ArrayLike, right: ArrayLike, bins: int = 15) -> float:
    """Mean gap between confidence and accuracy over the bins of `reliability`.

    Examples
    --------
    >>> expected_calibration_error([0.75, 0.75, 0.75, 0.75], [True, True, True, False])
    0.0
    """
    table = reliability(confidence, right, bins)
    gap = np.abs(table.confidence - table.accuracy)
    return float(gap @ table.points / table.points.sum())
