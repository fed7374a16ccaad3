"""Networks drawn from the prior become a Gaussian process as they become wide: the figure.

Sized so that no word is smaller than 7 points when printed across a page (6.3 inches).
"""

from collections.abc import Sequence
from textwrap import shorten
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from nngp._arrays import Array
from nngp._progress import Callback
from nngp.architecture import Architecture, Network
from nngp.finite import width_convergence as study
from nngp.finite.width_convergence import Convergence, Decay
from nngp.plots import style
from nngp.plots.style import Options, OutputPath, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import GridSpecBase, SubplotSpec

LAYERS = (style.BLUE, "o"), (style.ORANGE, "s"), (style.GREEN, "^")
WIDTHS = (style.PINK, "o"), (style.YELLOW, "s"), (style.SKY, "D")  # other colours than the layers'
GREY, AREA = "0.45", "0.9"
LEGEND: Options = {"frameon": False, "labelcolor": "linecolor", "handletextpad": 0.2}
TAIL = 3.0  # deviations to which quantiles are shown
NORMAL = 0.95  # part of Gaussian samples that the grey areas hold


def convergence(
    network: Network,
    path: OutputPath = None,
    X: ArrayLike | None = None,
    *,
    widths: Sequence[int] | None = None,
    n_networks: int | None = None,
    seed: int = 0,
    progress: Callback | bool | None = None,
) -> "Figure":
    """Compare networks drawn from the prior with the infinitely wide one: an entry of the kernel
    (of the first two inputs) and the error of all entries against width, and tests of the
    normality of outputs (of the first input).

    Inputs are by default three of norm x·x/d = 1 at angles of 45 and 90 degrees. Under a minute on
    two cores at depth 3 and with the default widths (4 to 512) and networks (2000 of each); needs
    the extra `finite` too. The figure is returned, and written to `path` if there is one.

    Examples
    --------
    >>> import nngp
    >>> net, X = nngp.Architecture(1, "relu"), [[1.0, 1.0], [1.0, -1.0]]
    >>> figure = nngp.plots.convergence(net, "figure.svg", X, widths=(16, 256), n_networks=50)
    >>> figure.get_suptitle()
    'relu, depth 1, weight_var 1.6, bias_var 0.1; 50 networks of each width'
    """
    inputs = study.three_inputs() if X is None else X
    sizes = study.WIDTHS if widths is None else widths
    count = study.NETWORKS if n_networks is None else n_networks
    found = study.convergence(network, inputs, sizes, count, seed, progress=progress)
    return draw_convergence(found, path)


def draw_convergence(data: Convergence, path: OutputPath = None) -> "Figure":
    """Draw kernel entry and error against width, quantiles of outputs, and their tails."""
    with new_figure((7.0, 5.8), path) as figure:
        grid = figure.add_gridspec(2, 2)
        _draw_entry(grid[0, 0], data)
        error = figure.add_subplot(grid[0, 1])
        draw_decay(error, data.decay)
        _title(error, "b", "relative error of the kernel")
        _draw_quantiles(figure.add_subplot(grid[1, 0]), data)
        _draw_tails(grid[1, 1].subgridspec(2, 1), data)
        figure.suptitle(network_words(data.architecture, data.n_networks), fontsize=style.POINTS)
    return figure


def _draw_entry(place: "SubplotSpec", data: Convergence) -> None:
    """Mean and spread of one entry, a strip for each layer."""
    i, j = 0, min(1, len(data.X) - 1)
    layers = shown_layers(len(data.exact))
    strips = place.subgridspec(len(layers), 1).subplots(sharex=True, squeeze=False)[:, 0]
    for axes, layer, (colour, mark) in zip(strips, layers, LAYERS, strict=False):
        mean, spread = data.mean[:, layer - 1, i, j], data.spread[:, layer - 1, i, j]
        axes.fill_between(data.widths, mean - spread, mean + spread, color=colour, alpha=0.2, lw=0)
        axes.plot(data.widths, mean, mark, color=colour, ms=4, ls="-", lw=1.1)
        axes.axhline(data.exact[layer - 1, i, j], color="black", lw=0.9, ls="--")
        _note(axes, f"layer {layer}", colour)
        axes.locator_params(axis="y", nbins=3)
        plain(axes)
    _title(strips[0], "a", "a kernel entry: mean ± deviation; - - exact")
    name_widths(strips[-1], data.widths)


def draw_decay(axes: "Axes", data: Decay) -> None:
    """Draw errors of the first, the middle and the last layer, each with its fitted line.

    Examples
    --------
    >>> import matplotlib.pyplot as plt, numpy as np, nngp
    >>> from nngp.plots import draw_decay
    >>> error = np.array([[0.4], [0.2], [0.1]])
    >>> figure, axes = plt.subplots()
    >>> draw_decay(axes, nngp.finite.Decay((4, 16, 64), error, 0.01 * error))
    >>> axes.get_xlabel()
    'width'
    >>> plt.close(figure)
    """
    from matplotlib.ticker import NullFormatter

    for (colour, mark), layer in zip(LAYERS, shown_layers(data.error.shape[1]), strict=False):
        slope, deviation = data.slope[layer - 1], data.slope_error[layer - 1]
        label = f"layer {layer}: slope {slope:.3f} ± {deviation:.3f}".replace("-", "−")
        axes.plot(data.widths, data.error[:, layer - 1], mark, color=colour, ms=4, label=label)
        axes.plot(data.widths, data.line(layer), color=colour, lw=1.1)
    _draw_theory(axes, data)
    axes.set(yscale="log", ylim=(None, 5 * data.error.max()))  # room for the words
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.legend(loc="upper right", **LEGEND)
    name_widths(axes, data.widths)
    plain(axes)


def shown_layers(depth: int) -> list[int]:
    """First, middle and last layer."""
    return list(dict.fromkeys((1, (depth + 1) // 2, depth)))


def name_widths(axes: "Axes", widths: Sequence[int]) -> None:
    """Put widths on a logarithmic x axis, every other one named if there are many."""
    from matplotlib.ticker import FixedLocator, NullLocator

    axes.set(xscale="log", xlabel="width")
    axes.xaxis.set_major_locator(FixedLocator(widths[:: max(1, round(len(widths) / 5))]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda width, _: f"{width:g}")


def network_words(net: Network, n_networks: int) -> str:
    """Title of a figure: the network, and the number of networks drawn."""
    if not isinstance(net, Architecture):
        return f"{shorten(repr(net), 80, placeholder=' ...')}; {n_networks} networks of each width"
    parts = [f"{net.activation.name}, depth {net.depth}"]
    for name, value in (("weight_var", net.weight_var), ("bias_var", net.bias_var)):
        parts.append(f"{name} {value:g}" if isinstance(value, float) else f"{name} by layer")
    return f"{', '.join(parts)}; {n_networks} networks of each width"


def _draw_theory(axes: "Axes", data: Decay) -> None:
    """Draw the slope -1/2 below the measured errors."""
    ends = np.array([data.widths[0], data.widths[-1]], dtype=float)
    lowest = (data.error.min(axis=1) * np.sqrt(data.widths)).min()
    axes.plot(ends, 0.6 * lowest / np.sqrt(ends), color=GREY, lw=0.9, ls=":")
    middle = np.sqrt(ends.prod())
    at = middle, 0.5 * lowest / np.sqrt(middle)
    axes.annotate("slope −½ ", at, ha="right", va="top", color=GREY)


def _draw_quantiles(axes: "Axes", data: Convergence) -> None:
    """Quantiles of outputs against those of the Gaussian, evenly spaced."""
    wanted = np.linspace(-TAIL, TAIL, 49)
    last = len(data.widths) - 1
    axes.plot(wanted, wanted, color="black", lw=0.9, ls="--", zorder=4)
    for (colour, mark), at in zip(WIDTHS, dict.fromkeys((0, last // 2, last)), strict=False):
        found = _quantiles(data.outputs[at], wanted)
        axes.plot(wanted, found, mark, color=colour, ms=3.5, label=f"width {data.widths[at]}")
    axes.set(xlabel="quantile of the Gaussian")
    axes.legend(loc="upper left", **LEGEND)
    _title(axes, "c", "quantile of the outputs")
    plain(axes)


def _quantiles(outputs: Array, deviations: Array) -> Array:
    """The outputs' quantiles at the probabilities of these deviations of a Gaussian."""
    return np.quantile(outputs, stats.norm.cdf(deviations))


def _draw_tails(grid: "GridSpecBase", data: Convergence) -> None:
    """Excess kurtosis and K², with the range of Gaussian samples."""
    from matplotlib.ticker import NullLocator

    above, below = grid.subplots(sharex=True, squeeze=False)[:, 0]
    _draw_kurtosis(above, data)
    _draw_statistic(below, data)
    name_widths(below, data.widths)
    for axes in (above, below):
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_minor_locator(NullLocator())
        plain(axes)


def _draw_kurtosis(axes: "Axes", data: Convergence) -> None:
    from matplotlib.ticker import FixedLocator

    chance = stats.norm.ppf(0.5 + NORMAL / 2) * np.sqrt(24 / data.n_networks)
    axes.axhspan(-chance, chance, color=AREA, lw=0)
    axes.plot(data.widths, data.expected_kurtosis, color=style.ORANGE, lw=1.1)
    dots: Options = {"fmt": "o", "color": "black", "ms": 4, "lw": 1.1}
    axes.errorbar(data.widths, data.kurtosis, data.kurtosis_error, **dots)
    axes.set_yscale("symlog", linthresh=1.0)
    low, high = axes.get_ylim()
    axes.set_ylim(low, max(1.0, 3 * high))
    axes.yaxis.set_major_locator(FixedLocator([0, 0.5, 1, *10.0 ** np.arange(1, 9)]))
    _note(axes, "line: from the spread of kernels", style.ORANGE)
    _title(axes, "d", "excess kurtosis of the outputs")


def _draw_statistic(axes: "Axes", data: Convergence) -> None:
    limit = stats.chi2.ppf(NORMAL, 2)
    lowest, highest = min(data.statistic.min(), 0.1 * limit), max(data.statistic.max(), limit)
    axes.axhspan(lowest / 2, limit, color=AREA, lw=0)
    axes.plot(data.widths, data.statistic, "o", color="black", ms=4)
    axes.set(yscale="log", ylim=(lowest / 2, 20 * highest))
    _note(axes, f"grey: {NORMAL:.0%} of Gaussian samples", GREY)
    axes.set_title("normality statistic K² of the outputs", loc="left")


def _note(axes: "Axes", words: str, colour: str) -> None:
    corner = (0.99, 0.97)
    axes.annotate(words, corner, xycoords="axes fraction", ha="right", va="top", color=colour)


def _title(axes: "Axes", letter: str, words: str) -> None:
    axes.set_title(rf"$\bf{{{letter}}}$   {words}", loc="left")
