"""Large arrays in parts: every part once, and results as of the whole."""

import time

import numpy as np
import pytest

from nngp import _threads
from nngp._threads import column_parts, in_threads, row_parts
from nngp.estimators.data_warnings import TrainingRange
from nngp.frames.column_moments import medians, moments
from nngp.frames.scaling import InputScaling
from nngp.gram.inputs import as_inputs, input_vars
from nngp.predictive.probability import largest_probability


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(_threads, "PART", 20)


def test_every_row_and_column_is_in_one_part(small_parts):
    for shape in ((0, 3), (1, 3), (7, 3), (7, 100), (100, 7)):
        X = np.arange(np.prod(shape)).reshape(shape)
        rows = [X[part] for part in row_parts(X)]
        np.testing.assert_array_equal(np.concatenate([X[:0], *rows]), X)
        columns = [X[:, part] for part in column_parts(X)]
        np.testing.assert_array_equal(np.concatenate([X[:, :0], *columns], axis=1), X)
        assert all(part.size <= max(20, shape[1]) for part in rows)


def test_results_come_in_the_order_of_the_parts():
    assert in_threads(lambda k: k * k, range(50)) == [k * k for k in range(50)]


def test_the_first_error_is_raised():
    def fail(k):
        if k % 10 == 7:
            raise ValueError(f"part {k}")

    with pytest.raises(ValueError, match="part 7"):
        in_threads(fail, range(50))


def test_after_an_error_nothing_is_begun():
    begun = []

    def fail(k):
        begun.append(k)
        time.sleep(0.01)
        raise ValueError(f"part {k}")

    with pytest.raises(ValueError, match="part 0"):
        in_threads(fail, range(1000))
    assert len(begun) < 500


def test_what_numpy_does_about_overflow_is_as_outside():
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        in_threads(lambda one: np.exp(np.array([one])), [1.0, 2.0, 1000.0])


def test_columns_in_parts(small_parts):
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((31, 9)), rng.uniform(size=31)
    X[:, 4] = 3.0
    np.testing.assert_array_equal(medians(X), np.median(X, axis=0))
    mean, spread = moments(X)
    np.testing.assert_allclose(mean, X.mean(axis=0), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(spread, X.std(axis=0), rtol=1e-13)
    mean, spread = moments(X, weights)
    expected = np.cov(X.T, aweights=weights, ddof=0).diagonal() ** 0.5
    np.testing.assert_allclose(mean, np.average(X, axis=0, weights=weights), rtol=1e-13)
    np.testing.assert_allclose(spread, expected, rtol=1e-12, atol=1e-15)
    assert spread[4] == 0


def test_rows_in_parts(small_parts):
    rng = np.random.default_rng(1)
    X, center, factor = rng.standard_normal((31, 9)), rng.standard_normal(9), rng.uniform(size=9)
    np.testing.assert_allclose(input_vars(X), (X * X).mean(axis=1), rtol=1e-13)
    seen = TrainingRange.of(X, center, factor)
    np.testing.assert_array_equal(seen.low, X.min(axis=0))
    np.testing.assert_array_equal(seen.high, X.max(axis=0))
    assert seen.size == pytest.approx(np.sqrt((((X - center) * factor) ** 2).sum() / 31))
    far = X + np.where(np.arange(31)[:, None] == 29, 1e3, 0.0)
    beyond = seen.widths_beyond(far)
    assert beyond.shape == X.shape
    assert np.flatnonzero(beyond.any(axis=1)).tolist() == [29]
    X[17, 3] = np.nan
    with pytest.raises(ValueError, match="row 17, column 3"):
        as_inputs(X)


def test_scaled_rows_in_parts(small_parts):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((31, 9)) + 5.0
    scaling = InputScaling.learn(X, "standardize")
    expected = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(scaling(X), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(scaling(np.asfortranarray(X)), scaling(X))


@pytest.mark.parametrize("shape", [(40,), (40, 3)])
def test_probabilities_in_parts(monkeypatch, shape):
    rng = np.random.default_rng(2)
    mean, variance = rng.standard_normal((40, 3)), rng.uniform(size=shape)
    whole = largest_probability(mean, variance)
    monkeypatch.setattr("nngp.predictive.probability.CHUNK", 2000)  # a few rows
    np.testing.assert_allclose(largest_probability(mean, variance), whole, rtol=1e-12)
    assert largest_probability(mean[:0], variance[:0]).shape == (0, 3)
