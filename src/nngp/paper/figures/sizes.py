"""Figure 1: accuracy and error, above against the training points, below against the width."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from nngp.paper.readings.sizes import Point, Sizes
from nngp.plots.style import COLOURS, accuracy_ticks, plain, save, width_axis

WIDTH, HEIGHT, POINTS = 7.2, 2.6, 9  # height of a row
MARKS = "osD^v<>"  # with the colours, they tell activations apart
INFINITE, FINITE = "--", "-"
PAPER: dict[str, Any] = {"mfc": "none", "lw": 0.7, "ms": 6.5, "zorder": 1.5}
ASIDE = 1.03  # between two activations, so that their marks lie side by side
MARGIN = 0.06  # of the height

Looks = dict[str, dict[str, Any]]  # by activation


def draw_sizes(data: Sizes, path: str | Path | None = None) -> Figure:
    """A colour and mark is an activation. Infinite networks are dashed, finite ones are on a whole
    line, and what the paper prints is hollow. Without finite networks there is no lower row."""
    looks: Looks = {
        curve.activation: {"color": COLOURS[i % len(COLOURS)], "marker": MARKS[i % len(MARKS)]}
        for i, curve in enumerate(data.curves)
    }
    rows = 2 if data.widths else 1
    with plt.rc_context({"font.size": POINTS}):
        figure, axes = plt.subplots(
            *(rows, 2), figsize=(WIDTH, 0.9 + HEIGHT * rows), squeeze=False, layout="constrained"
        )
        for column, score in enumerate(("accuracy", "mse")):
            _draw_sizes(axes[0, column], data, score, looks)
            if data.widths:
                _draw_widths(axes[1, column], data, score, looks)
        for left, right in axes:
            left.set_ylabel("test accuracy")
            right.set_ylabel("test mean squared error")
        axes[0, 1].set_xlim(axes[0, 0].get_xlim())
        figure.suptitle(_title(data), fontsize=POINTS + 1)
        figure.legend(
            handles=_legend(data, looks), loc="outside lower center", ncols=7, frameon=False
        )
        save(figure, path)
    return figure


def _draw_sizes(axes: plt.Axes, data: Sizes, score: str, looks: Looks) -> None:
    for i, curve in enumerate(data.curves):
        beside = ASIDE ** (i - (len(data.curves) - 1) / 2)
        look = looks[curve.activation]
        for points, line in ((curve.paper_infinite, INFINITE), (curve.paper_finite, FINITE)):
            _line(axes, points, score, beside, {**look, "ls": line, **PAPER})
        for points, line in ((curve.infinite, INFINITE), (curve.finite, FINITE)):
            _line(axes, points, score, beside, {**look, "ls": line, "lw": 1.3, "ms": 4})
    if score == "accuracy":
        _by_error(axes)
    axes.set(xscale="log", xlabel="training points")
    axes.xaxis.set_major_formatter(lambda size, _: f"{size:,.0f}")
    plain(axes)


def _draw_widths(axes: plt.Axes, data: Sizes, score: str, looks: Looks) -> None:
    for line in data.widths:
        look = looks[line.activation]
        _line(axes, line.points, score, 1.0, {**look, "ls": FINITE, "lw": 1.3, "ms": 4.5})
        if line.level:
            axes.axhline(getattr(line.level, score), color=look["color"], lw=1.3, ls=INFINITE)
    width_axis(axes, sorted({point.at for line in data.widths for point in line.points}))


def _line(
    axes: plt.Axes, points: Sequence[Point], score: str, beside: float, look: dict[str, Any]
) -> None:
    """What the points have of this score: the paper prints no errors."""
    known = [(point.at, value) for point in points if (value := getattr(point, score)) is not None]
    if known:
        places, values = zip(*known, strict=True)
        axes.plot(np.array(places) * beside, values, **look)


def _by_error(axes: plt.Axes) -> None:
    """Accuracies spaced by the logarithm of the error: 0.97 and 0.98 differ as 0.7 and 0.8 do."""
    low, high = _height((axes.dataLim.y0, axes.dataLim.y1))
    room = MARGIN * max(high - low, 0.1)
    ends = _accuracy((low - room, high + room))
    axes.set_yscale("function", functions=(_height, _accuracy))
    axes.set_yticks(accuracy_ticks(1 - ends[1], 1 - ends[0]))
    axes.set_ylim(*ends)
    axes.yaxis.set_major_formatter(lambda accuracy, _: f"{accuracy:g}")


def _height(accuracy: ArrayLike) -> NDArray[np.float64]:
    return -np.log(np.maximum(1 - np.asarray(accuracy, float), 1e-6))


def _accuracy(height: ArrayLike) -> NDArray[np.float64]:
    return 1 - np.exp(-np.asarray(height, float))


def _title(data: Sizes) -> str:
    infinite = [point for curve in data.curves for point in curve.infinite]
    finite = [point for curve in data.curves for point in curve.finite]
    parts = [
        f"{name}: best of {_range(points)}"
        for name, points in (("infinite", infinite), ("finite", finite))
        if points
    ]
    below = f"below, {data.train:,} training points" if data.widths else "no finite networks yet"
    return f"{data.dataset}, chosen by validation; {below}\n{'; '.join(parts)} networks"


def _range(points: Sequence[Point]) -> str:
    counts = [point.networks for point in points if point.networks is not None]
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _legend(data: Sizes, looks: Looks) -> list[Line2D]:
    """Only what is there."""
    grey = "0.3"
    lines = [Line2D([], [], ls="none", label=name, **look) for name, look in looks.items()]
    for part, line, label in (("infinite", INFINITE, "infinite"), ("finite", FINITE, "finite")):
        if any(getattr(curve, part) or getattr(curve, f"paper_{part}") for curve in data.curves):
            lines.append(Line2D([], [], color=grey, ls=line, label=label))
    if any(curve.paper_infinite or curve.paper_finite for curve in data.curves):
        lines.append(Line2D([], [], color=grey, ls="none", marker="o", label="paper", **PAPER))
    return lines
