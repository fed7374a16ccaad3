"""The sampler for Optuna: its mathematics against mpmath and differences, and what studies see."""

import pickle
import warnings

import mpmath
import numpy as np
import pytest

optuna = pytest.importorskip("optuna")

from optuna.distributions import (  # noqa: E402
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

import nngp.optuna  # noqa: E402
from nngp.optuna.acquisition import log_h, log_improvement_gradient  # noqa: E402
from nngp.optuna.space import SearchSpace  # noqa: E402
from nngp.optuna.surrogate import CANDIDATES, Surrogate, _Fit  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.WARNING)
RNG = np.random.default_rng(2)
Z = RNG.uniform(-1, 1, (25, 3))
VALUES = np.sin(2 * Z[:, 0]) + Z[:, 1] ** 2 + 0.1 * Z[:, 2]
GROUPS = np.array([0, 1, 1])


def sampler(**more):
    return nngp.optuna.NNGPSampler(**{"seed": 0, "n_startup_trials": 5, **more})


def study_of(objective, n, direction="minimize", **more):
    study = optuna.create_study(direction=direction, sampler=sampler(**more))
    study.optimize(objective, n_trials=n, catch=(RuntimeError,))
    return study


def test_log_h_is_that_of_mpmath():
    u = np.array([-1e8, -1.1e3, -999.0, -80.0, -30.0, -3.0, -1e-3, 0.0, 1e-3, 1.0, 6.0, 40.0])
    value, slope = log_h(u)
    with mpmath.workdps(60):
        for one, found, rate in zip(u, value, slope, strict=True):
            x = mpmath.mpf(float(one))
            if one < -1e4:  # 1 + u Φ/φ by its series
                h = mpmath.npdf(x) / x**2 * (1 - 3 / x**2)
                below = -mpmath.npdf(x) / x
            else:
                below = mpmath.erfc(-x / mpmath.sqrt(2)) / 2
                h = mpmath.npdf(x) + x * below
            assert found == pytest.approx(float(mpmath.log(h)), rel=1e-9)
            assert rate == pytest.approx(float(below / h), rel=3e-6)


@pytest.mark.parametrize("candidate", CANDIDATES)
def test_the_gradient_of_the_improvement_is_that_of_differences(candidate):
    surrogate = Surrogate.fit(Z, VALUES, GROUPS, candidates=[candidate])
    points, h = RNG.uniform(-1, 1, (6, 3)), 1e-6
    best = float(surrogate.y.min())
    value, slope = log_improvement_gradient(surrogate, points, best)
    for j, axis in enumerate(np.eye(3)):
        ends = [
            log_improvement_gradient(surrogate, points + s * h * axis, best)[0] for s in (1, -1)
        ]
        gap = np.abs((ends[0] - ends[1]) / (2 * h) - slope[:, j])
        assert gap.max() < 1e-5 * max(1.0, np.abs(slope).max())
    assert np.isfinite(value).all()


@pytest.mark.parametrize("candidate", CANDIDATES)
def test_the_gradient_of_the_evidence_is_that_of_differences(candidate):
    fit = _Fit(candidate, GROUPS, Z, VALUES - VALUES.mean(), exact=False)
    theta = fit.center + 0.3 * RNG.standard_normal(len(fit.center))
    slope = fit.loss(theta)[1]
    for j, axis in enumerate(np.eye(len(theta))):
        rise = fit.loss(theta + 1e-5 * axis)[0] - fit.loss(theta - 1e-5 * axis)[0]
        assert rise / 2e-5 == pytest.approx(slope[j], rel=1e-5, abs=1e-5)


def test_an_update_is_the_same_as_to_condition_again():
    surrogate = Surrogate.fit(Z[:20], VALUES[:20], GROUPS)
    more = surrogate.updated(Z[20:], surrogate.scaled(VALUES[20:]))
    again = surrogate.chosen.condition(Z, np.append(surrogate.y, surrogate.scaled(VALUES[20:])))
    points = RNG.uniform(-1, 1, (4, 3))
    np.testing.assert_allclose(
        more.mean(points), again.mean(surrogate.chosen.features(points)), atol=1e-8
    )
    assert surrogate.posterior.n == 20


def test_running_trials_leave_the_mean_and_take_the_variance():
    surrogate = Surrogate.fit(Z, VALUES, GROUPS)
    points = RNG.uniform(-1, 1, (3, 3))
    waiting = surrogate.expecting(points)
    np.testing.assert_allclose(waiting.mean(Z), surrogate.mean(Z), atol=1e-6)
    before, after = surrogate.predict(points)[1], waiting.predict(points)[1]
    assert (after < 0.6 * before + 1e-5).all()


DISTRIBUTIONS = {
    "log": FloatDistribution(1e-5, 1.0, log=True),
    "step": FloatDistribution(0.0, 1.0, step=0.25),
    "whole": IntDistribution(-3, 300),
    "powers": IntDistribution(1, 1024, log=True),
    "kind": CategoricalDistribution(["a", None, 3]),
    "plain": FloatDistribution(-2.0, 2.0),
}


def trial_with(params):
    named = {name: DISTRIBUTIONS[name] for name in params}
    return optuna.trial.create_trial(params=params, distributions=named, value=0.0)


def test_points_come_back_as_what_they_were():
    params = {"log": 3e-4, "step": 0.75, "whole": 17, "powers": 64, "kind": None, "plain": -1.3}
    space = SearchSpace.of([trial_with(params)])
    point = space.points([params])[0]
    assert space.values(point) == pytest.approx(params)
    np.testing.assert_array_equal(space.rounded(point[None])[0], point)
    for drawn in space.random(RNG.random((50, 6))):
        values = space.values(drawn)
        assert space.rounded(drawn[None])[0] == pytest.approx(drawn)
        trial_with(values)  # raises ValueError for values outside
    np.testing.assert_array_equal(space.inputs(point[None])[0, :3], [0.0, 1.0, 0.0])


def conditional_trials():
    deep = [{"kind": "a", "log": 0.1}, {"kind": "a", "log": 1e-3}]
    flat = [{"kind": None, "step": 0.5}, {"kind": 3, "step": 0.25}, {"kind": 3, "step": 0.0}]
    return [trial_with(one) for one in deep + flat]


def test_conditions_are_learned():
    space = SearchSpace.of(conditional_trials())
    for drawn in space.random(RNG.random((40, 3))):
        values = space.values(drawn)
        assert set(values) == ({"kind", "log"} if values["kind"] == "a" else {"kind", "step"})
    inputs = space.inputs(space.points([{"kind": "a", "log": 0.1}]))[0]
    assert inputs.tolist().count(0.0) == 4  # two kinds; the step and whether it is there


def branin(trial):
    x, y = trial.suggest_float("x", -5, 10), trial.suggest_float("y", 0, 15)
    parabola = y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6
    return parabola**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_it_finds_a_minimum_and_a_maximum(direction):
    sign = 1 if direction == "minimize" else -1
    study = study_of(lambda trial: sign * branin(trial), 22, direction)
    assert sign * study.best_value < 0.6  # the minimum is 0.398, a random search has 2.9
    assert sampler(seed=3).infer_relative_search_space(study, study.trials[0]).keys() == {"x", "y"}


def test_the_same_seed_gives_the_same_trials():
    one, other = (study_of(branin, 9) for _ in range(2))
    assert [t.params for t in one.trials] == [t.params for t in other.trials]


def test_parallel_trials_look_in_different_places():
    study = study_of(branin, 15)
    space = {"x": FloatDistribution(-5, 10), "y": FloatDistribution(0, 15)}
    asked = [study.ask(space) for _ in range(4)]
    points = np.array([[t.params["x"] / 15, t.params["y"] / 15] for t in asked])
    gaps = np.linalg.norm(points[:, None] - points, axis=2)[np.triu_indices(4, 1)]
    assert gaps.min() > 1e-3
    for trial in asked:
        study.tell(trial, branin(trial))


def test_failed_trials_are_avoided_or_ignored():
    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        if x > 0.6:
            raise RuntimeError("out of memory")
        return -x

    study = study_of(objective, 16)
    failed = [t.state == optuna.trial.TrialState.FAIL for t in study.trials]
    assert study.best_params["x"] > 0.5
    assert sum(failed[8:]) < 6
    assert study_of(objective, 8, failed="ignore").best_value < 0


def test_mixed_conditional_and_pruned_trials():
    def objective(trial):
        kind = trial.suggest_categorical("kind", ["deep", "flat"])
        if kind == "flat":
            return 1.0 + trial.suggest_int("width", 1, 8) / 8
        x, n = trial.suggest_float("x", 1e-3, 1e3, log=True), trial.suggest_int("n", 1, 4)
        trial.report(5.0, step=1)
        if n == 4:
            raise optuna.TrialPruned
        return abs(np.log10(x) - 1) / 4 + abs(n - 2)

    study = study_of(objective, 30)
    assert study.best_params["kind"] == "deep"
    assert study.best_params["n"] == 2
    assert study.best_value < 0.05


def test_thompson_sampling_with_threads():
    study = optuna.create_study(sampler=sampler(acquisition="thompson"))
    study.optimize(branin, n_trials=20, n_jobs=2)
    assert len(study.trials) == 20
    assert study.best_value < 5


def test_infinite_values_and_constant_ones():
    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        return float("inf") if x > 0.5 else 2.0

    study_of(objective, 9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study_of(lambda trial: 0.0 * trial.suggest_float("x", 0, 1), 8, deterministic=True)


def test_what_it_does_not_do_is_said():
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler())
    with pytest.raises(ValueError, match="one objective"):
        study.ask().suggest_float("x", 0, 1)
    with pytest.raises(ValueError, match="acquisition must be"):
        sampler(acquisition="ei")
    with pytest.raises(ValueError, match="failed must be"):
        sampler(failed="best")
    again = pickle.loads(pickle.dumps(sampler(acquisition="thompson")))
    assert again.acquisition == "thompson"


def test_missing_optuna_is_said(monkeypatch):
    import importlib

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'nngp\[optuna\]'"):
        importlib.reload(nngp.optuna)
