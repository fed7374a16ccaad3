"""The graphical model of a network's computation (app. C), drawn as a diagram.

The inputs x give the second moments K⁰. Given the moments of a layer its units z are independent
and Gaussian: a plate stands for all of them. Means over the units are the moments of the next
layer. So nothing reaches the output but through the chain of moments.
"""

import matplotlib.pyplot as plt
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch

Point = tuple[float, float]
RADIUS = 0.49
LOW, HIGH = 0.0, 2.0  # heights of moments and of units
START = -1.5  # where x is
COLUMNS = (0.0, 1.6, 3.8, 5.4)  # layers 0, 1, L - 1 and L
MOMENTS = ("$K^0$", "$K^1$", "$K^{L{-}1}$", "$K^L$")
UNITS = ("$z^0$", "$z^1$", "$z^{L{-}1}$", "$z^L$")
COUNTS = ("$N_1$", "$N_2$", "$N_L$", r"$d_{\rm out}$")
NODE = 10  # points: exponents are smaller
GIVEN, DRAWN, FOLLOWS = "0.85", "#D9E8F3", "#FAE3D3"  # data, random, a function of what is above
EQUATIONS = (
    r"$K^0 = x^{\top}x\,/\,d_{\rm in}$",
    r"$z^l\,|\,K^l \,\sim\, \mathcal{N}(0,\, G(K^l))$,  $G(K) = \sigma_w^2 K + \sigma_b^2$",
    r"$K^{l} = \phi(z^{l{-}1})^{\top}\phi(z^{l{-}1})\,/\,N_l$",
)


def draw_graph(axes: plt.Axes) -> None:
    """From x to the output, moments below and units above; and what each is, given the others."""
    for column, moment, unit, count in zip(COLUMNS, MOMENTS, UNITS, COUNTS, strict=True):
        _draw_layer(axes, column, moment, unit, count)
    _node(axes, (START, LOW), "$x$", GIVEN)
    _arrow(axes, (START, LOW), (COLUMNS[0], LOW))
    for before in (0, 2):
        _arrow(axes, (COLUMNS[before], HIGH), (COLUMNS[before + 1], LOW))
    middle = (COLUMNS[1] + COLUMNS[2]) / 2, (LOW + HIGH) / 2
    _arrow(axes, (COLUMNS[1], HIGH), middle)
    _arrow(axes, middle, (COLUMNS[2], LOW))
    axes.text(*middle, r"$\cdots$", ha="center", va="center", size=NODE + 3)
    for line, words in enumerate(EQUATIONS):
        axes.text(START - RADIUS, LOW - 1.25 - 0.85 * line, words, va="center", size=NODE)
    axes.set(xlim=(START - 0.56, COLUMNS[-1] + 0.65), ylim=(-3.4, HIGH + 1.0), aspect="equal")
    axes.set_axis_off()


def _draw_layer(axes: plt.Axes, column: float, moment: str, unit: str, count: str) -> None:
    """The moments of a layer, and its units in their plate, with their number."""
    half = RADIUS + 0.12
    corner = column - half, HIGH - half
    axes.add_patch(
        FancyBboxPatch(
            corner,
            2 * half,
            2 * half + 0.34,
            "round,pad=0,rounding_size=0.12",
            fc="none",
            ec="0.45",
        )
    )
    axes.text(column, HIGH + half + 0.08, count, ha="center", va="center")
    _node(axes, (column, HIGH), unit, DRAWN)
    _node(axes, (column, LOW), moment, FOLLOWS)
    axes.add_patch(Circle((column, LOW), 0.92 * RADIUS, fc="none", ec="black", lw=0.7, zorder=3))
    _arrow(axes, (column, LOW), (column, HIGH))


def _node(axes: plt.Axes, at: Point, name: str, filling: str) -> None:
    axes.add_patch(Circle(at, RADIUS, fc=filling, ec="black", lw=0.9, zorder=3))
    axes.text(*at, name, ha="center", va="center", size=NODE, zorder=4)


def _arrow(axes: plt.Axes, start: Point, end: Point) -> None:
    """Between the rims of two nodes."""
    length = ((end[0] - start[0]) ** 2 + (end[1] - start[1]) ** 2) ** 0.5
    part = RADIUS / length
    first, last = (
        (start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1]))
        for share in (part, 1 - part)
    )
    axes.add_patch(
        FancyArrowPatch(
            first,
            last,
            arrowstyle="-|>",
            mutation_scale=9,
            shrinkA=0,
            shrinkB=0,
            lw=0.9,
            color="black",
            zorder=2,
        )
    )
