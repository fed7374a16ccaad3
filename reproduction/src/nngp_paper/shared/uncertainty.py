"""Predicted and realised error (figures 3 and 8): whether the process knows where it errs.

One network, the paper's, on every training set: the mean squared error that it predicts at a test
point beside the realised one. The prediction is the variance of an observation, noise included, as
a test target is one. Points are binned in the order of their predicted error, as one squared error
says little.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nngp import condition
from nngp_paper.arrays import Array
from nngp_paper.datasets import Split
from nngp_paper.experiment import Config, Experiment, Result, network_of, rounded
from nngp_paper.part import Axes, Figure, Results, Style
from nngp_paper.runs.study import Outcome, Study
from nngp_paper.scope import ACTIVATIONS, Scope
from nngp_paper.shared.left_out_scale import read_scales
from nngp_paper.shared.one_network import network_study
from nngp_paper.shared.words import by_size
from nngp_paper.verdict import ClaimVerdict, Word, span

EXPERIMENT = "doubt"
HIGH, FAIR = 0.9, 0.7  # correlations
BIN = 100  # test points of a bin, the paper's
BINS = 25  # about so many, where there are too few test points for the paper's
MANY = 5000  # test points from which on there are enough


def uncertainty_study(scope: Scope) -> Study:
    """The network of figures 3 and 8, its errors on the test set in bins."""
    test = scope.images.test
    size = BIN if test >= MANY else max(1, test // BINS)
    return network_study(EXPERIMENT, scope, _work, test=test, bin=size)


UNCERTAINTY_RUNS = Experiment(EXPERIMENT, uncertainty_study)


def _work(load: Callable[[int], Split], engine: str, config: Config) -> Outcome:
    data = load(config["train"])
    posterior = condition(network_of(config), data.X, data.targets(data.labels), engine=engine)
    mean, variance = posterior.predict(data.X_test, noise=True)
    errors = np.mean((mean - data.targets(data.labels_test)) ** 2, axis=1)
    predicted, realised = binned(variance, errors, config["bin"])
    result = {
        "predicted": rounded(predicted),
        "realised": rounded(realised),
        "correlation": rounded(correlation(predicted, realised)),
        "points": len(errors),
    }
    return Outcome(result, posterior.report.engine, posterior.report.noise_var)


def binned(predicted: Array, errors: Array, size: int) -> tuple[Array, Array]:
    """Means over bins of `size` points, or a few more, in the order of the predicted error."""
    bins = np.array_split(np.argsort(predicted, kind="stable"), max(1, len(predicted) // size))
    return (
        np.array([predicted[rows].mean() for rows in bins]),
        np.array([errors[rows].mean() for rows in bins]),
    )


def correlation(predicted: Array, realised: Array) -> float:
    """Pearson's correlation over bins."""
    if min(np.ptp(predicted), np.ptp(realised)) == 0:
        raise ArithmeticError("all bins expect the same error, or have it: nothing correlates")
    return float(np.corrcoef(predicted, realised)[0, 1])


@dataclass(frozen=True)
class UncertaintyCurve:
    """One network on one training set: mean squared errors by bin of test points."""

    train: int
    activation: str
    predicted: Array
    realised: Array
    correlation: float
    points: int  # test points in all
    bin: int  # test points of a bin
    scale: float | None = None  # of predicted errors, by leave-one-out

    @property
    def ratio(self) -> float:
        """The mean predicted error over the mean realised one."""
        return float(self.predicted.mean() / self.realised.mean())


@dataclass(frozen=True)
class Uncertainty:
    """The curves of a figure; `done` of `wanted` runs of both figures are finished."""

    dataset: str
    curves: tuple[UncertaintyCurve, ...]  # by size, then by activation
    done: int
    wanted: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """The training sets that are shown."""
        return tuple(dict.fromkeys(curve.train for curve in self.curves))

    def only(self, sizes: Sequence[int]) -> "Uncertainty":
        """The curves of some training sets."""
        curves = tuple(curve for curve in self.curves if curve.train in sizes)
        return Uncertainty(self.dataset, curves, self.done, self.wanted)


def read_all_sizes(results: Results) -> Uncertainty:
    """The curves of all training sets."""
    study, scales = uncertainty_study(results.scope), read_scales(results)
    curves = tuple(
        _curve(config, result, scales.get((config["activation"], config["train"])))
        for config, result in results.finished(study)
    )
    return Uncertainty(results.scope.dataset, curves, len(curves), len(study.configs))


def _curve(config: Config, result: Result, scale: float | None) -> UncertaintyCurve:
    return UncertaintyCurve(
        config["train"],
        config["activation"],
        np.array(result["predicted"]),
        np.array(result["realised"]),
        result["correlation"],
        result["points"],
        config["bin"],
        scale,
    )


def finding(data: Uncertainty) -> str:
    """Correlations by activation and training size."""
    names = [(curve.activation, curve.train) for curve in data.curves]
    values = {name: one.correlation for name, one in zip(names, data.curves, strict=True)}
    ratios = {name: one.ratio for name, one in zip(names, data.curves, strict=True)}
    return (
        f"Correlation over bins with {by_size(values, '.3f')} Predicted over realised error with "
        f"{by_size(ratios, '.2f')}"
    )


def verdict(data: Uncertainty) -> ClaimVerdict:
    """Whether predicted and realised errors correlate highly; their sizes are told as well."""
    found = [curve.correlation for curve in data.curves]
    low = sum(value < HIGH for value in found)
    word: Word = "supported" if not low else "partly" if min(found) >= FAIR else "not supported"
    chance = 1.96 / math.sqrt(min(len(curve.predicted) for curve in data.curves))
    ratios = span([curve.ratio for curve in data.curves], ".2f")
    scaled = [curve.ratio * curve.scale for curve in data.curves if curve.scale is not None]
    after = f", {span(scaled, '.2f')} after the leave-one-out scale" if scaled else ""
    return ClaimVerdict(
        word,
        f"Correlation {span(found, '.3f')}, at least {HIGH:g} in {len(found) - low} of "
        f"{len(found)} curves (chance: ±{chance:.2f}); the mean predicted error is {ratios} times "
        f"the realised one{after}.",
    )


WIDTH, NARROW, POINTS = 7.0, 3.9, 9
ALONE = (5.2, 4.2)  # inches of a picture with one panel
ROW = 2.1  # inches of a row of panels
MOST = 3  # panels in a row
MARKS = "os"  # of the paper's activations
GREY = "0.4"
ROOM = 1.2  # scales beyond the smallest and the largest error


def draw(data: Uncertainty, path: str | Path | None = None, *, narrow: bool = False) -> Figure:
    """A panel for each training set. A mark stands for a bin of test points, a hollow one for the
    same with the scale of leave-one-out. On the dashed line errors are as large as predicted."""
    import matplotlib.pyplot as plt

    from nngp_paper.plots.style import save

    columns = min(len(data.sizes), 1 if narrow else MOST)
    rows = -(-len(data.sizes) // columns)
    size = ALONE if len(data.sizes) == 1 else (NARROW if narrow else WIDTH, 1.0 + ROW * rows)
    size = (min(size[0], NARROW), size[1]) if narrow else size
    with plt.rc_context({"font.size": POINTS, "axes.titlesize": POINTS}):
        figure = plt.figure(figsize=size, layout="constrained")
        panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
        for axes, train in zip(panels, data.sizes, strict=False):
            _draw_panel(axes, data, [curve for curve in data.curves if curve.train == train])
        for axes in panels[len(data.sizes) :]:
            axes.set_axis_off()
        for axes in panels[: len(data.sizes)][-columns:]:  # the lowest of each column
            axes.set_xlabel("expected mean squared error")
            axes.tick_params(labelbottom=True)
        _name(figure, data)
        save(figure, path)
    return figure


def _draw_panel(axes: Axes, data: Uncertainty, curves: Sequence[UncertaintyCurve]) -> None:
    from nngp_paper.plots.style import plain

    for curve in curves:
        colour, mark = _look(curve.activation)
        size = 4.5 if len(data.sizes) == 1 else 3.5
        # Thousands of marks as shapes would make most of the report's bytes.
        look: Style = {"marker": mark, "ls": "none", "rasterized": len(data.sizes) > 1}
        filled: Style = {"color": colour, "ms": size, "mec": "w", "mew": 0.3}
        axes.plot(curve.predicted, curve.realised, **look, **filled)
        if curve.scale is not None:
            hollow: Style = {"mfc": "none", "mec": colour, "mew": 0.7, "ms": size - 0.5}
            axes.plot(curve.scale * curve.predicted, curve.realised, **look, **hollow)
    axes.set(xscale="log", yscale="log")  # a factor is a shift, whatever the errors' size
    low, high = _limits([curve.realised for curve in data.curves])
    axes.axline((low, low), (high, high), color=GREY, lw=1.0, ls="--", zorder=1)
    found = ", ".join(f"{curve.activation} r = {curve.correlation:.3f}" for curve in curves)
    axes.set_title(f"n = {curves[0].train:,}\n{found}")
    axes.set_ylim(low, high)
    axes.set_xlim(
        *_limits([curve.predicted * s for curve in data.curves for s in (1, curve.scale or 1)])
    )
    _name_ticks(axes)
    plain(axes)


def _name_ticks(axes: Axes) -> None:
    """Ticks at 1, 2 and 5 where an axis spans little more than a decade, else at powers of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter

    for axis in (axes.xaxis, axes.yaxis):
        low, high = axis.get_view_interval()
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 30 else (1,)))
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter(NullFormatter())


def _limits(values: Sequence[Array]) -> tuple[float, float]:
    """Limits of a logarithmic axis; an error of 0 cannot be shown on it."""
    known = np.concatenate(values)
    positive = known[known > 0]
    return float(positive.min() / ROOM), float(positive.max() * ROOM)


def _look(activation: str) -> tuple[str, str]:
    """Colour and mark of an activation."""
    from nngp_paper.plots.style import COLOURS

    place = ACTIVATIONS.index(activation)
    return COLOURS[place], MARKS[place]


def _name(figure: Figure, data: Uncertainty) -> None:
    """Title, legend and vertical label; the title counts finished runs if some are missing."""
    from matplotlib.lines import Line2D

    apart = " " if figure.get_figwidth() > NARROW else "\n"
    title = (
        f"{data.dataset}: each mark the mean of {data.curves[0].bin} test points,{apart}"
        "r the correlation of marks"
    )
    if data.done < data.wanted:
        title += f"\n({data.done} of {data.wanted} runs are finished)"
    figure.suptitle(title, fontsize=POINTS)
    figure.supylabel("realised mean squared error", fontsize=POINTS)
    shown = {curve.activation for curve in data.curves}
    handles = []
    for name in (name for name in ACTIVATIONS if name in shown):
        colour, mark = _look(name)
        handles.append(Line2D([], [], ls="", marker=mark, color=colour, ms=5, label=name))
    if any(curve.scale is not None for curve in data.curves):
        look: Style = {"marker": "o", "mfc": "none", "mec": GREY, "ls": "", "ms": 5}
        handles.append(Line2D([], [], label="scaled by leave-one-out", **look))
    line = Line2D([], [], color=GREY, lw=1.0, ls="--", label="as large as expected")
    columns = 4 if len(data.sizes) > 1 and figure.get_figwidth() > NARROW else 2
    figure.legend(
        handles=[*handles, line], loc="outside lower center", ncols=columns, frameon=False
    )
