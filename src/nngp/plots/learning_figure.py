"""The learning curve of one trained network."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from nngp.finite.training_state import LearningCurve
from nngp.plots.style import COLOURS, plain, save

TRAIN, SEEN = COLOURS[:2]
SIZE, POINTS = (7.2, 2.9), 9
FEW = 20  # looks that are shown one by one


def draw_learning(curve: LearningCurve, best_step: int, path: str | Path | None = None) -> Figure:
    """Left, the loss on batches and on the monitored part; right, the accuracy there. Dotted, the
    step whose weights were kept."""
    columns = {name: np.array(values, float) for name, values in curve.items()}
    with plt.rc_context({"font.size": POINTS}):
        figure, (left, right) = plt.subplots(1, 2, figsize=SIZE, layout="constrained")
        steps, line = columns["step"], ".-" if len(columns["step"]) < FEW else "-"
        left.plot(steps, columns["train_loss"], line, color=TRAIN, label="training batches")
        left.plot(steps, columns["loss"], line, color=SEEN, label="monitored")
        left.set(yscale="log", ylabel="loss")
        left.legend(frameon=False)
        right.plot(steps, columns["accuracy"], line, color=SEEN)
        right.set(ylabel="accuracy, monitored")
        for axes in (left, right):
            axes.axvline(best_step, color="0.3", lw=0.9, ls=":")
            axes.set(xlabel="step")
            plain(axes)
        save(figure, path)
    return figure
