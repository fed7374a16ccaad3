"""Random searches over finite networks as work on the paper: figures 1 and 2."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

from nngp.datasets import Split, split
from nngp.paper.scope import ACTIVATIONS, Scope
from nngp.runs import RunStore

if TYPE_CHECKING:
    from nngp.finite.random_search import Cell

DEPTH = 2  # hidden layers, where they do not matter
WIDTHS, TRIALS = (16, 64, 256), 6  # for two cores and a few minutes
GAP_POINTS = 1000  # so few that networks can learn them all


@dataclass(frozen=True)
class FiniteWork:
    """How much is spent on finite networks."""

    widths: tuple[int, ...]
    trials: int


@dataclass(frozen=True)
class SearchTask:
    """A random search over finite networks of one depth, on training sets of some sizes."""

    experiment: str
    scope: Scope
    sizes: tuple[int, ...]
    depth: int
    work: FiniteWork
    threads: int = 1  # lanes are no runs side by side: their time is that of one

    def declare(self, store: RunStore) -> list[str]:
        from nngp.finite.random_search import declare

        return [
            key
            for size in self.sizes
            for cell in self._cells(size)
            for key in declare(
                store,
                cell,
                self._data[size],
                self._plan,
                self.work.trials,
                experiment=self.experiment,
            )
        ]

    def do(self, store: RunStore, until: float, progress: Any) -> None:
        from nngp.finite.random_search import search

        for size in self.sizes:
            search(
                store,
                self._cells(size),
                self._data[size],
                self._plan,
                self.work.trials,
                experiment=self.experiment,
                until=until,
                progress=progress,
            )

    def later(self) -> list[Mapping[str, Any]]:
        return []

    def guess(self, config: Mapping[str, Any]) -> float:
        return self._seconds[config["train"], config["width"]]

    def device(self, config: Mapping[str, Any]) -> str:
        import jax

        return "cpu" if jax.devices()[0].platform == "cpu" else "gpu"

    @cached_property
    def _plan(self) -> Any:
        from nngp.finite.gap import PLAN
        from nngp.finite.recipe import Plan

        return PLAN if self.experiment == "gap" else Plan()

    @cached_property
    def _data(self) -> dict[int, Split]:
        """Of all sizes, which share their validation and test images."""
        whole = split(self.scope.dataset, max(self.sizes), data=self.scope.data)
        return {size: whole.first(size) for size in self.sizes}

    @cached_property
    def _seconds(self) -> dict[tuple[int, int], float]:
        """Of a training of each size and width, if none ends early."""
        from nngp.finite.cost import search_cost

        trials = self.work.trials
        shapes = {(s, cell.width): cell for s in self.sizes for cell in self._cells(s)}
        return {
            shape: search_cost([cell], self._data[shape[0]], self._plan, trials).seconds / trials
            for shape, cell in shapes.items()
        }

    def _cells(self, size: int) -> list["Cell"]:
        from nngp.finite.random_search import Cell

        shapes = product(_papers(self.scope), self.work.widths)
        return [Cell(self.scope.dataset, size, name, self.depth, width) for name, width in shapes]


def search_task(name: str, scope: Scope, work: FiniteWork) -> SearchTask:
    """The networks of figure 1 (finite) on the smallest and the largest training set, or those of
    figure 2 (gap) on one."""
    if name == "finite":
        ends = tuple(sorted({min(scope.sizes), max(scope.sizes)}))
        return SearchTask(name, scope, ends, DEPTH, work)
    from nngp.finite.gap import DEPTH as GAP_DEPTH

    few = max((size for size in scope.sizes if size <= GAP_POINTS), default=min(scope.sizes))
    return SearchTask(name, scope, (few,), GAP_DEPTH, work)


def _papers(scope: Scope) -> tuple[str, ...]:
    """The paper's activations among those asked for, or these if there are none."""
    return tuple(name for name in scope.activations if name in ACTIVATIONS) or scope.activations
