"""Stages of the search by evidence or leave-one-out density.

1. `kind`: every activation and depth, on a small subset of the points.
2. `relevance`: the best few, with a relevance for each input.
3. `more data`, `last`: the best two, then the best one, on a larger subset.
4. `noise`: the noise variance alone, on a still larger subset.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nngp._arrays import Index
from nngp._progress import Progress, progress_for
from nngp.architecture import Activation
from nngp.errors import VarianceError
from nngp.predictors.selection.climb import Budget, Climb, climb
from nngp.predictors.selection.objective import Objective
from nngp.predictors.selection.problem import (
    CHOOSE,
    STARTS,
    Candidate,
    Hyperparameters,
    SearchSettings,
    SelectionProblem,
)
from nngp.predictors.selection.space import Space
from nngp.predictors.selection.table import SelectionRow, SelectionTable

KIND_POINTS, NOISE_FACTOR = 300, 4  # points of the first stage; of the last, over `size`
KIND_STEPS, RELEVANCE_STEPS, MORE_STEPS, LAST_STEPS, NOISE_STEPS = 12, 24, 8, 25, 6
FINALISTS = 3  # networks that the second stage takes over from the first
SLOW_BUDGET = 20  # networks tried where the activation has kinks and no closed form
# Seconds of a network and its gradient on two cores: for any, for each pair of points, and to
# compile an activation that has no closed form, without kinks and with them.
SECONDS, PAIR_SECONDS, NUMERIC_SECONDS, KINKED_SECONDS = 0.015, 3e-7, 0.2, 1.0


class Stage(NamedTuple):
    """Name in the table, points used, L-BFGS steps, whether relevances are learned."""

    name: str
    rows: Index
    steps: int
    relevance: bool = False


def staged_search(problem: SelectionProblem) -> tuple[Hyperparameters, SelectionTable]:
    """Return the best hyper-parameters found and the table of all ascents."""
    seconds = staged_seconds(problem, len(problem.X))
    bar = progress_for(problem.progress, seconds)
    with Progress(CHOOSE, seconds, bar, seconds) as tracker:
        search = _StagedSearch(problem, Budget(_limit(problem), tracker))
        found = search.run()
        tracker.finish()
        return found, search.table


def staged_seconds(problem: SearchSettings, n: int) -> float:
    """About how long the search on n points takes."""
    small, large = min(KIND_POINTS, problem.size, n), min(problem.size, n)
    activations = {candidate.activation for candidate in problem.candidates}
    kinds = len(problem.candidates) + len(activations) * (len(STARTS) - 1)
    ascents = [(kinds, KIND_STEPS, small)]
    if problem.learn_relevance:
        ascents.append((min(FINALISTS, len(problem.candidates)), RELEVANCE_STEPS, small))
    if large > small:
        ascents.append((min(2, len(problem.candidates)), MORE_STEPS, large))
    ascents.append((1, LAST_STEPS, large))
    if problem.candidates[0].noise_var is None and n > large:
        ascents.append((1, NOISE_STEPS, min(n, NOISE_FACTOR * problem.size)))
    left, total = _limit(problem) or math.inf, 0.0
    for count, steps, points in ascents:
        networks = min(count * steps, left)
        left -= networks
        total += networks * _seconds(problem.candidates, points)
    return total


def _seconds(candidates: Sequence[Candidate], points: int) -> float:
    """About how long a network and its gradient take."""
    numeric = [c.activation for c in candidates if c.activation.closed_form is None]
    compiling = NUMERIC_SECONDS if numeric else 0.0
    if any(phi.kinks for phi in numeric):
        compiling = KINKED_SECONDS
    return SECONDS + compiling + PAIR_SECONDS * points**2


def _limit(problem: SearchSettings) -> int | None:
    """The most networks that are computed; None for no limit."""
    slow = any(c.activation.closed_form is None and c.activation.kinks for c in problem.candidates)
    return SLOW_BUDGET if problem.budget is None and slow else problem.budget


@dataclass
class _StagedSearch:
    problem: SelectionProblem
    budget: Budget
    table: SelectionTable = field(default_factory=SelectionTable)
    _relevance: NDArray[np.float64] | None = None  # before any is learned; ones if None
    _failure: str = ""  # the last error of a network that could not be computed

    def run(self) -> Hyperparameters:
        """Run all stages and return the best hyper-parameters."""
        size, relevance = self.problem.size, self.problem.learn_relevance
        # Subsets are nested: each stage adds points to those of the stage before.
        order = self.problem.rng.permutation(len(self.problem.X))
        small, large = np.sort(order[: min(KIND_POINTS, size)]), np.sort(order[:size])
        best = self._climb_kinds(Stage("kind", small, KIND_STEPS))
        if relevance:
            stage = Stage("relevance", small, RELEVANCE_STEPS, True)
            best = self._climb_on(_finalists(best), stage) or best
        if len(large) > len(small):  # the order of the best two may change with more data
            stage = Stage("more data", large, MORE_STEPS, relevance)
            best = self._climb_on(_finalists(best)[:2], stage) or best
        last = self._climb_on(best[:1], Stage("last", large, LAST_STEPS, relevance))
        found = (last or best)[0]
        if found.candidate.noise_var is None and len(order) > len(large):
            rows = np.sort(order[: NOISE_FACTOR * size])
            return self._refit_noise(found, Stage("noise", rows, NOISE_STEPS))
        return found.hyperparameters

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
            starts = [candidate.starting_at(STARTS[k], self._relevance) for k in which]
            climbed = [self._climb(candidate, start, stage) for start in starts]
            if not any(climbed):
                break
            scores = [-np.inf if one is None else one.score for one in climbed]
            best_start.setdefault(phi, which[int(np.argmax(scores))])
            if self.problem.own_spread is not None and not _ranked(out):
                start = candidate.starting_at(STARTS[best_start[phi]], self.problem.own_spread)
                climbed.append(self._climb_unscaled(candidate, start, max(scores), stage))
            out += climbed
        if not _ranked(out):
            reason = f" ({self._failure})" if self._failure else ""
            raise VarianceError(
                f"none of the networks tried could be computed on these data{reason}; set "
                "weight_var, bias_var and noise_var otherwise, or rescale the inputs"
            )
        return _ranked(out)

    def _climb_unscaled(
        self, candidate: Candidate, start: Hyperparameters, score: float, stage: Stage
    ) -> Climb | None:
        """Climb with the columns' own spreads, and keep them if that beats `score`."""
        climbed = self._climb(candidate, start, stage)
        if climbed is not None and climbed.score > score:
            self._relevance = start.relevance
        return climbed

    def _climb_on(self, climbs: Sequence[Climb], stage: Stage) -> list[Climb]:
        """Continue each from where it is; best first, empty if the budget is spent."""
        return _ranked([self._climb(one.candidate, one.hyperparameters, stage) for one in climbs])

    def _refit_noise(self, found: Climb, stage: Stage) -> Hyperparameters:
        """Climb in the noise variance alone: few points can be fitted more closely than many, so
        the smaller subsets underestimate it."""
        net = found.hyperparameters.architecture
        candidate = replace(found.candidate, weight_var=net.weight_var, bias_var=net.bias_var)
        refitted = _ranked([self._climb(candidate, found.hyperparameters, stage)])
        return refitted[0].hyperparameters if refitted else found.hyperparameters

    def _climb(self, candidate: Candidate, start: Hyperparameters, stage: Stage) -> Climb | None:
        """Run one ascent and add its row to the table; None if the budget is spent."""
        if self.budget.is_spent:
            return None
        problem = self.problem
        X, Y = problem.X[stage.rows], problem.Y[stage.rows]
        objective = Objective(X, Y, str(problem.criterion), problem.engine)
        space = Space(candidate, X.shape[1] if stage.relevance else 0, self._relevance)
        self.budget.begin_ascent(stage.steps, _seconds([candidate], len(X)))
        found = climb(objective, space, start, stage.steps, self.budget)
        self.budget.end_ascent()
        self._failure = found.failure or self._failure
        scores, cost = (found.score, found.log_evidence), (found.evaluations, found.seconds)
        row = SelectionRow(stage.name, len(X), *scores, *cost, found.hyperparameters)
        self.table.rows.append(row)
        return found


def _ranked(climbs: Sequence[Climb | None]) -> list[Climb]:
    """Ascents that found a network which can be computed, best first."""
    computed = [one for one in climbs if one is not None and np.isfinite(one.score)]
    return sorted(computed, key=lambda one: -one.score)


def _finalists(climbs: list[Climb]) -> list[Climb]:
    """The best of every candidate; the best of another activation than the leader's is second."""
    best: dict[Candidate, Climb] = {}
    for one in climbs:
        best.setdefault(one.candidate, one)
    leader, *rest = best.values()
    phi = leader.candidate.activation
    others = [one for one in rest if one.candidate.activation is not phi]
    same = [one for one in rest if one.candidate.activation is phi]
    return [leader, *others[:1], *same, *others[1:]][:FINALISTS]
