"""Random searches over finite networks (figures 1 and 2): their work, and their best results."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

from nngp._progress import Callback
from nngp.datasets import Split, split
from nngp.finite.cells import EXPERIMENT, Cell, Found, best_of, rank
from nngp.finite.gap import DEPTH as GAP_DEPTH, EXPERIMENT as GAP, PLAN as GAP_PLAN
from nngp.finite.recipe import Plan
from nngp.paper.experiment import Config, Experiment
from nngp.paper.scope import Scope
from nngp.runs import Run, RunStore

DEPTH = 2  # hidden layers, where they do not matter
WIDTHS, TRIALS = (16, 64, 256), 6  # for two cores and a few minutes
GAP_POINTS = 1000  # so few that networks can learn them all
SHARED = ("validation", "test", *Plan.__dataclass_fields__)
FINITE_RUNS, GAP_RUNS = Experiment(EXPERIMENT, extra=True), Experiment(GAP, extra=True)


@dataclass(frozen=True)
class SearchSize:
    """The widths of a random search, and its number of trials for each shape of network."""

    widths: tuple[int, ...]
    trials: int


@dataclass(frozen=True)
class SearchWorkload:
    """A random search over finite networks of one depth, on training sets of some sizes; a
    `Workload` (workloads.py)."""

    experiment: str
    scope: Scope
    sizes: tuple[int, ...]
    depth: int
    search: SearchSize
    threads: int = 1  # lanes are no runs side by side: their time is that of one

    def declare(self, store: RunStore) -> list[str]:
        from nngp.finite.random_search import declare

        plan, trials, name = self._plan, self.search.trials, self.experiment
        return [
            key
            for size in self.sizes
            for cell in self._cells(size)
            for key in declare(store, cell, self._data[size], plan, trials, experiment=name)
        ]

    def do(self, store: RunStore, until: float, progress: Callback | bool | None) -> None:
        from nngp.finite.random_search import search

        for size in self.sizes:
            search(
                store,
                self._cells(size),
                self._data[size],
                self._plan,
                self.search.trials,
                experiment=self.experiment,
                until=until,
                progress=progress,
            )

    def later(self) -> Sequence[Config]:
        return ()

    def seconds(self, config: Config) -> float:
        return self._seconds[config["train"], config["width"]]

    def device(self, config: Config) -> str:
        import jax

        return "cpu" if jax.devices()[0].platform == "cpu" else "gpu"

    @property
    def _plan(self) -> Plan:
        return GAP_PLAN if self.experiment == GAP else Plan()

    @cached_property
    def _data(self) -> dict[int, Split]:
        """The splits of all sizes, which share their validation and test images."""
        whole = split(self.scope.dataset, max(self.sizes), data=self.scope.data)
        return {size: whole.first(size) for size in self.sizes}

    @cached_property
    def _seconds(self) -> dict[tuple[int, int], float]:
        """Seconds to train a network of each training size and width, if none ends early."""
        from nngp.finite.device import search_cost

        trials = self.search.trials
        shapes = {(s, cell.width): cell for s in self.sizes for cell in self._cells(s)}
        return {
            shape: search_cost([cell], self._data[shape[0]], self._plan, trials).seconds / trials
            for shape, cell in shapes.items()
        }

    def _cells(self, size: int) -> list[Cell]:
        shapes = product(self.scope.paper_activations, self.search.widths)
        return [Cell(self.scope.dataset, size, name, self.depth, width) for name, width in shapes]


def search_workload(experiment: str, scope: Scope, search: SearchSize) -> SearchWorkload:
    """The networks of figure 1 ("finite") on the smallest and the largest training set, or those of
    figure 2 ("gap") on one."""
    if experiment == EXPERIMENT:
        ends = tuple(sorted({min(scope.sizes), max(scope.sizes)}))
        return SearchWorkload(experiment, scope, ends, DEPTH, search)
    few = max((size for size in scope.sizes if size <= GAP_POINTS), default=min(scope.sizes))
    return SearchWorkload(experiment, scope, (few,), GAP_DEPTH, search)


def finished_trials(
    store: RunStore, scope: Scope, experiment: str = EXPERIMENT, shared: Sequence[str] = SHARED
) -> list[Run]:
    """Finished trials on the scope's training sets with its activations. Networks of different
    plans are not compared: of each training set, only trials with the most frequent values of the
    `shared` settings are given."""
    where = {"dataset": scope.dataset}
    runs = store.runs(experiment=experiment, status="done", where=where, lists=False)
    inside = [run for run in runs if run.config["activation"] in scope.activations]
    return [run for train in scope.sizes for run in _comparable(inside, train, shared)]


def best_trial(runs: Sequence[Run], train: int, activation: str) -> Found | None:
    """The best by validation of all shapes on one training set, and how many trials it was chosen
    from; None without trials."""
    own = [run for run in runs if is_of(run, train, activation)]
    return best_shape(best_of(own)) if own else None


def best_shape(found: Sequence[Found]) -> Found:
    """The best of several shapes, with the trials of all."""
    best = max(found, key=lambda one: rank(one.best))
    return replace(best, trials=sum(one.trials for one in found))


def is_of(run: Run, train: int, activation: str) -> bool:
    """Whether a run is on this training set and of this activation."""
    return (run.config["train"], run.config["activation"]) == (train, activation)


def _comparable(runs: Sequence[Run], train: int, shared: Sequence[str]) -> list[Run]:
    own = [run for run in runs if run.config["train"] == train]
    kinds = [tuple(run.config[name] for name in shared) for run in own]
    common = Counter(kinds).most_common(1)
    return [run for run, kind in zip(own, kinds, strict=True) if kind == common[0][0]]
