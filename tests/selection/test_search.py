"""The search on raw data: weights, known noise, groups, transforms, finalists; its gradients."""

import numpy as np
import pytest

import nngp
from nngp.posterior.evidence.dense_evidence import DenseEvidence
from nngp.predictive.targets import TargetScaling
from nngp.selection import SelectionProblem, choose, row_noise
from nngp.selection.inputs import SearchInputs
from nngp.selection.objective import Objective
from nngp.selection.problem import Candidate, HyperparameterPoint
from nngp.selection.space import Space


def problem(X, y, **options):
    Y = np.reshape(y, (len(X), -1))
    candidates = [Candidate(nngp.Architecture(1, phi).activation, 1) for phi in ("relu", "erf")]
    defaults = {
        "candidates": candidates,
        "criterion": "evidence",
        "size": 1000,
        "budget": None,
        "learn_relevance": True,
        "targets": (TargetScaling.learn(Y, "standardize"),),
        "engine": "cpu",
        "rng": np.random.default_rng(0),
        "progress": False,
    }
    return SelectionProblem(**(defaults | options), X=X, Y=Y)


def data(n=60, d=3):
    rng = np.random.default_rng(0)
    X = rng.lognormal(size=(n, d))
    return X, np.log(X[:, 0]) + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("criterion", ["evidence", "loo"])
def test_the_gradient_of_everything(criterion):
    """Variances, noise, relevances of groups, powers; with weights and known noise."""
    X, y = data()
    rng = np.random.default_rng(1)
    groups = np.array([0, 1, 1])
    asked = problem(X, y, maps="auto", groups=groups)
    inputs = SearchInputs(asked, rng.permutation(60))
    kinds, powers = ("yeo-johnson", "log", "yeo-johnson"), np.array([0.4, 1.0, 1.8])
    net = nngp.Architecture(1, "erf", (1.2, 2.0), (0.2, 0.3))
    at = HyperparameterPoint(net, 0.1, np.array([1.0, 0.3, 0.3]), kinds, powers)
    space = Space(asked.candidates[1], groups, moving=at.moving)
    weights = rng.uniform(0.5, 2.0, 40)
    scaled = asked.targets[0](asked.Y[inputs.rows(40)])
    objective = Objective(
        inputs, 40, scaled, criterion, DenseEvidence(), "cpu", weights, rng.uniform(0, 0.1, 40)
    )
    theta = space.pack(at)
    assert len(theta) == 2 + 2 + 1 + 2 + 2
    exact = objective.evaluate(space, theta, space.unpack(theta, at)).gradient
    for k, step in enumerate(1e-5 * np.eye(len(theta))):
        up, down = (
            objective.evaluate(space, t, space.unpack(t, at), gradient=False).score
            for t in (theta + step, theta - step)
        )
        assert exact[k] == pytest.approx((up - down) / 2e-5, rel=1e-4, abs=1e-8)


def test_the_gradient_in_parameters_of_the_activation():
    X, y = data(6)
    phi = nngp.Activation(lambda x, s, t: np.tanh(s * x) + t * x, params={"s": 0.7, "t": 0.1})
    asked = problem(X, y, candidates=[Candidate(phi, 1)])
    scaled = asked.targets[0](asked.Y)
    objective = Objective(
        SearchInputs(asked, np.arange(6)), 6, scaled, "evidence", DenseEvidence(), "cpu"
    )
    at = HyperparameterPoint(nngp.Architecture(1, phi, (1.2, 2.0), (0.2, 0.3)), 0.1)
    space = Space(asked.candidates[0])
    theta = space.pack(at)
    theta[-2:] = 0.9, -0.2
    assert space.unpack(theta, at).base.params == {"s": 0.9, "t": -0.2}
    exact = objective.evaluate(space, theta, space.unpack(theta, at)).gradient
    for k, step in enumerate(1e-4 * np.eye(len(theta))):
        up, down = (
            objective.evaluate(space, t, space.unpack(t, at), gradient=False).score
            for t in (theta + step, theta - step)
        )
        assert exact[k] == pytest.approx((up - down) / 2e-4, rel=1e-4, abs=1e-7)


def test_a_weight_of_two_is_the_row_twice():
    X, y = data(40)
    twice = np.r_[0:40, 0:10]
    weights = np.where(np.arange(40) < 10, 2.0, 1.0)
    known = np.random.default_rng(0).uniform(0.0, 0.2, 40)
    values = []
    for rows, w in ((np.arange(40), weights), (twice, None)):
        asked = problem(X[rows], y[rows], targets=(TargetScaling.learn(y[:, None], "none"),))
        inputs = SearchInputs(problem(X, y), np.arange(40))
        inputs.X, inputs.order = X[rows], np.arange(len(rows))
        at = HyperparameterPoint(nngp.Architecture(1, "erf", 1.0, 0.1), 0.1)
        objective = Objective(
            inputs, len(rows), asked.Y, "evidence", DenseEvidence(), "cpu", w, known[rows]
        )
        space = Space(asked.candidates[1])
        values.append(objective.evaluate(space, space.pack(at), at).log_evidence)
    assert values[0] == pytest.approx(values[1], rel=1e-10)
    assert row_noise(0.1, None, 0.0) == 0.1


def test_groups_share_one_relevance_and_finalists_differ():
    X, y = data()
    choice = choose(problem(X, y, groups=np.array([0, 1, 1]), networks=2))
    relevance = choice.best.inputs.relevance
    assert relevance[1] == relevance[2] != relevance[0]
    names = [one.network.activation.name for one in choice.finalists]
    assert sorted(names[:2]) == ["erf", "relu"]  # then one with fewer hyper-parameters
    assert names[2:] == ["erf"]
    assert choice.finalists[0] is choice.best
    assert choice.table.columns()["chosen"].sum() == 1


def test_noise_is_not_below_its_floor():
    X, y = data(50)
    targets = TargetScaling(np.zeros(1), np.ones(1), noise_floor=0.05)
    found = choose(problem(X, np.log(X[:, 0]), targets=(targets,)))
    assert found.best.noise_var == pytest.approx(0.05)
    assert choose(problem(X, y, criterion=None, targets=(targets,))).best.noise_var >= 0.05


def test_known_noise_is_not_learned_again():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1))
    y = np.sin(X[:, 0]) + 0.5 * rng.normal(size=200)
    plain, known = (
        choose(problem(X, y, known_noise=noise, learn_relevance=False)).best.noise_var
        for noise in (None, np.full(200, 0.25))
    )
    assert known < 0.2 * plain


@pytest.mark.parametrize("effort", ["fast", "thorough"])
def test_efforts(effort):
    X, y = data()
    counts = [
        choose(problem(X, y, effort=e, maps="auto")).table.columns()["evaluations"].sum()
        for e in (effort, "normal")
    ]
    assert (counts[0] < counts[1]) == (effort == "fast")
