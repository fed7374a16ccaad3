"""Random searches over finite networks (figures 1 and 2): their work, and their best results."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

from nngp_paper.datasets import Split, split
from nngp_paper.experiment import Config, Experiment
from nngp_paper.finite.cells import EXPERIMENT, Cell, Found, Rank, best_of, most_accurate
from nngp_paper.finite.gap import DEPTH as GAP_DEPTH, EXPERIMENT as GAP, PLAN as GAP_PLAN
from nngp_paper.finite.recipe import Plan
from nngp_paper.finite.screening import longest
from nngp_paper.runs import Run, RunStore
from nngp_paper.scope import Scope

DEPTH = 2  # hidden layers, where they do not matter
WIDTHS, TRIALS = (16, 64, 256), 6  # for two cores and a few minutes
GAP_POINTS = 1000  # so few that networks can learn them all
SHARED = ("validation", "test", "loss", "monitor")
FINITE_RUNS, GAP_RUNS = Experiment(EXPERIMENT, extra=True), Experiment(GAP, extra=True)


@dataclass(frozen=True)
class SearchSize:
    """The widths of a random search, its number of trials for each shape of network, and the
    training sets of figure 1: those of the scope, unless some are named."""

    widths: tuple[int, ...]
    trials: int
    sizes: tuple[int, ...] | None = None


@dataclass(frozen=True)
class SearchWorkload:
    """A random search over finite networks of one depth, on training sets of some sizes; a
    `Workload` (workloads.py)."""

    experiment: str
    scope: Scope
    sizes: tuple[int, ...]
    depth: int
    search: SearchSize

    def declare(self, store: RunStore) -> list[str]:
        from nngp_paper.finite.random_search import declare

        trials, name = self.search.trials, self.experiment
        return [
            key
            for cell in self._cells
            for key in declare(store, cell, self._data, self._plan, trials, experiment=name)
        ]

    def do(self, store: RunStore, until: float, progress: bool | None) -> None:
        from nngp_paper.finite.random_search import search

        search(
            *(store, self._cells, self._data, self._plan, self.search.trials),
            experiment=self.experiment,
            until=until,
            progress=progress,
        )

    def later(self) -> Sequence[Config]:
        return ()

    @property
    def _plan(self) -> Plan:
        return GAP_PLAN if self.experiment == GAP else Plan()

    @cached_property
    def _data(self) -> Split:
        """The split of the largest size, which holds the others."""
        return split(self.scope.dataset, max(self.sizes), data=self.scope.data)

    @property
    def _cells(self) -> list[Cell]:
        shapes = product(self.scope.paper_activations, self.search.widths, self.sizes)
        dataset = self.scope.dataset
        return [Cell(dataset, size, name, self.depth, width) for name, width, size in shapes]


def search_workload(experiment: str, scope: Scope, search: SearchSize) -> SearchWorkload:
    """The networks of figure 1 ("finite") on their training sets, or those of figure 2 ("gap") on
    one."""
    if experiment == EXPERIMENT:
        sizes = tuple(sorted(search.sizes or scope.sizes))
        return SearchWorkload(experiment, scope, sizes, DEPTH, search)
    few = max((size for size in scope.sizes if size <= GAP_POINTS), default=min(scope.sizes))
    return SearchWorkload(experiment, scope, (few,), GAP_DEPTH, search)


def finished_trials(
    store: RunStore, scope: Scope, experiment: str = EXPERIMENT, shared: Sequence[str] = SHARED
) -> list[Run]:
    """Finished trials on the scope's training sets with its activations. What was trained or judged
    in different ways is not compared: of each training set, only trials with the most frequent
    values of the `shared` settings are given. Plans of few and of many steps may be among them."""
    where = {"dataset": scope.dataset}
    runs = store.runs(experiment=experiment, status="done", where=where)
    inside = [run for run in runs if run.config["activation"] in scope.activations]
    return [run for train in scope.sizes for run in _comparable(inside, train, shared)]


def best_trial(
    runs: Sequence[Run],
    train: int,
    activation: str,
    rank: Rank = most_accurate,
    width: int | None = None,
) -> Found | None:
    """The best of all shapes on one training set, or of one width, whatever plan it was trained by,
    and how many trials it was chosen from; None without trials."""
    own = [run for run in runs if is_of(run, train, activation)]
    if width is not None:
        own = [run for run in own if run.config["width"] == width]
    found = best_of(own, rank)
    if not found:
        return None
    best = max(found, key=lambda one: rank(one.best))
    return replace(best, trials=len(longest(own)))


def is_of(run: Run, train: int, activation: str) -> bool:
    """Whether a run is on this training set and of this activation."""
    return (run.config["train"], run.config["activation"]) == (train, activation)


def _comparable(runs: Sequence[Run], train: int, shared: Sequence[str]) -> list[Run]:
    own = [run for run in runs if run.config["train"] == train]
    kinds = [tuple(run.config[name] for name in shared) for run in own]
    common = Counter(kinds).most_common(1)
    return [run for run, kind in zip(own, kinds, strict=True) if kind == common[0][0]]
