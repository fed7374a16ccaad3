"""Figure 5: functions drawn from the prior of a deep network (app. A)."""

from itertools import cycle
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from nngp.paper.readings.prior import Prior
from nngp.plots.style import COLOURS, plain, save

SIZE, POINTS = (6.0, 3.8), 10
DASHES = ("-", "--")  # a second round of the colours looks different from the first


def draw_prior(data: Prior, path: str | Path | None = None) -> Figure:
    """One line a draw; colours only tell them apart."""
    looks = cycle((colour, dash) for dash in DASHES for colour in COLOURS)
    net = data.architecture
    with plt.rc_context({"font.size": POINTS}):
        figure, axes = plt.subplots(figsize=SIZE, layout="constrained")
        for values, (colour, dash) in zip(data.values, looks, strict=False):
            axes.plot(data.x, values, color=colour, ls=dash, lw=1.3)
        axes.set(xlabel="x", ylabel="z(x)", xlim=(data.x[0], data.x[-1]))
        axes.set_title(
            f"{len(data.values)} draws: {net.activation.name}, depth {net.depth}, "
            f"weight_var {net.weight_var}, bias_var {net.bias_var}",
            fontsize=POINTS,
        )
        plain(axes)
        save(figure, path)
    return figure
