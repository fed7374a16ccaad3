"""Spacing of targets, the test that they were rounded, and repeated rows."""

import numpy as np
import pytest

from nngp.predictive.resolution import duplicate_rows, floor_is_refuted, has_twin, spacing

RNG = np.random.default_rng(1)
WHOLE = RNG.integers(-40, 60, 500).astype(float)


GRIDS = [
    (WHOLE, 1.0),
    (WHOLE[:8], 1.0),
    (WHOLE * 5 + 2, 5.0),
    (WHOLE / 100, 0.01),
    (WHOLE / 3.7, 1 / 3.7),
    (WHOLE / 3 + 1e6, 1 / 3),
    (np.cumsum(np.full(300, 0.1)), 0.1),
    (np.array([0.1, 0.2, 0.3, 0.1 + 0.2, 0.7, 1.1]), 0.1),
    ((WHOLE / 10).astype(np.float32).astype(float), 0.1),
    ((WHOLE / 10).astype(np.float32).astype(float) / 7, 0.1 / 7),
    (np.array([3.0, 5, 5, 6, 7, 8, 4, 6, 5]), 1.0),  # ratings of wine
    (np.array([0.0, 6, 10, 15, 21]), 1.0),  # the common divisor, not the least gap
    (WHOLE * 1e200, 1e200),
    (WHOLE * 1e-200, 1e-200),
    (np.round(RNG.normal(0, 30, 400), 2), 0.01),
]


def test_grids():
    for y, step in GRIDS:
        assert spacing(y) == pytest.approx(step, rel=1e-6)


NO_GRID = [
    RNG.normal(size=5),
    RNG.normal(size=1000),
    np.exp(RNG.normal(size=50)),
    RNG.normal(size=100).astype(np.float32).astype(float),
    np.ones(10),
    np.zeros(10),
    np.arange(10.0) % 2,  # classes
    np.arange(10.0) % 3,
    np.geomspace(1, 1000, 20),
    np.sqrt(np.arange(50.0)),
    np.array([]),
    np.array([2.0]),
    np.round(RNG.normal(size=500), 9),  # finer than matters
]


def test_no_grid():
    for y in NO_GRID:
        assert spacing(y) == 0.0


def test_few_values_of_chance_are_no_grid():
    found = sum(spacing(RNG.normal(size=5)) > 0 for _ in range(300))
    assert found <= 3


def test_rounding_cannot_be_predicted():
    f = RNG.uniform(0, 50, 2000)
    y = np.round(f)
    assert not floor_is_refuted(y - f, 1.0)  # the best predictor there is
    assert not floor_is_refuted((y - f)[:20], 1.0)
    assert not floor_is_refuted(y - f + RNG.normal(0, 0.3, 2000), 1.0)


def test_exact_settings_are_not_rounded():
    r = RNG.normal(0, 0.05, 200)
    r[:5] = 30.0  # some are missed by far
    assert floor_is_refuted(r, 1.0)
    assert floor_is_refuted(r[5:40], np.full(35, 1.0))
    assert not floor_is_refuted(r[5:10], 1.0)  # too few
    assert not floor_is_refuted(r, 0.0)
    assert not floor_is_refuted(r[:0], 1.0)


def test_repeated_rows():
    X = RNG.integers(0, 3, (300, 4)).astype(float)
    X[0, 0] = -0.0
    X[1] = X[0] + 0.0
    distinct = {tuple(row + 0.0) for row in X}
    assert duplicate_rows(X) == 300 - len(distinct)
    counts = [sum(tuple(row + 0.0) == tuple(other + 0.0) for other in X) for row in X]
    np.testing.assert_array_equal(has_twin(X), np.array(counts) > 1)
    assert duplicate_rows(RNG.normal(size=(50, 3))) == 0
    assert not has_twin(RNG.normal(size=(50, 3))).any()
