"""Section 3.2: test accuracy against depth, and its loss to rounding, which can be avoided.

Takes labelled images; gives test accuracies by depth from three computations, and a figure.
`plain` forms K in float64 and factors it, as the paper did: once K(x, x') - K(x, x) is below
rounding, K is constant. `kept` is the library's own inference, with noise relative to the kernel's
scale. `limit` is the infinitely deep network.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from nngp._arrays import Array
from nngp._numbers import check_unmasked
from nngp._progress import Callback, Progress, progress_for
from nngp.architecture import Architecture
from nngp.gram import kernel, normalize
from nngp.linsolve.cholesky.factor import LIMIT, next_noise
from nngp.plots import style
from nngp.plots.style import OutputPath, label, new_figure, plain
from nngp.posterior import condition

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Labels = NDArray[np.integer]
DEPTHS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 300, 500)
NOISE = 1e-10  # the paper's
SIZE = (5.0, 3.9)  # inches; readable at one column's width


@dataclass(frozen=True)
class DepthStudy:
    """Test accuracies by depth, and the scale of the kernel, K(x, x) - K(x, x') at a right angle,
    relative to its variance."""

    architecture: Architecture  # the infinitely deep one
    data: str
    train: int
    test: int
    depths: tuple[int, ...]
    plain: Array
    kept: Array
    limit: float
    scale: Array


def accuracy_by_depth(
    activation: str = "relu",
    path: OutputPath = None,
    *,
    weight_var: float = 1.0,
    bias_var: float = 0.1,
    progress: Callback | bool | None = None,
) -> "Figure":
    """Draw test accuracy on digits against depth: plain float64, this library's arithmetic, the
    infinitely deep network. The network must be in the ordered phase. `progress` is as in
    `nngp.condition`.

    Examples
    --------
    The same in two steps, with fewer depths and fewer images:

    >>> from nngp.plots.depth import depth_study, digits, draw_depth
    >>> X, labels, X_test, labels_test = digits()
    >>> data = X[:200], labels[:200], X_test[:100], labels_test[:100]
    >>> study = depth_study(data, depths=(1, 10, 100))
    >>> bool(study.plain[-1] < 0.5), bool(study.kept[-1] > 0.8)  # at depth 100
    (True, True)
    >>> figure = draw_depth(study, "depth.svg")
    >>> figure.axes[0].get_ylabel()
    'test accuracy'
    """
    study = depth_study(digits(), "digits", activation, weight_var, bias_var, progress=progress)
    return draw_depth(study, path)


def depth_study(
    data: tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike],
    name: str = "digits",
    activation: str = "relu",
    weight_var: float = 1.0,
    bias_var: float = 0.1,
    depths: Sequence[int] = DEPTHS,
    *,
    progress: Callback | bool | None = None,
) -> DepthStudy:
    """Compute test accuracies from training inputs and labels, test inputs and labels. Rows are
    centred and normalized, as the authors did."""
    X, X_test = (normalize(part, center=True) for part in data[::2])
    check_unmasked(data[1::2], "labels")
    labels, answers = (np.asarray(part) for part in data[1::2])
    Y = np.eye(labels.max() + 1)[labels] - 1 / (labels.max() + 1)
    limit = Architecture(math.inf, activation, weight_var, bias_var)
    rows = []
    with Progress("accuracy by depth", len(depths), progress_for(progress)) as job:
        for depth in depths:
            rows.append(_at_depth(limit.truncated(depth), X, Y, X_test, answers))
            job.advance(1, f"depth {depth}")
    plain, kept, scale = (np.array(column) for column in zip(*rows, strict=True))
    end = _accuracy(condition(limit, X, Y, noise_var=NOISE).mean(X_test), answers)
    sizes = len(X), len(X_test)
    return DepthStudy(limit, name, *sizes, tuple(depths), plain, kept, end, scale)


def digits(train: int = 1000) -> tuple[Array, Labels, Array, Labels]:
    """The 8 x 8 digits that come with scikit-learn; all that are not trained on are tested on."""
    from sklearn.datasets import load_digits

    X, labels = load_digits(return_X_y=True)
    return X[:train], labels[:train], X[train:], labels[train:]


def _at_depth(
    net: Architecture, X: Array, Y: Array, X_test: Array, answers: Labels
) -> tuple[float, float, float]:
    posterior = condition(net, X, Y, noise_var=NOISE, relative_noise=True)
    plain = _accuracy(_plain_mean(net, X, Y, X_test), answers)
    share = posterior.report.spread / posterior.report.variance
    return plain, _accuracy(posterior.mean(X_test), answers), share


def _plain_mean(net: Architecture, X: Array, Y: Array, X_test: Array) -> Array:
    """Eq. 8 with K as a float64 matrix, and the paper's noise ladder."""
    K, cross, noise = kernel(net, X), kernel(net, X_test, X), NOISE
    while True:
        try:
            factor = cho_factor(K + noise * np.eye(len(K)), lower=True)
            return np.asarray(cross @ cho_solve(factor, Y))
        except LinAlgError:
            if next_noise(noise) > LIMIT:
                return np.zeros((len(X_test), Y.shape[1]))
            noise = next_noise(noise)


def _accuracy(mean: Array, answers: Labels) -> float:
    return float(np.mean(mean.argmax(axis=1) == answers))


def draw_depth(data: DepthStudy, path: OutputPath = None) -> "Figure":
    """Draw test accuracy, and the share of the kernel's variance that depends on the input."""
    with new_figure(SIZE, path) as figure:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        _draw_accuracy(above, data)
        _draw_scale(below, data)
    return figure


def _draw_accuracy(axes: "Axes", data: DepthStudy) -> None:
    axes.axhline(data.limit, color=style.BLACK, lw=0.9, ls="--")
    axes.plot(data.depths, data.plain, "s-", color=style.ORANGE, lw=1.3, ms=4)
    axes.plot(data.depths, data.kept, "o-", color=style.BLUE, lw=1.3, ms=4)
    for name, height, shift, colour in (
        ("infinitely deep", data.limit, 5, style.BLACK),
        ("constant kept apart", data.kept[-1], -14, style.BLUE),
        ("plain float64", data.plain[-1], 6, style.ORANGE),
    ):
        label(axes, name, (data.depths[-1], height), (0, shift), ha="right", color=colour)
    net = data.architecture
    variances = f"weight_var {net.weight_var:g}, bias_var {net.bias_var:g}"
    axes.set(
        xscale="log",
        ylim=(0, 1.08),
        ylabel="test accuracy",
        title=f"{data.data}, {data.train} images; {net.activation.name}, {variances}",
    )
    plain(axes)


def _draw_scale(axes: "Axes", data: DepthStudy) -> None:
    rounding = float(np.finfo(float).eps)
    axes.plot(data.depths, data.scale, "^-", color=style.GREEN, lw=1.3, ms=4)
    axes.axhline(rounding, color="0.5", lw=0.9, ls=":")
    label(axes, "rounding of float64", (data.depths[0], rounding), (0, -11), color="0.35")
    axes.set(
        xlabel="depth (hidden layers)",
        yscale="log",
        ylabel="what depends\non the input",
        xticks=[1, 3, 10, 30, 100, 300],
        yticks=[1, 1e-50, 1e-100, 1e-150],
    )
    axes.xaxis.set_major_formatter(lambda depth, _: f"{depth:g}")
    axes.minorticks_off()
    plain(axes)
