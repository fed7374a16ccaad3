"""Stages of the search by evidence or leave-one-out density.

1. `kind`: every activation and depth, on a small subset of the points.
2. `relevance`: the best few, with a relevance for each group of inputs; where these are many, the
   best also from the relevances that trees find.
3. `targets`: the transforms of the targets, with the best of these.
4. `maps`: the maps of columns, with the best of these; then the others with these maps.
5. `more data`, `last`: the best two, then the finalists, on a larger subset; between them, where
   inputs are whitened, `whitening`: the best with every strength.
6. `folds`: with few rows, everything that rows were fitted by is fitted again without each fifth.
7. `invariance`: where rows are images and it is asked for, families of transformations.
8. `noise`: the noise variance alone, on a still larger subset.
"""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import NamedTuple, TypeVar

import numpy as np

from nngp._arrays import Array, Index
from nngp._progress import Progress, progress_for
from nngp._threads import in_threads
from nngp.architecture import Activation
from nngp.errors import VarianceError
from nngp.gram import has_lower_triangle
from nngp.posterior.dense_evidence import DenseEvidence, threaded_evidence
from nngp.predictive.targets import TargetScaling
from nngp.selection.choice import Choice
from nngp.selection.climb import Ascent, BestTrial, Budget, climb
from nngp.selection.cost import (
    FEW_AMOUNTS,
    FOLDS,
    NOISE_STEPS,
    VARIANCE_STEPS,
    WHITENING_STEPS,
    invariance_work,
    large_subset,
    most_networks,
    network_work,
    noise_subset,
    noise_work,
    scaling_work,
    staged_work,
)
from nngp.selection.effort import EFFORT, SearchEffort
from nngp.selection.inputs import HyperparameterPoint, SearchInputs
from nngp.selection.invariance_stage import InvarianceStage
from nngp.selection.judge import (
    OF_MAPS,
    OF_TRANSFORMS,
    Verdict,
    more_are_right,
    verdict,
)
from nngp.selection.map_search import can_map, power_starts, screened
from nngp.selection.noise_evidence import noise_evidence
from nngp.selection.noise_stage import CLASSES_DOWN, NOISE_DOWN, refitted
from nngp.selection.objective import Objective
from nngp.selection.problem import (
    CHOOSE,
    STARTS,
    Candidate,
    Hyperparameters,
    SelectionProblem,
    are_copies,
    scaled_known_noise,
)
from nngp.selection.ranking import distinct, leaders, ranked
from nngp.selection.space import Space
from nngp.selection.table import SelectionRow, SelectionTable
from nngp.selection.tree_start import MANY, relevances_of_trees

TRANSFORM_GAIN = 2.0  # of the log evidence, that a transform of the targets must bring
CLOSE = 5.0  # gain of the maps on few points below which more points decide
Item = TypeVar("Item")
Found = TypeVar("Found")


class Stage(NamedTuple):
    """Name in the table, points used, L-BFGS steps, whether relevances are learned, criterion."""

    name: str
    points: int
    steps: int
    relevance: bool = False
    criterion: str = ""  # that of the problem if empty


class Fold(NamedTuple):
    """Rows that are left out, and the others in the order of the search."""

    rows: Index
    others: Index


def staged_search(problem: SelectionProblem) -> Choice:
    """Return the best hyper-parameters found, the finalists and the table of all ascents."""
    learning = scaling_work(problem, len(problem.X))
    work = learning + staged_work(problem, len(problem.X))
    work += invariance_work(problem, len(problem.X))
    bar = progress_for(problem.progress)
    points = min(len(problem.X), problem.size)
    with Progress(CHOOSE, work, bar) as tracker, threaded_evidence(points) as dense:
        order = problem.rng.permutation(len(problem.X))
        inputs = SearchInputs(problem, order)
        tracker.advance(learning)
        search = _StagedSearch(problem, inputs, dense, Budget(most_networks(problem), tracker))
        found = search.run()
        tracker.finish()
        return Choice(found[0], found, search.table)


@dataclass
class _StagedSearch:
    problem: SelectionProblem
    inputs: SearchInputs
    dense: DenseEvidence
    budget: Budget
    table: SelectionTable = field(default_factory=SelectionTable)
    _targets: TargetScaling = field(init=False)  # the transform chosen
    _relevance: Array | None = None  # before any is learned; ones if None
    _failure: str = ""  # the last error of a network that could not be computed

    def __post_init__(self) -> None:
        self._targets = self.problem.targets[0]

    @property
    def _effort(self) -> SearchEffort:
        return EFFORT[self.problem.effort]

    @property
    def _large(self) -> int:
        """Points of the last stages."""
        return large_subset(self.problem, len(self.problem.X))

    def run(self) -> list[Hyperparameters]:
        """Run all stages and return the finalists, best first."""
        effort, n, problem = self._effort, len(self.problem.X), self.problem
        relevance = problem.learn_relevance and not problem.classes
        small = min(effort.points, problem.size, n)
        best = self._climb_kinds(Stage("kind", small, effort.kind))
        if relevance:
            stage = Stage("relevance", small, effort.relevance, True)
            kinds, best = best, self._climb_on(leaders(best)[: effort.finalists], stage) or best
            best = self._with_start_of_trees(kinds[0], best, stage)
        default, plain = self._targets, best
        best = self._choose_targets(best, Stage("targets", small, effort.targets, relevance))
        found = self._finish(best, small, relevance)
        if self._targets is not default:
            found = self._confirmed(found, plain, small, relevance)
        if relevance and n <= min(FEW_AMOUNTS, self._large):
            found = [self._cross_fitted(one) for one in found]
        if problem.invariance != ():
            found = self._with_invariance(found)
        count = noise_subset(problem, found[0].setting.invariance, n)
        if found[0].candidate.noise_var is None and count > self._large:
            found = [self._refit_noise(one, Stage("noise", count, NOISE_STEPS)) for one in found]
        self.table.chosen = found[0].setting
        return [self._as_hyperparameters(one) for one in found]

    def _each(
        self, function: Callable[["_StagedSearch", Item], Found], items: Sequence[Item]
    ) -> list[Found]:
        """The function of each item, by a search with a table of its own for each, in threads."""
        if len(items) < 2 or not self._in_any_order:
            return [function(self, item) for item in items]
        beside = [copy(self) for _ in items]
        for one in beside:
            one.table, one.dense = SelectionTable(), DenseEvidence()
        out = in_threads(
            lambda pair: function(*pair),
            list(zip(beside, items, strict=True)),
            meanwhile=self.budget.report,
            stop=self.budget.stop,
        )
        self.budget.report()
        for one in beside:
            self.table.rows += one.table.rows
            self._failure = one._failure or self._failure
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

    def _with_start_of_trees(
        self, kind: BestTrial, best: list[BestTrial], stage: Stage
    ) -> list[BestTrial]:
        """Climb from the relevances that trees find, too, where there are many inputs."""
        problem, groups = self.problem, self.inputs.groups
        few = len(np.unique(groups)) < MANY or problem.effort == "fast"
        if few or problem.relevance is not None or self.budget.is_spent:
            return best
        rows = self.inputs.rows(self._large)
        weights = None if problem.weights is None else problem.weights[rows]
        found = relevances_of_trees(
            problem.X[rows], self._targets(problem.Y[rows]), groups, weights
        )
        start = replace(kind.setting, relevance=found)
        return ranked([self._climb(kind.candidate, start, stage), *best])

    def _finish(self, best: list[BestTrial], small: int, relevance: bool) -> list[BestTrial]:
        """Choose maps, climb on more data, and return the finalists, best first."""
        # Subsets are nested: each stage adds points to those of the stage before.
        effort, problem, large = self._effort, self.problem, self._large
        if self._tries_maps(best[0]):
            best = self._choose_maps(best, Stage("maps", small, effort.maps, relevance))
        cross_fitted = problem.classes and len(problem.X) <= large
        if problem.classes and problem.learn_relevance and not cross_fitted:
            best = self._relevances_of_classes(best, small)
        leader = best[0]
        if large > small and effort.more:  # the order of the best may change with more data
            stage = Stage("more data", large, effort.more, relevance)
            best = self._climb_on(self._for_more_data(best), stage) or best
        finalists = distinct(best)[: problem.networks]
        if len(problem.strengths) > 1:
            stage = Stage("whitening", large, WHITENING_STEPS)
            best = finalists = self._choose_strength(finalists, stage)
        last = self._climb_on(finalists, Stage("last", large, effort.last, relevance))
        found = distinct(last or best)[: problem.networks]
        if cross_fitted and problem.learn_relevance:
            return self._cross_fitted_classes(leader, found, small)
        return found

    def _confirmed(
        self, found: list[BestTrial], plain: list[BestTrial], small: int, relevance: bool
    ) -> list[BestTrial]:
        """Finish without a transform of the targets, too, and keep what predicts better."""
        chosen, judged = self._targets, self._verdict(found[0])
        self._targets = self.problem.targets[0]
        rival = self._finish(plain, small, relevance)
        other = self._verdict(rival[0])
        if judged is not None and other is not None and not judged.confirms(other):
            return rival
        self._targets = chosen
        return found

    def _climb_kinds(self, stage: Stage) -> list[BestTrial]:
        """Climb every candidate; best first.

        The first of each activation is climbed from all starts, the others from the start that was
        best for it. The very first also decides whether columns keep their own spread.
        """
        by_activation: dict[Activation, list[Candidate]] = {}
        for candidate in self.problem.candidates:
            by_activation.setdefault(candidate.activation, []).append(candidate)
        first, *others = by_activation.values()

        def climb_all(
            search: "_StagedSearch", candidates: list[Candidate]
        ) -> list[BestTrial | None]:
            return search._climb_activation(candidates, stage)

        out = self._climb_activation(first, stage, decides=self._may_keep_spread)
        out += [one for found in self._each(climb_all, others) for one in found]
        if not ranked(out):
            reason = f" ({self._failure})" if self._failure else ""
            raise VarianceError(
                f"none of the networks tried could be computed on these data{reason}; set "
                "weight_var, bias_var and noise_var otherwise, or rescale the inputs"
            )
        return ranked(out)

    def _climb_activation(
        self, candidates: Sequence[Candidate], stage: Stage, *, decides: bool = False
    ) -> list[BestTrial | None]:
        """Climb the candidates of one activation. With `decides`, the first is also climbed with
        the columns' own spreads, which the search keeps if they are better."""
        first, *others = candidates
        starts = [self._start(first, k, self._relevance) for k in range(len(STARTS))]
        out = self._climb_from([(first, start) for start in starts], stage)
        scores = [-np.inf if one is None else one.score for one in out]
        best = int(np.argmax(scores))
        if decides and any(out):
            start = self._start(first, best, self.inputs.base.own_spread)
            out.append(self._climb_unscaled(first, start, max(scores), stage))
        starts = [self._start(one, best, self._relevance) for one in others]
        return out + self._climb_from(list(zip(others, starts, strict=True)), stage)

    @property
    def _may_keep_spread(self) -> bool:
        """Whether columns may keep their own spreads: relevances, given or learned by evidence,
        replace them."""
        problem = self.problem
        learned = problem.learn_relevance and not problem.classes
        return problem.scaling == "auto" and problem.relevance is None and not learned

    def _start(
        self, candidate: Candidate, which: int, relevance: Array | None
    ) -> HyperparameterPoint:
        start = candidate.starting_at(STARTS[which])
        return HyperparameterPoint(*start, relevance, whitening=self.inputs.strength)

    def _climb_unscaled(
        self, candidate: Candidate, start: HyperparameterPoint, score: float, stage: Stage
    ) -> BestTrial | None:
        """Climb with the columns' own spreads, and keep them if that beats `score`."""
        climbed = self._climb(candidate, start, stage)
        if climbed is not None and climbed.score > score:
            self._relevance = start.relevance
        return climbed

    def _choose_targets(self, best: list[BestTrial], stage: Stage) -> list[BestTrial]:
        """Climb the leader with every other transform of the targets; keep the best by evidence in
        units of the data that predicts no worse."""
        leader, default, points = best[0], self._targets, stage.points
        size = points * self.problem.Y.shape[1]
        chosen, value = default, leader.score * size + self._log_jacobian(default, points)
        judged = self._verdict(leader) if len(self.problem.targets) > 1 else None
        others = self.problem.targets[1:]

        def climb_with(search: "_StagedSearch", targets: TargetScaling) -> BestTrial | None:
            search._targets = targets
            return search._climb(leader.candidate, leader.setting, stage)

        for targets, found in zip(others, self._each(climb_with, others), strict=True):
            if found is None:
                break
            self._targets = targets
            reached = found.score * size + self._log_jacobian(targets, points)
            if reached > value + (TRANSFORM_GAIN if chosen is default else 0.0):
                now = self._verdict(found)
                if judged is None or now is None or now.confirms(judged, OF_TRANSFORMS):
                    chosen, value, judged = targets, reached, now
        self._targets = chosen
        if chosen is default:
            return best
        again = leaders(best)[: self._effort.finalists]
        return self._climb_on(again, stage) or best

    def _verdict(self, found: BestTrial) -> Verdict | None:
        """Leave-one-out of a setting on the larger subset; None where it is not cheap."""
        if not has_lower_triangle(found.setting.base):
            return None
        objective = self._objective(Stage("", self._large, 0, criterion="loo"))
        Y = self.problem.Y[self.inputs.rows(self._large)]
        return verdict(objective, found.setting, Y, self._targets)

    def _tries_maps(self, leader: BestTrial) -> bool:
        return (
            not self.problem.classes
            and self.problem.maps == "auto"
            and not self.inputs.base.unit
            and has_lower_triangle(leader.setting.base)
            and can_map(self.inputs)
        )

    def _choose_maps(self, best: list[BestTrial], stage: Stage) -> list[BestTrial]:
        """Find the leader's maps; climb the others with them. The leader without maps stays among
        the best where few points hardly prefer them."""
        leader, size = best[0], stage.points * self.problem.Y.shape[1]
        starts = power_starts(self.inputs, leader.setting)
        climbed = self._climb_from([(leader.candidate, start) for start in starts], stage)
        mapped = ranked([leader, *climbed])[0]
        setting = self._screen(mapped, stage)
        if setting is not mapped.setting:
            stage = stage._replace(steps=max(stage.steps // 2, 1))
            mapped = self._climb(leader.candidate, setting, stage) or mapped
        gain = (mapped.score - leader.score) * size
        if gain <= 0 or mapped.setting.kinds == self.inputs.default_kinds:
            return best
        before, after = self._verdict(leader), self._verdict(mapped)
        if before is not None and after is not None and not after.confirms(before, OF_MAPS):
            return best
        kept = [leader] if gain < CLOSE else []
        maps = mapped.setting
        others = [
            (one.candidate, replace(one.setting, kinds=maps.kinds, powers=maps.powers))
            for one in best[1:]
        ]
        return ranked([mapped, *self._climb_from(others, stage), *kept])

    def _choose_strength(self, finalists: list[BestTrial], stage: Stage) -> list[BestTrial]:
        """Climb the leader with every strength of whitening; the others take its best."""
        leader, *others = finalists
        strengths = self.problem.strengths
        starts = [(leader.candidate, replace(leader.setting, whitening=s)) for s in strengths]
        found = ranked(self._climb_from(starts, stage))
        if not found:
            return finalists
        strength = found[0].setting.whitening
        moved = [replace(one.setting, whitening=strength) for one in others]
        pairs = zip(others, moved, strict=True)
        return [found[0], *(one._replace(setting=at) for one, at in pairs)]

    def _with_invariance(self, found: list[BestTrial]) -> list[BestTrial]:
        """Average the finalists over the given families, or over those that suit the first."""
        stage = Stage("invariance", self._large, 1, criterion="evidence")
        note = partial(self._note, stage)
        objective = self._objective(stage)
        return InvarianceStage(self.problem, objective, self._targets, note, self.budget).run(found)

    def _for_more_data(self, best: list[BestTrial]) -> list[BestTrial]:
        """The best, the best of another activation, and those with other maps than theirs."""
        several = leaders(best)[: max(2, self.problem.networks)]
        candidates = {one.candidate for one in several}
        known = {id(one) for one in several}
        return several + [
            one for one in best if one.candidate in candidates and id(one) not in known
        ]

    def _screen(self, found: BestTrial, stage: Stage) -> HyperparameterPoint:
        """Try other maps column by column."""
        objective, size = self._objective(stage), stage.points * self.problem.Y.shape[1]

        def score(at: HyperparameterPoint) -> float:
            return size * objective.score(self._space(found.candidate, at, stage), at)

        return screened(self.inputs, found.setting, score, self.budget.may_spend)

    def _relevances_of_classes(self, best: list[BestTrial], small: int) -> list[BestTrial]:
        """Find relevances by leave-one-out: the evidence of one-hot targets counts each point once
        for every class. They are kept if more points, left out one by one, confirm them."""
        leader = best[0]
        if (found := self._relevant(leader, small)) is None:
            return best
        judge = self._objective(Stage("", self._large, 0, criterion="loo"))
        return [found] if more_are_right(judge, found.setting, leader.setting) else best

    def _relevant(self, leader: BestTrial, points: int) -> BestTrial | None:
        """Climb a network of classes in its relevances, by leave-one-out on so many points."""
        if not has_lower_triangle(leader.setting.base) or self.inputs.base.unit:
            return None
        stage = Stage("relevance", points, self._effort.relevance, True, "loo")
        start = leader.setting
        if start.relevance is None:
            start = replace(start, relevance=np.ones(self.problem.X.shape[1]))
        return _computed(self._climb(leader.candidate, start, stage))

    def _cross_fitted_classes(
        self, leader: BestTrial, plain: list[BestTrial], small: int
    ) -> list[BestTrial]:
        """The finalists, and the leader with relevances. All are judged by rows that they were not
        learned from, so that shares and likelihoods can be chosen on these rows."""
        large, steps = self._large, self._effort.last
        found = self._relevant(leader, small)
        last = found and self._climb_on([found], Stage("last", large, steps))
        finalists = [*(last or []), *plain]
        relevant = last[0] if last else None

        def chosen(search: "_StagedSearch", part: Fold) -> list[HyperparameterPoint | None]:
            fold, few = search._on(part.others), len(part.others) * small // large
            return [fold._climb_again(one, few, one is relevant) for one in finalists]

        folds = self._folds()
        found_in = self._each(chosen, folds)
        if any(setting is None for settings in found_in for setting in settings):
            return plain
        rows = [fold.rows for fold in folds]
        by_finalist = zip(*found_in, strict=True)
        return [
            one._replace(folds=tuple(zip(rows, settings, strict=True)))
            for one, settings in zip(finalists, by_finalist, strict=True)
        ]

    def _climb_again(
        self, finalist: BestTrial, few: int, relevant: bool
    ) -> HyperparameterPoint | None:
        """Choose the variances, and relevances, of a finalist anew, from the start."""
        start = self._start(finalist.candidate, 0, self._relevance)
        kinds = Stage("kind", few, self._effort.kind)
        at = _computed(self._climb(finalist.candidate, start, kinds))
        if at is not None and relevant:
            at = self._relevant(at, few)
        variances = Stage("last", len(self.inputs.order), VARIANCE_STEPS)
        end = at and _computed(self._climb(finalist.candidate, at.setting, variances))
        return end.setting if end else None

    def _cross_fitted(self, found: BestTrial) -> BestTrial:
        """Learn relevances, powers and variances anew without each fifth of the rows. The network,
        the kinds of the maps and the transform of the targets stay."""
        steps = self._effort.relevance + self._effort.last
        start = replace(found.setting, relevance=np.ones(self.problem.X.shape[1]))

        def climbed(search: "_StagedSearch", part: Fold) -> BestTrial | None:
            stage = Stage("last", len(part.others), steps, True)
            return _computed(search._on(part.others)._climb(found.candidate, start, stage))

        folds = self._folds()
        ends = [one for one in self._each(climbed, folds) if one is not None]
        if len(ends) < len(folds):
            return found
        pairs = zip(folds, ends, strict=True)
        return found._replace(folds=tuple((fold.rows, end.setting) for fold, end in pairs))

    def _folds(self) -> list[Fold]:
        order = self.inputs.order
        left = [np.arange(len(order)) % FOLDS == k for k in range(FOLDS)]
        return [Fold(np.sort(order[rows]), order[~rows]) for rows in left]

    def _on(self, order: Index) -> "_StagedSearch":
        """A search on some rows, which adds nothing to the table."""
        out = copy(self)
        out.inputs, out.table = self.inputs.on(order), SelectionTable()
        return out

    def _climb_on(self, climbs: Sequence[BestTrial], stage: Stage) -> list[BestTrial]:
        """Continue each from where it is; best first, empty if the budget is spent."""
        return ranked(self._climb_from([(one.candidate, one.setting) for one in climbs], stage))

    def _climb_from(
        self, starts: Sequence[tuple[Candidate, HyperparameterPoint]], stage: Stage
    ) -> list[BestTrial | None]:
        """Run an ascent from each start."""
        return self._each(lambda search, start: search._climb(*start, stage), starts)

    def _refit_noise(self, found: BestTrial, stage: Stage) -> BestTrial:
        """Find the noise variance alone, with more points."""
        net, averages = found.setting.base, bool(found.setting.invariance)
        candidate = replace(found.candidate, weight_var=net.weight_var, bias_var=net.bias_var)
        if net.is_infinite and not averages:
            few = self._effort.noise_factor * self._large
            stage = stage._replace(points=min(stage.points, few))
            return (self._climb_on([found._replace(candidate=candidate)], stage) or [found])[0]
        if self.budget.is_spent or net.is_infinite:
            return found
        X = self.inputs.scaled(found.setting, stage.points).X
        space = self._space(candidate, found.setting, stage)
        evidence = partial(
            noise_evidence, self.problem.engine, self.dense, found.setting.network, X
        )
        down = CLASSES_DOWN if self.problem.classes else NOISE_DOWN
        out = refitted(found, self._objective(stage), space, evidence, down, stage.steps)
        self.budget.may_spend()  # one network, whatever its noise
        n, families = len(self.problem.X), found.setting.invariance
        self.budget.tracker.advance(noise_work(self.problem, families, n, stage.steps))
        if out is not found:
            self._note(stage, out)
        return out

    def _climb(
        self, candidate: Candidate, start: HyperparameterPoint, stage: Stage
    ) -> BestTrial | None:
        """Run one ascent and add its row to the table; None if the budget is spent."""
        if self.budget.is_spent:
            return None
        space = self._space(candidate, start, stage)
        ascent = Ascent(self.budget, stage.steps, network_work([candidate], stage.points))
        found = climb(self._objective(stage), space, start, stage.steps, ascent)
        self._failure = found.failure or self._failure
        self._note(stage, found)
        return found

    def _note(self, stage: Stage, found: BestTrial) -> None:
        evidence = found.log_evidence + self._log_jacobian(self._targets, stage.points)
        kinds = found.setting.kinds or self.inputs.default_kinds
        maps = ["" if kind == "identity" else kind for kind in kinds]
        row = SelectionRow(
            stage.name,
            stage.points,
            found.score,
            evidence,
            found.evaluations,
            found.seconds,
            found.setting,
            sum(map(bool, maps)),
            self._targets.transform,
        )
        self.table.rows.append(row)

    def _space(self, candidate: Candidate, at: HyperparameterPoint, stage: Stage) -> Space:
        groups = self.inputs.groups if stage.relevance else None
        floor = self._targets.noise_floor
        return Space(candidate, groups, self._relevance, at.moving, floor)

    def _objective(self, stage: Stage) -> Objective:
        problem, rows = self.problem, self.inputs.rows(stage.points)
        Y = problem.Y[rows]
        known = None if problem.known_noise is None else problem.known_noise[rows]
        return Objective(
            self.inputs,
            stage.points,
            self._targets(Y),
            stage.criterion or str(problem.criterion),
            self.dense,
            problem.engine,
            None if problem.weights is None else problem.weights[rows],
            scaled_known_noise(known, Y, self._targets),
        )

    def _log_jacobian(self, targets: TargetScaling, count: int) -> float:
        rows = self.inputs.rows(count)
        slopes, weights = targets.log_slopes(self.problem.Y[rows]), self.problem.weights
        if weights is None or not are_copies(weights[rows]):
            return float(slopes.sum())
        return float((slopes * weights[rows][:, None]).sum())

    def _as_hyperparameters(self, found: BestTrial) -> Hyperparameters:
        families = found.setting.invariance
        folds = tuple(
            (rows, self._hyperparameters_at(replace(at, invariance=families)))
            for rows, at in found.folds
        )
        return replace(self._hyperparameters_at(found.setting), folds=folds)

    def _hyperparameters_at(self, at: HyperparameterPoint) -> Hyperparameters:
        return Hyperparameters(at.network, at.noise_var, self.inputs.scaling(at), self._targets)


def _computed(found: BestTrial | None) -> BestTrial | None:
    """The ascent, if it found a network that can be computed."""
    return found if found is not None and np.isfinite(found.score) else None
