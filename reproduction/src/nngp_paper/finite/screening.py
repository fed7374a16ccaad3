"""Screening: all trials are trained for few steps, the best of them for many. Needs no JAX.

Most recipes that are drawn from the paper's ranges fail within some hundred steps. So a search may
be done twice: with a plan of few steps, then with one of many for the finalists, from the start.
"""

from collections.abc import Sequence
from itertools import groupby

from nngp_paper.finite.cells import RANKS, Cell, cell_of
from nngp_paper.finite.recipe import Plan
from nngp_paper.runs import Run


def finalists(
    runs: Sequence[Run], count: int, by: Sequence[str] = ("accuracy", "error")
) -> dict[Cell, list[int]]:
    """The numbers of the best trials by cell: for each training set, activation and width, all
    depths together, the best `count` finished runs by validation "accuracy", by validation "error"
    or by accuracy in "training", or by several of them.

    Examples
    --------
    >>> from nngp_paper import datasets, finite
    >>> from nngp_paper.runs import RunStore
    >>> digits = datasets.split("digits", 100)
    >>> cell = finite.Cell("digits", 100, "relu", depth=1, width=16)
    >>> store = RunStore("runs.db")
    >>> short, plan = finite.Plan(steps=10, interval=10), finite.Plan(steps=40, interval=10)
    >>> _ = finite.search(store, [cell], digits, short, trials=4, progress=False)
    >>> best = finite.finalists(store.runs("finite"), 1, ["accuracy"])
    >>> found = finite.search(store, best, digits, plan, best, progress=False)
    >>> found[0].trials, found[0].result["steps"]
    (1, 40)
    >>> store.close()
    """
    done = sorted((run for run in runs if run.status == "done"), key=_row)
    chosen: set[tuple[Cell, int]] = set()
    for _, group in groupby(done, key=_row):
        own = list(group)
        for name in by:
            best = sorted(own, key=RANKS[name], reverse=True)[:count]
            chosen |= {(cell_of(run), run.config["trial"]) for run in best}
    by_cell: dict[Cell, list[int]] = {}
    for cell, trial in sorted(chosen):
        by_cell.setdefault(cell, []).append(trial)
    return by_cell


def longest(runs: Sequence[Run]) -> list[Run]:
    """The run with the most steps of each trial, if it was trained by several plans."""
    most: dict[object, Run] = {}
    for run in sorted(runs, key=lambda run: Plan.of(run.config).steps):
        most[_trial(run)] = run
    return list(most.values())


def _trial(run: Run) -> object:
    """The identity of a trial; a run without a number is a trial of its own."""
    number = run.config.get("trial", run.key)
    optimiser = Plan.of(run.config).optimiser
    return cell_of(run), number, run.config.get("search_seed"), optimiser


def _row(run: Run) -> tuple[str, int, str, int]:
    """Training set, activation and width."""
    config = run.config
    return config["dataset"], config["train"], config["activation"], config["width"]
