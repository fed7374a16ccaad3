"""Stages of the search by evidence or leave-one-out density: functions from a search to the next.

`STAGES` lists them in order. The first work on few points, so that many networks can be tried.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from nngp._arrays import Index
from nngp._progress import Progress, progress_for
from nngp.architecture import Activation
from nngp.errors import VarianceError
from nngp.gram import has_lower_triangle
from nngp.posterior.evidence.dense_evidence import threaded_evidence
from nngp.predictive.targets import TargetScaling
from nngp.selection.cost import (
    FOLDS,
    NOISE_STEPS,
    VARIANCE_STEPS,
    WHITENING_STEPS,
    fitted_subset,
    invariance_work,
    is_cross_fitted,
    most_networks,
    noise_subset,
    noise_work,
    scaling_work,
    staged_work,
)
from nngp.selection.inputs import SearchInputs
from nngp.selection.invariance import InvarianceStage
from nngp.selection.judge import OF_MAPS, OF_TRANSFORMS, more_are_right
from nngp.selection.map_search import MANY, can_map, power_starts, relevances_of_trees, screened
from nngp.selection.maximise import BestTrial, Budget, distinct, leaders, ranked
from nngp.selection.noise import CLASSES_DOWN, NOISE_DOWN, noise_evidence, refitted
from nngp.selection.problem import (
    CHOOSE,
    EFFORT,
    STARTS,
    Candidate,
    Choice,
    HyperparameterPoint,
    SelectionProblem,
    SelectionTable,
)
from nngp.selection.search import Search, Stage

TRANSFORM_GAIN = 2.0  # of the log evidence, that a transform of the targets must bring
FAR = 1e6  # where an activation that grows is no longer small
CLOSE = 5.0  # gain of the maps on few points below which more points decide


def staged_search(problem: SelectionProblem) -> Choice:
    """Return the best hyper-parameters found, the finalists and the table of all ascents."""
    n = len(problem.X)
    learning = scaling_work(problem, n)
    work = learning + staged_work(problem, n) + invariance_work(problem, n)
    bar, points = progress_for(problem.progress), min(n, problem.size)
    with Progress(CHOOSE, work, bar) as tracker, threaded_evidence(points) as dense:
        inputs = SearchInputs(problem, problem.rng.permutation(n))
        tracker.advance(learning)
        budget, table = Budget(most_networks(problem), tracker), SelectionTable()
        search = Search(problem, inputs, dense, budget, table, problem.targets[0])
        search = run(STAGES, search)
        tracker.finish()
    table.chosen = search.best[0].setting
    found = [search.hyperparameters(one) for one in search.best]
    return Choice(found[0], found, table)


def run(stages: Sequence[Callable[[Search], Search]], search: Search) -> Search:
    """The search after these stages."""
    for stage in stages:
        search = stage(search)
    return search


def choose_kind(search: Search) -> Search:
    """Try every activation and depth, on a small subset of the points.

    The first of each activation is climbed from all starts, the others from the start that was
    best for it. The very first also decides whether columns keep their own spread.
    """
    by_activation: dict[Activation, list[Candidate]] = {}
    for candidate in search.problem.candidates:
        by_activation.setdefault(candidate.activation, []).append(candidate)
    groups, out = list(by_activation.values()), list[BestTrial | None]()
    if _may_keep_spread(search):
        begun = _from_all_starts(search, groups[0][0])
        search, own = _with_spread(search, groups[0][0], begun)
        out = [*begun, own, *_other_depths(search, groups.pop(0), begun)]
    out += [one for found in search.each(_kinds, groups) for one in found]
    if not ranked(out):
        failures = [one.failure for one in out if one is not None and one.failure]
        reason = f" ({failures[-1]})" if failures else ""
        raise VarianceError(
            f"none of the networks tried could be computed on these data{reason}; set "
            "weight_var, bias_var and noise_var otherwise, or rescale the inputs"
        )
    search = search.with_best(out)
    return replace(search, plain=search.best)


def _kinds(search: Search, candidates: Sequence[Candidate]) -> list[BestTrial | None]:
    """Trials of the candidates of one activation."""
    begun = _from_all_starts(search, candidates[0])
    return begun + _other_depths(search, candidates, begun)


def _from_all_starts(search: Search, candidate: Candidate) -> list[BestTrial | None]:
    starts = [(candidate, search.start(candidate, k)) for k in range(len(STARTS))]
    return search.trials(starts, _kind_stage(search))


def _other_depths(
    search: Search, candidates: Sequence[Candidate], begun: Sequence[BestTrial | None]
) -> list[BestTrial | None]:
    """Trials of all candidates but the first, from the start that was best for it."""
    starts = [(one, search.start(one, _best_start(begun))) for one in candidates[1:]]
    return search.trials(starts, _kind_stage(search))


def _kind_stage(search: Search) -> Stage:
    return Stage("kind", search.small, search.effort.kind)


def _best_start(begun: Sequence[BestTrial | None]) -> int:
    return int(np.argmax([-np.inf if one is None else one.score for one in begun]))


def _may_keep_spread(search: Search) -> bool:
    """Whether columns may keep their own spreads: relevances, given or learned by evidence, replace
    them."""
    problem = search.problem
    return problem.scaling == "auto" and problem.relevance is None and not search.learns_relevance


def _with_spread(
    search: Search, first: Candidate, begun: Sequence[BestTrial | None]
) -> tuple[Search, BestTrial | None]:
    """Try the columns' own spreads, and keep them if they are better."""
    if not ranked(begun):
        return search, None
    own, best = search.inputs.base.own_spread, _best_start(begun)
    found = search.trial(first, search.start(first, best, own), _kind_stage(search))
    if found is not None and found.score > ranked(begun)[0].score:
        search = replace(search, relevance=own)
    return search, found


def learn_relevances(search: Search) -> Search:
    """Give the best few a relevance for each group of inputs, by evidence; where groups are many,
    the best also from the relevances that trees find."""
    if not search.learns_relevance:
        return search
    stage = Stage("relevance", search.small, search.effort.relevance, True)
    kind, several = search.best[0], leaders(list(search.best))[: search.effort.finalists]
    search = search.with_best(search.continued(several, stage))
    problem, groups = search.problem, search.inputs.groups
    few = len(np.unique(groups)) < MANY or problem.effort == "fast"
    if few or problem.relevance is not None or search.budget.is_spent:
        return replace(search, unmapped=search.best)
    rows = search.inputs.rows(search.judged)
    weights = None if problem.weights is None else problem.weights[rows]
    found = relevances_of_trees(problem.X[rows], search.targets(problem.Y[rows]), groups, weights)
    start = replace(kind.setting, relevance=found)
    search = search.with_best([search.trial(kind.candidate, start, stage), *search.best])
    return replace(search, unmapped=search.best)


def choose_targets(search: Search) -> Search:
    """Try the best with every other transform of the targets; keep the one of the highest evidence
    in units of the data that predicts no worse."""
    leader, default, others = search.best[0], search.targets, search.problem.targets[1:]
    stage = Stage("targets", search.small, search.effort.targets, search.learns_relevance)
    if not others:
        return search

    def tried(one: Search, targets: TargetScaling) -> BestTrial | None:
        return replace(one, targets=targets).trial(leader.candidate, leader.setting, stage)

    size = stage.points * search.problem.Y.shape[1]
    chosen = search
    value = leader.score * size + search.log_jacobian(default, stage.points)
    judged = search.verdict(leader)
    for targets, found in zip(others, search.each(tried, others), strict=True):
        if found is None:
            break
        other = replace(search, targets=targets)
        reached = found.score * size + search.log_jacobian(targets, stage.points)
        if reached > value + (TRANSFORM_GAIN if chosen is search else 0.0):
            now = other.verdict(found)
            if judged is None or now is None or now.confirms(judged, OF_TRANSFORMS):
                chosen, value, judged = other, reached, now
    if chosen is search:
        return search
    again = leaders(list(search.best))[: search.effort.finalists]
    chosen = chosen.with_best(chosen.continued(again, stage))
    return replace(chosen, untransformed=search)


def choose_maps(search: Search) -> Search:
    """Find the maps of columns for the best; then try the others with them. The best without maps
    stays among them where few points hardly prefer them."""
    leader, others = search.best[0], search.best[1:]
    if not _tries_maps(search):
        return search
    stage = Stage("maps", search.small, search.effort.maps, search.learns_relevance)
    size = stage.points * search.problem.Y.shape[1]
    starts = power_starts(search.inputs, leader.setting)
    found = search.trials([(leader.candidate, start) for start in starts], stage)
    mapped = ranked([leader, *found])[0]
    objective = search.objective(stage)

    def score(at: HyperparameterPoint) -> float:
        return size * objective.score(search.space(mapped.candidate, at, stage), at)

    setting = screened(search.inputs, mapped.setting, score, search.budget.may_spend)
    if setting is not mapped.setting:
        stage = stage._replace(steps=max(stage.steps // 2, 1))
        mapped = search.trial(leader.candidate, setting, stage) or mapped
    gain = (mapped.score - leader.score) * size
    if gain <= 0 or mapped.setting.kinds == search.inputs.default_kinds:
        return search
    before, after = search.verdict(leader), search.verdict(mapped)
    if before is not None and after is not None and not after.confirms(before, OF_MAPS):
        return search
    maps, kept = mapped.setting, [leader] if gain < CLOSE else []
    starts_of_others = [
        (one.candidate, replace(one.setting, kinds=maps.kinds, powers=maps.powers))
        for one in others
    ]
    return search.with_best([mapped, *search.trials(starts_of_others, stage), *kept])


def _tries_maps(search: Search) -> bool:
    problem = search.problem
    return (
        not problem.classes
        and problem.maps == "auto"
        and not search.inputs.base.unit
        and has_lower_triangle(search.best[0].setting.base)
        and can_map(search.inputs)
    )


def learn_relevances_of_classes(search: Search) -> Search:
    """Find relevances by leave-one-out: the evidence of one-hot targets counts each point once for
    every class. They are kept if more points, left out one by one, confirm them. With few rows
    `cross_fit` does this instead."""
    problem = search.problem
    if not (problem.classes and problem.learn_relevance) or is_cross_fitted(problem, search.n):
        return search
    leader, found = search.best[0], _relevant(search, search.best[0], search.small)
    if found is None:
        return search
    judge = search.objective(Stage("", search.judged, 0, criterion="loo"))
    confirmed = more_are_right(judge, found.setting, leader.setting)
    return search.with_best([found]) if confirmed else search


def _relevant(search: Search, leader: BestTrial, points: int) -> BestTrial | None:
    """Learn the relevances of a network of classes, by leave-one-out on so many points."""
    if not has_lower_triangle(leader.setting.base) or search.inputs.base.unit:
        return None
    stage = Stage("relevance", points, search.effort.relevance, True, "loo")
    start = leader.setting
    if start.relevance is None:
        start = replace(start, relevance=np.ones(search.problem.X.shape[1]))
    return _computed(search.trial(leader.candidate, start, stage))


def use_more_data(search: Search) -> Search:
    """Continue the best, the best of another activation, and those with other maps than theirs, on
    more points: their order may change."""
    points, steps = search.judged, search.effort.more
    if points <= search.small or not steps:
        return search
    best = list(search.best)
    several = leaders(best)[: max(2, search.problem.networks)]
    candidates, known = {one.candidate for one in several}, {id(one) for one in several}
    several += [one for one in best if one.candidate in candidates and id(one) not in known]
    stage = Stage("more data", points, steps, search.learns_relevance)
    return search.with_best(search.continued(several, stage))


def choose_whitening(search: Search) -> Search:
    """Try the best with every strength of whitening; the others take its best."""
    if len(search.problem.strengths) < 2:
        return search
    leader, *others = _finalists(search)
    stage = Stage("whitening", search.judged, WHITENING_STEPS)
    starts = [replace(leader.setting, whitening=one) for one in search.problem.strengths]
    found = ranked(search.trials([(leader.candidate, start) for start in starts], stage))
    if not found:
        return search
    strength = found[0].setting.whitening
    moved = [one._replace(setting=replace(one.setting, whitening=strength)) for one in others]
    return replace(search, best=(found[0], *moved))


def finish_trials(search: Search) -> Search:
    """Continue the finalists on more points, and at last on all that the search may use."""
    relevance = search.learns_relevance
    stages = [Stage("last", search.judged, search.effort.last, relevance)]
    if search.large > search.judged:
        stages.append(Stage("all", search.large, search.effort.all, relevance))
    for stage in stages:
        search = search.with_best(search.continued(_finalists(search), stage))
    return replace(search, best=tuple(_finalists(search)))


def _finalists(search: Search) -> list[BestTrial]:
    return distinct(list(search.best))[: search.problem.networks]


def confirm_targets(search: Search) -> Search:
    """Finish without a transform of the targets, too, and keep what predicts better."""
    if search.untransformed is None:
        return search
    rival = run(FINISH, search.untransformed)
    ours, theirs = search.verdict(search.best[0]), rival.verdict(rival.best[0])
    if ours is not None and theirs is not None and not ours.confirms(theirs):
        return rival
    return search


def add_simpler_networks(search: Search) -> Search:
    """With few rows, add two networks that are fitted by less: one without maps, and one without
    relevances as well. Both are bounded where a candidate is, so that neither carries a line far
    beyond the training inputs. Held-out rows find the shares."""
    problem, leader = search.problem, search.best[0]
    few = search.learns_relevance and is_cross_fitted(problem, search.n)
    if not few or problem.effort == "fast" or problem.invariance != ():
        return search
    unmapped, plain = _bounded(search.unmapped), _bounded(search.plain)
    simpler = [(plain, False)]
    if unmapped.candidate != leader.candidate or leader.setting.kinds:
        simpler.insert(0, (unmapped, True))

    def last(one: Search, pair: tuple[BestTrial, bool]) -> BestTrial | None:
        trial, relevance = pair
        stage = Stage("simpler", one.judged, one.effort.last, relevance)
        return _computed(one.trial(trial.candidate, trial.setting, stage))

    found = [one for one in search.each(last, simpler) if one is not None]
    return replace(search, best=(*search.best, *found))


def _bounded(trials: Sequence[BestTrial]) -> BestTrial:
    """The best of a bounded activation; the best of all if there is none."""
    return next((one for one in trials if _is_bounded(one.candidate.activation)), trials[0])


def _is_bounded(activation: Activation) -> bool:
    with np.errstate(all="ignore"):
        return bool(np.abs(activation(np.array([-FAR, FAR]))).max() < np.sqrt(FAR))


class Fold(NamedTuple):
    """Rows that are left out, and the others in the order of the search."""

    rows: Index
    others: Index


def _folds(search: Search) -> list[Fold]:
    order = search.inputs.order
    left = [np.arange(len(order)) % FOLDS == k for k in range(FOLDS)]
    return [Fold(np.sort(order[rows]), order[~rows]) for rows in left]


def cross_fit(search: Search) -> Search:
    """With few rows, fit everything that rows were fitted by again without each fifth of them: rows
    are then judged by what has not seen them."""
    problem = search.problem
    if not problem.learn_relevance or not is_cross_fitted(problem, search.n):
        return search
    if problem.classes:
        return _cross_fit_classes(search)
    return replace(search, best=tuple(_cross_fitted(search, one) for one in search.best))


def _cross_fitted(search: Search, found: BestTrial) -> BestTrial:
    """Learn relevances, powers and variances again without each fifth of the rows. The network,
    the kinds of the maps and the transform of the targets stay."""
    steps, relevance = search.effort.relevance + search.effort.last, found.setting.relevance
    ones = None if relevance is None else np.ones(len(relevance))
    start = replace(found.setting, relevance=ones)

    def again(one: Search, fold: Fold) -> BestTrial | None:
        stage = Stage("last", len(fold.others), steps, ones is not None)
        return _computed(one.on(fold.others).trial(found.candidate, start, stage))

    folds = _folds(search)
    ends = [one for one in search.each(again, folds) if one is not None]
    if len(ends) < len(folds):
        return found
    pairs = zip(folds, ends, strict=True)
    return found._replace(folds=tuple((fold.rows, end.setting) for fold, end in pairs))


def _cross_fit_classes(search: Search) -> Search:
    """The finalists, and the best of them with relevances, all judged by rows that they were not
    learned from, so that shares and likelihoods can be chosen on these rows."""
    found = _relevant(search, search.best[0], search.small)
    last = Stage("last", search.large, search.effort.last)
    relevant = ranked(search.continued([found], last)) if found else []
    finalists = [*relevant, *search.best]

    def again(one: Search, fold: Fold) -> list[HyperparameterPoint | None]:
        here = one.on(fold.others)
        kept = [any(trial is one for one in relevant) for trial in finalists]
        return [
            _from_the_start(here, trial, own) for trial, own in zip(finalists, kept, strict=True)
        ]

    folds = _folds(search)
    found_in = search.each(again, folds)
    if any(setting is None for settings in found_in for setting in settings):
        return search
    rows, by_finalist = [fold.rows for fold in folds], zip(*found_in, strict=True)
    fitted = [
        one._replace(folds=tuple(zip(rows, settings, strict=True)))
        for one, settings in zip(finalists, by_finalist, strict=True)
    ]
    return replace(search, best=tuple(fitted))


def _from_the_start(
    search: Search, finalist: BestTrial, relevant: bool
) -> HyperparameterPoint | None:
    """Choose the variances, and relevances, of a finalist again, on the rows of this search."""
    others = len(search.inputs.order)
    few = others * search.small // search.large
    kind = Stage("kind", few, search.effort.kind)
    at = _computed(search.trial(finalist.candidate, search.start(finalist.candidate), kind))
    if at is not None and relevant:
        at = _relevant(search, at, few)
    variances = Stage("last", others, VARIANCE_STEPS)
    end = at and _computed(search.trial(finalist.candidate, at.setting, variances))
    return end.setting if end else None


def average_transformations(search: Search) -> Search:
    """Where rows are images, and it is asked for, average the finalists over the given families of
    transformations, or over those that suit the first."""
    if search.problem.invariance == ():
        return search
    stage = Stage("invariance", search.judged, 1, criterion="evidence")
    note = partial(search.record, stage)
    objective = search.objective(stage)
    averages = InvarianceStage(search.problem, objective, search.targets, note, search.budget)
    return replace(search, best=tuple(averages.run(list(search.best))))


def refit_noise(search: Search) -> Search:
    """Find the noise variance alone, on a still larger subset."""
    leader = search.best[0]
    families = leader.setting.invariance
    count = noise_subset(search.problem, families, search.n)
    known = fitted_subset(search.problem, families, search.n)
    if leader.candidate.noise_var is not None or count <= known:
        return search
    stage = Stage("noise", count, NOISE_STEPS)
    return replace(search, best=tuple(_with_noise(search, one, stage) for one in search.best))


def _with_noise(search: Search, found: BestTrial, stage: Stage) -> BestTrial:
    problem, net, averages = search.problem, found.setting.base, bool(found.setting.invariance)
    candidate = replace(found.candidate, weight_var=net.weight_var, bias_var=net.bias_var)
    if net.is_infinite and not averages:
        few = EFFORT[problem.effort].noise_factor * search.large
        stage = stage._replace(points=min(stage.points, few))
        again = ranked(search.continued([found._replace(candidate=candidate)], stage))
        return again[0] if again else found
    if search.budget.is_spent or net.is_infinite:
        return found
    X = search.inputs.scaled(found.setting, stage.points).X
    space = search.space(candidate, found.setting, stage)
    evidence = partial(noise_evidence, problem.engine, search.dense, found.setting.network, X)
    down = CLASSES_DOWN if problem.classes else NOISE_DOWN
    out = refitted(found, search.objective(stage), space, evidence, down, stage.steps)
    search.budget.may_spend()  # one network, whatever its noise
    search.budget.tracker.advance(
        noise_work(problem, found.setting.invariance, search.n, stage.steps)
    )
    if out is not found:
        search.record(stage, out)
    return out


def _computed(found: BestTrial | None) -> BestTrial | None:
    """The trial, if it found a network that can be computed."""
    return found if found is not None and np.isfinite(found.score) else None


FINISH = (
    choose_maps,
    learn_relevances_of_classes,
    use_more_data,
    choose_whitening,
    finish_trials,
)
STAGES = (
    choose_kind,
    learn_relevances,
    choose_targets,
    *FINISH,
    confirm_targets,
    add_simpler_networks,
    cross_fit,
    average_transformations,
    refit_noise,
)
