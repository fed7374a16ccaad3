"""State of the search: how trials are computed, and the best of them so far.

A stage (`stages`) is a function from one `Search` to the next; nothing here changes but the table,
to which every trial adds a row.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, TypeVar

from nngp._arrays import Array, Index
from nngp._threads import in_threads
from nngp.gram import has_lower_triangle
from nngp.posterior.evidence.dense_evidence import DenseEvidence
from nngp.predictive.targets import TargetScaling
from nngp.selection.cost import judged_subset, large_subset, network_work, small_subset
from nngp.selection.inputs import SearchInputs
from nngp.selection.judge import Verdict, verdict
from nngp.selection.maximise import Ascent, BestTrial, Budget, maximise, ranked
from nngp.selection.objective import Objective
from nngp.selection.problem import (
    EFFORT,
    STARTS,
    Candidate,
    HyperparameterPoint,
    Hyperparameters,
    SearchEffort,
    SelectionProblem,
    SelectionRow,
    SelectionTable,
    are_copies,
    scaled_known_noise,
)
from nngp.selection.space import Space

Item = TypeVar("Item")
Found = TypeVar("Found")
Begin = tuple[Candidate, HyperparameterPoint]


class Stage(NamedTuple):
    """Name in the table, points used, L-BFGS steps, whether relevances are learned, criterion."""

    name: str
    points: int
    steps: int
    relevance: bool = False
    criterion: str = ""  # that of the problem if empty


@dataclass(frozen=True)
class Search:
    """The data of a search, the choices made so far, and the best trials, best first."""

    problem: SelectionProblem
    inputs: SearchInputs
    dense: DenseEvidence
    budget: Budget
    table: SelectionTable
    targets: TargetScaling  # the transform that was chosen
    best: tuple[BestTrial, ...] = ()
    relevance: Array | None = None  # before any is learned; ones if None
    plain: tuple[BestTrial, ...] = ()  # the best without relevances and maps
    unmapped: tuple[BestTrial, ...] = ()  # the best with relevances, without maps
    untransformed: "Search | None" = None  # the search before a transform was chosen

    @property
    def effort(self) -> SearchEffort:
        """Points and steps of the stages."""
        return EFFORT[self.problem.effort]

    @property
    def n(self) -> int:
        """Rows of the data."""
        return len(self.problem.X)

    @property
    def small(self) -> int:
        """Points of the first stages."""
        return small_subset(self.problem, self.n)

    @property
    def judged(self) -> int:
        """Points that are left out one by one to judge maps and transforms."""
        return judged_subset(self.problem, self.n)

    @property
    def large(self) -> int:
        """Points of the last stages."""
        return large_subset(self.problem, self.n)

    @property
    def learns_relevance(self) -> bool:
        """Whether the evidence learns relevances; those of classes are learned by leave-one-out."""
        return self.problem.learn_relevance and not self.problem.classes

    def with_best(self, trials: Iterable[BestTrial | None]) -> "Search":
        """The search with these trials as the best; as it is where none could be computed."""
        found = ranked(list(trials))
        return replace(self, best=tuple(found)) if found else self

    def on(self, order: Index) -> "Search":
        """The same search on some rows, which adds nothing to the table."""
        return replace(self, inputs=self.inputs.on(order), table=SelectionTable())

    def each(
        self, function: Callable[["Search", Item], Found], items: Sequence[Item]
    ) -> list[Found]:
        """The function of each item, in threads: each has a table and an evaluator of its own."""
        if len(items) < 2 or not self._in_any_order:
            return [function(self, item) for item in items]
        parallel = [replace(self, table=SelectionTable(), dense=DenseEvidence()) for _ in items]
        out = in_threads(
            lambda pair: function(*pair),
            list(zip(parallel, items, strict=True)),
            meanwhile=self.budget.report,
            stop=self.budget.stop,
        )
        self.budget.report()
        for one in parallel:
            self.table.rows += one.table.rows
        return out

    @cached_property
    def _in_any_order(self) -> bool:
        """Whether ascents may run at the same time: they share no limit, and need no `condition`,
        whose warnings are silenced one at a time."""
        candidates = self.problem.candidates
        return self.budget.limit is None and all(
            one.noise_var is None and has_lower_triangle(one.starting_at(STARTS[0])[0])
            for one in candidates
        )

    def start(
        self, candidate: Candidate, which: int = 0, relevance: Array | None = None
    ) -> HyperparameterPoint:
        """The point where an ascent of a candidate begins."""
        relevance = self.relevance if relevance is None else relevance
        begin = candidate.starting_at(STARTS[which])
        return HyperparameterPoint(*begin, relevance, whitening=self.inputs.strength)

    def trial(
        self, candidate: Candidate, start: HyperparameterPoint, stage: Stage
    ) -> BestTrial | None:
        """Run one ascent and add its row to the table; None if the budget is spent."""
        if self.budget.is_spent:
            return None
        space = self.space(candidate, start, stage)
        ascent = Ascent(self.budget, stage.steps, network_work([candidate], stage.points))
        found = maximise(self.objective(stage), space, start, stage.steps, ascent)
        self.record(stage, found)
        return found

    def trials(self, starts: Sequence[Begin], stage: Stage) -> list[BestTrial | None]:
        """Run an ascent from each start."""
        return self.each(lambda search, start: search.trial(*start, stage), starts)

    def continued(self, trials: Sequence[BestTrial], stage: Stage) -> list[BestTrial | None]:
        """Continue each from where it is."""
        return self.trials([(one.candidate, one.setting) for one in trials], stage)

    def record(self, stage: Stage, found: BestTrial) -> None:
        """Add a row to the table."""
        evidence = found.log_evidence + self.log_jacobian(self.targets, stage.points)
        kinds = found.setting.kinds or self.inputs.default_kinds
        row = SelectionRow(
            stage.name,
            stage.points,
            found.score,
            evidence,
            found.evaluations,
            found.seconds,
            found.setting,
            sum(kind != "identity" for kind in kinds),
            self.targets.transform,
        )
        self.table.rows.append(row)

    def space(self, candidate: Candidate, at: HyperparameterPoint, stage: Stage) -> Space:
        """The free hyper-parameters of an ascent."""
        groups = self.inputs.groups if stage.relevance else None
        return Space(candidate, groups, self.relevance, at.moving, self.targets.noise_floor)

    def objective(self, stage: Stage) -> Objective:
        """The criterion on the points of a stage."""
        problem, rows = self.problem, self.inputs.rows(stage.points)
        Y = problem.Y[rows]
        known = None if problem.known_noise is None else problem.known_noise[rows]
        return Objective(
            self.inputs,
            stage.points,
            self.targets(Y),
            stage.criterion or str(problem.criterion),
            self.dense,
            problem.engine,
            None if problem.weights is None else problem.weights[rows],
            scaled_known_noise(known, Y, self.targets),
        )

    def verdict(self, found: BestTrial) -> Verdict | None:
        """Leave-one-out of a trial on more points; None where it is not cheap."""
        if not has_lower_triangle(found.setting.base):
            return None
        objective = self.objective(Stage("", self.judged, 0, criterion="loo"))
        Y = self.problem.Y[self.inputs.rows(self.judged)]
        return verdict(objective, found.setting, Y, self.targets)

    def log_jacobian(self, targets: TargetScaling, count: int) -> float:
        """The logarithm of the Jacobian: added to a log evidence of scaled targets it gives that of
        targets."""
        rows = self.inputs.rows(count)
        slopes, weights = targets.log_slopes(self.problem.Y[rows]), self.problem.weights
        if weights is None or not are_copies(weights[rows]):
            return float(slopes.sum())
        return float((slopes * weights[rows][:, None]).sum())

    def hyperparameters(self, found: BestTrial) -> Hyperparameters:
        """All that a fit needs of a trial."""
        families = found.setting.invariance
        folds = tuple(
            (rows, self._hyperparameters_at(replace(at, invariance=families)))
            for rows, at in found.folds
        )
        return replace(self._hyperparameters_at(found.setting), folds=folds)

    def _hyperparameters_at(self, at: HyperparameterPoint) -> Hyperparameters:
        return Hyperparameters(at.network, at.noise_var, self.inputs.scaling(at), self.targets)
