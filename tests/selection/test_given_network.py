"""A network that the user gave: its posterior, the noise of the highest evidence, saved models."""

from itertools import product

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

import nngp
from nngp import Act, Chain, Dense, Residual

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
Y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * RNG.standard_normal(60)
NET = Chain(Dense(1.5, 0.1), Residual(Act("relu"), Dense(1.0, 0.1)), Act("erf"), Dense(1.0, 0.2))


@pytest.mark.parametrize("net", [NET, nngp.NTK(NET), nngp.Architecture(2, "erf", 1.5, 0.1)])
def test_noise_and_scale_have_the_highest_evidence(net):
    """Of all targets over a number s and noise beside the kernel, with the Jacobian."""
    model = nngp.NNGPRegressor(network=net, target_transform="identity").fit(X, Y)
    assert model.network_ == net
    fitted = model.networks_[0]
    scaled, spread = fitted.inputs(X), fitted.targets.spread[0]

    values, vectors = np.linalg.eigh(nngp.kernel(net, scaled))
    squares = (vectors.T @ (Y - Y.mean())) ** 2

    def evidence(noise, spread):
        found = np.log(2 * np.pi * (values + noise)) + squares / spread**2 / (values + noise)
        return -0.5 * found.sum() - len(Y) * np.log(spread)

    best = evidence(model.noise_var_, spread)
    assert model.log_evidence_ == pytest.approx(best, rel=1e-9)
    grid = product(np.geomspace(1e-5, 10.0, 100), np.geomspace(0.05, 20.0, 100))
    assert best >= max(evidence(*point) for point in grid) - 0.02
    targets = (Y - Y.mean()) / spread
    mean = nngp.condition(net, scaled, targets, noise_var=model.noise_var_).mean(scaled)
    np.testing.assert_allclose(model.predict(X), Y.mean() + spread * mean, rtol=1e-8)


def test_a_larger_network_is_the_same_model():
    """The last layer's variances are one number, which the scale of the outputs takes up."""
    large = Chain(NET, Dense(100.0))
    small, same = (nngp.NNGPRegressor(network=one).fit(X, Y) for one in (NET, large))
    np.testing.assert_allclose(same.predict(X), small.predict(X), atol=1e-4)
    assert same.log_evidence_ == pytest.approx(small.log_evidence_, abs=1e-3)
    labels = (Y > 0).astype(int)
    tables = [
        nngp.NNGPClassifier(network=one).fit(X, labels).predict_proba(X) for one in (NET, large)
    ]
    np.testing.assert_allclose(*tables, atol=1e-3)


def test_unscaled_targets_keep_the_networks_own_scale():
    model = nngp.NNGPRegressor(network=NET, target_scaling="none", target_transform="identity")
    assert model.fit(X, Y).networks_[0].targets.spread[0] == 1.0


def test_given_noise_is_kept():
    model = nngp.NNGPRegressor(network=NET, noise_var=0.07).fit(X, Y)
    assert model.noise_var_ == 0.07


def test_classes_with_the_tangent_kernel():
    inputs, labels = load_iris(return_X_y=True)
    model = nngp.NNGPClassifier(network=nngp.NTK(NET)).fit(inputs[::2], labels[::2])
    assert model.score(inputs[1::2], labels[1::2]) > 0.9
    assert clone(model).network == nngp.NTK(NET)


def test_a_saved_model_predicts_the_same(tmp_path):
    model = nngp.NNGPRegressor(network=nngp.NTK(NET)).fit(X, Y)
    model.save(tmp_path / "model.nngp")
    again = nngp.load(tmp_path / "model.nngp")
    assert again.network == nngp.NTK(NET) == again.network_
    for ours, theirs in zip(
        model.predict(X, return_std=True), again.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


CONTRADICTIONS = [
    ({"network": "relu"}, TypeError, "network must be an nngp.Architecture"),
    ({"network": NET, "depth": 2}, ValueError, "depth is part of the network"),
    ({"network": NET, "weight_var": 1.0}, ValueError, "weight_var is part of the network"),
    ({"network": NET, "relevance": True}, ValueError, "and no network="),
    ({"network": Chain(Act("relu"))}, ValueError, "needs Gaussian units"),
]


def test_what_contradicts_it_is_refused():
    for options, error, words in CONTRADICTIONS:
        with pytest.raises(error, match=words):
            nngp.NNGPRegressor(**options).fit(X, Y)
