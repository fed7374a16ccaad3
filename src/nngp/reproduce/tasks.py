"""The work that parts of the paper need: studies, and random searches over finite networks.

Parts share tasks; each is named by its experiment in the store and done once, cheap ones first.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from itertools import product
from typing import TYPE_CHECKING, Any, Protocol

from nngp.linsolve import choose_engine
from nngp.reproduce.datasets import Split, split
from nngp.reproduce.finite.checks import need_packages
from nngp.reproduce.parts import Part
from nngp.reproduce.scope import ACTIVATIONS, Scope
from nngp.reproduce.store import RunStore
from nngp.reproduce.study import Study, carry_out

if TYPE_CHECKING:
    from nngp.reproduce.finite.search import Cell

FINITE_DEPTH = 2
WIDTHS, TRIALS = (16, 64, 256), 6  # for two cores and a few minutes
GAP_POINTS = 1000  # so few that networks can learn them all
STUDIES = ("angular", "prior", "critical", "spread", "doubt", "setting", "grid")
SEARCHES = ("finite", "gap")
WITH_EXTRA = ("spread", *SEARCHES)  # what the extra `finite` is for
FLAT = {"cpu": 2000, "gpu": 16_000}  # points from which on a network's time is its factorisation
NETWORK = 0.05  # seconds for a network with fewer points
USUAL = {"angular": 2.0, "prior": 1.0, "critical": 3.0, "spread": 30.0}  # seconds of a run


class Task(Protocol):
    """Runs of one experiment that can be declared, done until a time, and guessed at."""

    @property
    def experiment(self) -> str: ...

    def declare(self, store: RunStore) -> list[str]:
        """The keys of its runs."""

    def do(self, store: RunStore, until: float, progress: Any) -> None:
        """What is left of them; nothing is begun after `until`."""

    def guess(self, config: Mapping[str, Any]) -> float:
        """About how many seconds a run takes, if nothing is known of any."""

    def device(self, config: Mapping[str, Any]) -> str:
        """Where a run would be done here: "cpu" or "gpu"."""


@dataclass(frozen=True)
class StudyTask:
    """A study, on an engine."""

    study: Study
    engine: str = "auto"

    @property
    def experiment(self) -> str:
        return self.study.experiment

    def declare(self, store: RunStore) -> list[str]:
        return store.declare(self.study.experiment, self.study.configs)

    def do(self, store: RunStore, until: float, progress: Any) -> None:
        carry_out(store, self.study, until=until, progress=progress)

    def guess(self, config: Mapping[str, Any]) -> float:
        if "train" not in config:
            return USUAL.get(self.experiment, 1.0)
        networks = len(config.get("bias_vars", [None]))
        return networks * NETWORK * (1 + (config["train"] / FLAT[self.device(config)]) ** 3)

    def device(self, config: Mapping[str, Any]) -> str:
        return choose_engine(self.engine, config.get("train", 0)).name


@dataclass(frozen=True)
class FiniteWork:
    """How much is spent on finite networks."""

    widths: tuple[int, ...] = WIDTHS
    trials: int = TRIALS


@dataclass(frozen=True)
class SearchTask:
    """A random search over finite networks of one depth, on training sets of some sizes."""

    experiment: str
    scope: Scope
    sizes: tuple[int, ...]
    depth: int
    work: FiniteWork

    def declare(self, store: RunStore) -> list[str]:
        from nngp.reproduce.finite.search import declare

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
        from nngp.reproduce.finite.search import search

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

    def guess(self, config: Mapping[str, Any]) -> float:
        return self._seconds[config["train"], config["width"]]

    def device(self, config: Mapping[str, Any]) -> str:
        import jax

        return "cpu" if jax.devices()[0].platform == "cpu" else "gpu"

    @cached_property
    def _plan(self) -> Any:
        from nngp.reproduce.finite.gap import PLAN
        from nngp.reproduce.finite.recipe import Plan

        return PLAN if self.experiment == "gap" else Plan()

    @cached_property
    def _data(self) -> dict[int, Split]:
        scope = self.scope
        return {size: split(scope.dataset, size, data=scope.data) for size in self.sizes}

    @cached_property
    def _seconds(self) -> dict[tuple[int, int], float]:
        """Of a training of each size and width, if none ends early."""
        from nngp.reproduce.finite.cost import search_cost

        trials = self.work.trials
        shapes = {(s, cell.width): cell for s in self.sizes for cell in self._cells(s)}
        return {
            shape: search_cost([cell], self._data[shape[0]], self._plan, trials).seconds / trials
            for shape, cell in shapes.items()
        }

    def _cells(self, size: int) -> list["Cell"]:
        from nngp.reproduce.finite.search import Cell

        shapes = product(_papers(self.scope), self.work.widths)
        return [Cell(self.scope.dataset, size, name, self.depth, width) for name, width in shapes]


def tasks_for(
    parts: Sequence[Part], scope: Scope, work: FiniteWork
) -> tuple[list[Task], list[str]]:
    """What the parts need, each once; and a sentence for each that has to be left out."""
    needed = {name for part in parts for name in part.needs}
    tasks: list[Task] = []
    left_out: list[str] = []
    for name in STUDIES + SEARCHES:
        if name not in needed:
            continue
        if problem := _lacking(name):
            left_out.append(f"{name} is left out: {problem}")
        else:
            tasks.append(_task(name, scope, work))
    return tasks, left_out


def _lacking(name: str) -> str:
    """What an experiment needs and is not installed."""
    try:
        if name in WITH_EXTRA:
            need_packages()
    except ImportError as error:
        return str(error)
    return ""


def _task(name: str, scope: Scope, work: FiniteWork) -> Task:
    if name in STUDIES:
        return StudyTask(_study(name)(scope), scope.engine)
    if name == "finite":
        return SearchTask(name, scope, scope.sizes, FINITE_DEPTH, work)
    from nngp.reproduce.finite.gap import DEPTH

    few = max((size for size in scope.sizes if size <= GAP_POINTS), default=min(scope.sizes))
    return SearchTask(name, scope, (few,), DEPTH, work)


def _study(name: str) -> Callable[[Scope], Study]:
    return getattr(import_module(f"nngp.reproduce.studies.{name}"), f"{name}_study")


def _papers(scope: Scope) -> tuple[str, ...]:
    """The paper's activations among those asked for, or these if there are none."""
    return tuple(name for name in scope.activations if name in ACTIVATIONS) or scope.activations
