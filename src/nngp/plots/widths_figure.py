"""Figure 1, one column of it: accuracy and error against width, the infinite network as a line."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from nngp.finite.width_comparison import WidthCurve, Widths
from nngp.plots.style import COLOURS, save, width_axis

MARKERS = "os^Dv<>P"  # with the colours, they tell depths apart
SIZE, POINTS = (7.2, 3.4), 9
ASIDE = 0.2  # of the width, shared by all depths, so that their trials are seen apart


def draw_widths(data: Widths, path: str | Path | None = None) -> Figure:
    """Left, test accuracy: every trial as a dot, the best by validation on the line. Right, the
    mean squared error of the best. Dashed, the infinitely wide network."""
    with plt.rc_context({"font.size": POINTS}):
        figure, (left, right) = plt.subplots(1, 2, figsize=SIZE, layout="constrained")
        _draw_accuracy(left, data)
        _draw_error(right, data)
        figure.suptitle(
            f"{data.dataset}, {data.train} training points, {data.activation}; best of "
            f"{data.trials} or more trials by validation",
            fontsize=POINTS + 1,
        )
        if any(curve.infinite for curve in data.curves):
            left.plot([], [], color="0.3", lw=1.0, ls="--", label="infinitely wide")
        figure.legend(loc="outside lower center", ncols=6, frameon=False)
        save(figure, path)
    return figure


def _draw_accuracy(axes: plt.Axes, data: Widths) -> None:
    for i, (curve, (colour, marker)) in enumerate(zip(data.curves, _looks(data), strict=True)):
        places, accuracies = np.array(curve.trials).T
        beside = 1 + ASIDE * ((i + 0.5) / len(data.curves) - 0.5)
        axes.plot(places * beside, accuracies, ".", color=colour, ms=5, alpha=0.4, mew=0)
        axes.plot(
            _widths(curve),
            [found.result["test_accuracy"] for found in curve.found],
            marker=marker,
            color=colour,
            lw=1.3,
            ms=5,
            label=f"depth {curve.depth}",
        )
        _draw_level(axes, curve, "test_accuracy", colour)
    low, high = _frame(data)
    below = sum(accuracy < low for curve in data.curves for _, accuracy in curve.trials)
    axes.set(ylim=(low, high), ylabel="test accuracy")
    if below:
        words = "1 trial lies below" if below == 1 else f"{below} trials lie below"
        axes.set_title(words, fontsize=POINTS - 1, color="0.35", loc="right")
    _finish(axes, data)


def _draw_error(axes: plt.Axes, data: Widths) -> None:
    for curve, (colour, marker) in zip(data.curves, _looks(data), strict=True):
        errors = [found.result["test_mse"] for found in curve.found]
        axes.plot(_widths(curve), errors, marker=marker, color=colour, lw=1.3, ms=5)
        _draw_level(axes, curve, "test_mse", colour)
    axes.set(ylabel="test mean squared error")
    _finish(axes, data)


def _draw_level(axes: plt.Axes, curve: WidthCurve, name: str, colour: str) -> None:
    if curve.infinite is not None and curve.infinite.result:
        axes.axhline(curve.infinite.result[name], color=colour, lw=1.0, ls="--")


def _looks(data: Widths) -> list[tuple[str, str]]:
    count = range(len(data.curves))
    return [(COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]) for i in count]


def _widths(curve: WidthCurve) -> list[int]:
    return [found.cell.width for found in curve.found]


def _frame(data: Widths) -> tuple[float, float]:
    """So low that the lines fill the upper half and the better trials are seen below them."""
    best = [f.result["test_accuracy"] for curve in data.curves for f in curve.found]
    levels = [c.infinite.result for c in data.curves if c.infinite and c.infinite.result]
    values = best + [level["test_accuracy"] for level in levels]
    highest = max(values + [accuracy for c in data.curves for _, accuracy in c.trials])
    low = max(0.0, min(values) - max(np.ptp(values), 0.03))
    return float(low), float(highest + 0.08 * (highest - low))


def _finish(axes: plt.Axes, data: Widths) -> None:
    widths = sorted({found.cell.width for curve in data.curves for found in curve.found})
    width_axis(axes, widths)
