"""One ascent of the objective by L-BFGS, within a budget of evaluations."""

import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from nngp._arrays import Array, Index
from nngp._progress import Progress
from nngp.predictors.selection.inputs import Setting
from nngp.predictors.selection.objective import Objective
from nngp.predictors.selection.problem import Candidate
from nngp.predictors.selection.space import Space

FTOL = 1e-5  # of the score per target: smaller gains do not matter
PENALTY = 1e8  # for networks that cannot be computed: worse than any that can


class _OutOfBudgetError(Exception):
    """Raised inside the optimiser to end it."""


@dataclass
class Budget:
    """Number of networks that may be computed (None: no limit), and that were. Progress is in the
    seconds that an ascent is expected to take, however many networks it computes."""

    limit: int | None
    tracker: Progress
    spent: int = 0
    _each: float = 0.0  # seconds expected of a network
    _left: float = 0.0  # seconds expected of the ascent, not reported yet

    @property
    def is_spent(self) -> bool:
        return self.limit is not None and self.spent >= self.limit

    def begin_ascent(self, steps: int, each: float) -> None:
        """Expect so many networks, of so many seconds each."""
        self._each, self._left = each, steps * each

    def spend(self) -> None:
        if self.is_spent:
            raise _OutOfBudgetError
        self.spent += 1
        self._report(min(self._each, self._left))

    def may_spend(self) -> bool:
        """Spend one network outside an ascent, if any is left."""
        if self.is_spent:
            return False
        self.spent += 1
        return True

    def end_ascent(self) -> None:
        self._report(self._left)

    def _report(self, work: float) -> None:
        self._left -= work
        self.tracker.advance(work)


class Climb(NamedTuple):
    """Best point of an ascent, its score per target, its log evidence, its cost, the last error
    on the way."""

    score: float
    log_evidence: float
    setting: Setting
    candidate: Candidate
    evaluations: int
    seconds: float
    failure: str
    folds: tuple[tuple[Index, Setting], ...] = ()  # rows, and what is chosen without them


def climb(objective: Objective, space: Space, start: Setting, steps: int, budget: Budget) -> Climb:
    """Maximise the objective from `start` and return the best point seen."""
    best, failure = (-np.inf, -np.inf, start), ""
    before, clock = budget.spent, time.perf_counter()

    def loss(theta: Array) -> tuple[float, Array]:
        nonlocal best, failure
        budget.spend()
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
    cost = budget.spent - before, time.perf_counter() - clock
    return Climb(*best, space.candidate, *cost, failure)
