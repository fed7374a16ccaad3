"""Grids over the two variances as arrays, read from the strips in the store.

A strip is a run of the experiment "grid": the networks of one depth and weight variance, for all
bias variances.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nngp_paper.arrays import Array, Mask
from nngp_paper.errors import NothingMeasuredError
from nngp_paper.experiment import Config, result_of
from nngp_paper.runs import Run, RunStore
from nngp_paper.scope import Scope

EXPERIMENT = "grid"
RELATIVE = "relative_grid"  # the same with noise relative to each kernel's scale
AUTHORS = "authors_grid"  # the same with the kernel of the authors' look-up table
SCORES = ("val_accuracy", "val_mse", "test_accuracy", "test_mse", "log_evidence", "noise_var")
DIGITS = 4  # decimals of the variances, as in scope.py

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
    tried: Mask
    asked: Mask  # networks of the scope: all, or a coarser grid
    seconds: float
    devices: tuple[str, ...]

    @property
    def networks(self) -> int:
        """Number of networks that were run."""
        return int(self.tried.sum())

    @property
    def wanted(self) -> int:
        """Number of networks that the scope asks for, and of others that were run."""
        return int((self.asked | self.tried).sum())

    @property
    def complete(self) -> bool:
        """Whether all networks that the scope asks for were run."""
        return self.networks == self.wanted


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
        """One grid, if it has been begun."""
        return self.by_name.get((train, activation, depth))

    def row_complete(self, train: int, activation: str) -> bool:
        """Whether the grids of all depths are complete."""
        own = self.of(train, activation)
        return len(own) == len(self.scope.depths) and all(grid.complete for grid in own)

    def row_wanted(self, train: int, activation: str) -> int:
        """Number of networks of all depths, those of grids that have not been begun included."""
        own = {depth: self.get(train, activation, depth) for depth in self.scope.depths}
        return sum(
            grid.wanted if grid else self.scope.networks(activation, depth)
            for depth, grid in own.items()
        )


def read_grids(store: RunStore, scope: Scope, experiment: str = EXPERIMENT) -> Grids:
    """All grids of the scope in the store; there may be none. Where networks of a training set were
    judged on test sets of different sizes, those of the largest count: networks of all depths and
    activations are compared with each other."""
    runs = store.runs(experiment=experiment, status="done", where={"dataset": scope.dataset})
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
    """The error of figures that need grids where there are none."""
    return NothingMeasuredError(
        f"the store has no finished grids on {scope.dataset} with these sizes, depths and "
        "activations; run nngp-paper reproduce first"
    )


def judged_on(run: Run) -> tuple[int, int]:
    """Numbers of test and validation points: only runs with equal ones are compared."""
    return run.config["test"], run.config["validation"]


def _inside(config: Config, scope: Scope) -> bool:
    """Whether a strip is of the scope, and has networks on its grid."""
    return (
        config["train"] in scope.sizes
        and config["activation"] in scope.activations
        and config["depth"] in scope.depths
        and round(config["weight_var"], DIGITS) in scope.weight_vars
        and any(round(value, DIGITS) in scope.bias_vars for value in config["bias_vars"])
    )


def _grid(name: Name, strips: Sequence[Run], scope: Scope) -> Grid:
    test, validation = judged_on(strips[0])
    shape = scope.grid, scope.grid
    scores, tried = {score: np.full(shape, np.nan) for score in SCORES}, np.zeros(shape, bool)
    for run in strips:
        _fill(scores, tried, scope, run)
    return Grid(
        *name,
        validation=validation,
        test=test,
        weight_vars=np.array(scope.weight_vars),
        bias_vars=np.array(scope.bias_vars),
        scores=scores,
        tried=tried,
        asked=_asked(scope, *name[1:]),
        seconds=sum(run.seconds or 0.0 for run in strips),
        devices=tuple(sorted({run.device for run in strips})),
    )


def _asked(scope: Scope, activation: str, depth: int) -> Mask:
    """Networks of the grid that the scope asks for."""
    rows = np.isin(scope.weight_vars, scope.weight_vars_of(activation, depth))
    return np.outer(rows, np.isin(scope.bias_vars, scope.bias_vars_of(activation)))


def _fill(scores: Mapping[str, Array], tried: Mask, scope: Scope, strip: Run) -> None:
    """Put one strip into its row, without networks that are not on the scope's grid."""
    row = scope.weight_vars.index(round(strip.config["weight_var"], DIGITS))
    columns = {value: column for column, value in enumerate(scope.bias_vars)}
    values = [round(value, DIGITS) for value in strip.config["bias_vars"]]
    kept = [i for i, value in enumerate(values) if value in columns]
    where = [columns[values[i]] for i in kept]
    tried[row, where] = True
    for score, table in scores.items():
        table[row, where] = np.array(result_of(strip)[score], float)[kept]  # None becomes NaN
