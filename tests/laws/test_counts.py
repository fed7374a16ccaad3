"""Arguments that say how many: a whole number, or one sentence; and no test points at all."""

import numpy as np
import pytest

import nngp

RNG = np.random.default_rng(0)
NET = nngp.Architecture(2, "relu", 1.6, 0.1)
X, Y = RNG.normal(size=(12, 2)), RNG.normal(size=12)
POSTERIOR = nngp.condition(NET, X, Y, noise_var=0.1)
REGRESSOR = nngp.NNGPRegressor(selection=None).fit(X, Y)
CLASSIFIER = nngp.NNGPClassifier(selection=None).fit(X, Y > 0)

COUNTS = {
    "sample": lambda n: POSTERIOR.sample(X, n),
    "sample_prior": lambda n: nngp.sample_prior(NET, X, n),
    "sample_y": lambda n: REGRESSOR.sample_y(X, n),
    "networks": lambda n: nngp.FiniteNetwork(NET, 4).sample(X, n),
    "empirical kernels": lambda n: nngp.FiniteNetwork(NET, 4).empirical_kernels(X, n),
    "drawn": lambda n: nngp.FiniteNetwork(NET, 4).draw(2, n),
    "width": lambda n: nngp.FiniteNetwork(NET, n),
    "outputs": lambda n: nngp.FiniteNetwork(NET, 4, n),
    "rank": lambda n: nngp.CG(rank=n),
    "iterations": lambda n: nngp.CG(max_iterations=n),
    "points": lambda n: nngp.forecast(n, 2),
    "features": lambda n: nngp.forecast(10, n),
    "selection_size": lambda n: nngp.NNGPRegressor(selection_size=n).fit(X, Y),
    "budget": lambda n: nngp.NNGPRegressor(budget=n).fit(X, Y),
    "table": lambda n: nngp.curves.LookupTable("relu", n_v=n),
}


def test_no_count():
    for value in (0, -1, 1.5, True, "3", float("nan"), np.array([2])):
        for name in COUNTS:
            if value == 0 and type(value) is int and name.startswith("sample"):
                continue  # no draws are draws, too
            with pytest.raises(
                (ValueError, TypeError), match=r"must be (a whole number|from 1)|width has 1 values"
            ):
                COUNTS[name](value)


def test_depth_zero_is_a_count():
    assert NET.truncated(0).depth == 0
    for value in (-1, 1.5, True, "3", None):
        with pytest.raises(ValueError, match="depth must be a whole number of at least 0"):
            NET.truncated(value)
    with pytest.raises(ValueError, match="depth must be between 0 and 2"):
        NET.truncated(3)


def test_more_points_than_there_can_be():
    with pytest.raises(ValueError, match="n must be at most"):
        nngp.forecast(10**18, 3)


def test_draws_have_their_shape():
    for count in (0, 1, 3):
        two = nngp.condition(NET, X, np.column_stack([Y, Y]), noise_var=0.1)
        both = nngp.NNGPRegressor(selection=None).fit(X, np.column_stack([Y, Y]))
        assert two.sample(X[:5], count, noise=True).shape == (count, 5, 2)
        assert both.sample_y(X[:5], count).shape == (5, 2, count)
        assert POSTERIOR.sample(X[:1], count).shape == (count, 1)
        assert POSTERIOR.sample(X[:5], np.int64(count), 0).shape == (count, 5)
        assert nngp.sample_prior(NET, X[:5], count, 0).shape == (count, 5)
        assert REGRESSOR.sample_y(X[:5], count).shape == (5, count)


OF_POINTS = [
    POSTERIOR.mean,
    POSTERIOR.variance,
    POSTERIOR.predict,
    POSTERIOR.covariance,
    POSTERIOR.sample,
    lambda none: POSTERIOR.update(none, []),
    lambda none: nngp.sample_prior(NET, none),
    lambda none: nngp.kernel(NET, X, none),
    REGRESSOR.predict,
    REGRESSOR.sample_y,
    lambda none: REGRESSOR.score(none, []),
    CLASSIFIER.predict,
    CLASSIFIER.predict_proba,
    lambda none: nngp.FiniteNetwork(NET, 4).sample(none, 1),
]


def test_no_points_are_refused_everywhere():
    for function in OF_POINTS:
        with pytest.raises(ValueError, match=r"is empty: its shape is \(0, 2\)|0 sample\(s\)"):
            function(X[:0])
