"""Measures of predictions.

Regression: `rmse`; `log_likelihood`, the mean log density of test targets; `coverage` and `width`
of the 95% interval (width in deviations of the training targets); `crps` of the Gaussian with the
predicted mean and deviation. Classification: `accuracy`; `log_loss`, where no probability counts
for less than 1e-15, for all methods alike; `log_loss_mixed`, that of 99% of the probabilities and
1% of equal ones, in which a few confident errors do not decide; `calibration`, the expected
calibration error of the winning class in ten bins of equal width.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from tabular_peers import Array, Forecast, Votes

FLOOR = 1e-15
BINS = 10
Scores = dict[str, float]


def regression_scores(forecast: Forecast, y: Array, unit: float, kept: NDArray[np.bool_]) -> Scores:
    """Scores of the rows `kept`; `unit` is the deviation of the training targets."""
    error = (y - forecast.mean)[kept]
    inside = (forecast.lower <= y) & (y <= forecast.upper)
    return {
        "rmse": float(np.sqrt(np.mean(error**2))),
        "log_likelihood": float(np.mean(np.asarray(forecast.log_density(y))[kept])),
        "coverage": float(inside[kept].mean()),
        "width": float((forecast.upper - forecast.lower)[kept].mean() / unit),
        "crps": float(crps(error, forecast.std[kept]).mean()),
    }


def crps(error: Array, std: Array) -> Array:
    """Continuous ranked probability score of a Gaussian (Gneiting and Raftery 2007, eq. 21)."""
    z = error / std
    score: Array = std * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))
    return score


def classification_scores(votes: Votes, y: NDArray[np.int64], classes: int) -> Scores:
    """Scores of all rows; a class without training rows has probability zero."""
    probability = np.zeros((len(y), classes))
    probability[:, : votes.probability.shape[1]] = votes.probability
    of_truth = probability[np.arange(len(y)), y]
    return {
        "accuracy": float(np.mean(votes.labels == y)),
        "log_loss": float(-np.log(np.maximum(of_truth, FLOOR)).mean()),
        "log_loss_mixed": float(-np.log(0.99 * of_truth + 0.01 / classes).mean()),
        "calibration": calibration_error(probability, y),
    }


def calibration_error(probability: Array, y: NDArray[np.int64]) -> float:
    """Mean gap between confidence and accuracy over bins of confidence, weighted by rows."""
    confidence, right = probability.max(axis=1), probability.argmax(axis=1) == y
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, right - confidence, BINS)
    return float(np.abs(gaps).sum() / len(y))
