"""Pictures of doubt: predictions with their intervals, and the reliability diagram."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from nngp.plots.angular_figure import EXACT, LOOKUP
from nngp.plots.style import plain, save
from nngp.plots.uncertainty import Calibration, Intervals
from nngp.predictors.calibration import Reliability

BAND = "#56B4E9"


def draw_intervals(data: Intervals, path: str | Path | None = None) -> Figure:
    """Observations over the predicted mean and its interval, points in the order of the mean."""
    figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    place = np.arange(len(data.mean))
    axes.fill_between(
        place, data.lower, data.upper, color=BAND, alpha=0.35, lw=0, label=f"{data.coverage:.0%}"
    )
    axes.plot(place, data.mean, color=LOOKUP, lw=1.5, label="mean")
    axes.plot(place, data.observed, ".", color=EXACT, ms=5, label="observed")
    axes.set(
        xlabel="held-out points, in the order of their predicted mean",
        ylabel="target",
        title=f"{data.inside:.1%} of {len(place)} points inside the {data.coverage:.0%} interval",
    )
    axes.legend(frameon=False, loc="upper left")
    return _finished(figure, axes, path)


def draw_reliability(data: list[Calibration], path: str | Path | None = None) -> Figure:
    """Accuracy against confidence; on the diagonal, probabilities mean what they say."""
    figure, axes = plt.subplots(figsize=(5.2, 4.6), layout="constrained")
    axes.plot([0, 1], [0, 1], color="0.6", lw=1, ls="--", zorder=1)
    for way, color, mark in zip(data, (LOOKUP, EXACT), "os", strict=True):
        sizes = 12 + 140 * way.table.points / way.table.points.sum()
        label = f"{way.name}: error {way.error:.3f}"
        axes.plot(way.table.confidence, way.table.accuracy, color=color, lw=1, zorder=2)
        axes.errorbar(
            way.table.confidence, way.table.accuracy, _spread(way.table), fmt="none", color=color
        )
        axes.scatter(
            way.table.confidence,
            way.table.accuracy,
            sizes,
            color=color,
            marker=mark,
            zorder=3,
            clip_on=False,
        )
        axes.plot([], [], color=color, marker=mark, ms=5, lw=1, label=label)
    axes.set(
        xlabel="confidence in the predicted class",
        ylabel="share of predictions that were right",
        xlim=(0, 1.0),
        ylim=(0, 1.0),
    )
    axes.set_title(
        "Reliability on held-out points; larger marks, more of them", fontsize=10, pad=10
    )
    axes.legend(frameon=False, loc="lower right", fontsize=9)
    return _finished(figure, axes, path)


def _spread(table: Reliability) -> NDArray[np.float64]:
    """One deviation of the share, below and above (Wilson's interval)."""
    n, p = table.points, table.accuracy
    middle = (p + 0.5 / n) / (1 + 1 / n)
    half = np.sqrt(p * (1 - p) / n + 0.25 / n**2) / (1 + 1 / n)
    return np.maximum([p - (middle - half), (middle + half) - p], 0.0)


def _finished(figure: Figure, axes: plt.Axes, path: str | Path | None) -> Figure:
    plain(axes)
    save(figure, path, dpi=160)
    return figure
