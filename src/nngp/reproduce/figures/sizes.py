"""Figure 1: accuracy and error, above against the training points, below against the width."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from nngp.reproduce.figures.style import COLOURS, plain, save, width_axis
from nngp.reproduce.readings.sizes import Point, Sizes

SIZE, POINTS = (7.2, 5.6), 9
FINITE, INFINITE = "s", "o"  # marks


def draw_sizes(data: Sizes, path: str | Path | None = None) -> Figure:
    """A colour is an activation. Infinite networks are dots on a line, or a dashed level; finite
    ones are squares on a dotted line; what the paper prints is hollow."""
    with plt.rc_context({"font.size": POINTS}):
        figure, axes = plt.subplots(2, 2, figsize=SIZE, layout="constrained")
        colours = dict(zip((curve.activation for curve in data.curves), COLOURS, strict=False))
        for column, score in enumerate(("accuracy", "mse")):
            _draw_sizes(axes[0, column], data, score, colours)
            _draw_widths(axes[1, column], data, score, colours)
        for row in axes:
            row[0].set_ylabel("test accuracy")
            row[1].set_ylabel("test mean squared error")
        figure.suptitle(_title(data), fontsize=POINTS + 1)
        figure.legend(
            handles=_legend(data, colours), loc="outside lower center", ncols=4, frameon=False
        )
        save(figure, path)
    return figure


def _draw_sizes(axes: plt.Axes, data: Sizes, score: str, colours: dict[str, str]) -> None:
    for curve in data.curves:
        colour = colours[curve.activation]
        _line(axes, curve.infinite, score, INFINITE, "-", colour)
        _line(axes, curve.finite, score, FINITE, ":", colour)
        _line(axes, curve.paper_infinite, score, INFINITE, "", colour, mfc="none", ms=6.5)
        _line(axes, curve.paper_finite, score, FINITE, "", colour, mfc="none", ms=6.5)
    axes.set(xscale="log", xlabel="training points")
    axes.xaxis.set_major_formatter(lambda size, _: f"{size:,.0f}")
    plain(axes)


def _draw_widths(axes: plt.Axes, data: Sizes, score: str, colours: dict[str, str]) -> None:
    if not data.widths:
        axes.text(
            *(0.5, 0.5),
            "no finite networks yet:\nrun nngp finite",
            ha="center",
            va="center",
            color="0.35",
            transform=axes.transAxes,
        )
        axes.set_axis_off()
        return
    for line in data.widths:
        colour = colours[line.activation]
        _line(axes, line.points, score, FINITE, ":", colour)
        if line.level:
            axes.axhline(getattr(line.level, score), color=colour, lw=1.1, ls="--")
    width_axis(axes, sorted({point.at for line in data.widths for point in line.points}))


def _line(
    axes: plt.Axes,
    points: Sequence[Point],
    score: str,
    mark: str,
    line: str,
    colour: str,
    mfc: str | None = None,
    ms: float = 4.5,
) -> None:
    """What the points have of this score: the paper prints no errors."""
    known = [(point.at, value) for point in points if (value := getattr(point, score)) is not None]
    if known:
        axes.plot(
            *zip(*known, strict=True),
            marker=mark,
            ls=line or "none",
            color=colour,
            mfc=mfc or colour,
            ms=ms,
            lw=1.3,
        )


def _title(data: Sizes) -> str:
    below = f"; below: {data.train:,} training points" if data.train else ""
    return f"{data.dataset}: the best networks by validation{below}"


def _legend(data: Sizes, colours: dict[str, str]) -> list[Line2D]:
    """Only what is there."""
    grey = "0.3"
    names = [Line2D([], [], color=colour, lw=3, label=name) for name, colour in colours.items()]
    marks = [
        (_any(data, "infinite"), INFINITE, "-", grey, "infinite"),
        (_any(data, "finite"), FINITE, ":", grey, "finite"),
        (_any(data, "paper_infinite"), INFINITE, "none", "none", "infinite, paper"),
        (_any(data, "paper_finite"), FINITE, "none", "none", "finite, paper"),
    ]
    lines = [
        Line2D([], [], color=grey, marker=mark, ls=style, mfc=face, ms=5, label=label)
        for there, mark, style, face, label in marks
        if there
    ]
    if any(line.level for line in data.widths):
        lines.append(Line2D([], [], color=grey, ls="--", label="infinite, level"))
    return names + lines


def _any(data: Sizes, part: str) -> bool:
    return any(getattr(curve, part) for curve in data.curves)
