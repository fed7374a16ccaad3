"""Predicted intervals: their order, and the share of observations in them."""

import numpy as np

import nngp
from nngp.plots.uncertainty import predicted_intervals


def test_intervals_are_in_the_order_of_the_mean():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 1))
    y = X[:, 0] + 0.1 * rng.normal(size=50)
    data = predicted_intervals(nngp.NNGPRegressor(selection=None).fit(X, y), X, y, 0.5)
    assert np.all(np.diff(data.mean) >= 0)
    assert np.all((data.lower < data.mean) & (data.mean < data.upper))
    inside = (data.lower < data.observed) & (data.observed < data.upper)
    assert data.inside == inside.mean()
    # observed values moved along with their predictions
    assert np.abs(data.observed - data.mean).max() < 1
