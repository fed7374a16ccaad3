"""Weights and known noise of training rows: a weight of 2 is the row twice, against copies and
against dense solutions."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import nngp
from nngp.estimators.training_rows import (
    MOST_COPIES,
    TrainingRows,
    as_copies,
    as_known_noise,
    as_rows,
    as_weights,
)

GIVEN = {"depth": 1, "activation": "erf", "weight_var": 1.5, "bias_var": 0.1, "noise_var": 0.04}
PLAIN = {"relevance": False, "column_maps": "identity", "target_transform": "identity"}
FEW = pytest.mark.filterwarnings("ignore::nngp.errors.DuplicateRowsWarning")


def data(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.normal(size=n), rng


def test_weights_that_are_none():
    assert as_weights(None, 3) is None
    assert as_weights(np.ones(3), 3) is None
    assert as_weights(1.0, 3) is None
    np.testing.assert_array_equal(as_weights(2, 3), [2.0, 2.0, 2.0])


WRONG_WEIGHTS = [
    ([1.0, 2.0], r"shape \(3,\), got \(2,\)"),
    ([[1.0], [2.0], [3.0]], r"shape \(3,\), got \(3, 1\)"),
    ([1.0, -1.0, 1.0], "none negative"),
    ([0.0, 0.0, 0.0], "not all zero"),
    ([1.0, np.nan, 1.0], "finite"),
    ([1.0, 1e300, 1.0], "between 1e-100 and 1e\\+100"),
    ([1.0, 1e-300, 1.0], "between 1e-100 and 1e\\+100"),
    (["a", "b", "c"], "sample_weight must hold real numbers"),
]


def test_weights_that_cannot_be():
    for weights, sentence in WRONG_WEIGHTS:
        with pytest.raises((ValueError, TypeError), match=sentence) as caught:
            as_weights(weights, 3)
        assert "\n" not in str(caught.value)
        for kind in (nngp.NNGPRegressor, nngp.NNGPClassifier):
            with pytest.raises((ValueError, TypeError)):
                kind(selection=None).fit(np.eye(3), [0, 1, 1], sample_weight=weights)


def test_copies_where_they_are_few():
    rows, left = as_copies(np.array([2.0, 0.0, 1.0, 3.0]))
    assert rows.tolist() == [0, 0, 2, 3, 3, 3]
    assert left is None
    rows, left = as_copies(np.array([0.5, 0.0, 1.0]))
    assert (rows.tolist(), left.tolist()) == ([0, 2], [0.5, 1.0])
    rows, left = as_copies(np.full(MOST_COPIES, 2.0))
    assert len(rows) == MOST_COPIES
    assert (left == 2.0).all()


def test_known_noise_that_cannot_be():
    assert as_known_noise(None, 3) is None
    assert as_known_noise(np.zeros(3), 3) is None
    np.testing.assert_array_equal(as_known_noise(0.5, 2), [0.5, 0.5])
    for noise, sentence in (
        ([1.0], "one number for each of the 3 rows"),
        ([1.0, -1.0, 2.0], r"got -1\.0 \(row 1\)"),
        ([1.0, 2.0, np.inf], r"got inf \(row 2\)"),
    ):
        with pytest.raises(ValueError, match=sentence):
            as_known_noise(noise, 3)


def test_rows_of_a_mask_keep_all_that_is_known():
    rows = as_rows(np.eye(4), np.arange(4.0), [0.5, 0, 1, 2], [1.0, 2.0, 3.0, 4.0])
    assert rows.weights.tolist() == [0.5, 1.0, 2.0]
    assert rows.known_noise.tolist() == [1.0, 3.0, 4.0]
    some = rows.some(np.array([2, 0]))
    assert (some.Y[:, 0].tolist(), some.weights.tolist()) == ([3.0, 0.0], [2.0, 0.5])
    assert TrainingRows(np.eye(2), np.eye(2)).some(np.array([0])).weights is None


@FEW
@pytest.mark.parametrize("scaling", ["standardize", "none"])
def test_a_weight_of_two_is_the_row_twice(scaling):
    """More rows than become copies, with the networks given: predictions, evidence, the table."""
    X, y, rng = data(220)
    weights = rng.integers(1, 3, len(y)).astype(float)
    assert weights.sum() > MOST_COPIES
    twice = np.repeat(np.arange(len(y)), weights.astype(int))
    options = {**GIVEN, **PLAIN, "input_scaling": scaling, "target_scaling": scaling}
    ours = nngp.NNGPRegressor(**options, effort="fast").fit(X, y, sample_weight=weights)
    theirs = nngp.NNGPRegressor(**options, effort="fast").fit(X[twice], y[twice])
    assert ours.posterior_.n == 220
    Xs = rng.normal(size=(10, 2))
    for a, b in zip(
        ours.predict(Xs, return_std=True), theirs.predict(Xs, return_std=True), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-8)
    assert ours.log_evidence_ == pytest.approx(theirs.log_evidence_, rel=1e-8)
    chosen = [m.selection_["log_evidence"][m.selection_["chosen"]][0] for m in (ours, theirs)]
    assert chosen[0] == pytest.approx(chosen[1], rel=1e-8)
    assert chosen[0] == pytest.approx(ours.log_evidence_, rel=1e-8)


@FEW
def test_the_search_finds_the_same_network():
    """Its stages see other numbers of points, so to what the optimum leaves open."""
    X, y, rng = data(290)
    weights = np.where(np.arange(290) % 9 == 0, 2.0, 1.0)
    twice = np.repeat(np.arange(290), weights.astype(int))
    assert len(twice) > MOST_COPIES
    options = {"depth": 1, "activation": "erf", "effort": "fast", "calibrate": True}
    ours = nngp.NNGPRegressor(**options).fit(X, y, sample_weight=weights)
    theirs = nngp.NNGPRegressor(**options).fit(X[twice], y[twice])
    Xs = rng.normal(size=(10, 2))
    (mean, std), (twin_mean, twin_std) = (m.predict(Xs, return_std=True) for m in (ours, theirs))
    np.testing.assert_allclose(mean, twin_mean, atol=0.02)
    np.testing.assert_allclose(std, twin_std, rtol=0.1)
    assert ours.log_evidence_ == pytest.approx(theirs.log_evidence_, abs=1.0)


def test_against_a_dense_solution():
    """Weights and known noise: K + diag((s² + known) / w)."""
    X, y, rng = data(40)
    weights, known = rng.uniform(0.2, 3.0, 40), rng.uniform(0.0, 0.5, 40)
    options = {**GIVEN, **PLAIN, "input_scaling": "none", "target_scaling": "none"}
    model = nngp.NNGPRegressor(**options, selection=None)
    model.fit(X, y, sample_weight=weights, noise_var=known)
    Xs = rng.normal(size=(7, 2))
    noise = (0.04 + known) / weights
    K, cross = (nngp.kernel(model.network_, X, other) for other in (X, Xs))
    solved = np.linalg.solve(K + np.diag(noise), cross)
    mean, std = model.predict(Xs, return_std=True)
    np.testing.assert_allclose(mean, solved.T @ y, rtol=1e-9)
    prior = np.diagonal(nngp.kernel(model.network_, Xs))
    variance = prior - np.einsum("ij,ij->j", cross, solved) + 0.04
    np.testing.assert_allclose(std**2, variance, rtol=1e-9)
    evidence = multivariate_normal(np.zeros(40), K + np.diag(noise)).logpdf(y)
    assert model.log_evidence_ == pytest.approx(evidence, rel=1e-9)


def test_known_noise_is_all_there_is_if_the_parameter_is_zero():
    X, y, rng = data(30)
    known = rng.uniform(0.01, 0.5, 30)
    options = {**GIVEN, **PLAIN, "noise_var": 0.0, "selection": None}
    model = nngp.NNGPRegressor(**options).fit(X, 10 * y + 3, noise_var=100 * known)
    scaling, network = model.networks_[0].targets, model.networks_[0]
    Xs = rng.normal(size=(7, 2))
    K = nngp.kernel(model.network_, network.inputs(X))
    cross = nngp.kernel(model.network_, network.inputs(X), network.inputs(Xs))
    solved = np.linalg.solve(K + np.diag(100 * known / scaling.spread[0] ** 2), cross)
    mean, std = model.predict(Xs, return_std=True)
    expected = solved.T @ scaling(10 * y[:, None] + 3)[:, 0] * scaling.spread[0]
    np.testing.assert_allclose(mean, expected + scaling.center[0], rtol=1e-9)
    assert model.noise_var_ == 0.0
    _, of_function = model.predict(Xs, return_std=True, noise=False)
    np.testing.assert_allclose(std, of_function)


def test_a_weight_of_zero_leaves_a_row_out():
    X, y, _ = data(40)
    weights = np.where(np.arange(40) % 3 == 0, 0.0, 1.0)
    ours = nngp.NNGPRegressor(selection=None).fit(X, y, sample_weight=weights)
    theirs = nngp.NNGPRegressor(selection=None).fit(X[weights > 0], y[weights > 0])
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    labels = y > 0
    ours = nngp.NNGPClassifier(selection=None).fit(X, labels, sample_weight=weights)
    theirs = nngp.NNGPClassifier(selection=None).fit(X[weights > 0], labels[weights > 0])
    np.testing.assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))


def test_rows_left_out_have_the_noise_of_one_observation():
    """Small weights say that rows count little, not that new observations scatter less: once, a
    calibration on held-out rows made intervals narrower by the root of the weights."""
    X, y, rng = data(300)
    options = {**GIVEN, **PLAIN, "calibrate": True, "effort": "fast"}
    plain = nngp.NNGPRegressor(**options).fit(X, y)
    light = nngp.NNGPRegressor(**options).fit(X, y, sample_weight=np.full(300, 0.25))
    Xs = rng.normal(size=(20, 2))
    (_, std), (_, light_std) = (m.predict(Xs, return_std=True) for m in (plain, light))
    assert 0.9 < np.median(light_std / std) < 1.5


@pytest.mark.filterwarnings("ignore::nngp.errors.TreesWarning")
def test_weights_survive_a_file(tmp_path):
    X, y, rng = data(60)
    model = nngp.NNGPRegressor(budget=6, effort="fast").fit(
        X, y, sample_weight=rng.uniform(0.5, 2, 60), noise_var=rng.uniform(0, 0.1, 60)
    )
    model.save(tmp_path / "model.nngp")
    again = nngp.load(tmp_path / "model.nngp")
    assert again.log_evidence_ == model.log_evidence_
    np.testing.assert_array_equal(again.left_out().std(), model.left_out().std())


@pytest.mark.filterwarnings("error")
def test_weights_without_noise():
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(30, 2)), rng.uniform(0.5, 2, 30)
    y = np.sin(X[:, 0])
    options = {"noise_var": 0, "effort": "fast", "budget": 4, "activation": "relu"}
    model = nngp.NNGPRegressor(**options).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-6)  # through every row, of any weight


@pytest.mark.slow
def test_weights_that_count_no_copies_leave_the_noise():
    """Copies agree, which the evidence takes for freedom from noise; a row that is merely more
    certain has no copy."""
    X, y, rng = data(320)
    plain = nngp.NNGPRegressor(effort="fast").fit(X, y)
    weighted = nngp.NNGPRegressor(effort="fast").fit(X, y, rng.uniform(0.5, 2.5, 320))
    assert plain.noise_var_ / 2 < weighted.noise_var_ < 3 * plain.noise_var_
