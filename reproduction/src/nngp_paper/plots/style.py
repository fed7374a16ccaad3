"""Style shared by all figures. The colours are Okabe and Ito's, safe for the colour-blind.

matplotlib is imported when a figure is drawn, so that the numbers of a figure need none.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OutputPath = str | Path | None
Options = dict[str, Any]  # keyword arguments of matplotlib
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
BLUE, ORANGE, GREEN, PINK, YELLOW, SKY, BLACK = COLOURS
DPI = 220
POINTS = 9  # font size of figures for print
NARROW = 3.8  # inches: the width of a figure that a phone shows at its full size
MOST_TICKS = 11
ROUND_ERRORS = (  # the roundest first
    *(0.1, 0.9, 0.01, 0.001, 0.5, 0.05, 0.005, 0.2, 0.02, 0.002, 0.7, 0.3, 0.03, 0.8, 0.6, 0.4),
    *(0.04, 0.07, 0.15, 0.015, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85),
)


@contextmanager
def new_figure(size: tuple[float, float], path: OutputPath) -> Iterator["Figure"]:
    """Give an empty figure of so many inches to draw on, and write it to `path` in the end."""
    import matplotlib.pyplot as plt

    with plt.rc_context({"font.size": POINTS, "axes.titlesize": POINTS}):
        figure = plt.figure(figsize=size, layout="constrained")
        yield figure
        save(figure, path)


def save(figure: "Figure", path: OutputPath) -> None:
    """Write a figure to `path`, if there is one, and close it."""
    import matplotlib.pyplot as plt

    if path is not None:
        figure.savefig(path, dpi=DPI)
        plt.close(figure)


def plain(axes: "Axes") -> None:
    """Remove the frame above and on the right."""
    axes.spines[["top", "right"]].set_visible(False)


def width_axis(axes: "Axes", widths: Sequence[int]) -> None:
    """Put the widths of hidden layers on a logarithmic x axis, with a tick for each."""
    axes.set(xscale="log", xlabel="width of the hidden layers", xticks=widths)
    axes.set_xlim(widths[0] / 1.3, widths[-1] * 1.3)
    axes.xaxis.set_major_formatter(lambda width, _: f"{width:g}")
    axes.minorticks_off()
    plain(axes)


def accuracy_ticks(lowest: float, highest: float) -> list[float]:
    """Round accuracies for an axis that is spaced by the logarithm of the error, which goes from
    `lowest` to `highest`."""
    apart = (math.log(highest) - math.log(lowest)) / MOST_TICKS
    chosen: list[float] = []
    for error in ROUND_ERRORS:
        free = all(abs(math.log(error / other)) >= apart for other in chosen)
        if lowest <= error <= highest and free:
            chosen.append(error)
    return sorted(round(1 - error, 4) for error in chosen)


def need_matplotlib() -> None:
    """Raise ImportError with the command that installs matplotlib, unless it is there."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError(
            "pictures need matplotlib; install it with: pip install 'nngp[plots]'"
        ) from None


def name_widths(axes: "Axes", widths: Sequence[int]) -> None:
    """Put widths on a logarithmic x axis, every other one named if there are many."""
    from matplotlib.ticker import FixedLocator, NullLocator

    axes.set(xscale="log", xlabel="width")
    axes.xaxis.set_major_locator(FixedLocator(widths[:: max(1, round(len(widths) / 5))]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda width, _: f"{width:g}")
