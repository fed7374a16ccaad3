"""Figure 1: accuracy and error against the number of training points, and against the width."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from nngp._arrays import Array
from nngp.errors import NothingMeasuredError
from nngp.finite.cells import Found, best_of, rank
from nngp.finite.width_comparison import INFINITE_EXPERIMENT as SMALL_GRID
from nngp.paper.experiment import result_of
from nngp.paper.grids.arrays import judged_on
from nngp.paper.grids.choice import by_validation
from nngp.paper.grids.study import GRID_RUNS
from nngp.paper.part import Axes, Claim, Figure, Part, Results, Style
from nngp.paper.published import published_row
from nngp.paper.scope import Scope
from nngp.paper.searches import FINITE_RUNS, best_shape, best_trial, finished_trials, is_of
from nngp.paper.verdict import ClaimVerdict, share_word
from nngp.paper.words import percent, sentence
from nngp.runs import Run

if TYPE_CHECKING:
    from matplotlib.lines import Line2D

CLAIM = Claim(
    title="performance against training size and width",
    paper="The infinitely wide network often beats trained ones, and these come closer to it the "
    "wider they are.",
    look="Above, against training points: filled marks are ours and hollow ones the paper's. "
    "Below, against width: the dashed level is the infinite network above; do the lines come to "
    "it? A width is shown where it was tried at the same depths as the others.",
)


@dataclass(frozen=True)
class Point:
    """The test scores of the best network by validation, and how many it was chosen from. The
    paper's points have neither an error nor a number of networks."""

    at: int  # training points, or width
    accuracy: float
    mse: float | None = None
    networks: int | None = None


Points = tuple[Point, ...]


@dataclass(frozen=True)
class SizeCurve:
    """One activation against the number of training points; any of these may be empty."""

    activation: str
    infinite: Points
    finite: Points
    paper_infinite: Points
    paper_finite: Points


@dataclass(frozen=True)
class WidthLine:
    """One activation against the width, the best of `depths` at each, and the infinite network, the
    best of all depths that it was tried with."""

    activation: str
    depths: tuple[int, ...]
    points: Points
    level: Point | None


@dataclass(frozen=True)
class Performance:
    """Figure 1 of a data set. `train` is the training set of the widths; None if there are no
    finite networks."""

    dataset: str
    curves: tuple[SizeCurve, ...]
    train: int | None
    widths: tuple[WidthLine, ...]


def read(results: Results) -> Performance:
    """Grids and random searches. Where no grid has been begun, the small one of `nngp finite` is
    taken."""
    store, scope = results.store, results.scope
    trials = finished_trials(store, scope)
    small = store.runs(experiment=SMALL_GRID, status="done", where={"dataset": scope.dataset})
    curves = [_curve(results, name, trials, small) for name in scope.activations]
    shown = tuple(curve for curve in curves if curve.infinite or curve.finite)
    if not shown:
        raise NothingMeasuredError(
            f"the store has no finished networks on {scope.dataset} with these sizes and "
            "activations; run nngp reproduce first"
        )
    train = _training_set_of_widths({run.config["train"] for run in trials}, shown)
    lines = [_width_line(train, curve, trials) for curve in shown] if train else []
    return Performance(scope.dataset, shown, train, tuple(line for line in lines if line.points))


def _training_set_of_widths(trained: set[int], curves: Sequence[SizeCurve]) -> int | None:
    """The largest training set of finite networks on which there are infinite ones to compare them
    with, or the largest of all."""
    infinite = {point.at for curve in curves for point in curve.infinite}
    return max(trained & infinite or trained, default=None)


def _curve(
    results: Results, activation: str, trials: Sequence[Run], small: Sequence[Run]
) -> SizeCurve:
    sizes = sorted(results.scope.sizes)
    found = [best_trial(trials, train, activation) for train in sizes]
    infinite = [_infinite(results, train, activation, small) for train in sizes]
    return SizeCurve(
        activation,
        tuple(point for point in infinite if point),
        tuple(_finite(one, one.cell.train) for one in found if one),
        _published(results.scope, activation, finite=False),
        _published(results.scope, activation, finite=True),
    )


def _infinite(results: Results, train: int, activation: str, small: Sequence[Run]) -> Point | None:
    own = results.grids.of(train, activation)
    for best in by_validation(own):
        networks = sum(grid.networks for grid in own)
        return Point(train, best.test_accuracy, best.test_mse, networks)
    runs = [run for run in small if is_of(run, train, activation)]
    if not runs:
        return None
    most = max(map(judged_on, runs))
    runs = [run for run in runs if judged_on(run) == most]
    result = result_of(max(runs, key=rank))
    networks = sum(len(run.config["weight_vars"]) * len(run.config["bias_vars"]) for run in runs)
    return Point(train, result["test_accuracy"], result["test_mse"], networks)


def _finite(found: Found, at: int) -> Point:
    return Point(at, found.result["test_accuracy"], found.result["test_mse"], found.trials)


def _published(scope: Scope, activation: str, *, finite: bool) -> Points:
    sizes = sorted(scope.sizes)
    rows = [published_row(scope.dataset, train, activation, finite=finite) for train in sizes]
    return tuple(Point(row.train, row.test_accuracy) for row in rows if row)


def _width_line(train: int, curve: SizeCurve, trials: Sequence[Run]) -> WidthLine:
    found = best_of([run for run in trials if is_of(run, train, curve.activation)])
    by_width: dict[int, dict[int, Found]] = {}
    for one in found:
        by_width.setdefault(one.cell.width, {})[one.cell.depth] = one
    depths = _compared_depths([frozenset(own) for own in by_width.values()])
    points = [
        _finite(best_shape([own[depth] for depth in depths]), width)
        for width, own in sorted(by_width.items())
        if own.keys() >= set(depths)
    ]
    level = [point for point in curve.infinite if point.at == train]
    return WidthLine(curve.activation, depths, tuple(points), level[0] if level else None)


def _compared_depths(tried: Sequence[frozenset[int]]) -> tuple[int, ...]:
    """The depths at which widths are compared. Only widths that were tried at all of these are
    shown, as one that was tried at fewer would look worse than it is. Of the sets of depths that
    widths were `tried` at, the one is taken that leaves the most shapes, then the most widths."""

    def left(depths: frozenset[int]) -> tuple[int, int]:
        widths = sum(own >= depths for own in tried)
        return widths * len(depths), widths

    most = max(tried, key=left, default=frozenset[int]())
    return tuple(sorted(most))


def finding(data: Performance) -> str:
    """Infinite and finite networks on the largest training set, then the ends of the widths."""
    parts = [f"{curve.activation} {_compared(curve)}" for curve in data.curves]
    for line in data.widths:
        first, last = line.points[0], line.points[-1]
        parts.append(
            f"{line.activation} networks of {', '.join(map(str, line.depths))} layers with "
            f"{data.train:,} points: {percent(first.accuracy)} at width {first.at:,} and "
            f"{percent(last.accuracy)} at width {last.at:,}"
        )
    return sentence(parts)


def verdict(data: Performance) -> ClaimVerdict:
    """Whether the widest networks are nearer to the infinite one than the narrowest are."""
    lines = [line for line in data.widths if line.level and len(line.points) > 1]
    ends = [[abs(p.accuracy - line.level.accuracy) for p in line.points] for line in lines]  # type: ignore[union-attr]
    parts = [
        f"{line.activation} {100 * apart[0]:.2f} points at width {line.points[0].at:,} and "
        f"{100 * apart[-1]:.2f} at {line.points[-1].at:,}"
        for line, apart in zip(lines, ends, strict=True)
    ]
    words = "; ".join(parts) or "no widths were compared with the infinite network"
    return ClaimVerdict(
        share_word([apart[-1] < apart[0] for apart in ends]),
        f"Distance in accuracy from the infinite network: {words}.",
    )


def _compared(curve: SizeCurve) -> str:
    """Infinite and finite width at the largest training set that both have, or of one alone."""
    kinds = {
        kind: {point.at: point.accuracy for point in points}
        for kind, points in (("infinite", curve.infinite), ("finite", curve.finite))
        if points
    }
    shared = set.intersection(*map(set, kinds.values()))
    if not shared:
        return "has no training set on which both were tried"
    at = max(shared)
    reached = " and ".join(f"{kind} {percent(kinds[kind][at])}" for kind in kinds)
    return f"with {at:,} points: {reached}"


WIDTH, HEIGHT, POINTS = 7.2, 2.6, 9  # height of a row
MARKS = "osD^v<>"  # with the colours, they tell activations apart
INFINITE, FINITE = "--", "-"
PAPER: Style = {"mfc": "none", "lw": 0.7, "ms": 6.5, "zorder": 1.5}
ASIDE = 1.03  # between two activations, so that their marks lie side by side
MARGIN = 0.06  # of the height
Looks = dict[str, Style]  # by activation


def draw(data: Performance, path: str | Path | None = None, *, narrow: bool = False) -> Figure:
    """A colour and mark is an activation. Infinite networks are dashed, finite ones are on a whole
    line, and the paper's numbers are hollow. Without finite networks there is no lower row."""
    import matplotlib.pyplot as plt

    from nngp.plots.style import COLOURS, save

    looks = {
        curve.activation: {"color": COLOURS[i % len(COLOURS)], "marker": MARKS[i % len(MARKS)]}
        for i, curve in enumerate(data.curves)
    }
    rows = 2 if data.widths else 1
    with plt.rc_context({"font.size": POINTS}):
        figure, axes = plt.subplots(
            *(rows, 2), figsize=(WIDTH, 0.9 + HEIGHT * rows), squeeze=False, layout="constrained"
        )
        for column, score in enumerate(("accuracy", "mse")):
            _draw_sizes(axes[0, column], data, score, looks)
            if data.widths:
                _draw_widths(axes[1, column], data, score, looks)
        for left, right in axes:
            left.set_ylabel("test accuracy")
            right.set_ylabel("test mean squared error")
        axes[0, 1].set_xlim(axes[0, 0].get_xlim())
        figure.suptitle(_title(data), fontsize=POINTS + 1)
        figure.legend(
            handles=_legend(data, looks), loc="outside lower center", ncols=7, frameon=False
        )
        save(figure, path)
    return figure


def _draw_sizes(axes: Axes, data: Performance, score: str, looks: Looks) -> None:
    from nngp.plots.style import plain

    for i, curve in enumerate(data.curves):
        beside = ASIDE ** (i - (len(data.curves) - 1) / 2)
        look = looks[curve.activation]
        for points, line in ((curve.paper_infinite, INFINITE), (curve.paper_finite, FINITE)):
            _line(axes, points, score, {**look, "ls": line, **PAPER}, beside)
        for points, line in ((curve.infinite, INFINITE), (curve.finite, FINITE)):
            _line(axes, points, score, {**look, "ls": line, "lw": 1.3, "ms": 4}, beside)
    if score == "accuracy":
        _space_by_error(axes)
    axes.set(xscale="log", xlabel="training points")
    axes.xaxis.set_major_formatter(lambda size, _: f"{size:,.0f}")
    plain(axes)


def _draw_widths(axes: Axes, data: Performance, score: str, looks: Looks) -> None:
    from nngp.plots.style import width_axis

    for line in data.widths:
        look = looks[line.activation]
        _line(axes, line.points, score, {**look, "ls": FINITE, "lw": 1.3, "ms": 4.5})
        if line.level:
            axes.axhline(getattr(line.level, score), color=look["color"], lw=1.3, ls=INFINITE)
    width_axis(axes, sorted({point.at for line in data.widths for point in line.points}))


def _line(axes: Axes, points: Points, score: str, look: Style, beside: float = 1.0) -> None:
    """The points that have this score: the paper prints no errors."""
    known = [(point.at, value) for point in points if (value := getattr(point, score)) is not None]
    if known:
        places, values = zip(*known, strict=True)
        axes.plot(np.array(places) * beside, values, **look)


def _space_by_error(axes: Axes) -> None:
    """Space accuracies by the logarithm of the error: 0.97 and 0.98 differ as 0.7 and 0.8 do."""
    from nngp.plots.style import accuracy_ticks

    low, high = _height((axes.dataLim.y0, axes.dataLim.y1))
    room = MARGIN * max(high - low, 0.1)
    ends = _accuracy((low - room, high + room))
    axes.set_yscale("function", functions=(_height, _accuracy))
    axes.set_yticks(accuracy_ticks(1 - ends[1], 1 - ends[0]))
    axes.set_ylim(*ends)
    axes.yaxis.set_major_formatter(lambda accuracy, _: f"{accuracy:g}")


def _height(accuracy: ArrayLike) -> Array:
    return -np.log(np.maximum(1 - np.asarray(accuracy, float), 1e-6))


def _accuracy(height: ArrayLike) -> Array:
    return 1 - np.exp(-np.asarray(height, float))


def _title(data: Performance) -> str:
    infinite = [point for curve in data.curves for point in curve.infinite]
    finite = [point for curve in data.curves for point in curve.finite]
    parts = [
        f"{name}: best of {_range(points)}"
        for name, points in (("infinite", infinite), ("finite", finite))
        if points
    ]
    below = f"below, {data.train:,} training points" if data.widths else "no finite networks yet"
    return f"{data.dataset}, chosen by validation; {below}\n{'; '.join(parts)} networks"


def _range(points: Sequence[Point]) -> str:
    counts = [point.networks for point in points if point.networks is not None]
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _legend(data: Performance, looks: Looks) -> list["Line2D"]:
    """The marks that are there."""
    from matplotlib.lines import Line2D

    grey = "0.3"
    lines = [Line2D([], [], ls="none", label=name, **look) for name, look in looks.items()]
    for kind, line in (("infinite", INFINITE), ("finite", FINITE)):
        if any(getattr(curve, kind) or getattr(curve, f"paper_{kind}") for curve in data.curves):
            lines.append(Line2D([], [], color=grey, ls=line, label=kind))
    if any(curve.paper_infinite or curve.paper_finite for curve in data.curves):
        lines.append(Line2D([], [], color=grey, ls="none", marker="o", label="paper", **PAPER))
    return lines


PART = Part("fig1", CLAIM, (GRID_RUNS, FINITE_RUNS), read, finding, verdict, draw)
