"""Means of transformed targets with estimated variances, against those with exact ones."""

import numpy as np
import pytest

import nngp
from nngp.estimators import regressor, variance_estimate


@pytest.fixture
def many(monkeypatch):
    """As if 300 rows were many."""
    for module in (regressor, variance_estimate):
        monkeypatch.setattr(module, "MANY", 300)
    monkeypatch.setattr(variance_estimate, "SUBSET", 200)


def data(n=800, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.exp(X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.2 * rng.normal(size=n))


def test_means_are_close_and_their_error_is_said(many):
    X, y = data()
    model = nngp.NNGPRegressor(
        depth=1, activation="erf", target_transform="log", relevance=False, effort="fast"
    ).fit(X[:500], y[:500])
    assert model.target_transform_ == "log"
    quick = model.predict(X[500:])
    exact, _ = model.predict(X[500:], return_std=True)
    error = np.sqrt(np.square(quick - exact).mean()) / y[:500].std()
    assert 0 < error < 4 * model.mean_error_ < 0.05
    np.testing.assert_allclose(model.predict(X[500:503]), quick[:3], rtol=1e-9)


def test_exact_variances_have_no_error():
    X, y = data(60)
    model = nngp.NNGPRegressor(depth=1, activation="erf", target_transform="log", effort="fast")
    assert model.fit(X, y).mean_error_ == 0.0


def test_the_estimate_is_that_of_left_out_rows(many):
    """Exact variances of rows without themselves, by leaving them out."""
    X, y = data(400)
    net = nngp.Architecture(1, "erf", 2.0, 0.3)
    posterior = nngp.condition(net, X, y, noise_var=0.05)
    found = variance_estimate.VarianceEstimate.learn(posterior, "cpu")
    rows = np.random.default_rng(0).permutation(400)[200:296]
    exact = posterior.leave_one_out(noise=False).variance[rows]
    assert np.sqrt(np.mean(np.log(found(X[rows]) / exact) ** 2)) < 2 * found.error < 1.0
