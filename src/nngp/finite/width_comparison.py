"""Figure 1 as a store knows it: accuracy against width, finite networks beside the infinite."""

from collections.abc import Sequence
from dataclasses import dataclass

from nngp.finite.cells import EXPERIMENT, Found, best_of, shared_values
from nngp.finite.infinite_width import EXPERIMENT as INFINITE
from nngp.finite.recipe import Plan
from nngp.runs import Run, RunStore


@dataclass(frozen=True)
class WidthCurve:
    """Networks of one depth: all trials, the best of every width, and the infinitely wide one."""

    depth: int
    found: tuple[Found, ...]  # by width
    trials: tuple[tuple[int, float], ...]  # width, test accuracy
    infinite: Run | None


@dataclass(frozen=True)
class Widths:
    """One training set and activation; `trials` is the fewest that a width was chosen from."""

    dataset: str
    train: int
    activation: str
    curves: tuple[WidthCurve, ...]

    @property
    def trials(self) -> int:
        """The fewest trials that the best of a width was chosen from."""
        return min(found.trials for curve in self.curves for found in curve.found)


def widths(
    store: RunStore,
    dataset: str,
    train: int,
    activation: str,
    depths: Sequence[int] | None = None,
    plan: Plan | None = None,
) -> Widths:
    """Read the finished runs of every width that there is, of one plan: the one that is given, or
    the only one that the store has."""
    where = {"dataset": dataset, "train": train, "activation": activation}
    own = {**where, **(plan.as_dict() if plan else {})}
    runs = store.runs(experiment=EXPERIMENT, status="done", where=own, lists=False)
    if depths is not None:
        runs = [run for run in runs if run.config["depth"] in depths]
    if not runs:
        raise ValueError(
            f"the store has no finished trials of {activation} networks on {dataset} with {train} "
            "training points; run nngp finite first"
        )
    sizes = shared_values(runs, "validation", "test")
    levels = store.runs(experiment=INFINITE, status="done", where={**where, **sizes})
    known = sorted({run.config["depth"] for run in runs})
    curves = [_curve(depth, runs, levels) for depth in known]
    return Widths(dataset, train, activation, tuple(curves))


def _curve(depth: int, runs: Sequence[Run], levels: Sequence[Run]) -> WidthCurve:
    own = [run for run in runs if run.config["depth"] == depth]
    level = [run for run in levels if run.config["depth"] == depth]
    trials = tuple((run.config["width"], run.result["test_accuracy"]) for run in own if run.result)
    return WidthCurve(depth, tuple(best_of(own)), trials, level[-1] if level else None)
