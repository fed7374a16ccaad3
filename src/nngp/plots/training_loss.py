"""Training and test loss against the time of training, for networks of infinite width.

Takes trained networks; gives a figure. The numbers are `nngp.posterior.training.descent.Losses`.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from nngp.plots import style
from nngp.plots.style import OutputPath, new_figure, plain
from nngp.posterior import Losses, TrainedEnsemble

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZE = (5.0, 3.4)  # inches; readable at one column's width
LEAST = 1e-6  # of the largest loss: smaller ones are not shown


def training(
    trained: TrainedEnsemble,
    times: ArrayLike,
    Xs: ArrayLike | None = None,
    Ys: ArrayLike | None = None,
    path: OutputPath = None,
) -> "Figure":
    """Draw training and test loss against the time of training.

    Solid lines are losses of the mean of all networks, dashed ones means of the losses of single
    networks. Both axes are logarithmic, so times of 0 and infinity are not shown.

    Parameters
    ----------
    trained : TrainedEnsemble
        From `nngp.training.train_ensemble`, at any time.
    times : array_like
    Xs, Ys : array_like, optional
        Test points and their targets.
    path : path, optional

    Examples
    --------
    >>> import numpy as np, nngp
    >>> X = nngp.normalize(np.random.default_rng(0).normal(size=(60, 3)))
    >>> networks = nngp.training.train_ensemble(
    ...     nngp.Architecture(2, "erf", 2.0, 0.1), X[:40], X[:40, 0]
    ... )
    >>> times = np.geomspace(1.0, 1e6, 50)
    >>> figure = nngp.plots.training(networks, times, X[40:], X[40:, 0], "training.svg")
    >>> figure.axes[0].get_xlabel()
    'time of training (learning rate 1)'
    """
    return draw_training(trained.losses(times, Xs, Ys), trained.learning_rate, path)


def draw_training(data: Losses, learning_rate: float = 1.0, path: OutputPath = None) -> "Figure":
    """Draw the losses, down to a millionth of the largest."""
    shown = (data.times > 0) & np.isfinite(data.times)
    with new_figure(SIZE, path) as figure:
        axes, times = figure.subplots(), data.times[shown]
        axes.plot(times, data.train[shown], "-", color=style.BLUE, label="training")
        axes.plot(times, data.train_expected[shown], "--", color=style.BLUE)
        if data.test is not None and data.test_expected is not None:
            axes.plot(times, data.test[shown], "-", color=style.ORANGE, label="test")
            axes.plot(times, data.test_expected[shown], "--", color=style.ORANGE)
        axes.set(
            xscale="log",
            yscale="log",
            xlabel=f"time of training (learning rate {learning_rate:g})",
            ylabel="squared error / 2",
            title="solid: mean of all networks; dashed: single networks",
        )
        values = np.concatenate([np.asarray(line.get_ydata()) for line in axes.lines])
        if values.size and values.max() > 0:
            axes.set_ylim(max(values.min(), LEAST * values.max()) / 2, values.max() * 2)
        axes.legend(frameon=False)
        plain(axes)
    return figure
