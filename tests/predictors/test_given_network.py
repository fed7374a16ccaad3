"""A network that the user gave: its posterior, the noise of the highest evidence, saved models."""

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
def test_the_noise_has_the_highest_evidence(net):
    model = nngp.NNGPRegressor(network=net, target_transform="identity").fit(X, Y)
    assert model.architecture_ == net
    scaled, targets = model.networks_[0].inputs(X), (Y - Y.mean()) / Y.std()

    def evidence(noise):
        return nngp.condition(net, scaled, targets, noise_var=noise).log_evidence

    best = evidence(model.noise_var_)
    assert best >= max(map(evidence, np.geomspace(1e-6, 3.0, 60))) - 0.02
    mean = nngp.condition(net, scaled, targets, noise_var=model.noise_var_).mean(scaled)
    np.testing.assert_allclose(model.predict(X), Y.mean() + Y.std() * mean, rtol=1e-8)


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
    assert again.network == nngp.NTK(NET) == again.architecture_
    for ours, theirs in zip(
        model.predict(X, return_std=True), again.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"network": "relu"}, TypeError, "network must be an nngp.Architecture"),
        ({"network": NET, "depth": 2}, ValueError, "depth is part of the network"),
        ({"network": NET, "weight_var": 1.0}, ValueError, "weight_var is part of the network"),
        ({"network": NET, "selection": "grid"}, ValueError, "selection='grid' chooses a network"),
        ({"network": NET, "relevance": True}, ValueError, "and no network="),
        ({"network": Chain(Act("relu"))}, ValueError, "needs Gaussian units"),
    ],
)
def test_what_contradicts_it_is_refused(options, error, words):
    with pytest.raises(error, match=words):
        nngp.NNGPRegressor(**options).fit(X, Y)
