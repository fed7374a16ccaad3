"""Model selection: gradients are right, the score is maximised, the table lists every ascent."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.datasets import load_digits

import nngp
from nngp.selection.problem import Candidate, HyperparameterPoint
from nngp.selection.space import Space

pytestmark = pytest.mark.filterwarnings("ignore::nngp.errors.TreesWarning")  # of tiny budgets


def data(n=80, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=n)


@pytest.mark.slow_on_jax
@pytest.mark.parametrize(
    "activation", ["relu", "erf", pytest.param("tanh", marks=pytest.mark.slow)]
)
def test_gradients_against_differences(engine, activation):
    """Of the evidence and of the leave-one-out density, in every variance and relevance."""
    if activation == "tanh" and engine.name == "gpu":
        pytest.skip("the kernel and its gradient are then computed on the host, as for the CPU")
    rng = np.random.default_rng(1)
    X = rng.normal(size=(25, 3))
    X[7] = X[3]
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1]]) + 0.1 * rng.normal(size=(25, 2))
    weights, biases = np.array([1.3, 2.0, 0.7]), np.array([0.1, 0.2, 0.3])

    def posterior(t):
        net = nngp.Architecture(2, activation, weights + t[:3], biases + t[3:6])
        return nngp.condition(net, X * np.sqrt(1 + t[7:]), Y, noise_var=0.05 + t[6], engine=engine)

    def loo(t):
        left = posterior(t).leave_one_out(noise=True)
        variance = left.variance[:, None]
        return np.sum(-0.5 * np.log(2 * np.pi * variance) - 0.5 * (Y - left.mean) ** 2 / variance)

    at = posterior(np.zeros(10))
    options = {"per_layer": True, "per_input": True}
    value, of_loo = at.leave_one_out_density(**options)
    assert value == pytest.approx(loo(np.zeros(10)), rel=1e-12)
    for exact, function in (
        (at.evidence_gradient(**options), lambda t: posterior(t).log_evidence),
        (of_loo, loo),
    ):
        names = ("weight_var", "bias_var", "noise_var", "relevance")
        flat = np.concatenate([np.atleast_1d(exact[name]) for name in names])
        steps = 1e-5 * np.eye(10)
        numeric = [(function(h) - function(-h)) / 2e-5 for h in steps]
        np.testing.assert_allclose(flat, numeric, rtol=1e-4, atol=1e-4)
    # the first layer's weights are those of all its inputs together
    evidence = at.evidence_gradient(**options)
    assert evidence["relevance"].sum() == pytest.approx(1.3 * evidence["weight_var"][0])


def test_hyperparameters_survive_packing():
    candidate = Candidate(nngp.Architecture(2, "erf").activation, 2, bias_var=0.5)
    net = nngp.Architecture(2, "erf", (1.0, 2.0, 3.0), 0.5)
    powers = np.array([1.0, 0.4])
    kinds = ("identity", "yeo-johnson")
    found = HyperparameterPoint(net, 0.07, np.array([1.0, 0.2]), kinds, powers)
    space = Space(candidate, np.arange(2), moving=found.moving)
    again = space.unpack(space.pack(found), found)
    np.testing.assert_allclose(again.base.weight_vars, (1.0, 2.0, 3.0))
    assert again.base.bias_var == 0.5
    assert again.noise_var == pytest.approx(0.07)
    np.testing.assert_allclose(again.relevance, [1.0, 0.2])
    np.testing.assert_allclose(again.powers, [1.0, 0.4])


def test_the_prior_has_its_gradient():
    candidate = Candidate(nngp.Architecture(1, "relu").activation, 1)
    space = Space(candidate, np.arange(2), moving=np.array([1]))
    theta = np.linspace(-2, 3, 8)
    value, slope = space.log_prior(theta)
    for h in 1e-6 * np.eye(8):
        up, down = space.log_prior(theta + h)[0], space.log_prior(theta - h)[0]
        assert (up - down) / 2e-6 == pytest.approx(slope @ h / 1e-6, abs=1e-6)
    assert value < 0


@pytest.mark.parametrize("selection", ["evidence", pytest.param("loo", marks=pytest.mark.slow)])
def test_choosing_beats_not_choosing(selection):
    X, y = data()
    Xs, ys = data(200, seed=1)
    plain = nngp.NNGPRegressor(selection=None).fit(X, y)
    chosen = nngp.NNGPRegressor(selection=selection).fit(X, y)
    assert chosen.score(Xs, ys) > plain.score(Xs, ys) + 0.1
    assert chosen.score(Xs, ys) > 0.9
    # one input matters, and it is the first
    assert chosen.relevance_.argmax() == 0
    assert chosen.relevance_[1:].max() < 0.3
    np.testing.assert_array_equal(plain.relevance_, 1.0)


@pytest.mark.slow
def test_noise_is_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    clean = np.sin(X[:, 0])
    y = clean + 0.5 * rng.normal(size=400)
    model = nngp.NNGPRegressor().fit(X, y)
    assert model.noise_var_ * np.var(y) == pytest.approx(0.25, rel=0.2)
    lower, upper = model.predict_interval(X, 0.9)
    fresh = clean + 0.5 * rng.normal(size=400)
    assert np.mean((lower < fresh) & (fresh < upper)) == pytest.approx(0.9, abs=0.05)


def test_the_selection_table():
    X, y = data()
    table = nngp.NNGPRegressor().fit(X, y).selection_
    rows = len(table["score"])
    assert rows > 8
    assert all(len(column) == rows for column in table.values())
    assert {"relu", "erf"} == set(table["activation"])
    assert {1, 2, 3} == set(table["depth"])
    assert table["chosen"].sum() == 1
    assert table["stage"][table["chosen"]] == ["last"]
    assert np.all(np.isfinite(table["score"]))


def test_given_parameters_are_kept():
    X, y = data()
    model = nngp.NNGPRegressor(
        effort="fast",
        depth=2,
        activation="gelu",
        weight_var=(1.0, 2.0, 3.0),
        noise_var=0.02,
        relevance=[1, 0, 1, 1],
    ).fit(X, y)
    net = model.network_
    assert (net.depth, net.activation.name) == (2, "gelu")
    assert net.weight_vars == (1.0, 2.0, 3.0)
    assert model.noise_var_ == 0.02
    assert net.bias_var not in (0.3, 1.0)  # where the search starts
    moved = X + np.array([0.0, 5.0, 0.0, 0.0])
    np.testing.assert_array_equal(model.relevance_, [1, 0, 1, 1])
    np.testing.assert_allclose(model.predict(moved), model.predict(X))


@pytest.mark.slow
def test_columns_that_share_a_unit_keep_their_spread():
    """Pixels at the rim hardly vary, and carry little information."""
    X, y = load_digits(return_X_y=True)
    auto = nngp.NNGPClassifier(budget=80).fit(X[:300], y[:300])
    forced = nngp.NNGPClassifier(budget=80, input_scaling="standardize").fit(X[:300], y[:300])
    with pytest.warns(nngp.errors.ExtrapolationWarning, match=r"9 of 1497 row.*23, 47"):
        without_spread = forced.score(X[300:], y[300:])  # a pixel of 0 or 1 in training is 8 here
    assert auto.score(X[300:], y[300:]) > without_spread + 0.01
    assert auto.relevance_.min() < 0.01
    varies = X[:300].std(axis=0) > 0
    np.testing.assert_array_equal(forced.relevance_, varies)  # constant columns move nothing
    # and columns of different units do not
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2)) * np.array([1.0, 1e4])
    mixed = nngp.NNGPRegressor(relevance=False).fit(X, np.sin(2 * X[:, 0]))
    np.testing.assert_array_equal(mixed.relevance_, 1.0)


def test_the_budget_is_kept():
    X, y = data()
    for selection, budget in (("evidence", 7), ("evidence", 30), ("loo", 9)):
        model = nngp.NNGPRegressor(selection=selection, budget=budget).fit(X[:40], y[:40])
        assert model.selection_["evaluations"].sum() <= budget


def test_one_row_is_chosen_if_nothing_is_free():
    X, y = data()
    model = nngp.NNGPRegressor(weight_var=1.5, bias_var=0.1, noise_var=0.1, relevance=False)
    table = model.fit(X, y).selection_
    assert table["chosen"].sum() == 1
    assert table["score"][table["chosen"]] > table["score"].max() - 1 / len(y)  # a nat


def test_the_prior_has_one_center_in_all_stages():
    """Its center is the initial relevances, not those of the stage before."""
    X, y = data(400)
    model = nngp.NNGPRegressor(depth=1, activation="erf", input_scaling="standardize")
    table = model.fit(X, y).selection_
    relevance = model.networks_[0].inputs.relevance
    found = HyperparameterPoint(model.network_, model.noise_var_, relevance)
    space = Space(Candidate(model.network_.activation, 1), np.arange(4))
    prior, _ = space.log_prior(space.pack(found))
    evidence = model.posterior_.log_evidence
    (last,) = np.flatnonzero(table["chosen"])
    assert table["stage"][last] == "last"
    assert table["score"][last] == pytest.approx((evidence + prior) / 400, rel=1e-6)


@pytest.mark.parametrize("selection", ["evidence", "loo"])
def test_one_log_evidence_in_the_units_of_the_data(selection):
    """The density of the targets as they are given, against SciPy; the same in the table, where a
    stage saw all points. In other units it moves by n log of the unit, and nothing else does."""
    X, y = data(60)
    fitted = {}
    for unit in (1.0, 1000.0):
        model = nngp.NNGPRegressor(selection=selection, budget=8, activation="erf", depth=1)
        fitted[unit] = model.fit(X, unit * y + 7.0)
    model, table = fitted[1000.0], fitted[1000.0].selection_
    scaling = model.networks_[0].targets
    K = nngp.kernel(model.network_, model.networks_[0].inputs(X))
    cov = (K + model.noise_var_ * np.eye(60)) * scaling.spread**2
    exact = multivariate_normal(np.full(60, scaling.center[0]), cov).logpdf(1000.0 * y + 7.0)
    assert model.log_evidence_ == pytest.approx(exact, rel=1e-6)
    assert model.log_marginal_likelihood_ == model.log_evidence_
    assert fitted[1.0].log_evidence_ - model.log_evidence_ == pytest.approx(60 * np.log(1000.0))
    moved = fitted[1.0].selection_["log_evidence"] - table["log_evidence"]
    np.testing.assert_allclose(moved, table["n"] * np.log(1000.0), rtol=1e-6)
    assert table["log_evidence"][table["chosen"]] == pytest.approx([exact], rel=1e-6)


def test_the_log_evidence_of_classes_is_that_of_one_hot_targets():
    X, y = data(60)
    labels = np.digitize(y, [-0.5, 0.5])
    model = nngp.NNGPClassifier(selection=None).fit(X, labels)
    K = nngp.kernel(model.network_, model.networks_[0].inputs(X))
    cov = (K + model.noise_var_ * np.eye(60)) * model.networks_[0].targets.spread[0] ** 2
    targets = np.eye(3)[labels] - 1 / 3
    exact = multivariate_normal(np.zeros(60), cov).logpdf(targets.T).sum()
    assert model.log_evidence_ == pytest.approx(exact, rel=1e-8)


def test_a_zero_row_without_bias():
    X, y = data()
    X[3] = 0.0
    model = nngp.NNGPRegressor(bias_var=0.0, input_scaling="none", weight_var=1.0, noise_var=0.1)
    with pytest.raises(nngp.errors.VarianceError, match="none of the networks"):
        nngp.NNGPRegressor(bias_var=0.0, input_scaling="none").fit(X, y)
    assert np.isfinite(model.fit(X, y).predict(X)).all()


@pytest.mark.slow
def test_selection_on_some_points_uses_all_afterwards():
    X, y = data(200)
    model = nngp.NNGPRegressor(selection_size=30).fit(X, y)
    assert model.posterior_.n == 200
    table = model.selection_
    assert set(table["n"][table["stage"] != "noise"]) == {30}
    assert table["n"][table["stage"] == "noise"] == [60]
    assert table["stage"][table["chosen"]] == ["noise"]


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["tanh", "elu", "silu"])
def test_any_activation_is_fast_on_the_sphere(activation):
    X, y = data(120)
    Xs, ys = data(200, seed=1)
    budget = 3 if activation == "elu" else 12  # with kinks each takes about a second
    model = nngp.NNGPRegressor(activation=activation, budget=budget).fit(X, y)
    assert model.report_.method == "curve"
    assert model.score(Xs, ys) > 0.6
    assert model.posterior_.inputs.X.shape[1] == 5  # a constant input more
