"""What all pictures have in common. The colours are Okabe and Ito's, safe for the colour-blind."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DPI = 220


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
