"""Style shared by all figures. The colours are Okabe and Ito's, safe for the colour-blind.

matplotlib is imported when a figure is drawn, so that the numbers of a figure need none.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OutputPath = str | Path | None
Options = dict[str, Any]  # keyword arguments of matplotlib
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
BLUE, ORANGE, GREEN, PINK, YELLOW, SKY, BLACK = COLOURS
DPI, SCREEN_DPI = 220, 160
POINTS = 9  # font size of figures for print
NARROW = 3.8  # inches: the width of a figure that a phone shows at its full size
LINE_SPACING, POINTS_AN_INCH = 1.15, 72


@contextmanager
def new_figure(
    size: tuple[float, float], path: OutputPath, points: float | None = POINTS, dpi: int = DPI
) -> Iterator["Figure"]:
    """Give an empty figure to draw on, and write it to `path` in the end.

    `points` is the font size of text and titles, by default that of matplotlib's settings.
    """
    import matplotlib.pyplot as plt

    fonts: Any = {"font.size": points, "axes.titlesize": points}
    with nullcontext() if points is None else plt.rc_context(fonts):
        figure = plt.figure(figsize=size, layout="constrained")
        yield figure
        save(figure, path, dpi)


def save(figure: "Figure", path: OutputPath, dpi: int = DPI) -> None:
    """Write a figure to `path`, if there is one, and close it."""
    import matplotlib.pyplot as plt

    if path is not None:
        figure.savefig(path, dpi=dpi)
        plt.close(figure)


def plain(axes: "Axes") -> None:
    """Remove the frame above and on the right."""
    axes.spines[["top", "right"]].set_visible(False)


def label(
    axes: "Axes", words: str, at: tuple[float, float], shift: tuple[float, float], **more: Any
) -> None:
    """Write words beside a point, shifted by so many points of print."""
    axes.annotate(words, at, xytext=shift, textcoords="offset points", **more)


def line_height(figure: "Figure", axes: "Axes") -> float:
    """The height of a line of text in units of the y axis; call it when all is drawn that sets the
    axis' range and the axes' size."""
    figure.draw_without_rendering()
    inches = axes.get_window_extent().height / figure.dpi
    bottom, top = axes.get_ylim()
    return LINE_SPACING * POINTS / POINTS_AN_INCH / inches * (top - bottom)


def spread_apart(values: Sequence[float], apart: float) -> list[float]:
    """Places for labels beside these values: in the order of the values, at least `apart` from
    each other, and as near to the values as that allows."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    groups: list[list[float]] = []  # values less the room that labels below them take
    for rank, i in enumerate(order):
        groups.append([values[i] - rank * apart])
        while len(groups) > 1 and _mean(groups[-2]) >= _mean(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    levels = [_mean(group) for group in groups for _ in group]
    places = {
        i: level + rank * apart for rank, (i, level) in enumerate(zip(order, levels, strict=True))
    }
    return [places[i] for i in range(len(values))]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
