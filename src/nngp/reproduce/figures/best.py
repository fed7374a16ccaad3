"""Figure 10: the variances of the best networks beside the critical line."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from nngp.reproduce.figures.style import save
from nngp.reproduce.readings.best import Best
from nngp.reproduce.readings.choice import Chosen

WIDTH, POINTS = 7.2, 9
COLOURS = "viridis"
SMALLEST, STEP = 3.0, 1.3  # marks, in points: networks that differ in depth only are seen as rings
MARGIN = 0.04  # of the ranges, so that marks at their ends are whole


def draw_best(data: Best, path: str | Path | None = None) -> Figure:
    """Rows are activations, columns training sets; each mark is a network, its colour the depth,
    and deeper ones are larger and lie below."""
    rows, columns = len(data.activations), len(data.sizes)
    with plt.rc_context({"font.size": POINTS}):
        figure, axes = plt.subplots(
            *(rows, columns),
            figsize=(WIDTH, 1.0 + 1.65 * rows),
            sharex=True,
            sharey=True,
            squeeze=False,
            layout="constrained",
        )
        depths = sorted({one.depth for some in data.chosen.values() for one in some})
        norm = LogNorm(depths[0], max(depths[-1], depths[0] * 2))
        for row, name in zip(axes, data.activations, strict=True):
            for panel, train in zip(row, data.sizes, strict=True):
                _draw_panel(panel, data, name, train, depths, norm)
            row[0].set_ylabel(name)
        for panel, train in zip(axes[0], data.sizes, strict=True):
            panel.set_title(f"{train:,} points", fontsize=POINTS)
        figure.supxlabel("weight variance", fontsize=POINTS)
        figure.supylabel("bias variance", fontsize=POINTS)
        bar = figure.colorbar(ScalarMappable(norm, COLOURS), ax=axes.ravel().tolist(), pad=0.02)
        bar.set_label("depth (hidden layers)")
        bar.set_ticks(depths, labels=[f"{depth}" for depth in depths])
        bar.minorticks_off()
        figure.suptitle(_words(data), fontsize=POINTS + 1)
        save(figure, path)
    return figure


def _draw_panel(
    axes: plt.Axes, data: Best, name: str, train: int, depths: list[int], norm: LogNorm
) -> None:
    if name in data.theories:
        theory = data.theories[name]
        axes.plot(*theory.line_within(np.array(data.weight_range)), color="0.4", lw=1.1, ls="--")
    chosen = data.chosen.get((name, train), ())
    if not chosen:
        axes.text(0.5, 0.5, "not run", ha="center", transform=axes.transAxes, color="0.35")
    for depth in reversed(depths):
        own = [one for one in chosen if one.depth == depth]
        size = SMALLEST + STEP * depths.index(depth)
        _draw_marks(axes, own, size, plt.get_cmap(COLOURS)(norm(depth)))
    for direction, (first, last) in (("x", data.weight_range), ("y", data.bias_range)):
        beyond = MARGIN * (last - first)
        axes.set(**{f"{direction}lim": (first - beyond, last + beyond)})


def _draw_marks(axes: plt.Axes, chosen: Sequence[Chosen], size: float, colour: object) -> None:
    weights, biases = [one.weight_var for one in chosen], [one.bias_var for one in chosen]
    axes.plot(weights, biases, ls="none", marker="o", ms=size, mfc=colour, mec="white", mew=0.4)


def _words(data: Best) -> str:
    count = max(len(some) for some in data.chosen.values())
    partly = any(data.networks[key] < data.wanted for key in data.chosen)
    note = "; some grids are not complete" if partly else ""
    return f"{data.dataset}: the {count} best by validation; dashed, the critical line{note}"
