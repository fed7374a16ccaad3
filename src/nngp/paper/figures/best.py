"""Figure 10: the variances of the best networks beside the critical line."""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from nngp.paper.readings.best import Best
from nngp.plots.style import save, variance_panels

WIDTH, POINTS = 7.2, 9
COLOURS = "plasma"
SMALLEST, LARGEST = 3.2, 8.0  # marks, in points: networks that differ in depth only are rings
BRIGHTEST = 0.88  # of the colours: brighter ones are not seen on white
Look = dict[str, Any]
MARGIN = 0.07  # of the ranges, so that marks at their ends are whole


def draw_best(data: Best, path: str | Path | None = None) -> Figure:
    """Rows are activations, columns training sets; each mark is a network, its colour the depth,
    and deeper ones are larger and lie below."""
    with plt.rc_context({"font.size": POINTS}):
        titles = [f"{train:,} points" for train in data.sizes]
        size = (WIDTH, 1.0 + 1.65 * len(data.activations))
        figure, axes = variance_panels(data.activations, titles, size)
        depths = sorted({one.depth for some in data.chosen.values() for one in some})
        looks = dict(zip(depths, _looks(len(depths)), strict=True))
        for row, name in zip(axes, data.activations, strict=True):
            for panel, train in zip(row, data.sizes, strict=True):
                _draw_panel(panel, data, name, train, looks)
        _explain(figure, looks)
        figure.suptitle(_words(data), fontsize=POINTS + 1)
        save(figure, path)
    return figure


def _draw_panel(axes: plt.Axes, data: Best, name: str, train: int, looks: dict[int, Look]) -> None:
    if name in data.theories:
        theory = data.theories[name]
        axes.plot(*theory.line_within(np.array(data.weight_range)), color="0.4", lw=1.1, ls="--")
    chosen = data.chosen.get((name, train), ())
    if not chosen:
        axes.text(0.5, 0.5, "not run", ha="center", transform=axes.transAxes, color="0.35")
    for depth, look in reversed(looks.items()):
        own = [(one.weight_var, one.bias_var) for one in chosen if one.depth == depth]
        if own:
            axes.plot(*zip(*own, strict=True), **look)
    for direction, (first, last) in (("x", data.weight_range), ("y", data.bias_range)):
        beyond = MARGIN * (last - first)
        axes.set(**{f"{direction}lim": (first - beyond, last + beyond)})


def _looks(count: int) -> list[Look]:
    """The mark of each depth, the shallowest first."""
    parts = np.linspace(0, 1, count)
    return [
        {
            "ls": "none",
            "marker": "o",
            "ms": SMALLEST + part * (LARGEST - SMALLEST),
            "mfc": plt.get_cmap(COLOURS)(BRIGHTEST * part),
            "mec": "white",
            "mew": 0.5,
        }
        for part in parts
    ]


def _explain(figure: Figure, looks: dict[int, Look]) -> None:
    marks = [Line2D([], [], label=f"{depth}", **look) for depth, look in looks.items()]
    figure.legend(
        handles=marks,
        title="depth (hidden layers)",
        loc="outside lower center",
        ncols=len(marks),
        frameon=False,
        handletextpad=0.1,
        columnspacing=1.2,
    )


def _words(data: Best) -> str:
    count = max(len(some) for some in data.chosen.values())
    partly = any(data.networks[key] < data.wanted for key in data.chosen)
    note = "; some grids are not complete" if partly else ""
    line = "; dashed, the critical line" if data.theories else ""
    return f"{data.dataset}: the {count} best by validation{line}{note}"
