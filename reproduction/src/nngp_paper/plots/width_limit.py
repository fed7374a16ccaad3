"""Scores of finite networks and their distance to the process, against the width."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from nngp_paper.finite.mean_estimates import Estimate
from nngp_paper.finite.width_limit import LimitCurve, WidthLimit, WidthPoint
from nngp_paper.plots import style
from nngp_paper.plots.style import Options, OutputPath, name_widths, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Score = Callable[[WidthPoint], Estimate]
SIZE, NARROW = (7.2, 5.6), (3.9, 14.0)  # inches
LOOKS = (style.BLUE, "o"), (style.ORANGE, "s"), (style.GREEN, "^"), (style.PINK, "D")
GREY = "0.35"
ROOM = 0.35  # below the distances for their slopes, over the range of the scale
TITLES = ("share of wrong labels", "mean squared error", "distance to the process")


def draw_width_limit(
    data: WidthLimit, path: OutputPath = None, *, narrow: bool = False
) -> "Figure":
    """Draw a row of three panels for each noise; `narrow` puts all panels below each other."""
    noises = data.noise_vars
    with new_figure(NARROW if narrow else SIZE, path) as figure:
        shape = (3 * len(noises), 1) if narrow else (len(noises), 3)
        panels = figure.subplots(*shape, squeeze=False).reshape(len(noises), 3)
        for row, noise_var in zip(panels, noises, strict=True):
            curves = [curve for curve in data.curves if curve.noise_var == noise_var]
            _draw_row(row, curves)
            for axes, words in zip(row, TITLES, strict=True):
                axes.set_title(f"{words}\nnoise variance {_short(noise_var)}", loc="left")
        figure.suptitle(_title(data, narrow), fontsize=style.POINTS)
        names = [curve.activation for curve in data.curves if curve.noise_var == noises[0]]
        handles = _handles(names, data.members)
        columns = 1 if narrow else 3
        figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False)
    return figure


def _draw_row(row: Iterable["Axes"], curves: list[LimitCurve]) -> None:
    wrong, mse, distance = row
    for curve, (colour, mark) in zip(curves, LOOKS, strict=False):
        look: Options = {"color": colour, "marker": mark}
        _plot(wrong, curve, lambda point: _complement(point.single_accuracy), look, hollow=True)
        _plot(wrong, curve, lambda point: _complement(point.ensemble_accuracy), look)
        _plot(mse, curve, lambda point: point.single_mse, look, hollow=True)
        _plot(mse, curve, lambda point: point.ensemble_mse, look)
        _plot(distance, curve, lambda point: _root(point.single_square), look, hollow=True)
        _plot(distance, curve, lambda point: _root(point.limit_square), look, line=False)
        for axes, level in ((wrong, 1 - curve.process_accuracy), (mse, curve.process_mse)):
            axes.axhline(level, color=colour, lw=1.0, ls="--", zorder=1)
        _draw_powers(distance, curve, colour)
    for axes in (wrong, mse, distance):
        _scale(axes, curves)
    if distance.get_legend_handles_labels()[0]:
        low, high = distance.get_ylim()
        distance.set_ylim(low * (low / high) ** ROOM, high)
        distance.legend(loc="lower left", frameon=False, labelcolor="linecolor", handlelength=1.2)


def _plot(
    axes: "Axes",
    curve: LimitCurve,
    score: Score,
    look: Options,
    *,
    hollow: bool = False,
    line: bool = True,
) -> None:
    """Marks with standard errors where the value exceeds its error, as the scale is a log."""
    known = [(point.width, *score(point)) for point in curve.points]
    shown = np.array([one for one in known if one[1] > max(one[2], 0.0)]).reshape(-1, 3)
    filling: Options = {"mfc": "white"} if hollow else {}
    how: Options = {"ms": 4, "lw": 0.9, "ls": "-" if line else "", **look, **filling}
    axes.errorbar(shown[:, 0], shown[:, 1], shown[:, 2], elinewidth=0.9, **how)


def _draw_powers(axes: "Axes", curve: LimitCurve, colour: str) -> None:
    """The fitted power of the average's distance, over the widths that it was fitted to."""
    power = curve.power("limit_square")
    if power is None:
        return
    ends = np.array([power.widths[0] / 1.4, power.widths[-1] * 1.4])
    label = f"slope {power.slope:.2f} ± {power.error:.2f}".replace("-", "−")
    axes.plot(ends, power.level * ends**power.slope, color=colour, lw=1.4, label=label)


def _scale(axes: "Axes", curves: list[LimitCurve]) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set_yscale("log")
    low, high = axes.get_ylim()
    few = high / low < 100  # then numbers between the powers of ten are needed
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    widths = sorted({point.width for curve in curves for point in curve.points})
    name_widths(axes, widths)
    axes.set_xticks(widths[:: -max(1, round(len(widths) / 4))])
    plain(axes)


def _complement(estimate: Estimate) -> Estimate:
    return Estimate(1 - estimate.value, estimate.error)


def _root(square: Estimate) -> Estimate:
    """The root of an estimated square; 0 where that is not positive."""
    if square.value <= 0:
        return Estimate(0.0, 0.0)
    root = square.value**0.5
    return Estimate(root, square.error / (2 * root))


def _short(noise_var: float) -> str:
    """A noise as words for a title: powers of ten are written as such if they are small."""
    return f"{noise_var:g}".replace("e-", "e−")


def _title(data: WidthLimit, narrow: bool) -> str:
    most = max(point.networks for curve in data.curves for point in curve.points)
    fewest = min(point.networks for curve in data.curves for point in curve.points)
    count = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    parts = (
        f"{data.dataset}, {data.train:,} training and {data.test:,} test points",
        f"{count} networks of each width, nothing tuned",
    )
    return ("\n" if narrow else "; ").join(parts)


def _handles(names: list[str], members: int) -> list[object]:
    from matplotlib.lines import Line2D

    own = [
        Line2D([], [], color=colour, marker=mark, ms=4, lw=0.9, label=name)
        for name, (colour, mark) in zip(names, LOOKS, strict=False)
    ]
    kinds: tuple[Options, ...] = (
        {"marker": "o", "mfc": "white", "label": "single network"},
        {"marker": "o", "label": f"ensemble of {members} (distance: of infinitely many)"},
        {"ls": "--", "label": "process"},
    )
    single, ensemble, process = (Line2D([], [], color=GREY, ms=4, lw=0.9, **kind) for kind in kinds)
    return [*own, process, single, ensemble]
