"""Optuna's side: trials in, parameters of the next trial out."""

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from nngp._arrays import Array, Index
from nngp._machine import one_thread, single_threaded_blas
from nngp._numbers import whole_number
from nngp.optuna.acquisition import candidate_points, most_promising, quietly, thompson
from nngp.optuna.space import SearchSpace
from nngp.optuna.surrogate import Surrogate

ACQUISITIONS = ("log_ei", "thompson")
FAILED = ("worst", "ignore")
EVERY = 30  # trials up to which hyper-parameters are learned again after each
GROWTH = 1.1  # by which their number must have grown later


class _Known(NamedTuple):
    """Finished trials: their numbers, points and values, small ones good."""

    numbers: tuple[int, ...]
    points: Array
    values: Array


class _Model(NamedTuple):
    """A surrogate, the trials and values it knows, and how many it was learned from."""

    space: SearchSpace
    surrogate: Surrogate
    known: _Known
    learned_from: int


class NNGPSampler(BaseSampler):
    """Sample parameters by Bayesian optimisation with an infinitely wide network.

    The network is chosen by its evidence after every trial (after every tenth of the trials once
    there are many; between, its posterior is updated exactly). The next trial is where the expected
    improvement is largest, by exact gradients, or where a draw of the posterior is smallest. One
    objective, of any direction.

    Trials that are running are taken to give what is expected of them, so that parallel workers
    look elsewhere. Pruned trials count with their last report, but not as better than the median.
    Parameters may be numbers, integers and categories, and some trials may lack some.

    Parameters
    ----------
    seed : int, optional
    acquisition : {"log_ei", "thompson"}
        Expected improvement; or Thompson sampling, for many workers.
    n_startup_trials : int
        Trials before the first network, which fill the space evenly.
    deterministic : bool
        Whether the objective gives the same value again, so that there is no noise to learn.
    failed : {"worst", "ignore"}
        Take failed trials to be as bad as the worst, so that the search avoids them; or as if they
        had not been tried.
    independent_sampler : optuna.samplers.BaseSampler, optional
        Samples parameters that no finished trial had; at random by default.

    Examples
    --------
    >>> import optuna, nngp.optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     x = trial.suggest_float("x", -5, 5)
    ...     return (x - 2) ** 2
    >>> study = optuna.create_study(sampler=nngp.optuna.NNGPSampler(seed=0, n_startup_trials=5))
    >>> study.optimize(objective, n_trials=12)
    >>> bool(abs(study.best_params["x"] - 2) < 0.1)
    True
    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        acquisition: str = "log_ei",
        n_startup_trials: int = 10,
        deterministic: bool = False,
        failed: str = "worst",
        independent_sampler: BaseSampler | None = None,
    ) -> None:
        if acquisition not in ACQUISITIONS:
            raise ValueError(f"acquisition must be one of {ACQUISITIONS}, got {acquisition!r}")
        if failed not in FAILED:
            raise ValueError(f"failed must be one of {FAILED}, got {failed!r}")
        self.acquisition, self.failed, self.deterministic = acquisition, failed, deterministic
        self.n_startup_trials = whole_number("n_startup_trials", n_startup_trials)
        self._independent = independent_sampler or RandomSampler(seed=seed)
        self._rng, self._seed = np.random.default_rng(seed), seed
        self._lock, self._model = threading.Lock(), None  # type: tuple[Any, _Model | None]
        self._proposed: dict[int, dict[str, Any]] = {}  # by trials that have not finished

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    def reseed_rng(self) -> None:
        """Draw other numbers from here on, as Optuna asks of the samplers of parallel workers."""
        self._rng = np.random.default_rng()
        self._independent.reseed_rng()

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """All parameters that finished trials had."""
        _check_one_objective(study)
        return SearchSpace.of(self._finished(study)).by_name

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Parameters of the next trial."""
        if not search_space:
            return {}
        with self._lock, single_threaded_blas(), one_thread():
            params = self._next(study, trial)
            self._proposed[trial.number] = params
        return params

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """A parameter that no finished trial had."""
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Forget what was proposed for a trial, as it is known now."""
        self._proposed.pop(trial.number, None)
        self._independent.after_trial(study, trial, state, values)

    def _next(self, study: Study, trial: FrozenTrial) -> dict[str, Any]:
        finished = self._finished(study)
        space, rng = SearchSpace.of(finished), self._rng
        known = self._known(study, finished, space)
        if len(known.numbers) < self.n_startup_trials:
            return space.values(self._spread_out(space, trial.number))
        self._model = model = self._learn(space, known)
        running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        pending = [
            {**self._proposed.get(one.number, {}), **one.params}
            for one in running
            if one.number != trial.number and (one.params or one.number in self._proposed)
        ]
        surrogate = model.surrogate
        if pending:
            surrogate = quietly(surrogate.expecting, space.inputs(space.points(pending)))
        order = np.argsort(model.known.values, kind="stable")
        points = candidate_points(space, known.points[order], rng)
        if self.acquisition == "thompson":
            return space.values(quietly(thompson, space, surrogate, points, rng))
        best = float(surrogate.mean(model.surrogate.Z).min())
        return space.values(quietly(most_promising, space, surrogate, points, best))

    def _learn(self, space: SearchSpace, known: _Known) -> _Model:
        """The model of all that is known: learned again, or updated where little is new."""
        Z, before, count = space.inputs(known.points), self._model, len(known.numbers)
        if before is not None and before.space == space and count > EVERY:
            old = len(before.known.numbers)
            same = known.numbers[:old] == before.known.numbers
            same = same and np.array_equal(known.values[:old], before.known.values)
            if same and count < GROWTH * before.learned_from:
                surrogate = before.surrogate
                if count > old:
                    more = surrogate.scaled(known.values[old:])
                    surrogate = quietly(surrogate.updated, Z[old:], more)
                return _Model(space, surrogate, known, before.learned_from)
        start = before.surrogate if before is not None and before.space == space else None
        surrogate = quietly(self._fit, Z, known.values, _groups(space), start)
        return _Model(space, surrogate, known, count)

    def _fit(self, Z: Array, values: Array, groups: Index, before: Surrogate | None) -> Surrogate:
        return Surrogate.fit(Z, values, groups, exact=self.deterministic, before=before)

    def _spread_out(self, space: SearchSpace, number: int) -> Array:
        """A point of a sequence that fills the space evenly, by the number of the trial."""
        from scipy.stats import qmc  # slow to import

        sequence = qmc.Halton(len(space), seed=0 if self._seed is None else self._seed)
        sequence.fast_forward(number)
        out: Array = space.random(sequence.random(1))[0]
        return out

    def _finished(self, study: Study) -> list[FrozenTrial]:
        """Trials that say something, in their order."""
        states = [TrialState.COMPLETE, TrialState.PRUNED]
        if self.failed == "worst":
            states.append(TrialState.FAIL)
        trials = study.get_trials(deepcopy=False, states=tuple(states))
        return [one for one in trials if one.params and _says_something(one)]

    def _known(self, study: Study, trials: Sequence[FrozenTrial], space: SearchSpace) -> _Known:
        sign = -1.0 if study.direction == StudyDirection.MAXIMIZE else 1.0
        values = np.array([sign * _value(one) for one in trials])
        complete = np.array([one.state == TrialState.COMPLETE for one in trials], dtype=bool)
        finite = values[np.isfinite(values) & complete]
        points = space.points([one.params for one in trials])
        numbers = tuple(one.number for one in trials)
        if not len(finite):  # no value says anything as yet
            return _Known((), points[:0], values[:0])
        pruned = np.array([one.state == TrialState.PRUNED for one in trials], dtype=bool)
        values = np.where(pruned, np.maximum(values, np.median(finite)), values)
        values = np.where(np.isnan(values), finite.max(), values)
        return _Known(numbers, points, np.clip(values, finite.min(), finite.max()))


def _groups(space: SearchSpace) -> Index:
    """The parameter of each column of inputs: its columns share a relevance."""
    sizes = [columns.stop - columns.start for columns in space.columns]
    return np.repeat(np.arange(len(space)), sizes)


def _value(trial: FrozenTrial) -> float:
    """The value of a trial, the last report of a pruned one; NaN of a failed one."""
    if trial.state == TrialState.COMPLETE:
        assert trial.value is not None
        return float(trial.value)
    if trial.state == TrialState.PRUNED:
        return float(trial.intermediate_values[max(trial.intermediate_values)])
    return float("nan")


def _says_something(trial: FrozenTrial) -> bool:
    return trial.state != TrialState.PRUNED or bool(trial.intermediate_values)


def _check_one_objective(study: Study) -> None:
    if len(study.directions) > 1:
        raise ValueError(
            "NNGPSampler minimises or maximises one objective; for several use "
            "optuna.samplers.NSGAIISampler"
        )
