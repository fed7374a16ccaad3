"""Figures of trained networks of finite width.

Accuracy against width beside the infinitely wide network (figure 1), the generalisation gap by
width (figure 2), and the learning curve of one network.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nngp_paper.finite.gap import EXPERIMENT, Gaps, gaps
from nngp_paper.finite.recipe import Plan
from nngp_paper.finite.training_state import LearningCurve
from nngp_paper.finite.width_comparison import WidthCurve, Widths, widths
from nngp_paper.plots import style
from nngp_paper.plots.style import Options, OutputPath, new_figure, plain, width_axis
from nngp_paper.runs import RunStore

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from nngp_paper.finite.training import Training

MARKERS = "os^Dv<>P"  # with the colours, they tell depths apart
OFFSET = 0.2  # of the width, shared by all depths, so that their trials are seen apart
PANEL = (3.4, 3.3)  # inches
FILLED: dict[str, Any] = {"ms": 3, "alpha": 0.5, "mew": 0, "label": "Adam"}
HOLLOW: dict[str, Any] = {"ms": 3.5, "mfc": "none", "mew": 0.8, "label": "SGD"}
JITTER = 0.03  # of the width: networks of one width side by side
DASH, SHORTEST_GAP = 5.0, 0.6  # of levels: points, and parts of a dash
SAME_LEVEL = 0.05  # of the axis: about a line of text
FEW = 20  # evaluations of a network that are shown one by one


def accuracy_by_width(
    store: RunStore,
    dataset: str,
    train: int,
    activation: str = "relu",
    path: OutputPath = None,
    *,
    depths: Sequence[int] | None = None,
    plan: Plan | None = None,
) -> "Figure":
    """Draw figure 1: test accuracy and error against width, the infinite network as a line; from
    a store that `nngp-paper finite` or `nngp_paper.finite.search` has filled. Networks of different
    plans are not shown together: if the store has several, give one.

    Examples
    --------
    >>> from nngp_paper import datasets, finite, plots
    >>> from nngp_paper.runs import RunStore
    >>> digits = datasets.split("digits", 100)
    >>> cell = finite.Cell("digits", 100, "relu", depth=1, width=16)
    >>> store = RunStore("runs.db")
    >>> plan = finite.Plan(steps=20, interval=10)
    >>> found = finite.search(store, [cell], digits, plan, trials=2, seed=9, progress=False)
    >>> figure = plots.accuracy_by_width(store, "digits", 100, path="figure.svg")
    >>> figure.axes[0].get_xlabel()
    'width of the hidden layers'
    >>> store.close()
    """
    return draw_widths(widths(store, dataset, train, activation, depths, plan), path)


def draw_widths(data: Widths, path: OutputPath = None, /, *, narrow: bool = False) -> "Figure":
    """Draw test accuracy (every trial as a dot, the best by validation on the line) and the mean
    squared error of the best. Dashed, the infinitely wide network, its depth on the right. The
    panels stand below each other if `narrow`."""
    shape, size = ((2, 1), (style.NARROW, 6.4)) if narrow else ((1, 2), (7.2, 3.4))
    with new_figure(size, path) as figure:
        first, second = figure.subplots(*shape)
        _draw_accuracy(first, data)
        _draw_error(second, data)
        between = "\n" if narrow else "; "
        figure.suptitle(
            f"{data.dataset}, {data.train} training points, {data.activation}{between}best of "
            f"{data.trials} or more trials by validation",
            fontsize=style.POINTS + 1,
        )
        if any(curve.infinite for curve in data.curves):
            words = "infinitely wide, by depth"
            first.plot([], [], color="0.3", lw=1.0, ls="--", label=words)
        figure.legend(loc="outside lower center", ncols=2 if narrow else 6, frameon=False)
        _draw_levels(first, data, "test_accuracy")
        _draw_levels(second, data, "test_mse")
    return figure


def _draw_accuracy(axes: "Axes", data: Widths) -> None:
    for i, curve in enumerate(data.curves):
        places, accuracies = np.array(curve.trials).T
        beside = 1 + OFFSET * ((i + 0.5) / len(data.curves) - 0.5)
        colour = style.COLOURS[i % len(style.COLOURS)]
        axes.plot(places * beside, accuracies, ".", color=colour, ms=5, alpha=0.4, mew=0)
        _draw_best(axes, i, curve, "test_accuracy")
    low, high = _accuracy_range(data)
    below = sum(accuracy < low for curve in data.curves for _, accuracy in curve.trials)
    axes.set(ylim=(low, high), ylabel="test accuracy")
    if below:
        words = "1 trial lies below" if below == 1 else f"{below} trials lie below"
        axes.set_title(words, color="0.35", loc="right")
    width_axis(axes, _all_widths(data))


def _draw_error(axes: "Axes", data: Widths) -> None:
    for i, curve in enumerate(data.curves):
        _draw_best(axes, i, curve, "test_mse")
    axes.set(ylabel="test mean squared error")
    width_axis(axes, _all_widths(data))


def _draw_best(axes: "Axes", i: int, curve: WidthCurve, name: str) -> None:
    """Draw the best network of each width."""
    colour, marker = style.COLOURS[i % len(style.COLOURS)], MARKERS[i % len(MARKERS)]
    label = f"depth {curve.depth}" if name == "test_accuracy" else None  # once for both panels
    xs, ys = zip(*((found.cell.width, found.result[name]) for found in curve.found), strict=True)
    axes.plot(xs, ys, marker=marker, color=colour, lw=1.3, ms=5, label=label)


def _draw_levels(axes: "Axes", data: Widths, name: str) -> None:
    """Draw the infinitely wide network of each depth as a level with its depth on the right.
    Levels that lie on each other share the line: their dashes take turns."""
    levels, lines = {}, {}
    for i, curve in enumerate(data.curves):
        if curve.infinite is not None and curve.infinite.result:
            levels[i] = float(curve.infinite.result[name])
            lines[i] = axes.axhline(levels[i], color=style.COLOURS[i % len(style.COLOURS)], lw=1.0)
    near = SAME_LEVEL * float(np.ptp(axes.get_ylim()))
    for group in _groups(levels, near):
        dashes = DASH, DASH * max(len(group) - 1, SHORTEST_GAP)
        for turn, i in enumerate(group):
            lines[i].set_linestyle((-DASH * turn, dashes))
        words = ", ".join(str(data.curves[i].depth) for i in group)
        place = (1.0, levels[group[0]])
        at: Options = {"xycoords": axes.get_yaxis_transform(), "textcoords": "offset points"}
        axes.annotate(words, place, (4, 0), va="center", annotation_clip=False, **at)


def _groups(levels: dict[int, float], near: float) -> list[list[int]]:
    """Levels that are too near for labels of their own, together."""
    groups: list[list[int]] = []
    for i in sorted(levels, key=lambda i: levels[i]):
        if groups and levels[i] - levels[groups[-1][-1]] < near:
            groups[-1].append(i)
        else:
            groups.append([i])
    return [sorted(group) for group in groups]


def _accuracy_range(data: Widths) -> tuple[float, float]:
    """Limits of the axis: the lines fill its upper half, the better trials are seen below them."""
    best = [f.result["test_accuracy"] for curve in data.curves for f in curve.found]
    levels = [c.infinite.result for c in data.curves if c.infinite and c.infinite.result]
    values = best + [level["test_accuracy"] for level in levels]
    highest = max(values + [accuracy for c in data.curves for _, accuracy in c.trials])
    low = max(0.0, min(values) - max(np.ptp(values), 0.03))
    return float(low), float(highest + 0.08 * (highest - low))


def _all_widths(data: Widths) -> list[int]:
    return sorted({found.cell.width for curve in data.curves for found in curve.found})


def generalisation_gap(
    store: RunStore,
    dataset: str,
    train: int,
    path: OutputPath = None,
    *,
    depth: int = 5,
    plan: Plan | None = None,
) -> "Figure":
    """Draw figure 2: training minus test accuracy against width, of networks that have learned
    all training labels; from a store that `nngp-paper gap` has filled.

    Examples
    --------
    >>> from nngp_paper import finite, plots
    >>> from nngp_paper.runs import RunStore
    >>> store = RunStore("runs.db")
    >>> data, network = {"dataset": "digits", "train": 100}, {"activation": "relu", "depth": 5}
    >>> config = {**data, **network, "width": 64, **finite.Plan("cross_entropy").as_dict()}
    >>> (key,) = store.declare("gap", [config])
    >>> done = store.finish(key, {"train_accuracy": 1.0, "test_accuracy": 0.85}, seconds=1.0)
    >>> figure = plots.generalisation_gap(store, "digits", 100, path="figure.svg")
    >>> figure.axes[0].get_xlabel()
    'width of the hidden layers'
    >>> store.close()
    """
    where = {"dataset": dataset, "train": train, "depth": depth}
    runs = store.runs(experiment=EXPERIMENT, status="done", where=where)
    return draw_gaps(gaps([r for r in runs if plan is None or Plan.of(r.config) == plan]), path)


def draw_gaps(data: Gaps, path: OutputPath = None, /, *, narrow: bool = False) -> "Figure":
    """Draw one panel an activation; each dot is a network, hollow if plain gradient descent trained
    it, the line the best of each width. The panels stand below each other if `narrow`."""
    names = sorted({one.activation for one in data.learned})
    count = len(names)
    shape, size = ((1, count), (PANEL[0] * count, PANEL[1]))
    if narrow:
        shape, size = (count, 1), (style.NARROW, 0.6 + 2.7 * count)
    with new_figure(size, path) as figure:
        panels = figure.subplots(*shape, sharex=narrow, sharey=True, squeeze=False)
        for i, (axes, name) in enumerate(zip(panels.flat, names, strict=True)):
            _draw_panel(axes, data, name, style.COLOURS[i % len(style.COLOURS)])
        for axes in panels[:, 0]:
            axes.set_ylabel("training - test accuracy")
        for axes in panels[:-1].flat:
            axes.set_xlabel("")
        figure.suptitle(
            f"{data.dataset}, {data.train:,} training points\n"
            f"{data.depth} hidden layers, training accuracy 100%",
            fontsize=style.POINTS + 1,
        )
        if any(one.optimiser == "sgd" for one in data.learned):
            panels.flat[0].legend(frameon=False)
    return figure


def _draw_panel(axes: "Axes", data: Gaps, name: str, colour: str) -> None:
    own = [one for one in data.learned if one.activation == name]
    widths = np.array([one.width for one in own])
    values = np.array([one.gap for one in own])
    spread = np.random.default_rng(0).uniform(-JITTER, JITTER, len(own))
    plain_descent = np.array([one.optimiser == "sgd" for one in own])
    for chosen, look in ((~plain_descent, FILLED), (plain_descent, HOLLOW)):
        if chosen.any():
            places = (widths * (1 + spread))[chosen]
            axes.plot(places, values[chosen], "o", color=colour, **look)
    known = np.unique(widths)
    axes.plot(known, [values[widths == w].min() for w in known], "_-", color="0.2", lw=1.0, ms=9)
    networks = "1 network" if len(own) == 1 else f"{len(own)} networks"
    axes.set_title(f"{name}: {networks}", fontsize=style.POINTS)
    width_axis(axes, sorted({one.width for one in data.learned}))


def learning_curve(training: "Training", path: OutputPath = None) -> "Figure":
    """Draw loss and accuracy by step of a network trained by `nngp_paper.finite.train`.

    Examples
    --------
    >>> import nngp
    >>> from nngp_paper import datasets, finite, plots
    >>> digits = datasets.split("digits", 100)
    >>> network = nngp.FiniteNetwork(nngp.Architecture(1, "relu"), width=16, n_out=10)
    >>> recipe, plan = finite.Recipe(batch_size=16), finite.Plan(steps=20, interval=10)
    >>> trained = finite.train(network, digits, recipe, plan, progress=False)
    >>> figure = plots.learning_curve(trained, "figure.svg")
    >>> figure.axes[0].get_xlabel()
    'step'
    """
    return draw_learning(training.curve, training.best_step, path)


def draw_learning(curve: LearningCurve, best_step: int, path: OutputPath = None) -> "Figure":
    """Draw the loss on batches and on the monitored part, and the accuracy there. Dotted, the
    step whose weights were kept."""
    columns = {name: np.array(values, float) for name, values in curve.items()}
    steps, line = columns["step"], ".-" if len(columns["step"]) < FEW else "-"
    with new_figure((7.2, 2.9), path) as figure:
        left, right = figure.subplots(1, 2)
        left.plot(steps, columns["train_loss"], line, color=style.BLUE, label="training batches")
        left.plot(steps, columns["loss"], line, color=style.ORANGE, label="monitored")
        left.set(yscale="log", ylabel="loss")
        left.legend(frameon=False)
        right.plot(steps, columns["accuracy"], line, color=style.ORANGE)
        right.set(ylabel="accuracy, monitored")
        for axes in (left, right):
            axes.axvline(best_step, color="0.3", lw=0.9, ls=":")
            axes.set(xlabel="step")
            plain(axes)
    return figure
