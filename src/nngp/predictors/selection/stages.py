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

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from nngp._arrays import Array, Index
from nngp._progress import Progress, progress_for
from nngp.architecture import Activation
from nngp.errors import VarianceError
from nngp.posterior.dense_evidence import DenseEvidence, is_supported
from nngp.predictors.selection.choice import Choice
from nngp.predictors.selection.climb import Budget, Climb, climb
from nngp.predictors.selection.cost import (
    FEW_AMOUNTS,
    FOLDS,
    NOISE_STEPS,
    VARIANCE_STEPS,
    WHITENING_STEPS,
    invariance_seconds,
    large_subset,
    most_networks,
    network_seconds,
    noise_seconds,
    noise_subset,
    scaling_seconds,
    staged_seconds,
)
from nngp.predictors.selection.effort import EFFORT, SearchEffort
from nngp.predictors.selection.inputs import SearchInputs, Setting
from nngp.predictors.selection.invariance_stage import InvarianceStage
from nngp.predictors.selection.judge import (
    OF_MAPS,
    OF_TRANSFORMS,
    Verdict,
    more_are_right,
    verdict,
)
from nngp.predictors.selection.map_search import can_map, power_starts, screened
from nngp.predictors.selection.noise_evidence import noise_evidence
from nngp.predictors.selection.noise_stage import CLASSES_DOWN, NOISE_DOWN, refitted
from nngp.predictors.selection.objective import Objective
from nngp.predictors.selection.problem import (
    CHOOSE,
    STARTS,
    Candidate,
    Hyperparameters,
    SelectionProblem,
    are_copies,
    scaled_known_noise,
)
from nngp.predictors.selection.ranking import distinct, leaders, ranked
from nngp.predictors.selection.space import Space
from nngp.predictors.selection.table import SelectionRow, SelectionTable
from nngp.predictors.selection.tree_start import MANY, relevances_of_trees
from nngp.predictors.targets import TargetScaling

THREADS, THREADED = 2, 800  # threads of an evaluation, from so many points on
TRANSFORM_GAIN = 2.0  # of the log evidence, that a transform of the targets must bring
CLOSE = 5.0  # gain of the maps on few points below which more points decide


class Stage(NamedTuple):
    """Name in the table, points used, L-BFGS steps, whether relevances are learned, criterion."""

    name: str
    points: int
    steps: int
    relevance: bool = False
    criterion: str = ""  # that of the problem if empty


def staged_search(problem: SelectionProblem) -> Choice:
    """Return the best hyper-parameters found, the finalists and the table of all ascents."""
    learning = scaling_seconds(problem, len(problem.X))
    seconds = learning + staged_seconds(problem, len(problem.X))
    seconds += invariance_seconds(problem, len(problem.X))
    bar = progress_for(problem.progress, seconds)
    with Progress(CHOOSE, seconds, bar, seconds) as tracker, _dense(problem) as dense:
        order = problem.rng.permutation(len(problem.X))
        inputs = SearchInputs(problem, order)
        tracker.advance(learning)
        search = _StagedSearch(problem, inputs, dense, Budget(most_networks(problem), tracker))
        found = search.run()
        tracker.finish()
        return Choice(found[0], found, search.table)


@contextmanager
def _dense(problem: SelectionProblem) -> Iterator[DenseEvidence]:
    """The evaluator of a whole search; its threads end with it."""
    if min(len(problem.X), problem.size) < THREADED:
        yield DenseEvidence()
        return
    with ThreadPoolExecutor(THREADS) as pool:
        yield DenseEvidence(pool)


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

    def _with_start_of_trees(self, kind: Climb, best: list[Climb], stage: Stage) -> list[Climb]:
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

    def _finish(self, best: list[Climb], small: int, relevance: bool) -> list[Climb]:
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
        self, found: list[Climb], plain: list[Climb], small: int, relevance: bool
    ) -> list[Climb]:
        """Finish without a transform of the targets, too, and keep what predicts better."""
        chosen, judged = self._targets, self._verdict(found[0])
        self._targets = self.problem.targets[0]
        rival = self._finish(plain, small, relevance)
        other = self._verdict(rival[0])
        if judged is not None and other is not None and not judged.confirms(other):
            return rival
        self._targets = chosen
        return found

    def _climb_kinds(self, stage: Stage) -> list[Climb]:
        """Climb every candidate; best first.

        The first of each activation is climbed from all starts, the others from the start that was
        best for it. The very first also decides whether columns keep their own spread.
        """
        out: list[Climb | None] = []
        best_start: dict[Activation, int] = {}
        for candidate in self.problem.candidates:
            phi = candidate.activation
            which = [best_start[phi]] if phi in best_start else range(len(STARTS))
            starts = [self._start(candidate, k, self._relevance) for k in which]
            climbed = [self._climb(candidate, start, stage) for start in starts]
            if not any(climbed):
                break
            scores = [-np.inf if one is None else one.score for one in climbed]
            best_start.setdefault(phi, which[int(np.argmax(scores))])
            if self._may_keep_spread and not ranked(out):
                start = self._start(candidate, best_start[phi], self.inputs.base.own_spread)
                climbed.append(self._climb_unscaled(candidate, start, max(scores), stage))
            out += climbed
        if not ranked(out):
            reason = f" ({self._failure})" if self._failure else ""
            raise VarianceError(
                f"none of the networks tried could be computed on these data{reason}; set "
                "weight_var, bias_var and noise_var otherwise, or rescale the inputs"
            )
        return ranked(out)

    @property
    def _may_keep_spread(self) -> bool:
        """Whether columns may keep their own spreads: relevances, given or learned by evidence,
        replace them."""
        problem = self.problem
        learned = problem.learn_relevance and not problem.classes
        return problem.scaling == "auto" and problem.relevance is None and not learned

    def _start(self, candidate: Candidate, which: int, relevance: Array | None) -> Setting:
        start = candidate.starting_at(STARTS[which])
        return Setting(*start, relevance, whitening=self.inputs.strength)

    def _climb_unscaled(
        self, candidate: Candidate, start: Setting, score: float, stage: Stage
    ) -> Climb | None:
        """Climb with the columns' own spreads, and keep them if that beats `score`."""
        climbed = self._climb(candidate, start, stage)
        if climbed is not None and climbed.score > score:
            self._relevance = start.relevance
        return climbed

    def _choose_targets(self, best: list[Climb], stage: Stage) -> list[Climb]:
        """Climb the leader with every other transform of the targets; keep the best by evidence in
        units of the data that predicts no worse."""
        leader, default, points = best[0], self._targets, stage.points
        size = points * self.problem.Y.shape[1]
        chosen, value = default, leader.score * size + self._log_jacobian(default, points)
        judged = self._verdict(leader) if len(self.problem.targets) > 1 else None
        for targets in self.problem.targets[1:]:
            self._targets = targets
            found = self._climb(leader.candidate, leader.setting, stage)
            if found is None:
                break
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

    def _verdict(self, found: Climb) -> Verdict | None:
        """Leave-one-out of a setting on the larger subset; None where it is not cheap."""
        if not is_supported(found.setting.architecture):
            return None
        objective = self._objective(Stage("", self._large, 0, criterion="loo"))
        Y = self.problem.Y[self.inputs.rows(self._large)]
        return verdict(objective, found.setting, Y, self._targets)

    def _tries_maps(self, leader: Climb) -> bool:
        return (
            not self.problem.classes
            and self.problem.maps == "auto"
            and not self.inputs.base.unit
            and is_supported(leader.setting.architecture)
            and can_map(self.inputs)
        )

    def _choose_maps(self, best: list[Climb], stage: Stage) -> list[Climb]:
        """Find the leader's maps; climb the others with them. The leader without maps stays among
        the best where few points hardly prefer them."""
        leader, size = best[0], stage.points * self.problem.Y.shape[1]
        starts = power_starts(self.inputs, leader.setting)
        mapped = ranked([leader, *(self._climb(leader.candidate, s, stage) for s in starts)])[0]
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
        others = [replace(one.setting, kinds=maps.kinds, powers=maps.powers) for one in best[1:]]
        pairs = zip(best[1:], others, strict=True)
        climbed = [self._climb(one.candidate, start, stage) for one, start in pairs]
        return ranked([mapped, *climbed, *kept])

    def _choose_strength(self, finalists: list[Climb], stage: Stage) -> list[Climb]:
        """Climb the leader with every strength of whitening; the others take its best."""
        leader, *others = finalists
        starts = [replace(leader.setting, whitening=one) for one in self.problem.strengths]
        found = ranked([self._climb(leader.candidate, start, stage) for start in starts])
        if not found:
            return finalists
        strength = found[0].setting.whitening
        moved = [replace(one.setting, whitening=strength) for one in others]
        pairs = zip(others, moved, strict=True)
        return [found[0], *(one._replace(setting=at) for one, at in pairs)]

    def _with_invariance(self, found: list[Climb]) -> list[Climb]:
        """Average the finalists over the given families, or over those that suit the first."""
        stage = Stage("invariance", self._large, 1, criterion="evidence")
        note = partial(self._note, stage)
        objective = self._objective(stage)
        return InvarianceStage(self.problem, objective, self._targets, note, self.budget).run(found)

    def _for_more_data(self, best: list[Climb]) -> list[Climb]:
        """The best, the best of another activation, and those with other maps than theirs."""
        several = leaders(best)[: max(2, self.problem.networks)]
        candidates = {one.candidate for one in several}
        known = {id(one) for one in several}
        return several + [
            one for one in best if one.candidate in candidates and id(one) not in known
        ]

    def _screen(self, found: Climb, stage: Stage) -> Setting:
        """Try other maps column by column."""
        objective, size = self._objective(stage), stage.points * self.problem.Y.shape[1]

        def score(at: Setting) -> float:
            return size * objective.score(self._space(found.candidate, at, stage), at)

        return screened(self.inputs, found.setting, score, self.budget.may_spend)

    def _relevances_of_classes(self, best: list[Climb], small: int) -> list[Climb]:
        """Find relevances by leave-one-out: the evidence of one-hot targets counts each point once
        for every class. They are kept if more points, left out one by one, confirm them."""
        leader = best[0]
        if (found := self._relevant(leader, small)) is None:
            return best
        judge = self._objective(Stage("", self._large, 0, criterion="loo"))
        return [found] if more_are_right(judge, found.setting, leader.setting) else best

    def _relevant(self, leader: Climb, points: int) -> Climb | None:
        """Climb a network of classes in its relevances, by leave-one-out on so many points."""
        if not is_supported(leader.setting.architecture) or self.inputs.base.unit:
            return None
        stage = Stage("relevance", points, self._effort.relevance, True, "loo")
        start = leader.setting
        if start.relevance is None:
            start = replace(start, relevance=np.ones(self.problem.X.shape[1]))
        return _computed(self._climb(leader.candidate, start, stage))

    def _cross_fitted_classes(self, leader: Climb, plain: list[Climb], small: int) -> list[Climb]:
        """The finalists, and the leader with relevances. All are judged by rows that they were not
        learned from, so that shares and likelihoods can be chosen on these rows."""
        large, steps = self._large, self._effort.last
        found = self._relevant(leader, small)
        last = found and self._climb_on([found], Stage("last", large, steps))
        finalists = [*(last or []), *plain]
        parts: list[list[tuple[Index, Setting]]] = [[] for _ in finalists]
        for rows, fold, others in self._folds():
            few = len(others) * small // large
            kinds = Stage("kind", few, self._effort.kind)
            variances = Stage("last", len(others), VARIANCE_STEPS)
            for one, part in zip(finalists, parts, strict=True):
                start = self._start(one.candidate, 0, self._relevance)
                at = _computed(fold._climb(one.candidate, start, kinds))
                if at is not None and last and one is last[0]:
                    at = fold._relevant(at, few)
                end = at and _computed(fold._climb(one.candidate, at.setting, variances))
                if not end:
                    return plain
                part.append((rows, end.setting))
        pairs = zip(finalists, parts, strict=True)
        return [one._replace(folds=tuple(part)) for one, part in pairs]

    def _cross_fitted(self, found: Climb) -> Climb:
        """Learn relevances, powers and variances anew without each fifth of the rows. The network,
        the kinds of the maps and the transform of the targets stay."""
        steps = self._effort.relevance + self._effort.last
        start = replace(found.setting, relevance=np.ones(self.problem.X.shape[1]))
        folds = []
        for rows, fold, others in self._folds():
            stage = Stage("last", len(others), steps, True)
            climbed = _computed(fold._climb(found.candidate, start, stage))
            if climbed is None:
                return found
            folds.append((rows, climbed.setting))
        return found._replace(folds=tuple(folds))

    def _folds(self) -> Iterator[tuple[Index, "_StagedSearch", Index]]:
        """Each part of the rows, a search on the other rows, and these."""
        order = self.inputs.order
        for k in range(FOLDS):
            left = np.arange(len(order)) % FOLDS == k
            fold = copy(self)
            fold.inputs, fold.table = self.inputs.on(order[~left]), SelectionTable()
            yield np.sort(order[left]), fold, order[~left]

    def _climb_on(self, climbs: Sequence[Climb], stage: Stage) -> list[Climb]:
        """Continue each from where it is; best first, empty if the budget is spent."""
        return ranked([self._climb(one.candidate, one.setting, stage) for one in climbs])

    def _refit_noise(self, found: Climb, stage: Stage) -> Climb:
        """Find the noise variance alone, with more points."""
        net, averages = found.setting.architecture, bool(found.setting.invariance)
        candidate = replace(found.candidate, weight_var=net.weight_var, bias_var=net.bias_var)
        if net.is_infinite and not averages:
            few = self._effort.noise_factor * self._large
            stage = stage._replace(points=min(stage.points, few))
            return (self._climb_on([found._replace(candidate=candidate)], stage) or [found])[0]
        if self.budget.is_spent or net.is_infinite:
            return found
        X = self.inputs.scaled(found.setting, stage.points).X
        space = self._space(candidate, found.setting, stage)
        evidence = partial(noise_evidence, self.problem.engine, found.setting.network, X)
        down = CLASSES_DOWN if self.problem.classes else NOISE_DOWN
        out = refitted(found, self._objective(stage), space, evidence, down, stage.steps)
        self.budget.spent += 1  # one network, whatever its noise
        n, families = len(self.problem.X), found.setting.invariance
        self.budget.tracker.advance(noise_seconds(self.problem, families, n, stage.steps))
        if out is not found:
            self._note(stage, out)
        return out

    def _climb(self, candidate: Candidate, start: Setting, stage: Stage) -> Climb | None:
        """Run one ascent and add its row to the table; None if the budget is spent."""
        if self.budget.is_spent:
            return None
        space = self._space(candidate, start, stage)
        self.budget.begin_ascent(stage.steps, network_seconds([candidate], stage.points))
        found = climb(self._objective(stage), space, start, stage.steps, self.budget)
        self.budget.end_ascent()
        self._failure = found.failure or self._failure
        self._note(stage, found)
        return found

    def _note(self, stage: Stage, found: Climb) -> None:
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

    def _space(self, candidate: Candidate, at: Setting, stage: Stage) -> Space:
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

    def _as_hyperparameters(self, found: Climb) -> Hyperparameters:
        families = found.setting.invariance
        folds = tuple(
            (rows, self._hyperparameters_at(replace(at, invariance=families)))
            for rows, at in found.folds
        )
        return replace(self._hyperparameters_at(found.setting), folds=folds)

    def _hyperparameters_at(self, at: Setting) -> Hyperparameters:
        return Hyperparameters(at.network, at.noise_var, self.inputs.scaling(at), self._targets)


def _computed(found: Climb | None) -> Climb | None:
    """The ascent, if it found a network that can be computed."""
    return found if found is not None and np.isfinite(found.score) else None
