"""Section 3.2: the figure of signal propagation: phases, depth scales, networks in them.

Sized so that no word is smaller than 6 points when printed one column (3.4 inches) wide.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nngp._arrays import Array, Mask
from nngp.architecture import ActivationLike
from nngp.plots import style
from nngp.plots.phases import LAYERS, Phases, Propagation, phases
from nngp.plots.style import Options, OutputPath, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import GridSpecBase
    from matplotlib.lines import Line2D

GREY = "0.5"
WIDE, NARROW = 0.36, 0.1  # parts of the width that a word takes, level and upright
FROM, TO = 1.0, 100.0  # layers: the range of the depth scale's colours


class PhaseStyle(NamedTuple):
    """Style of a phase. Marks and widths tell lines apart that coincide or lost their colour."""

    name: str
    colour: str
    tint: str
    mark: str
    width: float


STYLES = {  # the widest line first, so that it shows below the others
    "chaotic": PhaseStyle("chaotic", style.ORANGE, "#FAE3D3", "D", 1.8),
    "unbounded": PhaseStyle("unbounded", style.PINK, "#F5E4ED", "D", 1.8),
    "ordered": PhaseStyle("ordered", style.BLUE, "#D9E8F3", "s", 1.3),
    "bounded": PhaseStyle("bounded", style.BLUE, "#D9E8F3", "s", 1.3),
    "critical": PhaseStyle("critical", style.BLACK, "#FFFFFF", "^", 0.8),
}
ORDER = list(STYLES)


def phase_diagram(
    activation: ActivationLike,
    path: OutputPath = None,
    *,
    weight_var: float | None = None,
    bias_var: float | None = None,
) -> "Figure":
    """Draw signal propagation (sec. 3.2): phases, depth scales, correlation maps, flow with depth.

    The maps and flows are those of the network with the given variances; without a weight_var,
    of three networks: one on the critical line and one on either side. Without a bias_var it is
    0.1. The figure is returned, and written to `path` if there is one.

    Examples
    --------
    >>> import nngp
    >>> figure = nngp.plots.phase_diagram("relu", "figure.svg", weight_var=1.6)
    >>> figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()
    ('weight variance', 'bias variance')
    """
    name = activation if isinstance(activation, str) else None
    return draw_phases(phases(activation, weight_var, bias_var, name=name), path)


def draw_phases(data: Phases, path: OutputPath = None) -> "Figure":
    """Draw phase diagram, depth scales, correlation map, flow of variance and correlation."""
    networks = sorted(data.networks, key=lambda net: ORDER.index(net.phase))
    with new_figure((5.0, 4.8), path) as figure:
        grid = figure.add_gridspec(2, 2)
        _draw_diagram(figure.add_subplot(grid[0, 0]), data)
        _draw_depth_scale(figure, figure.add_subplot(grid[0, 1]), data)
        _draw_map(figure.add_subplot(grid[1, 0]), networks)
        _draw_flows(grid[1, 1].subgridspec(2, 1), networks)
    return figure


def _draw_diagram(axes: "Axes", data: Phases) -> None:
    diagram = data.diagram
    plane = diagram.weight_vars, diagram.bias_vars
    # What holds at bias_var = 0 only has no area: the lowest row is drawn as the one above it.
    phase = diagram.phase[np.maximum(np.arange(len(diagram.bias_vars)), 1)]
    for name in np.unique(phase):
        area = phase == name
        axes.contourf(*plane, area, levels=(0.5, 1), colors=STYLES[name].tint)
        _name_area(axes, data, area, name)
    _frame_plane(axes, data)
    _name_line(axes, data)
    axes.set_ylabel("bias variance")
    axes.set_title(data.name, loc="center")  # the letter stands on the left
    _letter(axes, "a")


def _draw_depth_scale(figure: "Figure", axes: "Axes", data: Phases) -> None:
    from matplotlib.colors import LogNorm

    plane = data.diagram.weight_vars, data.diagram.bias_vars
    shown = np.clip(data.depth_scale, FROM, TO)  # infinite on the line: the brightest there is
    look: Options = {"shading": "gouraud", "norm": LogNorm(FROM, TO), "cmap": "viridis"}
    colours = axes.pcolormesh(*plane, shown, rasterized=True, **look)
    _frame_plane(axes, data)
    axes.tick_params(labelleft=False)
    bar = figure.colorbar(colours, ax=axes, label="depth scale (layers)", pad=0.03)
    bar.set_ticks([1, 10, 100], labels=["≤ 1", "10", "≥ 100"])
    bar.minorticks_off()
    _letter(axes, "b")


def _frame_plane(axes: "Axes", data: Phases) -> None:
    """Draw the critical line and the networks over a map of (weight_var, bias_var)."""
    axes.plot(*_line(data), ":", color="black", lw=1.4)
    mark: Options = {"mec": "white", "ms": 7, "zorder": 4, "clip_on": False}
    for net in data.networks:
        look = STYLES[net.phase]
        axes.plot(net.weight_var, net.bias_var, look.mark, color=look.colour, **mark)
    limits = data.diagram.weight_vars[[0, -1]], data.diagram.bias_vars[[0, -1]]
    axes.set(xlabel="weight variance", xlim=limits[0], ylim=limits[1])
    axes.locator_params(axis="x", nbins=6)


def _line(data: Phases) -> tuple[Array, Array]:
    """The part of the critical line that is in the figure."""
    weights, biases = data.diagram.critical_weight_vars, data.diagram.bias_vars
    first, last = data.diagram.weight_vars[[0, -1]]
    inside = (weights >= first) & (weights <= last)
    return weights[inside], biases[inside]


def _name_area(axes: "Axes", data: Phases, area: Mask, name: str) -> None:
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


def _name_line(axes: "Axes", data: Phases) -> None:
    """The critical line's name along it: on its left, unless that is narrow."""
    weights, biases = _line(data)
    if not len(biases) or np.ptp(biases) < 0.5 * data.diagram.bias_vars[-1]:  # no room along it
        return
    at = int(np.abs(biases - biases[0] - 0.68 * np.ptp(biases)).argmin())
    run, rise = weights[at + 1] - weights[at - 1], biases[at + 1] - biases[at - 1]
    on_left = weights[at] > WIDE * data.diagram.weight_vars[-1]
    words = "critical line\n" if on_left else "\ncritical line"
    along: Options = {"rotation_mode": "anchor", "transform_rotates_text": True}
    angle = np.degrees(np.arctan2(rise, run))
    axes.text(weights[at], biases[at], words, ha="center", va="center", rotation=angle, **along)


def _draw_map(axes: "Axes", networks: list[Propagation]) -> None:
    axes.plot([0, 1], [0, 1], color=GREY, lw=0.8)
    for place, net in enumerate(networks):
        look = STYLES[net.phase]
        axes.plot(net.cosines, net.mapped, color=look.colour, lw=look.width)
        # Smaller with every network, rings below dots: where they coincide, all are seen.
        dot: Options = {"marker": "o", "c": look.colour, "clip_on": False}
        if net.correlation < 1:
            axes.plot(1, 1, ms=10 - 1.25 * place, mfc="white", zorder=4, **dot)
        axes.plot(net.correlation, net.correlation, ms=6.5 - 1.5 * place, zorder=5, **dot)
    axes.set(xlabel="correlation in layer $l$", xlim=(0, 1), xticks=[0, 0.5, 1])
    axes.set(ylabel="correlation in layer $l$ + 1", ylim=(0, 1), yticks=[0, 0.5, 1])
    _explain(axes, networks)
    plain(axes)
    _letter(axes, "c")


def _explain(axes: "Axes", networks: list[Propagation]) -> None:
    """Legend of the marks, as a rule below the diagonal, where there is room."""
    ranked = [STYLES[net.phase] for net in sorted(networks, key=lambda net: -net.mapped[0])]
    marks = {look.name: _mark(look.mark, look.colour) for look in ranked}
    marks["stable"] = _mark("o", GREY)
    if any(net.correlation < 1 for net in networks):
        marks["unstable"] = _mark("o", GREY, mfc="white")
    axes.legend(
        *(marks.values(), marks.keys()),
        loc="best",
        frameon=False,
        alignment="right",
        markerfirst=False,
        handlelength=0.8,
        handletextpad=0.3,
        labelspacing=0.15,
        borderaxespad=0.0,
    )


def _mark(shape: str, colour: str, **more: Any) -> "Line2D":
    from matplotlib.lines import Line2D

    return Line2D([], [], ls="", marker=shape, color=colour, ms=5, **more)


def _draw_flows(grid: "GridSpecBase", networks: list[Propagation]) -> None:
    from matplotlib.ticker import LogLocator

    above, below = grid.subplots(squeeze=False)[:, 0]
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


def _draw_flow(axes: "Axes", net: Propagation, flows: tuple[Array, ...], rest: float) -> None:
    look = STYLES[net.phase]
    line: Options = {"color": look.colour, "lw": look.width, "marker": look.mark}
    for flow in flows:
        axes.plot(flow, ms=3.5, markevery=5, clip_on=False, **line)
    if 0 < rest < np.inf:
        axes.axhline(rest, color=look.colour, lw=0.8, ls="--")
    axes.set(xlim=(0, LAYERS), xticks=range(0, LAYERS + 1, 5))
    plain(axes)


def _power(q: float) -> str:
    """A power of ten without superscripts, which would be too small."""
    return f"{q:g}" if 1e-3 < q < 1e4 else f"1e{np.log10(q):.0f}"


def _letter(axes: "Axes", letter: str) -> None:
    axes.set_title(letter, loc="left", fontweight="bold")
