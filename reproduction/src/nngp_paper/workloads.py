"""Workloads: the runs that parts of the paper need, as work that can be counted and done.

Parts share experiments; each is done once, cheap ones first.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from nngp_paper.experiment import Config, Experiment
from nngp_paper.finite.requirements import need_packages
from nngp_paper.grids.study import DEEP_RUNS, GRID_RUNS, MAP_RUNS
from nngp_paper.part import AnyPart
from nngp_paper.parts.fig05_prior import PRIOR_RUNS
from nngp_paper.parts.fig06_angular import ANGULAR_RUNS
from nngp_paper.parts.fig07_graphical_model import SPREAD_RUNS
from nngp_paper.parts.invariance import INVARIANCE_RUNS
from nngp_paper.parts.width_limit import WIDTH_RUNS
from nngp_paper.runs import RunStore
from nngp_paper.runs.study import Executor, LocalExecutor, Study, carry_out
from nngp_paper.scope import Scope
from nngp_paper.shared.critical import CRITICAL_RUNS
from nngp_paper.shared.left_out_scale import SCALE_RUNS
from nngp_paper.shared.searches import FINITE_RUNS, GAP_RUNS, SearchSize, search_workload
from nngp_paper.shared.settings import SETTING_RUNS
from nngp_paper.shared.uncertainty import UNCERTAINTY_RUNS

# Cheap ones first. Of several of one name each holds the runs of those before it.
EXPERIMENTS = (
    ANGULAR_RUNS,
    PRIOR_RUNS,
    CRITICAL_RUNS,
    SPREAD_RUNS,
    UNCERTAINTY_RUNS,
    SCALE_RUNS,
    SETTING_RUNS,
    WIDTH_RUNS,
    INVARIANCE_RUNS,
    *DEEP_RUNS,
    *MAP_RUNS,
    GRID_RUNS,
    FINITE_RUNS,
    GAP_RUNS,
)


class Workload(Protocol):
    """The runs of one experiment: declared, and done until a time."""

    @property
    def experiment(self) -> str:
        """The name of the experiment in the store."""

    def declare(self, store: RunStore) -> list[str]:
        """Enter the runs into the store; gives their keys."""

    def do(self, store: RunStore, until: float, progress: bool | None) -> None:
        """Do the runs that are left; nothing is begun after `until`."""

    def later(self) -> Sequence[Config]:
        """Estimated configurations of runs that depend on the results of others."""


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

    def declare(self, store: RunStore) -> list[str]:
        keys: list[str] = []
        for study in self._studies(store):
            own = store.declare(study.experiment, study.configs)
            keys += own
            if store.pending(own):
                break
        return keys

    def do(self, store: RunStore, until: float, progress: bool | None) -> None:
        for study in self._studies(store):
            keys = carry_out(store, study, until=until, progress=progress, executor=self.executor)
            if store.pending(keys):
                break

    def later(self) -> Sequence[Config]:
        return self.kind.later(self.scope)

    def _studies(self, store: RunStore) -> Iterable[Study]:
        if self.kind.stages is not None:
            return self.kind.stages(store, self.scope)
        return [study_of(self.kind, self.scope)]


@dataclass(frozen=True)
class Remaining:
    """One workload: its runs as far as they are known, those that are left, and the largest
    training set whose kernel they factor, 0 if there is none."""

    experiment: str
    runs: int
    left: int
    points: int = 0


def remaining(store: RunStore, workload: Workload) -> Remaining:
    """Declare a workload's runs, and count those that are left."""
    runs = store.runs(keys=workload.declare(store))
    left = [run.config for run in runs if run.status in ("pending", "running")]
    known = {run.config.get("train") for run in runs}
    later = [config for config in workload.later() if runs and config["train"] not in known]
    points = max(map(_points, [*left, *later]), default=0)
    return Remaining(workload.experiment, len(runs), len(left), points)


def _points(config: Config) -> int:
    """Training points in the kernel of a run; networks of finite width have none."""
    return 0 if "width" in config else config.get("train", 0)


def workloads_for(
    parts: Sequence[AnyPart], scope: Scope, search: SearchSize, executor: Executor | None = None
) -> tuple[list[Workload], list[str]]:
    """The workloads that parts need, each once; and a sentence for each that has to be left out.
    Studies are done by `executor`; searches over finite networks in this process: their trials
    share lanes."""
    needed = {experiment for part in parts for experiment in part.experiments}
    largest = {one.name: one for one in EXPERIMENTS if one in needed}
    workloads: list[Workload] = []
    left_out: list[str] = []
    for experiment in largest.values():
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
    return study_of({one.name: one for one in EXPERIMENTS}[name], scope)


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
