"""Charts as SVG for pages: no dependency, and colours that follow a light or dark page.

A `Chart` has axes with round ticks; marks are added in the order of drawing. The page's style sheet
(`STYLE`) gives its classes their colours.
"""

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import ArrayLike

MARGIN = (58, 14, 14, 44)  # pixels on the left, top, right and bottom
TICKS = 5  # about that many on an axis
STYLE = """
:root { color-scheme: light dark; --ink: #1d2733; --quiet: #66727f; --line: #cfd6dd;
  --paper: #ffffff; --panel: #f6f8fa; --blue: #0072b2; --orange: #d55e00; --green: #009e73; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e9ee; --quiet: #9aa6b2; --line: #3a444e;
  --paper: #14191f; --panel: #1c232b; --blue: #5ab4e8; --orange: #f0914a; --green: #3cc79d; } }
svg text { fill: var(--quiet); font: 12px system-ui, sans-serif; }
svg .axis { stroke: var(--line); fill: none; }
svg .blue { stroke: var(--blue); fill: var(--blue); } svg .orange { stroke: var(--orange);
  fill: var(--orange); } svg .green { stroke: var(--green); fill: var(--green); }
svg .ink { stroke: var(--ink); fill: var(--ink); } svg .quiet { stroke: var(--quiet);
  fill: var(--quiet); } svg .curve { fill: none; stroke-width: 2; stroke-linejoin: round; }
svg .band { stroke: none; fill-opacity: 0.18; } svg .bar { stroke: none; fill-opacity: 0.85; }
svg .thin { stroke-width: 1; stroke-opacity: 0.35; } svg .dashed { stroke-dasharray: 4 4;
  stroke-width: 1.2; fill: none; }
"""
COLOURS = ("blue", "orange", "green", "ink", "quiet")


class Chart:
    """Axes of a fixed size in pixels; coordinates of all marks are data."""

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        labels: tuple[str, str],
        *,
        names: Sequence[str] | None = None,
        size: tuple[int, int] = (460, 300),
    ) -> None:
        """Axes that hold the values x and y; with `names` the x axis has a place for each."""
        self.size, self.labels, self.names = size, labels, names
        self._x = (-0.5, len(names) - 0.5) if names else _limits(x)
        self._y = _limits(y)
        self._marks: list[str] = []

    def curve(self, x: ArrayLike, y: ArrayLike, look: str = "blue curve") -> None:
        """Join points by straight lines."""
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(*self._places(x, y), strict=True))
        self._marks.append(f"<polyline class='{look}' fill='none' points='{points}'/>")

    def points(
        self, x: ArrayLike, y: ArrayLike, look: str = "blue", titles: Sequence[str] = ()
    ) -> None:
        """Draw dots; a title is shown where the mouse rests on one."""
        for k, (a, b) in enumerate(zip(*self._places(x, y), strict=True)):
            title = f"<title>{escape(titles[k])}</title>" if titles else ""
            self._marks.append(
                f"<circle class='{look}' stroke='none' cx='{a:.1f}' cy='{b:.1f}' r='2.6'>{title}"
                "</circle>"
            )

    def spans(self, x: ArrayLike, low: ArrayLike, high: ArrayLike, look: str) -> None:
        """Draw a vertical line from low to high at each x."""
        places, bottom = self._places(x, low)
        _, top = self._places(x, high)
        for a, b, c in zip(places, bottom, top, strict=True):
            self._marks.append(
                f"<line class='{look}' x1='{a:.1f}' x2='{a:.1f}' y1='{b:.1f}' y2='{c:.1f}'/>"
            )

    def band(self, x: ArrayLike, low: ArrayLike, high: ArrayLike, look: str = "blue band") -> None:
        """Fill the area between two curves."""
        places, bottom = self._places(x, low)
        _, top = self._places(x, high)
        edge = [*zip(places, top, strict=True), *zip(places[::-1], bottom[::-1], strict=True)]
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in edge)
        self._marks.append(f"<polygon class='{look}' points='{points}'/>")

    def svg(self) -> str:
        """The chart as an element of a page."""
        width, height = self.size
        left, top, right, bottom = MARGIN
        below, middle = height - bottom, (top + height - bottom) / 2
        parts = [
            f"<svg viewBox='0 0 {width} {height}' role='img' "
            f"aria-label='{escape(' against '.join(self.labels[::-1]), quote=True)}'>",
            f"<path class='axis' d='M{left},{top}V{below}H{width - right}'/>",
        ]
        ticks = (
            [(k, name) for k, name in enumerate(self.names)]
            if self.names
            else [(value, f"{value:g}") for value in _ticks(self._x)]
        )
        for value, text in ticks:
            x = self._places([value], [self._y[0]])[0][0]
            parts.append(
                f"<text x='{x:.1f}' y='{below + 16}' text-anchor='middle'>{escape(text)}</text>"
            )
        for value in _ticks(self._y):
            y = self._places([self._x[0]], [value])[1][0]
            parts.append(f"<text x='{left - 6}' y='{y + 4:.1f}' text-anchor='end'>{value:g}</text>")
        x_label, y_label = (escape(text) for text in self.labels)
        parts += [
            f"<text x='{(left + width - right) / 2}' y='{height - 6}' text-anchor='middle'>"
            f"{x_label}</text>",
            f"<text transform='translate(14,{middle}) rotate(-90)' text-anchor='middle'>{y_label}"
            "</text>",
        ]
        return "".join([*parts, *self._marks, "</svg>"])

    def _places(self, x: ArrayLike, y: ArrayLike) -> tuple[list[float], list[float]]:
        """Pixels of data."""
        width, height = self.size
        left, top, right, bottom = MARGIN
        across = (np.asarray(x, dtype=float) - self._x[0]) / (self._x[1] - self._x[0])
        up = (np.asarray(y, dtype=float) - self._y[0]) / (self._y[1] - self._y[0])
        places = (
            left + across * (width - left - right),
            height - bottom - up * (height - top - bottom),
        )
        return places[0].tolist(), places[1].tolist()


def bars(names: Sequence[str], values: ArrayLike, *, width: int = 460) -> str:
    """Horizontal bars from zero, one below the other, with their names and values."""
    row, reach = 24, width - 190
    amounts = np.asarray(values, dtype=float)
    longest = max(float(amounts.max()), 1e-300)
    parts = [f"<svg viewBox='0 0 {width} {row * len(amounts) + 6}' role='img'>"]
    for k, (name, value) in enumerate(zip(names, amounts.tolist(), strict=True)):
        short = name if len(name) <= 18 else name[:17] + "…"
        length, y = max(value / longest * reach, 1.0), row * k + 4
        parts.append(
            f"<text x='128' y='{y + 13}' text-anchor='end'>{escape(short)}</text>"
            f"<rect class='blue bar' x='136' y='{y}' width='{length:.1f}' height='16' rx='2'/>"
            f"<text x='{142 + length:.1f}' y='{y + 13}'>{value:.3g}</text>"
        )
    return "".join([*parts, "</svg>"])


def _limits(values: ArrayLike) -> tuple[float, float]:
    """The range of finite values, a little widened; never empty."""
    known = np.asarray(values, dtype=float).ravel()
    known = known[np.isfinite(known)]
    if not len(known):
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    room = 0.04 * (high - low) or 0.5 * abs(high) or 0.5
    return low - room, high + room


def _ticks(limits: tuple[float, float]) -> list[float]:
    """Round numbers within the limits."""
    low, high = limits
    step = 10.0 ** np.floor(np.log10((high - low) / TICKS))
    step *= next(m for m in (1, 2, 5, 10) if (high - low) / (step * m) <= TICKS + 1)
    first = int(np.ceil(low / step))
    return [float(f"{k * step:.12g}") for k in range(first, int(np.floor(high / step)) + 1)]
