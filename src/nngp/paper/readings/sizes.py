"""Figure 1: accuracy and error against the number of training points, and against the width."""

from collections.abc import Sequence
from dataclasses import dataclass

from nngp.errors import NothingMeasuredError
from nngp.finite.cells import Found, best_of, rank
from nngp.finite.infinite_width import EXPERIMENT as SMALL_GRID
from nngp.paper.published import published_row
from nngp.paper.readings.choice import by_validation
from nngp.paper.readings.grids import Grids, judged_on, read_grids
from nngp.paper.readings.searched import best_shape, best_trial, finite_runs, is_of
from nngp.paper.scope import Scope
from nngp.runs import Run, RunStore


@dataclass(frozen=True)
class Point:
    """What the best by validation reaches on test, and how many networks it was chosen from. The
    paper's points have neither an error nor a number of networks."""

    at: int  # training points, or width
    accuracy: float
    mse: float | None = None
    networks: int | None = None


@dataclass(frozen=True)
class SizeCurve:
    """One activation against the number of training points; any of these may be empty."""

    activation: str
    infinite: tuple[Point, ...]
    finite: tuple[Point, ...]
    paper_infinite: tuple[Point, ...]
    paper_finite: tuple[Point, ...]


@dataclass(frozen=True)
class WidthLine:
    """One activation against the width, the best of `depths` at each, and the infinite network, the
    best of all depths that it was tried with."""

    activation: str
    depths: tuple[int, ...]
    points: tuple[Point, ...]
    level: Point | None


@dataclass(frozen=True)
class Sizes:
    """Figure 1 of a data set. `train` is the training set of the widths; None if there are no
    finite networks."""

    dataset: str
    curves: tuple[SizeCurve, ...]
    train: int | None
    widths: tuple[WidthLine, ...]


def sizes(store: RunStore, scope: Scope, grids: Grids | None = None) -> Sizes:
    """Read grids and random searches. Where no grid has been begun, the small one that goes with
    `nngp finite` stands in for it."""
    own, trials = grids or read_grids(store, scope), finite_runs(store, scope)
    where = {"dataset": scope.dataset}
    small = store.runs(experiment=SMALL_GRID, status="done", where=where)
    curves = [_curve(scope, name, own, trials, small) for name in scope.activations]
    shown = tuple(curve for curve in curves if curve.infinite or curve.finite)
    if not shown:
        raise NothingMeasuredError(
            f"the store has no finished networks on {scope.dataset} with these sizes and "
            "activations; run nngp reproduce first"
        )
    train = _of_widths({run.config["train"] for run in trials}, shown)
    lines = [_width_line(train, curve, trials) for curve in shown] if train else []
    return Sizes(scope.dataset, shown, train, tuple(line for line in lines if line.points))


def _of_widths(trained: set[int], curves: Sequence[SizeCurve]) -> int | None:
    """The largest training set of finite networks on which there are infinite ones to compare them
    with, or the largest of all."""
    infinite = {point.at for curve in curves for point in curve.infinite}
    return max(trained & infinite or trained, default=None)


def _curve(
    scope: Scope, activation: str, grids: Grids, trials: Sequence[Run], small: Sequence[Run]
) -> SizeCurve:
    sizes = sorted(scope.sizes)
    found = [best_trial(trials, train, activation) for train in sizes]
    infinite = [_infinite(train, activation, grids, small) for train in sizes]
    return SizeCurve(
        activation,
        tuple(point for point in infinite if point),
        tuple(_finite(one, one.cell.train) for one in found if one),
        _paper(scope, activation, finite=False),
        _paper(scope, activation, finite=True),
    )


def _infinite(train: int, activation: str, grids: Grids, small: Sequence[Run]) -> Point | None:
    own = grids.of(train, activation)
    for best in by_validation(own):
        networks = sum(grid.networks for grid in own)
        return Point(train, best.test_accuracy, best.test_mse, networks)
    runs = [run for run in small if is_of(run, train, activation)]
    if not runs:
        return None
    most = max(map(judged_on, runs))
    runs = [run for run in runs if judged_on(run) == most]
    result = max(runs, key=rank).result or {}
    networks = sum(len(run.config["weight_vars"]) * len(run.config["bias_vars"]) for run in runs)
    return Point(train, result["test_accuracy"], result["test_mse"], networks)


def _finite(found: Found, at: int) -> Point:
    result = found.result
    return Point(at, result["test_accuracy"], result["test_mse"], found.trials)


def _paper(scope: Scope, activation: str, *, finite: bool) -> tuple[Point, ...]:
    rows = [
        published_row(scope.dataset, train, activation, finite=finite)
        for train in sorted(scope.sizes)
    ]
    return tuple(Point(row.train, row.test_accuracy) for row in rows if row)


def _width_line(train: int, curve: SizeCurve, trials: Sequence[Run]) -> WidthLine:
    found = best_of([run for run in trials if is_of(run, train, curve.activation)])
    by_width: dict[int, dict[int, Found]] = {}
    for one in found:
        by_width.setdefault(one.cell.width, {})[one.cell.depth] = one
    depths = _compared([frozenset(own) for own in by_width.values()])
    points = [
        _finite(best_shape([own[depth] for depth in depths]), width)
        for width, own in sorted(by_width.items())
        if own.keys() >= set(depths)
    ]
    level = [point for point in curve.infinite if point.at == train]
    return WidthLine(curve.activation, depths, tuple(points), level[0] if level else None)


def _compared(tried: Sequence[frozenset[int]]) -> tuple[int, ...]:
    """The depths at which widths are compared. All have been tried at each of them, as a width that
    was tried at fewer would look worse than it is; other widths are left out. Of what widths have
    been `tried` at, that is taken which leaves the most shapes, and then the most widths."""

    def left(depths: frozenset[int]) -> tuple[int, int]:
        widths = sum(own >= depths for own in tried)
        return widths * len(depths), widths

    most = max(tried, key=left, default=frozenset[int]())
    return tuple(sorted(most))
