"""Predicted intervals: their order, and the share of observations in them."""

import numpy as np
import pytest

import nngp
from nngp.plots.uncertainty import joined_bins, predicted_intervals
from nngp.predictive.calibration import Reliability


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


def test_bins_with_few_points_are_joined():
    """Against sums over the points of each group."""
    points = np.array([3, 7, 60, 500, 20, 30, 2, 900, 10])
    confidence, accuracy = np.linspace(0.1, 0.9, 9), np.linspace(0.2, 1.0, 9) ** 2
    found = joined_bins(Reliability(confidence, accuracy, points))
    groups = [[0, 1, 2], [3], [4, 5], [6, 7, 8]]
    assert found.points.tolist() == [points[group].sum() for group in groups]
    for group, *joined in zip(groups, found.confidence, found.accuracy, strict=True):
        for values, mean in zip((confidence, accuracy), joined, strict=True):
            assert mean == pytest.approx(np.average(values[group], weights=points[group]))


def test_of_few_points_each_tenth_is_a_bin():
    table = Reliability(np.array([0.2, 0.5, 0.9]), np.array([0.0, 0.5, 1.0]), np.array([2, 1, 17]))
    assert joined_bins(table).points.tolist() == [2, 18]
    one = Reliability(np.array([0.9]), np.array([1.0]), np.array([1]))
    assert joined_bins(one).points.tolist() == [1]
