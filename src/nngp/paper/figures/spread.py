"""Figure 7: the graphical model of a network (app. C), and beside it what becomes of it with width:
the moments of its layers gather round their limits as width^(-1/2)."""

from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from nngp.paper.figures.graph import draw_graph
from nngp.paper.readings.spread import Spread
from nngp.plots.decay_figure import draw_decay, network_words
from nngp.plots.style import save

SIZE, POINTS = (7.2, 3.6), 9


def draw_spread(data: Spread, path: str | Path | None = None) -> Figure:
    """Left the diagram, right the measured error of G(K) against width."""
    with plt.rc_context(
        {"font.size": POINTS, "axes.titlesize": POINTS, "mathtext.fontset": "dejavuserif"}
    ):
        figure = plt.figure(figsize=SIZE, layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.3, 1))
        draw_graph(left)
        left.set_title("graphical model of a network", loc="left")
        draw_decay(right, data.decay)
        right.set_title("measured: relative error of $G(K^l)$", loc="left")
        figure.suptitle(network_words(data.architecture, data.networks), fontsize=POINTS)
        save(figure, path)
    return figure
