"""Rows of tables 1 and 2: the paper's numbers beside ours.

A row is a training set and an activation. Beside what the paper prints stand the same network with
the authors' look-up table and with the exact kernel, the network that validation chooses from our
own grids, the one that the evidence chooses, and the best finite network of our random search.
Rows are also given as named columns and as a CSV file.
"""

import csv
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nngp_paper.errors import NothingMeasuredError
from nngp_paper.experiment import Config
from nngp_paper.files import replaced
from nngp_paper.finite.cells import Found
from nngp_paper.grids.candidates import Candidates, candidates
from nngp_paper.grids.choice import Chosen, by_evidence, by_validation, highest
from nngp_paper.grids.study import LARGEST_FULL_GRID
from nngp_paper.part import Results
from nngp_paper.published import Published, published_row
from nngp_paper.runs import Run
from nngp_paper.shared.searches import best_trial, finished_trials, is_of
from nngp_paper.shared.settings import EXPERIMENT as SETTING, KERNELS, OLD_TABLE
from nngp_paper.shared.words import percent

TOP = 25  # networks; how far apart the best are on test says what a choice among them is worth
Columns = dict[str, Any]  # numbers and texts by column, None where there is none
PRINTED = 0.0051  # the paper prints variances with two decimals


@dataclass(frozen=True)
class Row:
    """One training set and activation; None is what the paper does not have or was not run.

    `test` counts the test points, `networks` those that validation had to choose from, `candidates`
    those that could be the best where not all are tried, `wanted` those of all grids; `top` is the
    lowest and highest test accuracy of the best 25 by validation, `ceiling` the highest of all: not
    a result, but a bound on every choice.
    """

    dataset: str
    train: int
    activation: str
    test: int | None
    paper_finite: Published | None
    paper: Published | None
    finite: Found | None
    lookup: Run | None
    exact: Run | None
    chosen: Chosen | None
    top: tuple[float, float] | None
    ceiling: float | None
    evidence: Chosen | None
    networks: int
    candidates: int | None
    wanted: int
    seconds: float
    devices: tuple[str, ...]
    pairs: int = 0  # of depth and weight variance, with networks that were tried
    margin: float | None = None  # of candidates: the bound on their error over the least, minus one

    @property
    def measured(self) -> bool:
        """Whether anything of it was measured here."""
        ours = (self.finite, self.lookup, self.exact, self.chosen)
        return any(one is not None for one in ours)

    @property
    def difference(self) -> float | None:
        """The network chosen by validation minus the paper's, in points of test accuracy."""
        return points(self.chosen.test_accuracy if self.chosen else None, self.paper)

    @property
    def lookup_difference(self) -> float | None:
        """The authors' table at the paper's setting minus the paper's number, in points."""
        return points(accuracy_of(self.lookup), self.paper)

    @property
    def evidence_gain(self) -> float | None:
        """Gain of choosing by the evidence over choosing by validation, in points."""
        if self.chosen is None or self.evidence is None:
            return None
        return round(100 * (self.evidence.test_accuracy - self.chosen.test_accuracy), 6)

    @property
    def standard_error(self) -> float | None:
        """Standard error of the chosen network's test accuracy, in points, from the number of test
        points."""
        if self.chosen is None or self.test is None:
            return None
        accuracy = self.chosen.test_accuracy
        return 100 * math.sqrt(accuracy * (1 - accuracy) / self.test)


@dataclass(frozen=True)
class AccuracyTable:
    """Rows by training points, then activation."""

    dataset: str
    rows: tuple[Row, ...]


def read_table(results: Results, sizes: Sequence[int]) -> AccuracyTable:
    """The rows of some training sizes; raises NothingMeasuredError if none of them has a run."""
    scope, where = results.scope, {"dataset": results.scope.dataset}
    settings = results.store.runs(experiment=SETTING, status="done", where=where)
    trials = finished_trials(results.store, scope)
    rows = [
        _row(results, train, activation, settings, trials)
        for train in sorted(sizes)
        for activation in scope.activations
        if train <= LARGEST_FULL_GRID or activation in scope.paper_activations
    ]
    if not any(row.measured for row in rows):
        listed = ", ".join(map(str, sorted(sizes)))
        raise NothingMeasuredError(
            f"the store has no finished networks on {scope.dataset} with {listed} training points; "
            "run nngp-paper reproduce first"
        )
    return AccuracyTable(scope.dataset, tuple(row for row in rows if row.measured or row.paper))


def finding(data: AccuracyTable) -> str:
    """Differences from the paper's accuracies; without published rows, the best accuracy."""
    changes = {
        f"{row.train:,} {row.activation}": row.difference
        for row in data.rows
        if row.difference is not None
    }
    if changes:
        return _differences_sentence(changes)
    found = [(row.chosen.test_accuracy, row) for row in data.rows if row.chosen is not None]
    if not found:
        return "No grid has been begun."
    accuracy, best = max(found, key=lambda pair: pair[0])
    return (
        f"The paper has no such rows. The best is {best.activation} with {best.train:,} training "
        f"points, {percent(accuracy)}."
    )


def _differences_sentence(changes: Mapping[str, float]) -> str:
    above = sum(change >= 0 for change in changes.values())
    mean = float(np.mean(list(changes.values())))
    low, high = min(changes, key=changes.__getitem__), max(changes, key=changes.__getitem__)
    return (
        f"Chosen by validation, {above} of {len(changes)} measured rows reach the paper's "
        f"accuracy; differences go from {_signed(changes[low])} ({low}) to "
        f"{_signed(changes[high])} ({high}), {_signed(mean)} in the mean."
    )


def _signed(change: float) -> str:
    return f"{change:+.2f}".replace("-", "−") + " points"


def as_columns(row: Row) -> Columns:
    """Plain values by column, None where there is none. Accuracies are fractions; differences and
    the standard error are points (hundredths). `nn` is a finite network, `nngp` an infinite one."""
    return {
        "dataset": row.dataset,
        "train": row.train,
        "activation": row.activation,
        "paper_nn": row.paper_finite and row.paper_finite.test_accuracy,
        "paper_nn_setting": row.paper_finite and row.paper_finite.setting,
        **_finite(row.finite),
        "paper_nngp": row.paper and row.paper.test_accuracy,
        "paper_nngp_setting": row.paper and row.paper.setting,
        "table_at_paper_setting": accuracy_of(row.lookup),
        "exact_at_paper_setting": accuracy_of(row.exact),
        **_infinite("nngp", row.chosen),
        "standard_error": row.standard_error,
        "difference": row.difference,
        "best_25_lowest": row.top and row.top[0],
        "best_25_highest": row.top and row.top[1],
        **_infinite("evidence", row.evidence),
        "evidence_gain": row.evidence_gain,
        "networks": row.networks,
        "networks_candidates": row.candidates,
        "networks_wanted": row.wanted,
        "seconds": row.seconds,
        "device": ", ".join(row.devices),
    }


def write_csv(tables: Iterable[AccuracyTable], path: str | os.PathLike[str]) -> int:
    """Write all rows of these tables into one file, in one step, without empty columns; gives the
    number of rows."""
    rows = [as_columns(row) for table in tables for row in table.rows]
    if not rows:
        raise ValueError("there are no rows to write; give at least one table")
    with replaced(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        names = [name for name in rows[0] if any(row[name] is not None for row in rows)]
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows({name: _short(row[name]) for name in names} for row in rows)
    return len(rows)


def points(accuracy: float | None, paper: Published | None) -> float | None:
    """An accuracy minus the paper's in hundredths, free of rounding in the last digits."""
    if accuracy is None or paper is None:
        return None
    return round(100 * (accuracy - paper.test_accuracy), 6)


def accuracy_of(run: Run | None) -> float | None:
    """The test accuracy of a run of one network."""
    return run.result["test_accuracy"] if run and run.result else None


def _finite(found: Found | None) -> Columns:
    names = ("nn", "nn_mse", "nn_setting", "nn_trials")
    if found is None:
        return dict.fromkeys(names)
    config, result = found.best.config, found.result
    setting = (
        f"{found.cell.depth}-{found.cell.width}-{config['weight_var']:.2f}-{config['bias_var']:.2f}"
    )
    values = (result["test_accuracy"], result["test_mse"], setting, found.trials)
    return dict(zip(names, values, strict=True))


def _infinite(name: str, chosen: Chosen | None) -> Columns:
    return {
        name: chosen and chosen.test_accuracy,
        f"{name}_mse": chosen and chosen.test_mse,
        f"{name}_setting": chosen and chosen.setting,
    }


def _short(value: object) -> object:
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _row(
    results: Results, train: int, activation: str, settings: Sequence[Run], trials: Sequence[Run]
) -> Row:
    scope, own = results.scope, results.grids.of(train, activation)
    paper = published_row(scope.dataset, train, activation)
    best, near = by_validation(own, TOP), _candidates(results, train, activation)
    accuracies = [one.test_accuracy for one in best]
    return Row(
        scope.dataset,
        train,
        activation,
        own[0].test if own else None,
        published_row(scope.dataset, train, activation, finite=True),
        paper,
        best_trial(trials, train, activation),
        _at(paper, settings, KERNELS[0]) or _at(paper, settings, OLD_TABLE),
        _at(paper, settings, "exact"),
        best[0] if best else None,
        (min(accuracies), max(accuracies)) if best else None,
        highest(own, "test_accuracy") if best else None,
        by_evidence(own),
        sum(grid.networks for grid in own),
        None if near is None else len(near.networks),
        results.grids.row_wanted(train, activation),
        sum(grid.seconds for grid in own),
        tuple(sorted({device for grid in own for device in grid.devices})),
        sum(int(grid.tried.any(axis=1).sum()) for grid in own),
        None if near is None else near.bound,
    )


def _candidates(results: Results, train: int, activation: str) -> Candidates | None:
    """Networks that could be the best by the bound; None where all are tried, or none is known."""
    if train <= LARGEST_FULL_GRID:
        return None
    found = candidates(results.grids, train, activation)
    return None if found is None or found.bound is None else found


def _at(paper: Published | None, settings: Sequence[Run], kernel: str) -> Run | None:
    """The run at the setting that the paper prints; of several, the nearest to it, and of these
    the one that was judged on the most test points."""
    if paper is None:
        return None
    found = [
        run
        for run in settings
        if is_of(run, paper.train, paper.activation)
        and (run.config["kernel"], run.config["depth"]) == (kernel, paper.depth)
        and _apart(paper, run.config) <= PRINTED
    ]
    return min(
        found, key=lambda run: (_apart(paper, run.config), -run.config["test"]), default=None
    )


def _apart(paper: Published, config: Config) -> float:
    return max(
        abs(paper.weight_var - config["weight_var"]), abs(paper.bias_var - config["bias_var"])
    )
