"""The picture of signal propagation (sec. 3.2): phases, depth scales, and networks on their way.

Sized so that no word is smaller than 6 points when printed one column (3.4 inches) wide.
"""

from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpecBase
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator
from numpy.typing import NDArray

from nngp.plots.phases import LAYERS, Phases, Propagation
from nngp.plots.style import plain, save

Array = NDArray[np.float64]
SIZE, POINTS = (5.0, 4.8), 9
GREY = "0.5"
WIDE, NARROW = 0.36, 0.1  # parts of the width that a word takes, level and upright
FROM, TO = 1.0, 100.0  # layers: the range of the depth scale's colours


class Look(NamedTuple):
    """How a phase is drawn. Marks and widths tell lines apart that coincide or lost their
    colour."""

    colour: str  # of the Okabe-Ito palette, safe for colour-blind readers
    tint: str
    mark: str
    width: float


LOOKS = {
    "chaotic": Look("#D55E00", "#FAE3D3", "D", 1.8),
    "unbounded": Look("#CC79A7", "#F5E4ED", "D", 1.8),
    "ordered": Look("#0072B2", "#D9E8F3", "s", 1.3),
    "bounded": Look("#0072B2", "#D9E8F3", "s", 1.3),
    "critical": Look("#000000", "#FFFFFF", "^", 0.8),
}
ORDER = list(LOOKS)  # the widest line first, so that it shows below the others


def draw_phases(data: Phases, path: str | Path | None = None) -> Figure:
    """Phase diagram, depth scales, correlation map, and the flow of variance and correlation."""
    networks = sorted(data.networks, key=lambda net: ORDER.index(_name(net)))
    with plt.rc_context({"font.size": POINTS, "axes.titlesize": POINTS}):
        figure = plt.figure(figsize=SIZE, layout="constrained")
        grid = figure.add_gridspec(2, 2)
        _draw_diagram(figure.add_subplot(grid[0, 0]), data)
        _draw_depth_scale(figure, figure.add_subplot(grid[0, 1]), data)
        _draw_map(figure.add_subplot(grid[1, 0]), networks)
        _draw_flows(figure, grid[1, 1].subgridspec(2, 1), networks)
        save(figure, path)
    return figure


def _name(net: Propagation) -> str:
    """A network on the line is critical, whichever of its numbers changes there."""
    return "critical" if net.on_line else net.phase


def _draw_diagram(axes: plt.Axes, data: Phases) -> None:
    diagram = data.diagram
    # What holds at bias_var = 0 only has no area: the lowest row is drawn as the one above it.
    phase = diagram.phase[np.maximum(np.arange(len(diagram.bias_vars)), 1)]
    for name in np.unique(phase):
        area = phase == name
        axes.contourf(
            diagram.weight_vars, diagram.bias_vars, area, levels=(0.5, 1), colors=LOOKS[name].tint
        )
        _name_area(axes, data, area, name)
    _frame_plane(axes, data)
    _name_line(axes, data)
    axes.set(ylabel="bias variance", title=diagram.activation)
    _letter(axes, "a")


def _draw_depth_scale(figure: Figure, axes: plt.Axes, data: Phases) -> None:
    colours = axes.pcolormesh(
        data.diagram.weight_vars,
        data.diagram.bias_vars,
        np.clip(data.depth_scale, FROM, TO),  # infinite on the line: the brightest there is
        shading="gouraud",
        norm=LogNorm(FROM, TO),
        cmap="viridis",
        rasterized=True,
    )
    _frame_plane(axes, data)
    axes.tick_params(labelleft=False)
    bar = figure.colorbar(colours, ax=axes, label="depth scale (layers)", pad=0.03)
    bar.set_ticks([1, 10, 100], labels=["≤ 1", "10", "≥ 100"])
    bar.minorticks_off()
    _letter(axes, "b")


def _frame_plane(axes: plt.Axes, data: Phases) -> None:
    """The critical line and the networks over a map of (weight_var, bias_var)."""
    diagram = data.diagram
    axes.plot(*_line(data), ":", color="black", lw=1.4)
    for net in data.networks:
        look = LOOKS[_name(net)]
        mark: dict[str, Any] = {"color": look.colour, "mec": "white", "ms": 7, "zorder": 4}
        axes.plot(net.weight_var, net.bias_var, look.mark, clip_on=False, **mark)
    axes.set(
        xlabel="weight variance",
        xlim=diagram.weight_vars[[0, -1]],
        ylim=diagram.bias_vars[[0, -1]],
    )
    axes.locator_params(axis="x", nbins=6)


def _line(data: Phases) -> tuple[Array, Array]:
    """The part of the critical line that is in the picture."""
    weights, biases = data.diagram.critical_weight_vars, data.diagram.bias_vars
    first, last = data.diagram.weight_vars[[0, -1]]
    inside = (weights >= first) & (weights <= last)
    return weights[inside], biases[inside]


def _name_area(axes: plt.Axes, data: Phases, area: NDArray[np.bool_], name: str) -> None:
    """The phase's name in the lower half, as the line's is above; upright in a narrow area."""
    weights, biases = data.diagram.weight_vars, data.diagram.bias_vars
    height = biases / biases[-1]
    taken = data.networks[0].bias_var / biases[-1]
    best = 0.1 if 0.2 < taken < 0.5 else 0.35  # clear of the networks
    for width, lowest, rotation in ((WIDE, 0.05, 0), (NARROW, 0.25, 90)):
        fits = (area.mean(axis=1) > width) & (height > lowest) & (height < 0.5)
        if fits.any():
            row = np.where(fits, np.abs(height - best), np.inf).argmin()
            at = weights[area[row]].mean(), biases[row]
            axes.text(*at, name, ha="center", va="center", rotation=rotation)
            return


def _name_line(axes: plt.Axes, data: Phases) -> None:
    """The critical line's name along it: on its left, unless that is narrow."""
    weights, biases = _line(data)
    if len(biases) < len(data.diagram.bias_vars) // 2:  # no room along it
        return
    at = int(0.68 * len(biases))
    run, rise = weights[at + 1] - weights[at - 1], biases[at + 1] - biases[at - 1]
    on_left = weights[at] > WIDE * data.diagram.weight_vars[-1]
    axes.text(
        weights[at],
        biases[at],
        "critical line\n" if on_left else "\ncritical line",
        ha="center",
        va="center",
        rotation=np.degrees(np.arctan2(rise, run)),
        rotation_mode="anchor",
        transform_rotates_text=True,
    )


def _draw_map(axes: plt.Axes, networks: list[Propagation]) -> None:
    axes.plot([0, 1], [0, 1], color=GREY, lw=0.8)
    for place, net in enumerate(networks):
        colour, _, _, width = LOOKS[_name(net)]
        axes.plot(net.cosines, net.mapped, color=colour, lw=width)
        # Smaller with every network, rings below dots: where they coincide, all are seen.
        dot: dict[str, Any] = {"marker": "o", "c": colour, "clip_on": False}
        if net.correlation < 1:
            axes.plot(1, 1, ms=10 - 1.25 * place, mfc="white", zorder=4, **dot)
        axes.plot(net.correlation, net.correlation, ms=6.5 - 1.5 * place, zorder=5, **dot)
    axes.set(
        xlabel="correlation in layer $l$",
        ylabel="correlation in layer $l$ + 1",
        xlim=(0, 1),
        ylim=(0, 1),
        xticks=[0, 0.5, 1],
        yticks=[0, 0.5, 1],
    )
    _explain(axes, networks)
    plain(axes)
    _letter(axes, "c")


def _explain(axes: plt.Axes, networks: list[Propagation]) -> None:
    """Names of marks, as a rule below the diagonal, where there is room."""
    ranked = [_name(net) for net in sorted(networks, key=lambda net: -net.mapped[0])]
    marks = {name: _mark(LOOKS[name].mark, LOOKS[name].colour) for name in ranked}
    marks["stable"] = _mark("o", GREY)
    if any(net.correlation < 1 for net in networks):
        marks["unstable"] = _mark("o", GREY, mfc="white")
    axes.legend(
        marks.values(),
        marks.keys(),
        loc="best",
        frameon=False,
        alignment="right",
        markerfirst=False,
        handlelength=0.8,
        handletextpad=0.3,
        labelspacing=0.15,
        borderaxespad=0.0,
    )


def _mark(shape: str, colour: str, **more: Any) -> Line2D:
    return Line2D([], [], ls="", marker=shape, color=colour, ms=5, **more)


def _draw_flows(figure: Figure, grid: GridSpecBase, networks: list[Propagation]) -> None:
    above, below = figure.add_subplot(grid[0]), figure.add_subplot(grid[1])
    for net in networks:
        _draw_flow(above, net, net.variances, net.variance)
        _draw_flow(below, net, net.correlations, net.correlation)
    above.set(yscale="log", ylabel="variance")
    above.yaxis.set_major_locator(LogLocator(numticks=4))
    above.yaxis.set_major_formatter(lambda q, _: _power(q))
    above.minorticks_off()
    above.tick_params(labelbottom=False)
    below.set(ylabel="correlation", xlabel="layer $l$", ylim=(0, 1), yticks=[0, 0.5, 1])
    _letter(above, "d")


def _draw_flow(axes: plt.Axes, net: Propagation, flows: tuple[Array, ...], rest: float) -> None:
    colour, _, mark, width = LOOKS[_name(net)]
    for flow in flows:
        axes.plot(flow, color=colour, lw=width, marker=mark, ms=3.5, markevery=5, clip_on=False)
    if 0 < rest < np.inf:
        axes.axhline(rest, color=colour, lw=0.8, ls="--")
    axes.set(xlim=(0, LAYERS), xticks=range(0, LAYERS + 1, 5))
    plain(axes)


def _power(q: float) -> str:
    """A power of ten without superscripts, which would be too small."""
    return f"{q:g}" if 1e-3 < q < 1e4 else f"1e{np.log10(q):.0f}"


def _letter(axes: plt.Axes, letter: str) -> None:
    axes.set_title(letter, loc="left", fontweight="bold")
