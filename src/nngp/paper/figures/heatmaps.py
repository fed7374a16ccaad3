"""Figures 4 and 9: test accuracy over the two variances as heat maps, phases beside or over them.

Colours go by the logarithm of the error, else the best networks would all look alike. cividis is
read alike by readers with and without colour blindness, and prints well in grey.
"""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from nngp.paper.readings.heatmaps import HeatMap, HeatMaps
from nngp.paper.readings.lines import Theory
from nngp.plots.phases_figure import LOOKS
from nngp.plots.style import accuracy_ticks, save, variance_panels

WIDTH, POINTS = 7.2, 9
COLOURS = "cividis_r"
NO_KERNEL = "0.75"
ROOM = 0.25  # part of the width that the name of a phase takes
STAR: dict[str, Any] = {"marker": "*", "ms": 10, "mfc": "white", "mec": "black", "mew": 0.9}
LINE: dict[str, Any] = {  # seen on dark and bright alike
    "color": "white",
    "lw": 1.0,
    "path_effects": [withStroke(linewidth=2.4, foreground="black")],
}


def draw_phase_maps(data: HeatMaps, path: str | Path | None = None) -> Figure:
    """Figure 4: a row for each activation, its heat map on the left, its phases on the right."""
    (depth,) = data.depths
    rows = len(data.activations)
    with plt.rc_context({"font.size": POINTS}):
        figure, axes = plt.subplots(
            *(rows, 2),
            figsize=(WIDTH, 0.6 + 2.5 * rows),
            width_ratios=(1.12, 1),  # the colours' scale is on the left
            squeeze=False,
            layout="constrained",
        )
        norm = _norm(data)
        for (left, right), name in zip(axes, data.activations, strict=True):
            _draw_map(left, data, name, depth, norm)
            _draw_phases(right, data.theories.get(name))
            left.set(ylabel="bias variance", title=f"{name}: test accuracy")
            right.set(title=f"{name}: phases")
        for below in axes[-1]:
            below.set_xlabel("weight variance")
        _colour_bar(figure, axes[:, 0].tolist(), norm)
        figure.suptitle(f"{_words(data)}, {depth} hidden layers", fontsize=POINTS + 1)
        _explain(figure, data)
        save(figure, path)
    return figure


def draw_depth_maps(data: HeatMaps, path: str | Path | None = None) -> Figure:
    """Figure 9: rows are activations, columns depths; one scale of colours for all."""
    with plt.rc_context({"font.size": POINTS}):
        titles = [f"depth {depth}" for depth in data.depths]
        size = (WIDTH, 1.0 + 1.6 * len(data.activations))
        figure, axes = variance_panels(data.activations, titles, size)
        norm = _norm(data)
        for row, name in zip(axes, data.activations, strict=True):
            for panel, depth in zip(row, data.depths, strict=True):
                _draw_map(panel, data, name, depth, norm)
        _colour_bar(figure, axes.ravel().tolist(), norm)
        figure.suptitle(f"test accuracy: {_words(data)}", fontsize=POINTS + 1)
        _explain(figure, data)
        save(figure, path)
    return figure


def _norm(data: HeatMaps) -> LogNorm:
    """From the best to the worst of all heat maps."""
    errors = np.concatenate([_errors(one).ravel() for one in data.maps.values()])
    known = errors[np.isfinite(errors)]
    lowest, highest = (known.min(), known.max()) if known.size else (0.1, 1.0)
    return LogNorm(lowest, max(highest, 1.01 * lowest))


def _errors(one: HeatMap) -> NDArray[np.float64]:
    """The part of the test points that is not right; none counts as half a point, for the log."""
    return np.maximum(1 - one.grid.scores["test_accuracy"], 0.5 / one.grid.test)


def _draw_map(axes: plt.Axes, data: HeatMaps, name: str, depth: int, norm: LogNorm) -> None:
    """The cell of a network lies around it: grey without a kernel, white if it was not run."""
    axes.locator_params(axis="x", nbins=5)
    one = data.maps.get((name, depth))
    if one is None:
        axes.text(0.5, 0.5, "not run", ha="center", transform=axes.transAxes, color="0.35")
        return
    weights, biases = _edges(one.grid.weight_vars), _edges(one.grid.bias_vars)
    cells: dict[str, Any] = {"rasterized": True}
    if (grey := _without_kernel(one)).any():
        hidden = np.ma.masked_equal(grey.T, False)
        axes.pcolormesh(weights, biases, hidden, cmap=ListedColormap([NO_KERNEL]), **cells)
    errors = np.ma.masked_invalid(_errors(one).T)
    axes.pcolormesh(weights, biases, errors, norm=norm, cmap=COLOURS, **cells)
    if name in data.theories:
        axes.plot(*data.theories[name].line_within(weights), **LINE)
    if one.best is not None:
        axes.plot(one.best.weight_var, one.best.bias_var, ls="none", clip_on=False, **STAR)
    axes.set(xlim=weights[[0, -1]], ylim=biases[[0, -1]])


def _draw_phases(axes: plt.Axes, theory: Theory | None) -> None:
    if theory is None:
        axes.text(0.5, 0.5, "not computed", ha="center", transform=axes.transAxes, color="0.35")
        return
    # What holds at bias_var = 0 only has no area: the lowest row is drawn as the one above it.
    phase = theory.phase[np.maximum(np.arange(len(theory.bias_vars)), 1)]
    for name in np.unique(phase):
        area = phase == name
        colour = LOOKS[name].tint
        axes.contourf(theory.weight_vars, theory.bias_vars, area, levels=(0.5, 1), colors=colour)
        _name_area(axes, theory, area, name)
    axes.plot(*theory.line_within(theory.weight_vars), **LINE)
    axes.set(xlim=theory.weight_vars[[0, -1]], ylim=theory.bias_vars[[0, -1]])


def _name_area(axes: plt.Axes, theory: Theory, area: NDArray[np.bool_], name: str) -> None:
    """The phase's name where the phase is widest, if it has room."""
    row = int(area.sum(axis=1).argmax())
    weights = theory.weight_vars[area[row]]
    if len(weights) > ROOM * len(theory.weight_vars):
        inner = np.clip(theory.bias_vars[row], *np.quantile(theory.bias_vars, (0.12, 0.88)))
        axes.text(weights.mean(), inner, name, ha="center", va="center")


def _without_kernel(one: HeatMap) -> NDArray[np.bool_]:
    return one.grid.tried & np.isnan(one.grid.scores["test_accuracy"])


def _edges(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Borders of the cells: between neighbours, and as far beyond the ends."""
    if len(values) == 1:
        return values[0] + np.array([-0.5, 0.5])
    inner = (values[1:] + values[:-1]) / 2
    return np.array([2 * values[0] - inner[0], *inner, 2 * values[-1] - inner[-1]])


def _colour_bar(figure: Figure, axes: list[plt.Axes], norm: LogNorm) -> None:
    """Colours go by the logarithm of the error, their scale by accuracy."""
    bar = figure.colorbar(ScalarMappable(norm, COLOURS), ax=axes, pad=0.02, aspect=30)
    bar.ax.invert_yaxis()
    named = accuracy_ticks(norm.vmin or 0.1, norm.vmax or 1.0)
    bar.set_ticks([1 - accuracy for accuracy in named], labels=[f"{each:g}" for each in named])
    bar.minorticks_off()


def _explain(figure: Figure, data: HeatMaps) -> None:
    marks: list[Any] = [Line2D([], [], ls="none", label="best by validation", **STAR)]
    if data.theories:
        marks.append(Line2D([], [], label="critical line", **LINE))
    if any(_without_kernel(one).any() for one in data.maps.values()):
        marks.append(Patch(facecolor=NO_KERNEL, label="no kernel"))
    figure.legend(handles=marks, loc="outside lower center", ncols=3, frameon=False)


def _words(data: HeatMaps) -> str:
    missing = data.wanted - data.networks
    partly = f" ({data.networks:,} of {data.wanted:,} networks)" if missing else ""
    return f"{data.dataset}, {data.train:,} training points{partly}"
