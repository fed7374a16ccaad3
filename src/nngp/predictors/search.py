"""Choosing a network by itself: evidence, leave-one-out, or the paper's validation grid.

Evidence and leave-one-out are climbed with L-BFGS along exact gradients, in three rounds. The
first tries every activation and depth on a small part of the data; the second lets each input have
its own relevance in the best few of them; the third goes on from the winner with more data.
"""

import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from nngp.architecture import Activation, ActivationError, Architecture
from nngp.curve import VarianceError
from nngp.linsolve import Engine, NotPositiveDefiniteError, Progress, progress_for
from nngp.posterior import Sweep, condition
from nngp.predictors.space import STARTS, Candidate, Setting, Space

Array = NDArray[np.float64]
FEW, STEPS, SOME_STEPS, LAST_STEPS, FINALISTS = 300, 12, 8, 25, 3
PENALTY = 1e8  # for networks that cannot be computed: worse than any that can
GRID_DEPTHS = (1, 2, 3, 5, 7, 10, 20, 50, 100)
GRID_WEIGHTS, GRID_BIASES = np.linspace(0.1, 5.0, 30), np.linspace(0.0, 2.0, 30)


@dataclass
class Table:
    """What was tried, a row each; `columns` is what the estimators show as `selection_`."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(self, stage: str, n: int, score: float, setting: Setting | None, **more: Any) -> None:
        row: dict[str, Any] = {"stage": stage, "n": n, "score": score, **more}
        if setting is not None:
            net = setting.architecture
            row |= {
                "activation": net.activation.name,
                "depth": net.depth,
                "weight_var": net.weight_var,
                "bias_var": net.bias_var,
                "noise_var": setting.noise_var,
                "chosen": False,
            }
        self.rows.append(row)

    def columns(self) -> dict[str, NDArray[Any]]:
        """A dictionary of equally long arrays, as `pandas.DataFrame` takes it."""
        names = list(self.rows[0]) if self.rows else []
        return {name: _column([row[name] for row in self.rows]) for name in names}


def _column(values: list[Any]) -> NDArray[Any]:
    if any(isinstance(value, tuple) for value in values):
        out = np.empty(len(values), dtype=object)
        out[:] = values
        return out
    return np.asarray(values)


class Try(NamedTuple):
    """A setting of a kind of network, and its score for each number in the targets."""

    score: float
    candidate: Candidate
    setting: Setting


class _OutOfBudgetError(Exception):
    """Raised inside the optimiser when no more evaluations may be spent."""


@dataclass
class Search:
    """One search over one data set (inputs scaled, targets scaled)."""

    X: Array
    Y: Array
    criterion: str  # "evidence" or "loo"
    engine: str | Engine
    budget: int | None
    rng: np.random.Generator
    progress: Any = None
    table: Table = field(default_factory=Table)
    spent: int = 0

    def run(self, candidates: list[Candidate], size: int, relevance: bool) -> Setting:
        """The best setting found."""
        # Nested: each round goes on with the points of the one before, and more.
        order = self.rng.permutation(len(self.X))
        few, many = np.sort(order[:FEW]), np.sort(order[:size])
        rounds = len(candidates) + 1 + relevance * FINALISTS
        limit = self.budget or rounds * STEPS + LAST_STEPS
        with Progress("choose the network", limit, progress_for(self.progress, 0.0)) as tracker:
            self._tracker = tracker
            ranked = self._kinds(candidates, few)
            if relevance:
                ranked = self._climbed(_distinct(ranked), few, 2 * STEPS, "relevance") or ranked
            if len(many) > len(few):  # which of two is better may change with more data
                ranked = (
                    self._climbed(_distinct(ranked)[:2], many, SOME_STEPS, "more data") or ranked
                )
            return (self._climbed(ranked[:1], many, LAST_STEPS, "last") or ranked)[0].setting

    def _kinds(self, candidates: list[Candidate], rows: NDArray[np.intp]) -> list["Try"]:
        """Every kind of network, best first. The first of each activation is climbed from all
        starts, and the others from the start that served it best."""
        out: list[Try] = []
        start: dict[Activation, int] = {}
        for candidate in candidates:
            phi = candidate.activation
            which = [start[phi]] if phi in start else range(len(STARTS))
            tries = [Try(-np.inf, candidate, candidate.setting(STARTS[k])) for k in which]
            climbed = self._climbed(tries, rows, STEPS, "kind", keep_order=True)
            out += climbed
            if phi not in start and climbed:
                start[phi] = which[int(np.argmax([t.score for t in climbed]))]
        out = [row for row in out if np.isfinite(row.score)]
        if not out:
            raise VarianceError(
                "none of the networks tried could be computed on these data; set weight_var, "
                "bias_var and noise_var yourself, or rescale the inputs"
            )
        return sorted(out, key=lambda row: -row.score)

    def _climbed(
        self,
        tries: Sequence["Try"],
        rows: NDArray[np.intp],
        steps: int,
        stage: str,
        keep_order: bool = False,
    ) -> list["Try"]:
        """Each climbed from where it is; the best first. Empty if the budget is spent."""
        out: list[Try] = []
        X, Y = self.X[rows], self.Y[rows]
        for row in tries:
            if self._over() and (out or stage != "kind"):
                break
            free = X.shape[1] if stage == "relevance" or row.setting.relevance is not None else 0
            space = Space(row.candidate, free)
            before, clock = self.spent, time.perf_counter()
            score, setting = self._climb(space, row.setting, X, Y, steps)
            out.append(Try(score, row.candidate, setting))
            self.table.add(
                stage,
                len(X),
                score,
                setting,
                evaluations=self.spent - before,
                seconds=time.perf_counter() - clock,
            )
        if keep_order:
            return out
        return sorted((t for t in out if np.isfinite(t.score)), key=lambda row: -row.score)

    def _climb(
        self, space: Space, start: Setting, X: Array, Y: Array, steps: int
    ) -> tuple[float, Setting]:
        """L-BFGS on the score per number; the best point seen."""
        best, theta = (-np.inf, start), space.pack(start)

        def objective(theta: Array) -> tuple[float, Array]:
            nonlocal best
            if self._over():
                raise _OutOfBudgetError
            self.spent += 1
            self._tracker.advance(1)
            setting = space.unpack(theta, start)
            value, gradient = self._score(space, setting, theta, X, Y)
            prior, slope = space.log_prior(theta)
            total = (value + prior) / Y.size
            if total > best[0]:
                best = (total, setting)
            return min(-total, PENALTY), -(gradient + slope) / Y.size

        try:
            if len(theta) == 0:
                objective(theta)
            else:
                minimize(
                    objective,
                    theta,
                    jac=True,
                    method="L-BFGS-B",
                    bounds=space.bounds,
                    options={"maxiter": steps, "maxfun": 2 * steps},
                )
        except _OutOfBudgetError:
            pass
        return best

    def _score(
        self, space: Space, setting: Setting, theta: Array, X: Array, Y: Array
    ) -> tuple[float, Array]:
        nothing = -np.inf, np.zeros_like(theta)
        if setting.relevance is not None:
            X = X * np.sqrt(setting.relevance)
        options = {"per_layer": True, "per_input": space.inputs > 0}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                posterior = condition(
                    setting.architecture,
                    X,
                    Y,
                    noise_var=setting.noise_var,
                    engine=self.engine,
                    progress=False,
                )
                if posterior.noise_var > setting.noise_var and space.candidate.noise_var is None:
                    return nothing  # not the setting that was asked for
                if self.criterion == "loo":
                    value, by_name = posterior.leave_one_out_density(**options)
                else:
                    value = posterior.log_evidence
                    by_name = posterior.evidence_gradient(**options) if len(theta) else {}
        except (NotPositiveDefiniteError, VarianceError, ActivationError):
            return nothing
        gradient = space.gradient(theta, by_name) if len(theta) else theta
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return nothing
        return value, gradient

    def _over(self) -> bool:
        return self.budget is not None and self.spent >= self.budget


def _distinct(rows: list[Try]) -> list[Try]:
    """The best of every candidate; those of another activation than the leader's come second."""
    best: dict[Candidate, Try] = {}
    for row in rows:
        best.setdefault(row.candidate, row)
    leader, *rest = best.values()
    phi = leader.candidate.activation
    others = [row for row in rest if row.candidate.activation is not phi]
    same = [row for row in rest if row.candidate.activation is phi]
    return [leader, *others[:1], *same, *others[1:]][:FINALISTS]


def grid_search(
    X: Array,
    Y: Array,
    candidates: list[Candidate],
    size: int,
    engine: str | Engine,
    budget: int | None,
    rng: np.random.Generator,
    progress: Any,
    classes: bool,
) -> tuple[Setting, Table]:
    """The paper's way (appendix D): a grid of variances, judged on held-out points.

    A fifth of the data is held out; `budget` networks are taken evenly from the grid.
    """
    order = rng.permutation(len(X))[: max(size, 2)]
    held = max(1, len(order) // 5)
    train, val = order[held:], order[:held]
    networks = list(_grid(candidates))
    if budget is not None and budget < len(networks):
        networks = [networks[i] for i in np.linspace(0, len(networks) - 1, budget).astype(int)]
    noise = candidates[0].noise_var
    sweep = Sweep(
        X[train],
        Y[train],
        X[val],
        Y[val],
        noise_var=1e-10 if noise is None else noise,
        engine=engine,
    )
    table, best = Table(), None
    with Progress("validation grid", len(networks), progress_for(progress, 0.0)) as tracker:
        for result in sweep.run(networks):
            # Classes are counted as the paper does; ties are settled by the squared error.
            ranked = (result.accuracy if classes else 0.0, -result.mse)
            setting = Setting(result.architecture, result.noise_var)
            score = result.accuracy if classes else -result.mse
            table.add("grid", len(train), score, setting, evaluations=1, seconds=result.seconds)
            if not result.error and (best is None or ranked > best[0]):
                best = ranked, setting
            tracker.advance(1)
    if best is None:
        raise VarianceError(
            "none of the networks of the grid could be computed on these data; rescale the inputs "
            "or use selection='evidence'"
        )
    return best[1], table


def _grid(candidates: list[Candidate]) -> Iterable[Architecture]:
    def values(given: Any, grid: Array) -> list[Any]:
        return [float(v) for v in grid] if given is None else [given]

    for candidate in candidates:
        for weight in values(candidate.weight_var, GRID_WEIGHTS):
            for bias in values(candidate.bias_var, GRID_BIASES):
                yield Architecture(candidate.depth, candidate.activation, weight, bias)
