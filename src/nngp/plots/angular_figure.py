"""Figure 6 of the paper (appendix B): the angular structure of the kernel by depth."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from nngp.plots.angular import AngularStructure
from nngp.plots.style import plain, save

EXACT, LOOKUP = "#D55E00", "#0072B2"  # of the Okabe-Ito palette, safe for colour-blind readers


def draw_angular_structure(data: AngularStructure, path: str | Path | None = None) -> Figure:
    """K^l against the angle, the look-up table starred over the exact curve."""
    figure, axes = plt.subplots(figsize=(6.0, 4.4), layout="constrained")
    for depth, (exact, lookup) in enumerate(zip(data.exact, data.lookup, strict=True)):
        first = depth == 0
        axes.plot(
            data.theta, exact, color=EXACT, lw=1.2, label="exact" if first else None, zorder=1
        )
        axes.plot(
            data.sparse_theta,
            lookup,
            "*",
            color=LOOKUP,
            ms=5,
            clip_on=False,
            label="look-up table" if first else None,
            zorder=2,
        )
    _name_depths(axes, data)
    net = data.architecture
    axes.set(
        xlabel="angle θ between the inputs",
        ylabel=r"$K^l(\theta)$",
        title=(
            f"{net.activation.name}, weight_var {net.weight_var}, bias_var {net.bias_var}, "
            f"depth l = 0 … {net.depth}"
        ),
        xlim=(0, np.pi),
    )
    axes.set_xticks(np.linspace(0, np.pi, 5), ["0", "π/4", "π/2", "3π/4", "π"])
    axes.legend(frameon=False)
    plain(axes)
    save(figure, path, dpi=160)
    return figure


def _name_depths(axes: plt.Axes, data: AngularStructure) -> None:
    """Number the curves at the right end, those that leave room for a number."""
    taken: list[float] = []
    room = 0.04 * np.ptp(data.exact)
    for depth, row in enumerate(data.exact):
        if all(abs(row[-1] - other) > room for other in taken):
            taken.append(float(row[-1]))
            axes.annotate(
                f"l = {depth}",
                (np.pi, row[-1]),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
                annotation_clip=False,
            )
