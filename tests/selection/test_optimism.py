"""What a fit says about itself must hold on rows that it has not seen."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import nngp
from nngp.predictive.transforms import TargetMap, transformed_moments

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::nngp.errors.{name}Warning")
    for name in ("FewData", "Trees", "Extrapolation", "NeverPredicted", "DuplicateRows")
]


def table_of(seed, n, d=12, classes=3):
    """Few rows, many inputs of which two matter: where relevances overfit."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 500, d))
    scores = np.column_stack([X[:, 0], X[:, 1], -X[:, 0] * X[:, 1]])[:, :classes]
    y = (scores + rng.gumbel(scale=0.7, size=scores.shape)).argmax(axis=1)
    return X[:n], y[:n], X[n:], y[n:]


def estimated_and_true(seed, n):
    X, y, Xs, ys = table_of(seed, n)
    model = nngp.NNGPClassifier().fit(X, y)
    truth = model.predict_proba(Xs)[np.arange(len(ys)), np.searchsorted(model.classes_, ys)]
    return model.loss_estimate_, -float(np.log(truth).mean())


def check_classes(seeds, n, most):
    found = np.array([estimated_and_true(seed, n) for seed in seeds])
    difference = found[:, 0] - found[:, 1]
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    assert abs(difference.mean()) < most + 2 * error


@pytest.mark.slow
def test_loss_that_is_reported_is_that_of_new_rows():
    check_classes(range(4), 70, 0.03)


def test_numbers_chosen_on_the_rows_count_in_the_reported_loss(monkeypatch):
    """One nat each: the scale and the alpha of the Dirichlet likelihood, and one share."""
    X, y, _, _ = table_of(0, 70)
    model = nngp.NNGPClassifier(budget=20).fit(X, y)
    assert model.left_out_loss_["dirichlet"] < model.left_out_loss_["regression"]
    assert len(model.network_weights_) == 1
    assert model.frequency_share_ > 0
    monkeypatch.setattr(nngp.NNGPClassifier, "_optimism", lambda self, rows: 0.0)
    plain = nngp.NNGPClassifier(budget=20).fit(X, y)
    assert 70 * (model.loss_estimate_ - plain.loss_estimate_) == pytest.approx(3)


@pytest.mark.deep
@pytest.mark.parametrize("n", [60, 150, 400])
def test_loss_that_is_reported_is_that_of_new_rows_on_many_tables(n):
    check_classes(range(30), n, 0.02)


@pytest.mark.slow
def test_labels_without_structure_are_predicted_by_their_frequencies():
    losses = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(560, 10)), rng.choice(2, 560, p=[0.8, 0.2])
        model = nngp.NNGPClassifier().fit(X[:60], y[:60])
        truth = model.predict_proba(X[60:])[np.arange(500), y[60:]]
        share = y[:60].mean()
        expected = np.where(y[60:] == 1, share, 1 - share)
        losses.append(np.log(expected).mean() - np.log(truth).mean())
    assert np.mean(losses) < 0.04


@pytest.mark.parametrize(
    "seeds", [range(1), pytest.param(range(4), marks=pytest.mark.slow)], ids=str
)
def test_left_out_error_of_a_regression_is_that_of_new_rows(seeds):
    ratios = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(560, 15))
        y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=560)
        model = nngp.NNGPRegressor().fit(X[:60], y[:60])
        own = np.square(model.left_out().mean()[:, 0] - y[:60]).mean()
        ratios.append(own / np.square(model.predict(X[60:]) - y[60:]).mean())
    assert 0.8 < np.exp(np.mean(np.log(ratios))) < 1.5


def check_moments_within_a_reach(one, mean, std):
    low, high = 0.2, 9.0
    found = transformed_moments(one, np.array([mean]), np.array([std]), reach=(low, high))
    ends = [(float(one(np.array([y]))[0]) - mean) / std for y in (low, high)]

    def value(z):
        return np.clip(one.inverse(np.array([mean + std * z]))[0], low, high)

    def moment(power, shift=0.0):
        points = sorted({*np.clip([*ends, -mean / std], -12, 12), -12.0, 12.0})
        return sum(
            quad(lambda z: (value(z) - shift) ** power * norm.pdf(z), a, b, epsabs=1e-13)[0]
            for a, b in pairwise(points)
        )

    middle = moment(1)
    assert found[0][0] == pytest.approx(middle, rel=1e-7)
    assert found[1][0] == pytest.approx(np.sqrt(moment(2, middle)), rel=1e-6)


TARGET_MAPS = [
    TargetMap("log"),
    TargetMap("yeo-johnson", 0.1),
    TargetMap("yeo-johnson", 1.8),
]


def test_moments_within_a_reach():
    for one in TARGET_MAPS:
        for mean, std in [(0.3, 0.2), (1.0, 2.0), (-1.0, 6.0), (4.0, 0.5)]:
            check_moments_within_a_reach(one, mean, std)


def test_mean_far_outside_stays_plausible():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3))
    y = np.exp(1.2 * X[:, 0] + 0.3 * rng.normal(size=60))
    model = nngp.NNGPRegressor(target_transform="yeo-johnson").fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mean = model.predict([[0.0, 34.0, 0.0], [34.0, 0.0, 0.0]])
    length = np.ptp(y)
    assert (mean >= y.min() - length).all()
    assert (mean <= y.max() + length).all()
