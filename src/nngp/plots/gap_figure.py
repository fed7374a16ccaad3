"""Figure 2: the generalisation gap of networks that have learned their training set, by width."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from nngp.finite.gap import Gaps
from nngp.plots.style import COLOURS, save, width_axis

SIZE, POINTS = (3.4, 3.3), 9
ASIDE = 0.03  # of the width: networks of one width side by side


def draw_gaps(data: Gaps, path: str | Path | None = None) -> Figure:
    """One panel an activation; each dot is a network, the line the best of each width."""
    names = sorted({one.activation for one in data.learned})
    with plt.rc_context({"font.size": POINTS}):
        figure, row = plt.subplots(
            1,
            len(names),
            figsize=(SIZE[0] * len(names), SIZE[1]),
            sharey=True,
            squeeze=False,
            layout="constrained",
        )
        for i, name in enumerate(names):
            _draw_panel(row[0][i], data, name, COLOURS[i % len(COLOURS)])
        row[0][0].set_ylabel("training accuracy - test accuracy")
        figure.suptitle(
            f"{data.dataset}, {data.train:,} training points, {data.depth} hidden layers,\n"
            "networks with a training accuracy of 100%",
            fontsize=POINTS + 1,
        )
        save(figure, path)
    return figure


def _draw_panel(axes: plt.Axes, data: Gaps, name: str, colour: str) -> None:
    own = [one for one in data.learned if one.activation == name]
    widths = np.array([one.width for one in own])
    values = np.array([one.gap for one in own])
    spread = np.random.default_rng(0).uniform(-ASIDE, ASIDE, len(own))
    axes.plot(widths * (1 + spread), values, ".", color=colour, ms=5, alpha=0.5, mew=0)
    known = np.unique(widths)
    axes.plot(known, [values[widths == w].min() for w in known], "_-", color="0.2", lw=1.0, ms=9)
    networks = "1 network" if len(own) == 1 else f"{len(own)} networks"
    axes.set_title(f"{name}: {networks}", fontsize=POINTS)
    width_axis(axes, sorted({one.width for one in data.learned}))
