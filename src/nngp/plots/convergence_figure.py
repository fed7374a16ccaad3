"""The picture of networks that become a Gaussian process as they become wide.

Sized so that no word is smaller than 7 points when printed across a page (6.3 inches).
"""

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpecBase, SubplotSpec
from matplotlib.ticker import FixedLocator, NullLocator
from numpy.typing import NDArray
from scipy import stats

from nngp.finite.width_convergence import Convergence
from nngp.plots.decay_figure import (
    GREY,
    LAYERS,
    LEGEND,
    draw_decay,
    name_widths,
    network_words,
    shown_layers,
)
from nngp.plots.style import plain, save

Array = NDArray[np.float64]
SIZE, POINTS = (7.0, 5.8), 9
WIDTHS = ("#CC79A7", "o"), ("#E69F00", "s"), ("#56B4E9", "D")  # Okabe-Ito, others than the layers'
MODEL, AREA = "#D55E00", "0.9"
TAIL = 3.0  # deviations to which quantiles are shown
NORMAL = 0.95  # part of Gaussian samples that the grey areas hold


def draw_convergence(data: Convergence, path: str | Path | None = None) -> Figure:
    """Kernel entry and its error against width, quantiles of outputs, and their tails."""
    with plt.rc_context({"font.size": POINTS, "axes.titlesize": POINTS}):
        figure = plt.figure(figsize=SIZE, layout="constrained")
        grid = figure.add_gridspec(2, 2)
        _draw_entry(figure, grid[0, 0], data)
        error = figure.add_subplot(grid[0, 1])
        draw_decay(error, data.decay)
        _letter(error, "b", "relative error of the kernel")
        _draw_quantiles(figure.add_subplot(grid[1, 0]), data)
        _draw_tails(figure, grid[1, 1].subgridspec(2, 1), data)
        figure.suptitle(network_words(data.architecture, data.networks), fontsize=POINTS)
        save(figure, path)
    return figure


def _draw_entry(figure: Figure, place: SubplotSpec, data: Convergence) -> None:
    """Mean and spread of one entry, a strip for each layer."""
    i, j = 0, min(1, len(data.X) - 1)
    layers = shown_layers(data.architecture.depth)
    grid = place.subgridspec(len(layers), 1)
    above: Any = None
    for strip, layer in enumerate(layers):
        colour, mark = LAYERS[strip]
        axes = figure.add_subplot(grid[strip], sharex=above)
        mean, spread = data.mean[:, layer - 1, i, j], data.spread[:, layer - 1, i, j]
        axes.fill_between(data.widths, mean - spread, mean + spread, color=colour, alpha=0.2, lw=0)
        axes.plot(data.widths, mean, mark, color=colour, ms=4, ls="-", lw=1.1)
        axes.axhline(data.exact[layer - 1, i, j], color="black", lw=0.9, ls="--")
        _note(axes, f"layer {layer}", colour)
        axes.tick_params(labelbottom=False)
        axes.locator_params(axis="y", nbins=3)
        plain(axes)
        above = above or axes
        if strip == 0:
            _letter(axes, "a", "a kernel entry: mean ± deviation; - - exact")
    axes.tick_params(labelbottom=True)
    name_widths(axes, data.widths)


def _draw_quantiles(axes: plt.Axes, data: Convergence) -> None:
    """Quantiles of outputs against those of the Gaussian, evenly spaced."""
    wanted = np.linspace(-TAIL, TAIL, 49)
    last = len(data.widths) - 1
    axes.plot(wanted, wanted, color="black", lw=0.9, ls="--", zorder=4)
    for (colour, mark), at in zip(WIDTHS, dict.fromkeys((0, last // 2, last)), strict=False):
        found = np.quantile(data.outputs[at], stats.norm.cdf(wanted))
        axes.plot(wanted, found, mark, color=colour, ms=3.5, label=f"width {data.widths[at]}")
    axes.set(xlabel="quantile of the Gaussian")
    axes.legend(loc="upper left", **LEGEND)
    _letter(axes, "c", "quantile of the outputs")
    plain(axes)


def _draw_tails(figure: Figure, grid: GridSpecBase, data: Convergence) -> None:
    """Excess kurtosis and K², with what samples of a Gaussian have."""
    above = figure.add_subplot(grid[0])
    below = figure.add_subplot(grid[1], sharex=above)
    _draw_kurtosis(above, data)
    _draw_statistic(below, data)
    above.tick_params(labelbottom=False)
    name_widths(below, data.widths)
    for axes in (above, below):
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_minor_locator(NullLocator())
        plain(axes)


def _draw_kurtosis(axes: plt.Axes, data: Convergence) -> None:
    chance = stats.norm.ppf(0.5 + NORMAL / 2) * np.sqrt(24 / data.networks)
    axes.axhspan(-chance, chance, color=AREA, lw=0)
    axes.plot(data.widths, data.expected_kurtosis, color=MODEL, lw=1.1)
    axes.errorbar(
        data.widths, data.kurtosis, data.kurtosis_error, fmt="o", color="black", ms=4, lw=1.1
    )
    axes.set_yscale("symlog", linthresh=1.0)
    low, high = axes.get_ylim()
    axes.set_ylim(low, max(1.0, 3 * high))
    axes.yaxis.set_major_locator(FixedLocator([0, 0.5, 1, *10.0 ** np.arange(1, 9)]))
    _note(axes, "line: from the spread of kernels", MODEL)
    _letter(axes, "d", "excess kurtosis of the outputs")


def _draw_statistic(axes: plt.Axes, data: Convergence) -> None:
    limit = stats.chi2.ppf(NORMAL, 2)
    lowest, highest = min(data.statistic.min(), 0.1 * limit), max(data.statistic.max(), limit)
    axes.axhspan(lowest / 2, limit, color=AREA, lw=0)
    axes.plot(data.widths, data.statistic, "o", color="black", ms=4)
    axes.set(yscale="log", ylim=(lowest / 2, 20 * highest))
    _note(axes, f"grey: {NORMAL:.0%} of Gaussian samples", GREY)
    axes.set_title("normality statistic K² of the outputs", loc="left")


def _note(axes: plt.Axes, words: str, colour: str) -> None:
    place: dict[str, Any] = {"xycoords": "axes fraction", "ha": "right", "va": "top"}
    axes.annotate(words, (0.99, 0.97), color=colour, **place)


def _letter(axes: plt.Axes, letter: str, words: str) -> None:
    axes.set_title(rf"$\bf{{{letter}}}$   {words}", loc="left")
