"""Cells of a random search and the best trial of each, by validation. Needs no JAX.

A cell is one shape of network on one training set; its trials are runs in the store.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from nngp import Architecture
from nngp_paper.finite.recipe import Plan, Recipe
from nngp_paper.finite.training_state import LEAST_LOSS
from nngp_paper.numbers import whole_number
from nngp_paper.runs import Run

EXPERIMENT = "finite"
Rank = Callable[[Run], Any]  # larger for a better run


@dataclass(frozen=True, order=True)
class Cell:
    """One shape of network on one training set; `train` counts its points.

    Examples
    --------
    >>> from nngp_paper.finite import Cell
    >>> cell = Cell("digits", train=100, activation="relu", depth=2, width=64)
    >>> print(cell)
    digits 100, relu 2 x 64
    >>> cell.architecture.depth
    2
    """

    dataset: str
    train: int
    activation: str
    depth: int
    width: int

    def __post_init__(self) -> None:
        for name, least in (("train", 1), ("depth", 0), ("width", 1)):
            whole_number(name, getattr(self, name), least)
        if not isinstance(self.activation, str):
            raise TypeError("a search needs an activation by name, so that runs can be told apart")
        Architecture(1, self.activation)

    @property
    def architecture(self) -> Architecture:
        """Depth and activation; the variances are those of the recipes."""
        return Architecture(self.depth, self.activation)

    def __str__(self) -> str:
        return f"{self.dataset} {self.train}, {self.activation} {self.depth} x {self.width}"


@dataclass(frozen=True)
class Found:
    """The best trial of a cell by validation, and how many trials it was chosen from.

    Examples
    --------
    >>> from nngp_paper import datasets, finite
    >>> from nngp_paper.runs import RunStore
    >>> digits = datasets.split("digits", 100)
    >>> cell = finite.Cell("digits", 100, "relu", depth=1, width=16)
    >>> store = RunStore("runs.db")
    >>> plan = finite.Plan(steps=20, interval=10)
    >>> found = finite.search(store, [cell], digits, plan, trials=2, seed=9, progress=False)
    >>> found[0].cell == cell, found[0].trials
    (True, 2)
    >>> accuracies = [run.result["val_accuracy"] for run in store.runs()]
    >>> found[0].result["val_accuracy"] == max(accuracies)
    True
    >>> store.close()
    """

    cell: Cell
    trials: int
    best: Run

    @property
    def result(self) -> dict[str, Any]:
        """The result of the best trial."""
        return self.best.result or {}


def best_of(runs: Sequence[Run], rank: Rank | None = None) -> list[Found]:
    """Choose the best finished run of every cell, by validation accuracy or another rank.

    The runs should be those of one plan, as networks trained longer may do better.

    Examples
    --------
    >>> from nngp_paper import datasets, finite
    >>> from nngp_paper.runs import RunStore
    >>> digits = datasets.split("digits", 100)
    >>> cell = finite.Cell("digits", 100, "relu", depth=1, width=16)
    >>> store = RunStore("runs.db")
    >>> plan = finite.Plan(steps=20, interval=10)
    >>> found = finite.search(store, [cell], digits, plan, trials=2, seed=9, progress=False)
    >>> finite.best_of(store.runs("finite")) == found
    True
    >>> store.close()
    """
    done = sorted((run for run in runs if run.status == "done"), key=cell_of)
    cells = [(cell, list(group)) for cell, group in groupby(done, key=cell_of)]
    return [Found(cell, len(own), max(own, key=rank or most_accurate)) for cell, own in cells]


def most_accurate(run: Run) -> tuple[float, float]:
    """Validation accuracy, of equals the negative error: larger in a better run."""
    result = run.result or {}
    return result["val_accuracy"], -result["val_mse"]


def least_error(run: Run) -> float:
    """The negative of the lowest validation error: larger in a better run."""
    return -scores_of(run, "error")["val_mse"]


def best_learned(run: Run) -> float:
    """The accuracy on the training set: larger in a better run."""
    return float((run.result or {})["train_accuracy"])


RANKS: dict[str, Rank] = {
    "accuracy": most_accurate,
    "error": least_error,
    "training": best_learned,
}


def scores_of(run: Run, by: str) -> dict[str, float]:
    """Accuracies and errors of the weights that had the highest validation accuracy, or ("error")
    the lowest validation loss. Runs of old had the former only."""
    result = run.result or {}
    prefix = LEAST_LOSS if by == "error" and f"{LEAST_LOSS}val_mse" in result else ""
    parts = [f"{part}_{score}" for part in ("val", "test") for score in ("accuracy", "mse")]
    return {name: result[f"{prefix}{name}"] for name in parts}


def shared_values(runs: Sequence[Run], *names: str) -> dict[str, Any]:
    """The values of `names` that all runs share; raise ValueError if they differ."""
    configs = [{**run.config, **asdict(Plan.of(run.config))} for run in runs]
    values = {name: sorted({config[name] for config in configs}) for name in names}
    differ = [f"{name} {' and '.join(map(str, v))}" for name, v in values.items() if len(v) > 1]
    if differ:
        raise ValueError(
            f"the runs differ ({'; '.join(differ)}), so they cannot be shown together; choose "
            "those of one plan"
        )
    return {name: found[0] for name, found in values.items()}


def config_of(kind: type[Cell | Recipe], run: Run) -> dict[str, Any]:
    """The part of a run's configuration that holds the fields of a cell or a recipe."""
    return {name: run.config[name] for name in kind.__dataclass_fields__}


def cell_of(run: Run) -> Cell:
    """The cell of a run."""
    return Cell(**config_of(Cell, run))
