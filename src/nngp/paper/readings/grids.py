"""The grids over the two variances (app. D) as arrays: experiment "grid", one run for each strip.

A data set's strips are read once, and every table and figure is made from what that gives.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nngp.errors import NothingMeasuredError
from nngp.paper.scope import Scope
from nngp.runs import Run, RunStore

EXPERIMENT = "grid"
SCORES = ("val_accuracy", "val_mse", "test_accuracy", "test_mse", "log_evidence", "noise_var")
DIGITS = 4  # of the variances, which are names of runs (scope.py)

Array = NDArray[np.float64]
Name = tuple[int, str, int]  # training points, activation, depth


@dataclass(frozen=True)
class Grid:
    """Networks of one depth and activation on one training set, for W weight variances times B bias
    variances. Scores are (W, B), NaN where a network was not run or has no kernel; `tried` says
    which were run."""

    train: int
    activation: str
    depth: int
    validation: int
    test: int
    weight_vars: Array
    bias_vars: Array
    scores: Mapping[str, Array]
    tried: NDArray[np.bool_]
    seconds: float
    devices: tuple[str, ...]

    @property
    def networks(self) -> int:
        """How many were run."""
        return int(self.tried.sum())

    @property
    def wanted(self) -> int:
        """How many the whole grid has."""
        return self.tried.size

    @property
    def complete(self) -> bool:
        """Whether all were run."""
        return bool(self.tried.all())


@dataclass(frozen=True)
class Grids:
    """All grids of a scope that have been begun, by training points, activation and depth."""

    scope: Scope
    by_name: Mapping[Name, Grid]

    def of(self, train: int, activation: str) -> tuple[Grid, ...]:
        """All depths of an activation on one training set, the shallowest first."""
        found = [self.get(train, activation, depth) for depth in sorted(self.scope.depths)]
        return tuple(grid for grid in found if grid is not None)

    def get(self, train: int, activation: str, depth: int) -> Grid | None:
        """One of them, if it has been begun."""
        return self.by_name.get((train, activation, depth))


def read_grids(store: RunStore, scope: Scope) -> Grids:
    """Everything that the store has of the scope's grids, which may be nothing. Where networks of a
    training set were judged on test sets of different sizes, those of the largest count: networks
    of all depths and activations are compared with each other."""
    where = {"dataset": scope.dataset}
    runs = store.runs(experiment=EXPERIMENT, status="done", where=where)
    own = [run for run in runs if _inside(run.config, scope)]
    judged: dict[int, tuple[int, int]] = {}
    for run in own:
        train = run.config["train"]
        judged[train] = max(judged_on(run), judged.get(train, (0, 0)))
    by_name: dict[Name, list[Run]] = {}
    for run in own:
        name = (run.config["train"], run.config["activation"], run.config["depth"])
        if judged_on(run) == judged[name[0]]:
            by_name.setdefault(name, []).append(run)
    return Grids(scope, {name: _grid(name, strips, scope) for name, strips in by_name.items()})


def no_grids(scope: Scope) -> NothingMeasuredError:
    """What figures of grids say where there are none."""
    return NothingMeasuredError(
        f"the store has no finished grids on {scope.dataset} with these sizes, depths and "
        "activations; run nngp reproduce first"
    )


def judged_on(run: Run) -> tuple[int, int]:
    """The test and validation points of a run: others are not to be compared with it."""
    return run.config["test"], run.config["validation"]


def _inside(config: Mapping[str, Any], scope: Scope) -> bool:
    """Whether a strip is of the scope, and has networks on its grid."""
    return (
        config["train"] in scope.sizes
        and config["activation"] in scope.activations
        and config["depth"] in scope.depths
        and round(config["weight_var"], DIGITS) in scope.weight_vars
        and any(round(value, DIGITS) in scope.bias_vars for value in config["bias_vars"])
    )


def _grid(name: Name, strips: list[Run], scope: Scope) -> Grid:
    test, validation = judged_on(strips[0])
    shape = len(scope.weight_vars), len(scope.bias_vars)
    scores = {score: np.full(shape, np.nan) for score in SCORES}
    tried = np.zeros(shape, bool)
    rows, columns = _places(scope.weight_vars), _places(scope.bias_vars)
    for run in strips:
        _fill(scores, tried, rows[round(run.config["weight_var"], DIGITS)], columns, run)
    return Grid(
        *name,
        validation=validation,
        test=test,
        weight_vars=np.array(scope.weight_vars),
        bias_vars=np.array(scope.bias_vars),
        scores=scores,
        tried=tried,
        seconds=sum(run.seconds or 0.0 for run in strips),
        devices=tuple(sorted({run.device for run in strips})),
    )


def _fill(
    scores: Mapping[str, Array],
    tried: NDArray[np.bool_],
    row: int,
    columns: Mapping[float, int],
    run: Run,
) -> None:
    """Put one strip into its row; what is not on the scope's grid is left out."""
    values = [round(value, DIGITS) for value in run.config["bias_vars"]]
    kept = [i for i, value in enumerate(values) if value in columns]
    where = [columns[values[i]] for i in kept]
    tried[row, where] = True
    result: Mapping[str, Any] = run.result or {}
    for score, table in scores.items():
        table[row, where] = np.array(result[score], float)[kept]  # None becomes NaN


def _places(values: Iterable[float]) -> dict[float, int]:
    return {round(value, DIGITS): i for i, value in enumerate(values)}
