"""Workloads: the runs that parts of the paper need, as work that can be estimated and done.

Parts share experiments; each is done once, cheap ones first.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from nngp_paper.engines import engine_name
from nngp_paper.experiment import Config, Experiment
from nngp_paper.finite.requirements import need_packages
from nngp_paper.grids.study import GRID_RUNS, RELATIVE_RUNS
from nngp_paper.part import AnyPart
from nngp_paper.parts.fig05_prior import PRIOR_RUNS
from nngp_paper.parts.fig06_angular import ANGULAR_RUNS
from nngp_paper.parts.fig07_graphical_model import SPREAD_RUNS
from nngp_paper.parts.invariance import INVARIANCE_RUNS
from nngp_paper.parts.width_limit import WIDTH_RUNS
from nngp_paper.progress import Callback
from nngp_paper.runs import RunStore
from nngp_paper.runs.study import Executor, LocalExecutor, Study, carry_out
from nngp_paper.scope import Scope
from nngp_paper.shared.critical import CRITICAL_RUNS
from nngp_paper.shared.left_out_scale import SCALE_RUNS
from nngp_paper.shared.searches import FINITE_RUNS, GAP_RUNS, SearchSize, search_workload
from nngp_paper.shared.settings import SETTING_RUNS
from nngp_paper.shared.uncertainty import UNCERTAINTY_RUNS

EXPERIMENTS = (  # cheap ones first
    ANGULAR_RUNS,
    PRIOR_RUNS,
    CRITICAL_RUNS,
    SPREAD_RUNS,
    UNCERTAINTY_RUNS,
    SCALE_RUNS,
    SETTING_RUNS,
    WIDTH_RUNS,
    INVARIANCE_RUNS,
    RELATIVE_RUNS,
    GRID_RUNS,
    FINITE_RUNS,
    GAP_RUNS,
)
NETWORK = 0.005  # seconds for a network, however few its points are
ENTRY = {"cpu": 4e-9, "gpu": 1e-10}  # seconds for an entry of its kernel matrices
CUBE = {"cpu": 6e-12, "gpu": 1.2e-14}  # seconds for its factorisation, over the cube of the points
TABLE = 5.0  # seconds to make the authors' table, which is then read about twice a layer


class Workload(Protocol):
    """The runs of one experiment: declared, done until a time, and estimated."""

    @property
    def experiment(self) -> str:
        """The name of the experiment in the store."""

    @property
    def threads(self) -> int:
        """Number of runs that are done side by side."""

    def declare(self, store: RunStore) -> list[str]:
        """Enter the runs into the store; gives their keys."""

    def do(self, store: RunStore, until: float, progress: Callback | bool | None) -> None:
        """Do the runs that are left; nothing is begun after `until`."""

    def later(self) -> Sequence[Config]:
        """Estimated configurations of runs that depend on the results of others."""

    def seconds(self, config: Config) -> float:
        """An estimate of the seconds of a run, if no other is known."""

    def device(self, config: Config) -> str:
        """The device that would do a run here: "cpu" or "gpu"."""


@dataclass(frozen=True)
class StudyWorkload:
    """Studies of one experiment, on an engine. The studies may depend on results in the store, so
    one is made when those before it are done."""

    kind: Experiment
    scope: Scope
    executor: Executor = field(default_factory=LocalExecutor)

    @property
    def experiment(self) -> str:
        return self.kind.name

    @property
    def threads(self) -> int:
        return self.executor.threads

    def declare(self, store: RunStore) -> list[str]:
        keys: list[str] = []
        for study in self._studies(store):
            own = store.declare(study.experiment, study.configs)
            keys += own
            if store.pending(own):
                break
        return keys

    def do(self, store: RunStore, until: float, progress: Callback | bool | None) -> None:
        for study in self._studies(store):
            keys = carry_out(store, study, until=until, progress=progress, executor=self.executor)
            if store.pending(keys):
                break

    def later(self) -> Sequence[Config]:
        return self.kind.later(self.scope)

    def seconds(self, config: Config) -> float:
        """Seconds for the networks of a run: their kernel matrices and their factors, unless the
        experiment has an estimate of its own."""
        if self.kind.estimate is not None:
            return self.kind.estimate(config)
        if "train" not in config:
            return self.kind.seconds
        points, networks = config["train"], len(config.get("bias_vars", [None]))
        others, device = config.get("validation", 0) + config.get("test", 0), self.device(config)
        look_up = points * (points / 2 + others) * ENTRY[device]
        if config.get("kernel") == "table":
            look_up = TABLE + 2 * config["depth"] * look_up
        return networks * (NETWORK + look_up + points**3 * CUBE[device])

    def device(self, config: Config) -> str:
        return engine_name(self.scope.engine, config.get("train", 0))

    def _studies(self, store: RunStore) -> Iterable[Study]:
        if self.kind.stages is not None:
            return self.kind.stages(store, self.scope)
        return [study_of(self.kind, self.scope)]


def workloads_for(
    parts: Sequence[AnyPart], scope: Scope, search: SearchSize, executor: Executor | None = None
) -> tuple[list[Workload], list[str]]:
    """The workloads that parts need, each once; and a sentence for each that has to be left out.
    Studies are done by `executor`; searches over finite networks in this process: their trials
    share lanes."""
    needed = {experiment.name for part in parts for experiment in part.experiments}
    workloads: list[Workload] = []
    left_out: list[str] = []
    for experiment in EXPERIMENTS:
        if experiment.name not in needed:
            continue
        try:
            if experiment.extra:
                need_packages()
        except ImportError as error:
            left_out.append(f"{experiment.name} is left out: {error}")
        else:
            workloads.append(_workload(experiment, scope, search, executor or LocalExecutor()))
    return workloads, left_out


def study_named(name: str, scope: Scope) -> Study:
    """The study of an experiment by name, on a worker of a cluster."""
    return study_of(next(one for one in EXPERIMENTS if one.name == name), scope)


def study_of(experiment: Experiment, scope: Scope) -> Study:
    """The study of an experiment for a scope."""
    assert experiment.study is not None, f"{experiment.name} is a random search"
    return experiment.study(scope)


def _workload(
    experiment: Experiment, scope: Scope, search: SearchSize, executor: Executor
) -> Workload:
    if experiment.study is None:
        return search_workload(experiment.name, scope, search)
    return StudyWorkload(experiment, scope, executor)
