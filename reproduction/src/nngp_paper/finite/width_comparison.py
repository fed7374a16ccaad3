"""Accuracy against width, finite networks beside the infinitely wide one (figure 1). Needs no JAX.

`infinite` computes the infinitely wide network as one run in the store for each training set,
activation and depth: the best of a small grid by validation. The grid spans the paper's ranges of
the two variances (app. D) in fewer steps than the paper's own grid, which is another experiment.
`widths` reads its run and the trials of finite networks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from nngp import Architecture, condition, forecast
from nngp_paper.datasets import Split
from nngp_paper.finite.cells import EXPERIMENT, Found, best_of, shared_values
from nngp_paper.finite.recipe import Plan
from nngp_paper.finite.screening import longest
from nngp_paper.ranges import BIAS_VAR_RANGE, WEIGHT_VAR_RANGE, evenly_spaced
from nngp_paper.runs import Run, RunStore
from nngp_paper.runs.study import Outcome, Study, carry_out
from nngp_paper.sweep import Sweep

INFINITE_EXPERIMENT = "infinite"
WEIGHT_VARS, BIAS_VARS = evenly_spaced(WEIGHT_VAR_RANGE, 10), evenly_spaced(BIAS_VAR_RANGE, 4)


@dataclass(frozen=True)
class WidthCurve:
    """Networks of one depth: all trials, the best of every width, and the infinitely wide one."""

    depth: int
    found: tuple[Found, ...]  # by width
    trials: tuple[tuple[int, float], ...]  # width, test accuracy
    infinite: Run | None


@dataclass(frozen=True)
class Widths:
    """Networks of one activation on one training set, a curve for each depth.

    Examples
    --------
    >>> from nngp_paper import datasets, finite
    >>> from nngp_paper.runs import RunStore
    >>> digits = datasets.split("digits", 100)
    >>> cell = finite.Cell("digits", 100, "relu", depth=1, width=16)
    >>> store = RunStore("runs.db")
    >>> plan = finite.Plan(steps=20, interval=10)
    >>> found = finite.search(store, [cell], digits, plan, trials=2, seed=9, progress=False)
    >>> compared = finite.widths(store, "digits", 100, "relu")
    >>> compared.trials, [best.cell.width for best in compared.curves[0].found]
    (2, [16])
    >>> store.close()
    """

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
    """Read the finished runs of all widths, of one plan or of all that share a loss. Of a trial
    that was trained by several plans, the run with the most steps counts.

    Examples
    --------
    >>> from nngp_paper import datasets, finite
    >>> from nngp_paper.runs import RunStore
    >>> digits = datasets.split("digits", 100)
    >>> cell = finite.Cell("digits", 100, "relu", depth=1, width=16)
    >>> store = RunStore("runs.db")
    >>> plan = finite.Plan(steps=20, interval=10)
    >>> found = finite.search(store, [cell], digits, plan, trials=2, seed=9, progress=False)
    >>> compared = finite.widths(store, "digits", 100, "relu")
    >>> [curve.depth for curve in compared.curves], compared.curves[0].infinite
    ([1], None)
    >>> store.close()
    """
    where = {"dataset": dataset, "train": train, "activation": activation}
    runs = store.runs(experiment=EXPERIMENT, status="done", where=where)
    runs = longest([run for run in runs if plan is None or Plan.of(run.config) == plan])
    if depths is not None:
        runs = [run for run in runs if run.config["depth"] in depths]
    if not runs:
        raise ValueError(
            f"the store has no finished trials of {activation} networks on {dataset} with {train} "
            "training points; run nngp-paper finite first"
        )
    shared = shared_values(runs, "validation", "test", "loss", "monitor")
    sizes = {name: shared[name] for name in ("validation", "test")}
    levels = store.runs(experiment=INFINITE_EXPERIMENT, status="done", where={**where, **sizes})
    known = sorted({run.config["depth"] for run in runs})
    curves = [_curve(depth, runs, levels) for depth in known]
    return Widths(dataset, train, activation, tuple(curves))


def _curve(depth: int, runs: Sequence[Run], levels: Sequence[Run]) -> WidthCurve:
    own = [run for run in runs if run.config["depth"] == depth]
    level = [run for run in levels if run.config["depth"] == depth]
    trials = tuple((run.config["width"], run.result["test_accuracy"]) for run in own if run.result)
    return WidthCurve(depth, tuple(best_of(own)), trials, level[-1] if level else None)


def infinite(
    store: RunStore, data: Split, activation: str, depth: int, *, engine: str = "auto"
) -> Run:
    """The run of the infinitely wide network, computed now unless the store has it.

    Examples
    --------
    >>> from nngp_paper import datasets, finite
    >>> from nngp_paper.runs import RunStore
    >>> digits = datasets.split("digits", 100)
    >>> with RunStore("runs.db") as store:
    ...     run = finite.infinite(store, digits, "relu", depth=1)
    >>> run.result["test_accuracy"] > 0.8
    True
    """
    Architecture(depth, activation)  # raises ValueError before a wrong run is declared
    config = {
        "dataset": data.name,
        "train": len(data.X),
        "validation": len(data.X_val),
        "test": len(data.X_test),
        "activation": activation,
        "depth": depth,
        "weight_vars": WEIGHT_VARS,
        "bias_vars": BIAS_VARS,
    }
    study = Study(INFINITE_EXPERIMENT, [config], lambda _: _best(data, activation, depth, engine))
    (key,) = carry_out(store, study, progress=False)
    run = store.get(key)
    if run.status == "failed":
        raise RuntimeError(f"{run.error}; nngp-paper runs --retry-failed has it tried again")
    return run


def _best(data: Split, activation: str, depth: int, engine: str) -> Outcome:
    """Choose a network on validation, and score it on test."""
    Y = data.targets(data.labels)
    sweep = Sweep(data.X, Y, data.X_val, data.targets(data.labels_val), engine=engine)
    grid = [Architecture(depth, activation, *pair) for pair in product(WEIGHT_VARS, BIAS_VARS)]
    scores = [score for score in sweep.run(grid) if not score.error]
    if not scores:
        raise ArithmeticError(f"no {activation} network of depth {depth} on the grid has a kernel")
    best = max(scores, key=lambda score: (score.accuracy, -score.mse))
    assert isinstance(best.architecture, Architecture)
    mean = condition(best.architecture, data.X, Y, engine=engine).mean(data.X_test)
    error = np.mean((mean - data.targets(data.labels_test)) ** 2)
    result = {
        "weight_var": best.architecture.weight_var,
        "bias_var": best.architecture.bias_var,
        "val_accuracy": best.accuracy,
        "val_mse": best.mse,
        "test_accuracy": float(np.mean(mean.argmax(axis=1) == data.labels_test)),
        "test_mse": float(error),
    }
    device = forecast(len(data.X), 1, engine=engine).engine
    return Outcome(result, device, best.noise_var)
