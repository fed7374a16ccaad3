"""One ascent of the objective by L-BFGS, within a budget of evaluations; which ascents go on."""

import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from nngp._arrays import Array, Index
from nngp._progress import Progress
from nngp.selection.objective import Objective
from nngp.selection.problem import Candidate, HyperparameterPoint
from nngp.selection.space import Space

FTOL = 1e-5  # of the score per target: smaller gains do not matter
PENALTY = 1e8  # for networks that cannot be computed: worse than any that can


class _OutOfBudgetError(Exception):
    """Raised inside the optimiser to end it."""


class Budget:
    """Number of networks that may be computed (None: no limit), and that were.

    Ascents may run in several threads. An ascent counts as all its steps, however many networks it
    computes, and progress is told by the thread that began the search.
    """

    def __init__(self, limit: int | None, tracker: Progress) -> None:
        self.limit, self.tracker, self.spent = limit, tracker, 0
        self._lock, self._stopped, self._unreported = threading.Lock(), False, 0.0
        self._owner = threading.get_ident()

    @property
    def is_spent(self) -> bool:
        return self._stopped or (self.limit is not None and self.spent >= self.limit)

    def may_spend(self) -> bool:
        """Spend one network, if any is left."""
        with self._lock:
            if self.is_spent:
                return False
            self.spent += 1
            return True

    def stop(self) -> None:
        """Let all ascents end at their next network."""
        self._stopped = True

    def count(self, work: float) -> None:
        """Count work as done."""
        with self._lock:
            self._unreported += work
        self.report()

    def report(self) -> None:
        """Tell of the work that was done since the last time, if this thread began the search."""
        if threading.get_ident() != self._owner:
            return
        with self._lock:
            work, self._unreported = self._unreported, 0.0
        if work > 0:
            self.tracker.advance(work)


class Ascent:
    """The networks of one ascent, of a budget that others share."""

    def __init__(self, budget: Budget, steps: int, each: float) -> None:
        self.budget, self.evaluations = budget, 0
        self._each, self._left = each, steps * each  # work that is not counted yet

    def spend(self) -> None:
        if not self.budget.may_spend():
            raise _OutOfBudgetError
        self.evaluations += 1
        self._count(min(self._each, self._left))

    def end(self) -> None:
        self._count(self._left)

    def _count(self, work: float) -> None:
        self._left -= work
        self.budget.count(work)


class BestTrial(NamedTuple):
    """Best point of an ascent, its score per target, its log evidence, its cost, the last error
    on the way."""

    score: float
    log_evidence: float
    setting: HyperparameterPoint
    candidate: Candidate
    evaluations: int
    seconds: float
    failure: str
    folds: tuple[
        tuple[Index, HyperparameterPoint], ...
    ] = ()  # rows, and what is chosen without them


def maximise(
    objective: Objective, space: Space, start: HyperparameterPoint, steps: int, ascent: Ascent
) -> BestTrial:
    """Maximise the objective from `start` and return the best point seen."""
    best, failure = (-np.inf, -np.inf, start), ""
    clock = time.perf_counter()

    def loss(theta: Array) -> tuple[float, Array]:
        nonlocal best, failure
        ascent.spend()
        at = space.unpack(theta, start)
        found = objective.evaluate(space, theta, at)
        failure = found.failure or failure
        if found.score > best[0]:
            best = (found.score, found.log_evidence, at)
        return min(-found.score, PENALTY), -found.gradient

    theta = space.pack(start)
    options = {"maxiter": steps, "maxfun": 2 * steps, "ftol": FTOL}
    try:
        if len(theta) == 0:
            loss(theta)
        else:
            minimize(loss, theta, jac=True, method="L-BFGS-B", bounds=space.bounds, options=options)
    except _OutOfBudgetError:
        pass
    ascent.end()
    cost = ascent.evaluations, time.perf_counter() - clock
    return BestTrial(*best, space.candidate, *cost, failure)


def ranked(climbs: Sequence[BestTrial | None]) -> list[BestTrial]:
    """Ascents that found a network which can be computed, best first."""
    computed = [one for one in climbs if one is not None and np.isfinite(one.score)]
    return sorted(computed, key=lambda one: -one.score)


def distinct(climbs: list[BestTrial]) -> list[BestTrial]:
    """The best of every activation and depth, best first."""
    best: dict[Candidate, BestTrial] = {}
    for one in climbs:
        best.setdefault(one.candidate, one)
    return list(best.values())


def leaders(climbs: list[BestTrial]) -> list[BestTrial]:
    """The best of every candidate; the best of another activation than the leader's is second."""
    leader, *rest = distinct(climbs)
    phi = leader.candidate.activation
    others = [one for one in rest if one.candidate.activation is not phi]
    same = [one for one in rest if one.candidate.activation is phi]
    return [leader, *others[:1], *same, *others[1:]]
