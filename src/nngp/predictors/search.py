"""Choosing a network by itself: evidence, leave-one-out, or the paper's validation grid.

Evidence and leave-one-out are climbed with L-BFGS along exact gradients, in rounds. The first tries
every activation and depth on a small part of the data; the second lets each input have its own
relevance in the best few of them; the next go on from the best with more data; the last finds the
noise alone on still more.
"""

import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from nngp.architecture import Activation, Architecture
from nngp.errors import ActivationError, NotPositiveDefiniteError, VarianceError
from nngp.linsolve import Engine, Progress, progress_for
from nngp.posterior import Posterior, Sweep, condition
from nngp.predictors.space import STARTS, Candidate, Setting, Space

Array = NDArray[np.float64]
FEW, STEPS, SOME_STEPS, LAST_STEPS, FINALISTS = 300, 12, 8, 25, 3
SECONDS = 1e-7  # an evaluation takes about, for each pair of points
NOISE_POINTS, NOISE_STEPS = 4, 6  # times as many points for the noise alone
FTOL = 1e-5  # of the score for each number: gains below do not matter
PENALTY = 1e8  # for networks that cannot be computed: worse than any that can
GRID_DEPTHS = (1, 2, 3, 5, 7, 10, 20, 50, 100)
GRID_WEIGHTS, GRID_BIASES = np.linspace(0.1, 5.0, 30), np.linspace(0.0, 2.0, 30)


@dataclass
class Table:
    """What was tried, a row each; `columns` is what the estimators show as `selection_`."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)

    def add(self, stage: str, n: int, score: float, setting: Setting, **more: Any) -> None:
        net = setting.architecture
        row = {
            "stage": stage,
            "n": n,
            "score": score,
            **more,
            "activation": net.activation.name,
            "depth": net.depth,
            "weight_var": net.weight_var,
            "bias_var": net.bias_var,
            "noise_var": setting.noise_var,
            "chosen": False,
        }
        self.rows.append(row)
        self.settings.append(setting)

    def mark(self, chosen: Setting) -> None:
        """Mark the row that the chosen setting came from."""
        for row, setting in zip(self.rows, self.settings, strict=True):
            row["chosen"] = setting is chosen

    def columns(self) -> dict[str, NDArray[Any]]:
        """A dictionary of equally long arrays, as `pandas.DataFrame` takes it."""
        names = list(self.rows[0]) if self.rows else []
        return {name: as_column([row[name] for row in self.rows]) for name in names}


def as_column(values: list[Any]) -> NDArray[Any]:
    """Values as an array; sequences (a variance a layer) stay together, as tuples."""
    if any(isinstance(value, tuple | list) for value in values):
        out = np.empty(len(values), dtype=object)
        out[:] = [tuple(value) if isinstance(value, list) else value for value in values]
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
    own_spread: Array | None = None  # relevances that give columns back the spread they came with
    progress: Any = None
    table: Table = field(default_factory=Table)
    spent: int = 0
    _ground: Array | None = field(default=None, init=False)  # relevances before any is learned
    _reason: str = field(default="", init=False)  # why the last network that failed did

    def run(self, candidates: list[Candidate], size: int, relevance: bool) -> Setting:
        """The best setting found."""
        # Nested: each round goes on with the points of the one before, and more.
        order = self.rng.permutation(len(self.X))
        few, many = np.sort(order[: min(FEW, size)]), np.sort(order[:size])
        rounds = len(candidates) + 2 + relevance * FINALISTS
        limit = self.budget or rounds * STEPS + LAST_STEPS
        bar = progress_for(self.progress, limit * SECONDS * len(many) ** 2)
        with Progress("choose the network", limit, bar) as tracker:
            self._tracker = tracker
            best = self._kinds(candidates, few)
            if relevance:
                best = self._climbed(_distinct(best), few, 2 * STEPS, "relevance", True) or best
            if len(many) > len(few):  # which of two is better may change with more data
                two = _distinct(best)[:2]
                best = self._climbed(two, many, SOME_STEPS, "more data", relevance) or best
            last = self._climbed(best[:1], many, LAST_STEPS, "last", relevance)
            found = (last or best)[0]
            if found.candidate.noise_var is None and len(order) > len(many):
                return self._with_noise(found, np.sort(order[: NOISE_POINTS * size]))
            return found.setting

    def _with_noise(self, found: Try, rows: NDArray[np.intp]) -> Setting:
        """With the noise found anew on more points than the rest: few points can be fitted more
        closely than many, and take the noise for smaller than it is."""
        net = found.setting.architecture
        candidate = replace(found.candidate, weight_var=net.weight_var, bias_var=net.bias_var)
        row = self._try(candidate, found.setting, rows, NOISE_STEPS, "noise")
        return found.setting if row is None or not np.isfinite(row.score) else row.setting

    def _kinds(self, candidates: list[Candidate], rows: NDArray[np.intp]) -> list[Try]:
        """Every kind of network, best first. The first of each activation is climbed from all
        starts, and the others from the start that served it best. The very first also decides
        whether columns keep their own spread."""
        out: list[Try] = []
        begin: dict[Activation, int] = {}
        for candidate in candidates:
            phi = candidate.activation
            which = [begin[phi]] if phi in begin else range(len(STARTS))
            starts = [replace(candidate.setting(STARTS[k]), relevance=self._ground) for k in which]
            climbed = [self._try(candidate, start, rows) for start in starts]
            if not any(climbed):
                break
            scores = [-np.inf if row is None else row.score for row in climbed]
            begin.setdefault(phi, which[int(np.argmax(scores))])
            if not out and self.own_spread is not None:
                start = replace(candidate.setting(STARTS[begin[phi]]), relevance=self.own_spread)
                climbed.append(self._try(candidate, start, rows))
                if climbed[-1] is not None and climbed[-1].score > max(scores):
                    self._ground = self.own_spread
            out += [row for row in climbed if row is not None and np.isfinite(row.score)]
        if not out:
            raise VarianceError(
                f"none of the networks tried could be computed on these data{self._reason}; set "
                "weight_var, bias_var and noise_var otherwise, or rescale the inputs"
            )
        return sorted(out, key=lambda row: -row.score)

    def _climbed(
        self,
        tries: Sequence[Try],
        rows: NDArray[np.intp],
        steps: int,
        stage: str,
        relevance: bool,
    ) -> list[Try]:
        """Each climbed on from where it is; the best first. Empty if the budget is spent."""
        climbed = [self._try(*row[1:], rows, steps, stage, relevance) for row in tries]
        good = [row for row in climbed if row is not None and np.isfinite(row.score)]
        return sorted(good, key=lambda row: -row.score)

    def _try(
        self,
        candidate: Candidate,
        start: Setting,
        rows: NDArray[np.intp],
        steps: int = STEPS,
        stage: str = "kind",
        relevance: bool = False,
    ) -> Try | None:
        """One climb, and its row in the table; None if the budget is spent."""
        if self._over():
            return None
        X, Y = self.X[rows], self.Y[rows]
        space = Space(candidate, X.shape[1] if relevance else 0, self._ground)
        before, clock = self.spent, time.perf_counter()
        score, setting = self._climb(space, start, X, Y, steps)
        spent = {"evaluations": self.spent - before, "seconds": time.perf_counter() - clock}
        self.table.add(stage, len(X), score, setting, **spent)
        return Try(score, candidate, setting)

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
                    options={"maxiter": steps, "maxfun": 2 * steps, "ftol": FTOL},
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
        options = {
            "per_layer": not space.candidate.is_infinite,
            "per_input": space.inputs > 0,
        }
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
                value, by_name = self._criterion(posterior, len(theta) > 0, options)
        except (NotPositiveDefiniteError, VarianceError, ActivationError) as error:
            self._reason = f" ({error})"
            return nothing
        gradient = space.gradient(theta, by_name) if len(theta) else theta
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return nothing
        return value, gradient

    def _criterion(
        self, posterior: Posterior, free: bool, options: dict[str, bool]
    ) -> tuple[float, dict[str, Any]]:
        """The score of all targets and its derivatives; those of the evidence only if anything is
        free, the density has them anyway."""
        if self.criterion == "loo":
            return posterior.leave_one_out_density(**options)
        return posterior.log_evidence, posterior.evidence_gradient(**options) if free else {}

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
    order = rng.permutation(len(X))[:size]
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
