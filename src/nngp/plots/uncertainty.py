"""Calibration: intervals that hold as many observations as promised, and reliable probabilities.

Takes a fitted estimator and data it has not seen; gives the numbers of two figures, and these.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax

from nngp._arrays import Array
from nngp._numbers import as_reals, check_unmasked
from nngp.estimators import NNGPClassifier, NNGPRegressor
from nngp.frames import TableLike
from nngp.plots import style
from nngp.plots.style import OutputPath, new_figure, plain
from nngp.predictive.calibration import (
    Reliability,
    expected_calibration_error,
    reliability as reliability_table,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


FEWEST, SHARE = 50, 0.1  # points of a bin that is drawn by itself, but at most this part of all


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


@dataclass(frozen=True)
class Calibration:
    """The reliability diagram and the expected calibration error of some probabilities."""

    name: str
    table: Reliability
    error: float

    @property
    def spread(self) -> Array:
        """One deviation of each bin's accuracy, below and above it (Wilson's interval)."""
        n, p = self.table.points, self.table.accuracy
        middle = (p + 0.5 / n) / (1 + 1 / n)
        half = np.sqrt(p * (1 - p) / n + 0.25 / n**2) / (1 + 1 / n)
        return np.maximum([p - (middle - half), (middle + half) - p], 0.0)


def intervals(
    model: NNGPRegressor,
    X: TableLike,
    y: ArrayLike,
    path: OutputPath = None,
    *,
    coverage: float = 0.95,
) -> "Figure":
    """Draw means and intervals of a fitted `NNGPRegressor` beside observations it has not seen.

    Examples
    --------
    >>> import numpy as np, nngp
    >>> X = np.linspace(-3, 3, 40)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> model = nngp.NNGPRegressor(selection=None, noise_var=1e-3).fit(X[::2], y[::2])
    >>> figure = nngp.plots.intervals(model, X[1::2], y[1::2], "figure.svg")
    >>> figure.axes[0].get_xlabel()
    'held-out points, in the order of their predicted mean'
    """
    return draw_intervals(predicted_intervals(model, X, y, coverage), path)


def reliability(
    model: NNGPClassifier, X: TableLike, y: ArrayLike, path: OutputPath = None
) -> "Figure":
    """Draw the accuracy of a fitted `NNGPClassifier` against its confidence on data it has not
    seen, beside a softmax of its means.

    Examples
    --------
    >>> import nngp
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = nngp.NNGPClassifier(selection=None, likelihood="regression")
    >>> model = model.fit(X[::2], y[::2])
    >>> figure = nngp.plots.reliability(model, X[1::2], y[1::2], "figure.svg")
    >>> figure.axes[0].get_xlabel()
    'confidence in the predicted class'
    """
    return draw_reliability(calibrations(model, X, y), path)


def predicted_intervals(
    model: NNGPRegressor, X: TableLike, y: ArrayLike, coverage: float = 0.95
) -> Intervals:
    """Intervals of a fitted regressor with one output."""
    mean = model.predict(X)
    lower, upper = model.predict_interval(X, coverage)
    order, observed = np.argsort(mean), as_reals(y, "y")
    return Intervals(mean[order], lower[order], upper[order], observed[order], coverage)


def calibrations(model: NNGPClassifier, X: TableLike, y: ArrayLike) -> list[Calibration]:
    """Calibration of a classifier's own probabilities, and of a plain softmax of its means."""
    return [
        _calibration("probability of being largest", model.predict_proba(X), model, y),
        _calibration("softmax of the means", softmax(model.predict_mean(X), axis=1), model, y),
    ]


def _calibration(
    name: str, probabilities: Array, model: NNGPClassifier, y: ArrayLike
) -> Calibration:
    check_unmasked(y, "y")
    right = model.classes_[probabilities.argmax(axis=1)] == np.asarray(y)
    confidence = np.minimum(probabilities.max(axis=1), 1.0)
    table = joined_bins(reliability_table(confidence, right))
    return Calibration(name, table, expected_calibration_error(confidence, right))


def joined_bins(table: Reliability) -> Reliability:
    """Bins of a reliability diagram with enough points to be seen: those that have few are joined
    with the next ones, from the lowest confidence up, and the last with the one below."""
    fewest = min(FEWEST, SHARE * table.points.sum())
    first = [0]  # the first bin of each group
    for i in range(1, len(table.points)):
        if table.points[first[-1] : i].sum() >= fewest:
            first.append(i)
    if len(first) > 1 and table.points[first[-1] :].sum() < fewest:
        first.pop()
    points = np.add.reduceat(table.points, first)
    confidence = np.add.reduceat(table.points * table.confidence, first) / points
    accuracy = np.add.reduceat(table.points * table.accuracy, first) / points
    return Reliability(confidence, accuracy, points)


def draw_intervals(data: Intervals, path: OutputPath = None) -> "Figure":
    """Draw observations over predicted means and intervals, in the order of the mean."""
    with new_figure((6.4, 4.0), path, points=None, dpi=style.SCREEN_DPI) as figure:
        axes, place = figure.subplots(), np.arange(len(data.mean))
        band = axes.fill_between(place, data.lower, data.upper, color=style.SKY, alpha=0.35, lw=0)
        band.set_label(f"{data.coverage:.0%}")
        axes.plot(place, data.mean, color=style.BLUE, lw=1.5, label="mean")
        axes.plot(place, data.observed, ".", color=style.ORANGE, ms=5, label="observed")
        share = f"{data.inside:.1%} of {len(place)} points"
        axes.set(
            xlabel="held-out points, in the order of their predicted mean",
            ylabel="target",
            title=f"{share} inside the {data.coverage:.0%} interval",
        )
        axes.legend(frameon=False, loc="upper left")
        plain(axes)
    return figure


def draw_reliability(data: list[Calibration], path: OutputPath = None) -> "Figure":
    """Draw accuracy against confidence, which are equal on the diagonal."""
    with new_figure((5.2, 4.6), path, points=None, dpi=style.SCREEN_DPI) as figure:
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color="0.6", lw=1, ls="--", zorder=1)
        for one, color, mark in zip(data, (style.BLUE, style.ORANGE), "os", strict=True):
            points = one.table.confidence, one.table.accuracy
            sizes = 12 + 140 * one.table.points / one.table.points.sum()
            axes.plot(*points, color=color, lw=1, zorder=2)
            axes.errorbar(*points, one.spread, fmt="none", color=color)
            axes.scatter(*points, sizes, color=color, marker=mark, zorder=3, clip_on=False)
            legend = f"{one.name}: error {one.error:.3f}"
            axes.plot([], [], color=color, marker=mark, ms=5, lw=1, label=legend)
        axes.set(xlabel="confidence in the predicted class", xlim=(0, 1.0), ylim=(0, 1.0))
        axes.set(ylabel="share of predictions that were right")
        title = "Reliability on held-out points; larger marks, more of them"
        axes.set_title(title, fontsize=10, pad=10)
        axes.legend(frameon=False, loc="lower right", fontsize=9)
        plain(axes)
    return figure
