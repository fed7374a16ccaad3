"""What all pictures have in common. The colours are Okabe and Ito's, safe for the colour-blind."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DPI = 220
MOST_TICKS = 11
ROUND_ERRORS = (  # the roundest first
    *(0.1, 0.9, 0.01, 0.001, 0.5, 0.05, 0.005, 0.2, 0.02, 0.002, 0.7, 0.3, 0.03, 0.8, 0.6, 0.4),
    *(0.04, 0.07, 0.15, 0.015, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85),
)


def save(figure: Figure, path: str | Path | None, dpi: int = DPI) -> None:
    """Write the figure where it is wanted; what is written is closed."""
    if path is not None:
        figure.savefig(path, dpi=dpi)
        plt.close(figure)


def plain(axes: plt.Axes) -> None:
    """No frame where there is no scale."""
    axes.spines[["top", "right"]].set_visible(False)


def width_axis(axes: plt.Axes, widths: Sequence[int]) -> None:
    """Widths of hidden layers, each of them named, on a logarithmic scale."""
    axes.set(xscale="log", xlabel="width of the hidden layers", xticks=widths)
    axes.set_xlim(widths[0] / 1.3, widths[-1] * 1.3)
    axes.xaxis.set_major_formatter(lambda width, _: f"{width:g}")
    axes.minorticks_off()
    plain(axes)


def accuracy_ticks(lowest: float, highest: float) -> list[float]:
    """Accuracies to be named on an axis that is spaced by the logarithm of the error, which goes
    from `lowest` to `highest`: the roundest that are not too near to each other."""
    apart = (math.log(highest) - math.log(lowest)) / MOST_TICKS
    chosen: list[float] = []
    for error in ROUND_ERRORS:
        free = all(abs(math.log(error / other)) >= apart for other in chosen)
        if lowest <= error <= highest and free:
            chosen.append(error)
    return sorted(round(1 - error, 4) for error in chosen)


def variance_panels(
    activations: Sequence[str], titles: Sequence[str], size: tuple[float, float]
) -> tuple[Figure, Any]:
    """Panels over the two variances: a row for each activation, a column for each title."""
    figure, axes = plt.subplots(
        *(len(activations), len(titles)),
        figsize=size,
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for row, name in zip(axes, activations, strict=True):
        row[0].set_ylabel(f"{name}\nbias variance")
    for above, below, title in zip(axes[0], axes[-1], titles, strict=True):
        above.set_title(title, fontsize=plt.rcParams["font.size"])
        below.set_xlabel("weight variance")
    return figure, axes
