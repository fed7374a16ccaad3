"""Figures 3 and 8: the error that the process expects beside the one that comes true."""

from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from nngp.paper.readings.doubt import Doubt, DoubtCurve
from nngp.paper.scope import ACTIVATIONS
from nngp.plots.style import COLOURS, plain, save

WIDTH, POINTS = 7.0, 9
ALONE = (5.2, 4.2)  # inches of a picture with one panel
ROW = 2.1  # inches of a row of panels
MOST = 3  # panels in a row
LOOKS = dict(zip(ACTIVATIONS, zip(COLOURS, "os", strict=False), strict=True))
GREY = "0.4"
ROOM = 1.06  # scales beyond the largest error


def draw_doubt(data: Doubt, path: str | Path | None = None) -> Figure:
    """A panel for each training set. A mark stands for a bin of test points; on the dashed line
    errors would be as large as expected."""
    columns = min(len(data.sizes), MOST)
    rows = -(-len(data.sizes) // columns)
    size = ALONE if len(data.sizes) == 1 else (WIDTH, 1.0 + ROW * rows)
    with plt.rc_context({"font.size": POINTS, "axes.titlesize": POINTS}):
        figure = plt.figure(figsize=size, layout="constrained")
        panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
        for axes, train in zip(panels, data.sizes, strict=False):
            _draw_panel(axes, data, [curve for curve in data.curves if curve.train == train])
        for axes in panels[len(data.sizes) :]:
            axes.set_axis_off()
        for axes in panels[: len(data.sizes)][-columns:]:  # the lowest of each column
            axes.set_xlabel("expected mean squared error")
            axes.tick_params(labelbottom=True)
        _name(figure, data)
        save(figure, path)
    return figure


def _draw_panel(axes: plt.Axes, data: Doubt, curves: list[DoubtCurve]) -> None:
    for curve in curves:
        colour, mark = LOOKS[curve.activation]
        size = 4.5 if len(data.sizes) == 1 else 3.5
        axes.plot(curve.predicted, curve.realised, mark, color=colour, ms=size, mec="w", mew=0.3)
    axes.axline((0, 0), slope=1, color=GREY, lw=1.0, ls="--", zorder=1)
    found = ", ".join(f"{curve.activation} r = {curve.correlation:.3f}" for curve in curves)
    axes.set_title(f"n = {curves[0].train:,}\n{found}")
    axes.set_xlim(0, ROOM * max(curve.predicted.max() for curve in data.curves))
    axes.set_ylim(0, ROOM * max(curve.realised.max() for curve in data.curves))
    axes.locator_params(nbins=5)
    plain(axes)


def _name(figure: Figure, data: Doubt) -> None:
    """Marks and the upright scale, said once; and what is not there yet."""
    title = (
        f"{data.dataset}: each mark the mean of {data.curves[0].bin} test points, "
        "r the correlation of marks"
    )
    if data.done < data.wanted:
        title += f"\n({data.done} of {data.wanted} runs are finished)"
    figure.suptitle(title, fontsize=POINTS)
    figure.supylabel("realised mean squared error", fontsize=POINTS)
    shown = {curve.activation for curve in data.curves}
    marks = [_mark(*look, name) for name, look in LOOKS.items() if name in shown]
    line = Line2D([], [], color=GREY, lw=1.0, ls="--", label="as large as expected")
    figure.legend(handles=[*marks, line], loc="outside lower center", ncols=4, frameon=False)


def _mark(colour: str, shape: str, name: str) -> Line2D:
    return Line2D([], [], ls="", marker=shape, color=colour, ms=5, label=name)
