"""Accuracy against depth: what float64 loses, and what is there to be kept."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from nngp.plots.depth import DepthStudy
from nngp.plots.style import plain, save

KEPT, PLAIN, LIMIT, SCALE = "#0072B2", "#D55E00", "#000000", "#009E73"  # Okabe-Ito
SIZE, POINTS = (5.0, 3.9), 9  # readable at one column's width


def draw_depth(data: DepthStudy, path: str | Path | None = None) -> Figure:
    """Above, test accuracy; below, how much of the kernel's variance depends on the input."""
    with plt.rc_context({"font.size": POINTS}):
        figure, (above, below) = plt.subplots(
            2, 1, figsize=SIZE, sharex=True, height_ratios=(3, 2), layout="constrained"
        )
        _draw_accuracy(above, data)
        _draw_scale(below, data)
        save(figure, path)
    return figure


def _draw_accuracy(axes: plt.Axes, data: DepthStudy) -> None:
    axes.axhline(data.limit, color=LIMIT, lw=0.9, ls="--")
    axes.plot(data.depths, data.plain, "s-", color=PLAIN, lw=1.3, ms=4)
    axes.plot(data.depths, data.kept, "o-", color=KEPT, lw=1.3, ms=4)
    last = data.depths[-1]
    for name, height, shift, colour in (
        ("infinitely deep", data.limit, 5, LIMIT),
        ("constant kept apart", data.kept[-1], -14, KEPT),
        ("plain float64", data.plain[-1], 6, PLAIN),
    ):
        axes.annotate(
            name,
            (last, height),
            xytext=(0, shift),
            textcoords="offset points",
            ha="right",
            color=colour,
        )
    net = data.architecture
    axes.set(
        xscale="log",
        ylim=(0, 1.08),
        ylabel="test accuracy",
        title=(
            f"{data.data}, {data.train} images; {net.activation.name}, weight_var "
            f"{net.weight_var:g}, bias_var {net.bias_var:g}"
        ),
    )
    axes.title.set_fontsize(POINTS)
    plain(axes)


def _draw_scale(axes: plt.Axes, data: DepthStudy) -> None:
    rounding = float(np.finfo(float).eps)
    axes.plot(data.depths, data.scale, "^-", color=SCALE, lw=1.3, ms=4)
    axes.axhline(rounding, color="0.5", lw=0.9, ls=":")
    axes.annotate(
        "rounding of float64",
        (data.depths[0], rounding),
        xytext=(0, -11),
        textcoords="offset points",
        color="0.35",
    )
    axes.set(
        xlabel="depth (hidden layers)",
        yscale="log",
        ylabel="what depends\non the input",
        xticks=[1, 3, 10, 30, 100, 300],
        yticks=[1, 1e-50, 1e-100, 1e-150],
    )
    axes.xaxis.set_major_formatter(lambda depth, _: f"{depth:g}")
    axes.minorticks_off()
    plain(axes)
