"""Figure 1: accuracy and error against the number of training points, and against the width.

A network is chosen by what it is judged by: accuracies are those of networks with the highest
validation accuracy, errors those of networks with the lowest validation error.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from nngp_paper.arrays import Array
from nngp_paper.errors import NothingMeasuredError
from nngp_paper.experiment import result_of
from nngp_paper.finite.cells import least_error, most_accurate, scores_of
from nngp_paper.finite.width_comparison import INFINITE_EXPERIMENT as SMALL_GRID
from nngp_paper.grids.arrays import judged_on
from nngp_paper.grids.choice import by_error, by_validation
from nngp_paper.grids.study import GRID_RUNS
from nngp_paper.part import Axes, Claim, Figure, Part, Results, Style
from nngp_paper.published import published_row
from nngp_paper.runs import Run
from nngp_paper.scope import Scope
from nngp_paper.shared.searches import FINITE_RUNS, best_trial, finished_trials, is_of
from nngp_paper.shared.words import percent, sentence
from nngp_paper.verdict import ClaimVerdict, share_word

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure
    from matplotlib.lines import Line2D

CLAIM = Claim(
    title="performance against training size and width",
    paper="The infinitely wide network often outperforms finite width networks, and these resemble "
    "it more closely with increasing width: test accuracy and mean squared error.",
    look="Above, against training points. Below, against width, one line for each training size: "
    "what the best trained network of that width has, over what the infinite network has. At 1 "
    "they are level. Widths are shown whose best trials were trained for as many steps as any. "
    "Accuracies are of networks chosen by validation accuracy, errors of networks chosen by "
    "validation error; the last column shows the errors of those chosen by accuracy.",
    beside="Hollow marks are the paper's.",
)


LATE = 0.05  # of the steps that were allowed


@dataclass(frozen=True)
class Point:
    """Test scores of networks chosen by validation: accuracy by accuracy, mean squared error by
    error; `careless_mse` is the error of the one chosen by accuracy. `networks` counts those that
    were chosen from. Of trained networks, `best_step` is the later of the steps of the highest
    accuracy and of the lowest error, and `steps` how many were allowed. The paper's points have an
    accuracy only."""

    at: int  # training points, or width
    accuracy: float
    mse: float | None = None
    careless_mse: float | None = None
    networks: int | None = None
    best_step: int | None = None
    steps: int | None = None

    @property
    def late(self) -> bool:
        """Whether the best step is among the last that were allowed."""
        if self.best_step is None or self.steps is None:
            return False
        return self.best_step >= (1 - LATE) * self.steps


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
    """Networks of one activation and training set against their width, the best of all depths at
    each, and the infinite network, the best of all depths that it was tried with."""

    activation: str
    train: int
    points: Points
    level: Point

    def ratios(self, score: "Criterion") -> Array:
        """Ratio of finite networks to the infinite one, by width."""
        return np.array([score.of(point) for point in self.points]) / score.of(self.level)


@dataclass(frozen=True)
class Criterion:
    """A score that is lower for better networks: its words, and how it is read from a point."""

    words: str
    of: Callable[[Point], float]


CLEARLY = 0.75  # of the cases
WRONG = Criterion("error rate", lambda point: max(1 - point.accuracy, 1e-6))
ERROR = Criterion("squared error", lambda point: point.mse or math.nan)
CARELESS = Criterion(
    "squared error,\nchosen by accuracy", lambda point: point.careless_mse or math.nan
)
SCORES = WRONG, ERROR, CARELESS


@dataclass(frozen=True)
class Performance:
    """Figure 1 of a data set; there are no `widths` without finite networks."""

    dataset: str
    curves: tuple[SizeCurve, ...]
    widths: tuple[WidthLine, ...]


def read(results: Results) -> Performance:
    """Grids and random searches. Where no grid has been begun, the small one of
    `nngp-paper finite` is taken."""
    store, scope = results.store, results.scope
    trials = finished_trials(store, scope)
    small = store.runs(experiment=SMALL_GRID, status="done", where={"dataset": scope.dataset})
    curves = [_curve(results, name, trials, small) for name in scope.activations]
    shown = tuple(curve for curve in curves if curve.infinite or curve.finite)
    if not shown:
        raise NothingMeasuredError(
            f"the store has no finished networks on {scope.dataset} with these sizes and "
            "activations; run nngp-paper reproduce first"
        )
    lines = [_width_line(level, curve, trials) for curve in shown for level in curve.infinite]
    return Performance(scope.dataset, shown, tuple(line for line in lines if line.points))


def _curve(
    results: Results, activation: str, trials: Sequence[Run], small: Sequence[Run]
) -> SizeCurve:
    sizes = sorted(results.scope.sizes)
    finite = [_finite(trials, train, activation, train) for train in sizes]
    infinite = [_infinite(results, train, activation, small) for train in sizes]
    return SizeCurve(
        activation,
        tuple(point for point in infinite if point),
        tuple(point for point in finite if point),
        _published(results.scope, activation, finite=False),
        _published(results.scope, activation, finite=True),
    )


def _infinite(results: Results, train: int, activation: str, small: Sequence[Run]) -> Point | None:
    own = results.grids.of(train, activation)
    for best, lowest in zip(by_validation(own), by_error(own), strict=True):
        networks = sum(grid.networks for grid in own)
        return Point(train, best.test_accuracy, lowest.test_mse, best.test_mse, networks)
    runs = [run for run in small if is_of(run, train, activation)]
    if not runs:
        return None
    most = max(map(judged_on, runs))
    runs = [run for run in runs if judged_on(run) == most]
    result, lowest_of = (result_of(max(runs, key=rank)) for rank in (most_accurate, least_error))
    networks = sum(len(run.config["weight_vars"]) * len(run.config["bias_vars"]) for run in runs)
    errors = lowest_of["test_mse"], result["test_mse"]
    return Point(train, result["test_accuracy"], *errors, networks)


def _finite(
    trials: Sequence[Run], train: int, activation: str, at: int, width: int | None = None
) -> Point | None:
    best = best_trial(trials, train, activation, most_accurate, width)
    lowest = best_trial(trials, train, activation, least_error, width)
    if best is None or lowest is None:
        return None
    scores, error = scores_of(best.best, "accuracy"), scores_of(lowest.best, "error")["test_mse"]
    late = [best.result.get("best_step"), lowest.result.get("least_loss_step")]
    steps = (
        max((step for step in late if step is not None), default=None),
        best.best.config["steps"],
    )
    return Point(at, scores["test_accuracy"], error, scores["test_mse"], best.trials, *steps)


def _published(scope: Scope, activation: str, *, finite: bool) -> Points:
    sizes = sorted(scope.sizes)
    rows = [published_row(scope.dataset, train, activation, finite=finite) for train in sizes]
    return tuple(Point(row.train, row.test_accuracy) for row in rows if row)


def _width_line(level: Point, curve: SizeCurve, trials: Sequence[Run]) -> WidthLine:
    own = _trained_longest([run for run in trials if is_of(run, level.at, curve.activation)])
    widths = sorted({run.config["width"] for run in own})
    points = [_finite(own, level.at, curve.activation, width, width) for width in widths]
    shown = tuple(point for point in points if point)
    return WidthLine(curve.activation, level.at, shown, level)


def _trained_longest(runs: Sequence[Run]) -> list[Run]:
    """Runs of the plan with the most steps: a width whose networks were trained for fewer steps
    would look worse than it is."""
    most = max((run.config["steps"] for run in runs), default=0)
    return [run for run in runs if run.config["steps"] == most]


def finding(data: Performance) -> str:
    """Infinite and finite networks on the largest training set, then the ratios of the two by
    width, and what they were chosen from."""
    sentences = [sentence([f"{curve.activation} {_compared(curve)}" for curve in data.curves])]
    for score in SCORES:
        near, _, lines = nearer(data, score)
        if lines:
            words = score.words.replace("\n", " ").capitalize()
            sentences.append(
                f"{words}: in the mean {_by_width(data, score)} times that of the infinite "
                f"network, and nearer to it at the largest width than at the smallest in {near} of "
                f"{lines} cases."
            )
    return " ".join([*sentences, *_trained(data)])


def mean_ratios(data: Performance, score: Criterion) -> dict[int, float]:
    """Geometric means of the ratios of finite to infinite networks, by width."""
    logs: dict[int, list[float]] = {}
    for line in data.widths:
        for point, ratio in zip(line.points, line.ratios(score), strict=True):
            if math.isfinite(ratio):
                logs.setdefault(point.at, []).append(math.log(ratio))
    return {width: math.exp(float(np.mean(logs[width]))) for width in sorted(logs)}


def _by_width(data: Performance, score: Criterion) -> str:
    means = mean_ratios(data, score)
    return ", ".join(f"{ratio:.2f} (width {width:,})" for width, ratio in means.items())


def _trained(data: Performance) -> list[str]:
    """From how many networks those of each width were chosen, and how many were at their best when
    training had to end."""
    points = [point for line in data.widths for point in line.points]
    if not points:
        return []
    counts: dict[int, list[int]] = {}
    for point in points:
        counts.setdefault(point.at, []).append(point.networks or 0)
    chosen = ", ".join(f"{_span(counts[width])} (width {width:,})" for width in sorted(counts))
    parts = [f"On each training set these are the best of so many trained networks: {chosen}."]
    steps = [point.steps for point in points if point.steps and point.best_step is not None]
    if len(steps) == len(points):
        late = sum(point.late for point in points)
        parts.append(
            f"{late} of {len(points)} had the highest accuracy or the lowest error within the last "
            f"{LATE:.0%} of the {_span(steps)} steps that were allowed."
        )
    return parts


def _span(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def nearer(data: Performance, score: Criterion) -> tuple[int, tuple[float, float], int]:
    """In how many of the lines the widest network is nearer to the infinite one than the narrowest;
    geometric means of the ratios at both ends; the number of lines with two widths or more."""
    ends = [line.ratios(score)[[0, -1]] for line in data.widths if len(line.points) > 1]
    ends = [pair for pair in ends if np.isfinite(pair).all()]
    if not ends:
        return 0, (math.nan, math.nan), 0
    logs = np.log(np.array(ends))
    first, last = np.exp(logs.mean(axis=0)).tolist()
    return int((abs(logs[:, 1]) < abs(logs[:, 0])).sum()), (first, last), len(ends)


def better(data: Performance, score: Criterion) -> tuple[int, int]:
    """In how many of the lines the infinite network is better than the best trained width, of how
    many lines."""
    best = [np.nanmin(line.ratios(score)) for line in data.widths]
    return int(sum(ratio > 1 for ratio in best)), len(best)


def verdict(data: Performance) -> ClaimVerdict:
    """Both halves of the claim, in both scores: whether the infinite network is mostly better than
    the best trained one, and the widest nearer to it than the narrowest clearly more often than by
    chance."""
    found = {score.words: nearer(data, score) for score in (WRONG, ERROR)}
    if not any(lines for *_, lines in found.values()):
        return ClaimVerdict("not measured", "No widths were compared with the infinite network.")
    wins = {score.words: better(data, score) for score in (WRONG, ERROR)}
    held = [2 * won > lines for won, lines in wins.values()]
    held += [near >= CLEARLY * lines for near, _, lines in found.values()]
    beats = [f"{won} of {lines} cases by {words}" for words, (won, lines) in wins.items()]
    nears = [f"{near} of {lines} by {words}" for words, (near, _, lines) in found.items()]
    ratios = [f"{ratio:.2f} (width {width:,})" for width, ratio in mean_ratios(data, ERROR).items()]
    return ClaimVerdict(
        share_word(held),
        f"The infinite network is better than the best trained one in {' and in '.join(beats)}. "
        f"Squared error of the best of a width, over that of the infinite network, in the mean: "
        f"{', '.join(ratios)}. The widest network is nearer to it than the "
        f"narrowest in {', '.join(nears)} (chance: half of them).",
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


WIDTH, NARROW, POINTS = 7.2, 3.8, 9
HEIGHT, LOW = 2.6, 2.1  # of a row of panels against training points, and against width
MARKS = "osD^v<>"  # with the colours, they tell activations apart
INFINITE, FINITE = "--", "-"
PAPER: Style = {"mfc": "none", "lw": 0.7, "ms": 6.5, "zorder": 1.5}
ASIDE = 1.03  # between two activations, so that their marks lie side by side
MARGIN = 0.06  # of the height
SIZES = "viridis_r"  # colours of training sizes, the largest dark
Looks = dict[str, Style]  # by activation


def draw(data: Performance, path: str | Path | None = None, /, *, narrow: bool = False) -> Figure:
    """Above, a colour and mark is an activation: infinite networks are dashed, finite ones are on a
    whole line, and the paper's numbers are hollow. Below, a row is an activation, and a colour a
    training size. Narrow, panels stand below each other."""
    import matplotlib.pyplot as plt

    from nngp_paper.plots.style import COLOURS, save

    looks = {
        curve.activation: {"color": COLOURS[i % len(COLOURS)], "marker": MARKS[i % len(MARKS)]}
        for i, curve in enumerate(data.curves)
    }
    names = list(dict.fromkeys(line.activation for line in data.widths))
    above, below = (2, len(SCORES)) if narrow else (1, 1)
    heights = [0.9 + HEIGHT * above, *[0.5 + LOW * below] * len(names)]
    with plt.rc_context({"font.size": POINTS}):
        size = NARROW if narrow else WIDTH, sum(heights) + 0.4
        figure = plt.figure(figsize=size, layout="constrained")
        rows = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False).ravel()
        _draw_sizes(rows[0], data, looks, above)
        for row, name in zip(rows[1:], names, strict=True):
            lines = [line for line in data.widths if line.activation == name]
            _draw_widths(row, name, lines, below)
        save(figure, path)
    return figure


def _draw_sizes(figure: "SubFigure", data: Performance, looks: Looks, rows: int) -> None:
    panels = figure.subplots(rows, 2 // rows, squeeze=False).ravel()
    for axes, score in zip(panels, ("accuracy", "mse"), strict=True):
        _draw_score(axes, data, score, looks)
    panels[0].set_ylabel("test accuracy")
    panels[1].set_ylabel("test mean squared error")
    panels[1].set_xlim(panels[0].get_xlim())
    figure.suptitle(_title(data, narrow=rows > 1), fontsize=POINTS + 1)
    figure.legend(
        handles=_legend(data, looks),
        loc="outside lower center",
        ncols=8 // rows,
        frameon=False,
        columnspacing=1.2,
    )


def _draw_score(axes: Axes, data: Performance, score: str, looks: Looks) -> None:
    from nngp_paper.plots.style import plain

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


def _draw_widths(figure: "SubFigure", name: str, lines: Sequence[WidthLine], rows: int) -> None:
    from matplotlib import colormaps

    from nngp_paper.plots.style import width_axis

    panels = figure.subplots(rows, len(SCORES) // rows, squeeze=False).ravel()
    colours = colormaps[SIZES](np.linspace(0.1, 1, len(lines)))
    for axes, score in zip(panels, SCORES, strict=True):
        for line, colour in zip(lines, colours, strict=True):
            places = [point.at for point in line.points]
            axes.plot(places, line.ratios(score), "o-", color=colour, lw=1.2, ms=3.5)
        axes.axhline(1, color="0.3", lw=1.0, ls=INFINITE)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda ratio, _: f"{ratio:g}")
        axes.yaxis.set_minor_formatter("")
        axes.set_yticks(_ratio_ticks(*axes.get_ylim()))
        axes.set_title(score.words, fontsize=POINTS)
        width_axis(axes, sorted({point.at for line in lines for point in line.points}))
    panels[0].set_ylabel(f"{name}: finite / infinite")
    _size_legend(figure, lines, colours, columns=9 if rows == 1 else 5)


def _ratio_ticks(low: float, high: float) -> list[float]:
    """Some round ratios within the limits; 1 is always among them."""
    known = (0.25, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.5, 2, 3, 4, 6, 10)
    inside = [tick for tick in known if low <= tick <= high]
    fine = high / low < 2
    return [tick for tick in inside if fine or tick not in (0.8, 0.9, 1.1, 1.2)] or [1]


def _size_legend(
    figure: "SubFigure", lines: Sequence[WidthLine], colours: Array, columns: int
) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colour, marker="o", ms=3.5, lw=1.2, label=f"{line.train:,}")
        for line, colour in zip(lines, colours, strict=True)
    ]
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        columnspacing=1.0,
        handlelength=1.2,
    )


def _line(axes: Axes, points: Points, score: str, look: Style, beside: float = 1.0) -> None:
    """The points that have this score: the paper prints no errors."""
    known = [(point.at, value) for point in points if (value := getattr(point, score)) is not None]
    if known:
        places, values = zip(*known, strict=True)
        axes.plot(np.array(places) * beside, values, **look)


def _space_by_error(axes: Axes) -> None:
    """Space accuracies by the logarithm of the error: 0.97 and 0.98 differ as 0.7 and 0.8 do."""
    from nngp_paper.plots.style import accuracy_ticks

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


def _title(data: Performance, *, narrow: bool) -> str:
    infinite = [point for curve in data.curves for point in curve.infinite]
    finite = [point for curve in data.curves for point in curve.finite]
    parts = [
        f"{name}: best of {_range(points)}"
        for name, points in (("infinite", infinite), ("finite", finite))
        if points
    ]
    between = "\n" if narrow else "; "
    missing = "" if data.widths else f"{between}no finite networks yet"
    chosen = f"{data.dataset}, chosen by validation{missing}"
    return f"{chosen}\n{between.join(parts)} networks"


def _range(points: Sequence[Point]) -> str:
    return _span([point.networks for point in points if point.networks is not None])


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
