"""Appendix B and figure 6: the kernel's dependence on the angle, which flattens with depth.

Takes an architecture; gives K^l over the angle for l = 0 .. depth, from the exact curve and from
the paper's look-up table, and a figure of both.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nngp._arrays import Array
from nngp.architecture import Architecture
from nngp.covariance import LookupTable
from nngp.curve import compile_curves
from nngp.plots import style
from nngp.plots.style import Options, OutputPath, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MARGINS = (0.5, 0.8)  # of the angle, for the numbers of the layers: wide figures, narrow ones
LEADER = 0.18  # of the angle: lines from numbers to curves


@dataclass(frozen=True)
class AngularStructure:
    """K^l(theta), one row per depth.

    Examples
    --------
    >>> import numpy as np, nngp
    >>> from nngp.plots import AngularStructure
    >>> theta, rows = np.linspace(0, np.pi, 5), np.ones((2, 5))
    >>> AngularStructure(nngp.Architecture(1, "relu"), theta, rows, theta, rows).exact.shape
    (2, 5)
    """

    architecture: Architecture
    theta: Array
    exact: Array
    sparse_theta: Array
    lookup: Array


def angular_structure(architecture: Architecture, path: OutputPath = None) -> "Figure":
    """Draw the kernel against the angle, at every depth: look-up table beside exact curve.

    Examples
    --------
    The same in two steps, with a table that is coarser than the paper's and filled at once:

    >>> import nngp
    >>> from nngp.plots import compute_angular_structure, draw_angular_structure
    >>> table = nngp.curves.LookupTable("relu", n_v=51, n_c=50, s_max=10.0, fill="exact")
    >>> structure = compute_angular_structure(nngp.Architecture(3, "relu", 1.6, 0.1), table)
    >>> structure.exact.shape  # depths 0 .. 3 at 400 angles
    (4, 400)
    >>> draw_angular_structure(structure, "angular.svg").axes[0].get_xlabel()
    'angle θ between the inputs'
    """
    return draw_angular_structure(compute_angular_structure(architecture), path)


def compute_angular_structure(
    architecture: Architecture, table: LookupTable | None = None
) -> AngularStructure:
    """Compute K^l over the angle; the paper's network is Architecture(9, "relu", 1.6, 0.1).

    Examples
    --------
    >>> import nngp
    >>> from nngp.plots import compute_angular_structure
    >>> table = nngp.curves.LookupTable("relu", n_v=51, n_c=50, s_max=10.0, fill="exact")
    >>> net = nngp.Architecture(3, "relu", 1.6, 0.1)
    >>> compute_angular_structure(net, table).lookup.shape  # depths 0 .. 3 at 25 angles
    (4, 25)
    """
    theta, sparse = np.linspace(0, np.pi, 400), np.linspace(0, np.pi, 25)
    one_minus = 2 * np.sin(theta / 2) ** 2
    exact = np.array([curve(one_minus=one_minus) for curve in compile_curves(architecture)])
    table = LookupTable(architecture.activation, s_max=10.0) if table is None else table
    if table.activation != architecture.activation:
        raise ValueError(
            f"the table is for '{table.activation.name}', the network has "
            f"'{architecture.activation.name}'"
        )
    lookup = table.recursion(
        np.cos(sparse),
        depth=len(architecture.weight_vars) - 1,
        weight_var=architecture.weight_var,
        bias_var=architecture.bias_var,
    )
    return AngularStructure(architecture, theta, exact, sparse, np.array(list(lookup)))


def draw_angular_structure(
    data: AngularStructure, path: OutputPath = None, /, *, narrow: bool = False
) -> "Figure":
    """Draw K^l against the angle, the look-up table starred over the exact curve; `narrow` for the
    width of a phone.

    Examples
    --------
    >>> import matplotlib.pyplot as plt, numpy as np, nngp
    >>> from nngp.plots import AngularStructure, draw_angular_structure
    >>> theta, rows = np.linspace(0, np.pi, 5), np.array([np.ones(5), np.full(5, 2.0)])
    >>> data = AngularStructure(nngp.Architecture(1, "relu"), theta, rows, theta, rows)
    >>> figure = draw_angular_structure(data)
    >>> figure.axes[0].get_ylabel()
    'kernel K(θ) of layer l'
    >>> plt.close(figure)
    """
    size, points = ((style.NARROW, 4.4), style.POINTS) if narrow else ((6.4, 4.6), None)
    with new_figure(size, path, points=points, dpi=style.SCREEN_DPI) as figure:
        axes = figure.subplots()
        _draw_curves(axes, data, star=4 if narrow else 5)
        net = data.architecture
        variances = f"weight_var {net.weight_var}, bias_var {net.bias_var}"
        between = "\n" if narrow else ", "
        axes.set(
            xlabel="angle θ between the inputs",
            ylabel="kernel K(θ) of layer l",
            title=f"{net.activation.name}, {variances}{between}layers l = 0 … {net.depth}",
            xlim=(-MARGINS[narrow], np.pi),
        )
        axes.set_xticks(np.linspace(0, np.pi, 5), ["0", "π/4", "π/2", "3π/4", "π"])
        axes.legend(frameon=False)
        plain(axes)
        _number_curves(figure, axes, data)
    return figure


def _draw_curves(axes: "Axes", data: AngularStructure, star: float) -> None:
    stars: Options = {"color": style.BLUE, "ms": star, "clip_on": False, "zorder": 2}
    for layer, (exact, lookup) in enumerate(zip(data.exact, data.lookup, strict=True)):
        names = (None, None) if layer else ("exact", "look-up table")
        axes.plot(data.theta, exact, color=style.ORANGE, lw=1.2, label=names[0], zorder=1)
        axes.plot(data.sparse_theta, lookup, "*", label=names[1], **stars)


def _number_curves(figure: "Figure", axes: "Axes", data: AngularStructure) -> None:
    """Write the layer of each curve on the left, where they are furthest from each other; a thin
    line leads from a number to its curve."""
    starts = [float(row[0]) for row in data.exact]
    places = style.spread_apart(starts, style.line_height(figure, axes))
    for layer, (start, place) in enumerate(zip(starts, places, strict=True)):
        axes.plot((0, -LEADER), (start, place), color="0.6", lw=0.6, zorder=0)
        words = f"{layer} " if layer else "l = 0 "
        axes.text(-LEADER, place, words, ha="right", va="center", fontsize=style.POINTS)
