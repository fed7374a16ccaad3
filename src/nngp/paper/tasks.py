"""The work that parts of the paper need: studies, and random searches over finite networks.

Parts share tasks; each is named by its experiment in the store and done once, cheap ones first.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from nngp.datasets.catalogue import IMAGE_SETS
from nngp.finite.requirements import need_packages
from nngp.linsolve import choose_engine
from nngp.paper.parts import Part
from nngp.paper.scope import Scope
from nngp.paper.searches import FiniteWork, search_task
from nngp.paper.studies import study_named
from nngp.runs import RunStore
from nngp.runs.study import Executor, LocalExecutor, Study, carry_out

STUDIES = ("angular", "prior", "critical", "spread", "doubt", "setting", "grid")
SEARCHES = ("finite", "gap")
WITH_EXTRA = ("spread", *SEARCHES)  # what the extra `finite` is for
NETWORK = 0.005  # seconds for a network, however few its points are
ENTRY = {"cpu": 4e-9, "gpu": 1e-10}  # seconds for an entry of its kernel matrices
CUBE = {"cpu": 6e-12, "gpu": 1.2e-14}  # seconds for its factorisation, over the cube of the points
TABLE = 5.0  # seconds to make the authors' table, which is then read twice a layer or so
USUAL = {"angular": 15.0, "prior": 1.0, "critical": 5.0, "spread": 20.0}  # seconds of a run


class Task(Protocol):
    """Runs of one experiment that can be declared, done until a time, and guessed at."""

    @property
    def experiment(self) -> str: ...

    @property
    def threads(self) -> int:
        """How many of its runs are done side by side."""

    def declare(self, store: RunStore) -> list[str]:
        """The keys of its runs."""

    def do(self, store: RunStore, until: float, progress: Any) -> None:
        """What is left of them; nothing is begun after `until`."""

    def later(self) -> list[Mapping[str, Any]]:
        """Runs that cannot be named before others are done, roughly; by training size."""

    def guess(self, config: Mapping[str, Any]) -> float:
        """About how many seconds a run takes, if nothing is known of any."""

    def device(self, config: Mapping[str, Any]) -> str:
        """Where a run would be done here: "cpu" or "gpu"."""


@dataclass(frozen=True)
class StudyTask:
    """A study, on an engine."""

    study: Study
    engine: str = "auto"
    executor: Executor = field(default_factory=LocalExecutor)

    @property
    def experiment(self) -> str:
        return self.study.experiment

    def declare(self, store: RunStore) -> list[str]:
        return store.declare(self.study.experiment, self.study.configs)

    def do(self, store: RunStore, until: float, progress: Any) -> None:
        carry_out(store, self.study, until=until, progress=progress, executor=self.executor)

    def later(self) -> list[Mapping[str, Any]]:
        return []

    @property
    def threads(self) -> int:
        return self.executor.threads

    def guess(self, config: Mapping[str, Any]) -> float:
        if "train" not in config:
            return USUAL.get(self.experiment, 1.0)
        return _networks_time(config, self.device(config))

    def device(self, config: Mapping[str, Any]) -> str:
        return choose_engine(self.engine, config.get("train", 0)).name


@dataclass(frozen=True)
class GridTask:
    """The grids. What is tried with large training sets depends on what smaller ones have shown,
    so a study is declared when those before it are done."""

    scope: Scope
    executor: Executor = field(default_factory=LocalExecutor)
    experiment: str = "grid"

    def declare(self, store: RunStore) -> list[str]:
        keys: list[str] = []
        for study in self._studies(store):
            own = store.declare(study.experiment, study.configs)
            keys += own
            if store.pending(own):
                break
        return keys

    def do(self, store: RunStore, until: float, progress: Any) -> None:
        for study in self._studies(store):
            keys = carry_out(store, study, until=until, progress=progress, executor=self.executor)
            if store.pending(keys):
                break

    def later(self) -> list[Mapping[str, Any]]:
        from nngp.paper.studies.grid import BEST, LARGEST_FULL_GRID

        counts = {
            size: next(count for limit, count in BEST if size <= limit)
            for size in self.scope.sizes
            if size > LARGEST_FULL_GRID
        }
        entry = IMAGE_SETS[self.scope.dataset]
        others = {"validation": entry.validation, "test": entry.test}
        return [
            {"train": size, **others, "activation": name, "bias_vars": [None] * count}
            for size, count in counts.items()
            for name in self.scope.activations
        ]

    @property
    def threads(self) -> int:
        return self.executor.threads

    def guess(self, config: Mapping[str, Any]) -> float:
        return _networks_time(config, self.device(config))

    def device(self, config: Mapping[str, Any]) -> str:
        return choose_engine(self.scope.engine, config["train"]).name

    def _studies(self, store: RunStore) -> Iterator[Study]:
        from nngp.paper.studies.grid import grid_studies

        return grid_studies(store, self.scope)


def _networks_time(config: Mapping[str, Any], device: str) -> float:
    """Seconds of the networks of a run: their kernel matrices and their factors."""
    points, networks = config["train"], len(config.get("bias_vars", [None]))
    others = config.get("validation", 0) + config.get("test", 0)
    look_up = points * (points / 2 + others) * ENTRY[device]
    if config.get("kernel") == "table":
        look_up = TABLE + 2 * config["depth"] * look_up
    return networks * (NETWORK + look_up + points**3 * CUBE[device])


def tasks_for(
    parts: Sequence[Part], scope: Scope, work: FiniteWork, executor: Executor | None = None
) -> tuple[list[Task], list[str]]:
    """What the parts need, each once; and a sentence for each that has to be left out. Studies are
    done by `executor`; searches over finite networks in this process: their trials share lanes."""
    needed = {name for part in parts for name in part.needs}
    tasks: list[Task] = []
    left_out: list[str] = []
    for name in STUDIES + SEARCHES:
        if name not in needed:
            continue
        if problem := _lacking(name):
            left_out.append(f"{name} is left out: {problem}")
        else:
            tasks.append(_task(name, scope, work, executor or LocalExecutor()))
    return tasks, left_out


def _lacking(name: str) -> str:
    """What an experiment needs and is not installed."""
    try:
        if name in WITH_EXTRA:
            need_packages()
    except ImportError as error:
        return str(error)
    return ""


def _task(name: str, scope: Scope, work: FiniteWork, executor: Executor) -> Task:
    if name == "grid":
        return GridTask(scope, executor)
    if name in STUDIES:
        return StudyTask(study_named(name, scope), scope.engine, executor)
    return search_task(name, scope, work)
