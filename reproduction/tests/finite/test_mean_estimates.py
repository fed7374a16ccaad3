"""Estimates for the average of infinitely many networks, on numbers whose mean is known; powers."""

import numpy as np
import pytest

from nngp_paper.finite.mean_estimates import (
    Estimate,
    mean_over_networks,
    square_of_all,
    square_of_one,
)
from nngp_paper.finite.width_limit import LimitCurve, WidthPoint, fitted_power, measured

RNG = np.random.default_rng(0)
MEAN = np.array([0.3, -0.1, 0.2, 0.0])
SPREAD = np.array([[1.0, 0.8, 0, 0], [0.8, 2.0, 0, 0], [0, 0, 0.5, 0], [0, 0, 0, 0.1]])
TRUE = float(np.mean(MEAN**2))


def repeated(mean, count, times=4000):
    """Estimates of many repetitions, and their standard errors."""
    deviations = RNG.multivariate_normal(mean, SPREAD, size=(times, count))
    found = [square_of_all(one) for one in deviations]
    biased = np.mean(deviations.mean(axis=1) ** 2, axis=1)
    return np.array(found), biased


def test_the_estimate_is_unbiased_and_the_plain_one_is_not():
    found, biased = repeated(MEAN, 6)
    values = found[:, 0]
    chance = values.std() / np.sqrt(len(values))
    assert abs(values.mean() - TRUE) < 4 * chance
    excess = np.trace(SPREAD) / 4 / 6
    assert biased.mean() - TRUE == pytest.approx(excess, rel=0.1)
    assert excess > 20 * chance


def test_errors_are_those_of_repetitions():
    for mean, least, most in ((5 * MEAN, 0.9, 1.15), (0 * MEAN, 1.0, 1.6)):
        found, _ = repeated(mean, 40, times=2000)
        ratio = np.sqrt(np.mean(found[:, 1] ** 2)) / found[:, 0].std()
        assert least < ratio < most  # without a mean pairs have twice the variance that is said


def test_singles_and_means_by_hand():
    deviations = np.array([[[1.0], [3.0]], [[0.0], [2.0]], [[1.0], [1.0]]])
    squares = np.array([5.0, 2.0, 1.0])
    assert square_of_one(deviations) == pytest.approx(mean_over_networks(squares))
    assert mean_over_networks(squares) == pytest.approx((8 / 3, squares.std(ddof=1) / 3**0.5))
    pairs = [3.0, 2.0, 1.0]  # of networks (0, 1), (0, 2), (1, 2)
    assert square_of_all(deviations).value == pytest.approx(np.mean(pairs))
    jackknife = np.sqrt(2 / 3 * np.sum((np.array(pairs) - 2) ** 2))  # without 2, without 1, ...
    assert square_of_all(deviations).error == pytest.approx(jackknife)
    with pytest.raises(ValueError, match="needs 3 networks or more, got 2"):
        square_of_all(deviations[:2])


def test_scores_of_singles_and_of_ensembles():
    """Two ensembles of two networks each; the fifth network is in none."""
    process = np.array([[0.6, 0.4], [0.2, 0.8]])
    labels, targets = np.array([0, 1]), np.array([[0.5, -0.5], [-0.5, 0.5]])
    shifts = np.array([0.1, 0.3, -0.5, -0.3, 2.0])
    means = process + shifts[:, None, None] * np.array([1.0, -1.0])
    found = measured(means, process, labels, targets, members=2)
    assert found["process_accuracy"] == (1.0, 0.0)
    assert found["process_mse"].value == pytest.approx(np.mean((process - targets) ** 2))
    # Labels are right while the shift is above -0.1 at the first, below 0.3 at the second.
    assert found["single_accuracy"].value == pytest.approx((1 + 0.5 + 0.5 + 0.5 + 0.5) / 5)
    assert found["ensemble_accuracy"].value == pytest.approx((1 + 0.5) / 2)
    assert found["single_square"].value == pytest.approx(np.mean(shifts**2))
    assert found["ensemble_square"].value == pytest.approx(np.mean([0.2**2, 0.4**2]))
    pairs = (shifts.sum() ** 2 - np.sum(shifts**2)) / 20
    assert found["limit_square"].value == pytest.approx(pairs)
    wrong = (means - targets).reshape(5, -1)
    expected = [wrong[i] @ wrong[j] / 4 for i in range(5) for j in range(5) if i != j]
    assert found["limit_mse"].value == pytest.approx(np.mean(expected))


def point(width, square, error=0.01):
    """Squares with a relative error."""
    estimate = Estimate(square, error * square)
    return WidthPoint(width, 64, *[estimate] * 7)


def test_powers_are_found():
    points = [point(width, (3.0 / width) ** 2) for width in (64, 128, 256)]
    power = fitted_power(points, "limit_square")
    assert (power.slope, power.level) == pytest.approx((-1.0, 3.0))
    # weights are equal: the error of each logarithm is 0.005
    assert power.error == pytest.approx(0.005 / (np.sqrt(2) * np.log(2)))
    assert power.widths == (64, 128, 256)


def test_uncertain_points_count_less():
    points = [point(10, 1.0), point(100, 0.01), point(1000, 1.0, error=0.4)]
    x, y = np.log([10, 100, 1000]), np.log([1.0, 0.01, 1.0]) / 2
    expected = np.polyfit(x, y, 1, w=1 / np.array([0.005, 0.005, 0.2]))[0]
    assert fitted_power(points, "single_square").slope == pytest.approx(expected)


def test_no_power_where_there_is_none():
    known = [point(10, 1.0), point(100, 0.01)]
    assert fitted_power(known, "limit_square") is not None
    assert fitted_power(known[:1], "limit_square") is None
    assert fitted_power([], "limit_square") is None
    assert fitted_power([*known, point(1000, 1e-4, error=0.6)], "limit_square") is None
    assert fitted_power([*known, point(1000, -1e-4, error=-0.1)], "limit_square") is None


def test_the_widest_are_fitted_beyond_the_peak():
    """Without noise there is a peak where units are as many as training points."""
    points = tuple(point(width, width**-2.0) for width in (10, 200, 400, 800))

    def fitted(noise_var, train, points=points):
        power = LimitCurve("relu", noise_var, train, 0.9, 0.1, points).power("limit_square")
        return power and power.widths

    assert fitted(0.01, 300) == (200, 400, 800)
    assert fitted(1e-10, 100) == (200, 400, 800)
    assert fitted(1e-10, 101) is None
    assert fitted(0.01, 300, points[:2]) is None
