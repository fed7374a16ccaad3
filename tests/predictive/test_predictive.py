"""Mixtures of transformed Gaussians against SciPy, mpmath and quadrature."""

import itertools

import mpmath
import numpy as np
import pytest
from scipy import integrate, optimize, stats

from nngp.predictive.predictive import Predictive, PredictivePart
from nngp.predictive.targets import TargetScaling
from nngp.predictive.transforms import TargetMap, transformed_moments

RNG = np.random.default_rng(0)
MEAN = np.array([[-1.2], [0.1], [2.0]])
VARIANCE = np.array([[0.3], [1.0], [0.05]])


def scaling(kind="identity", positive=False, power=0.4):
    one = TargetMap(kind, power if kind == "yeo-johnson" else 1.0, 1.5, 0.8)
    if kind != "yeo-johnson":
        one = TargetMap(kind)
    maps = () if kind == "identity" else (one,)
    return TargetScaling(np.array([0.7]), np.array([1.3]), maps, positive)


def single(kind="identity", positive=False, power=0.4):
    return Predictive([PredictivePart(MEAN, VARIANCE, scaling(kind, positive, power))])


def mixture(positive=False):
    factors, weights = np.array([0.8, 1.0, 1.6]), np.array([0.1, 0.3, 0.05])
    if positive:
        factors, weights = np.array([1.2]), np.array([0.45])
    parts = [
        PredictivePart(MEAN, VARIANCE, scaling("identity", positive), factors, weights),
        PredictivePart(MEAN + 0.3, VARIANCE / 4, scaling("log", positive), weights=np.array([0.2])),
        PredictivePart(
            MEAN - 0.1, VARIANCE, scaling("yeo-johnson", positive), weights=np.array([0.35])
        ),
    ]
    return Predictive(parts)


ALL = {
    "identity": single(),
    "log": single("log"),
    "yeo-johnson": single("yeo-johnson"),
    "yeo-johnson above": single("yeo-johnson", power=1.7),
    "positive": single(positive=True),
    "positive yeo-johnson": single("yeo-johnson", positive=True),
    "mixture": mixture(),
    "positive mixture": mixture(positive=True),
}


def density(predictive, row, y):
    return float(np.exp(predictive.log_density(np.full((3, 1), y))[row, 0]))


def integral(predictive, row, power, low=-np.inf, high=np.inf):
    """∫ y^power times the density, piece by piece."""
    ends = [-60, -5, 0, 0.05, 0.7, 1.5, 2, 4, 8, 20, 100, 1e4]
    ends = [low, *[e for e in ends if low < e < high], high]
    pieces = [
        integrate.quad(
            lambda y: y**power * density(predictive, row, y), a, b, epsabs=1e-12, epsrel=1e-11
        )[0]
        for a, b in itertools.pairwise(ends)
    ]
    return sum(pieces)


def test_density_has_mass_mean_and_deviation():
    for name in ALL:
        for row in [0, 1]:
            one = ALL[name]
            mean = integral(one, row, 1)
            assert integral(one, row, 0) == pytest.approx(1, abs=1e-8)
            assert one.mean()[row, 0] == pytest.approx(mean, rel=1e-7, abs=1e-8)
            std = np.sqrt(integral(one, row, 2) - mean**2)
            assert one.std()[row, 0] == pytest.approx(std, rel=1e-6)


def test_quantiles():
    for name in ALL:
        for p in [1e-6, 0.025, 0.5, 0.9, 0.975]:
            one = ALL[name]
            y = one.quantile(p)
            np.testing.assert_allclose(one.cdf(y), p, rtol=1e-8)
            assert integral(one, 1, 0, high=y[1, 0]) == pytest.approx(p, rel=1e-5, abs=1e-9)
            if one.parts[0].targets.positive:
                assert (y > 0).all()


def test_identity_is_the_plain_gaussian():
    one = single()
    np.testing.assert_array_equal(one.mean(), MEAN * 1.3 + 0.7)
    np.testing.assert_array_equal(one.std(), np.sqrt(VARIANCE) * 1.3)
    theirs = stats.norm(MEAN * 1.3 + 0.7, np.sqrt(VARIANCE) * 1.3)
    low, high = one.interval(0.9)
    np.testing.assert_allclose(low, theirs.ppf(0.05), rtol=1e-13)
    np.testing.assert_allclose(high, theirs.ppf(0.95), rtol=1e-13)
    Y = np.array([[0.3], [-2.0], [50.0]])
    np.testing.assert_allclose(one.log_density(Y), theirs.logpdf(Y), rtol=1e-12)
    np.testing.assert_allclose(one.cdf(Y), theirs.cdf(Y), rtol=1e-12)


def test_log_is_the_log_normal():
    one = single("log")
    theirs = stats.lognorm(np.sqrt(VARIANCE) * 1.3, scale=np.exp(MEAN * 1.3 + 0.7))
    np.testing.assert_allclose(one.mean(), theirs.mean(), rtol=1e-12)
    np.testing.assert_allclose(one.std(), theirs.std(), rtol=1e-12)
    np.testing.assert_allclose(one.quantile(0.3), theirs.ppf(0.3), rtol=1e-12)


def test_positive_identity_is_the_truncated_gaussian():
    one = single(positive=True)
    mean, std = MEAN * 1.3 + 0.7, np.sqrt(VARIANCE) * 1.3
    theirs = stats.truncnorm(-mean / std, np.inf, mean, std)
    np.testing.assert_allclose(one.mean(), theirs.mean(), rtol=1e-9)
    np.testing.assert_allclose(one.std(), theirs.std(), rtol=1e-8)
    np.testing.assert_allclose(one.quantile(0.025), theirs.ppf(0.025), rtol=1e-9)
    Y = np.array([[0.3], [2.0], [50.0]])
    np.testing.assert_allclose(one.log_density(Y), theirs.logpdf(Y), rtol=1e-9)
    np.testing.assert_allclose(one.cdf(Y), theirs.cdf(Y), rtol=1e-9)
    assert one.log_density(-Y).max() == -np.inf
    assert one.cdf(-Y).max() < 1e-300


def check_moments_to_many_digits(power, mean, std):
    one = TargetMap("yeo-johnson", power, 0.0, 1.0)
    ours = transformed_moments(one, np.array([mean]), np.array([std]))

    def inverse(t):
        k = power if t >= 0 else 2 - power
        size = mpmath.expm1(abs(t)) if k == 0 else mpmath.mpf(1 + k * abs(t)) ** (1 / k) - 1
        return mpmath.sign(t) * size

    mpmath.mp.dps = 25
    m, s = mpmath.mpf(mean), mpmath.mpf(std)
    ends = sorted({m - 40 * s, m - 10 * s, m - 3 * s, m, m + 3 * s, m + 10 * s, m + 40 * s} | {0})
    ends = [e for e in ends if m - 40 * s <= e <= m + 40 * s]

    def expected(f):
        return mpmath.quad(lambda t: f(t) * mpmath.npdf(t, m, s), ends)

    first = expected(inverse)
    second = mpmath.sqrt(expected(lambda t: (inverse(t) - first) ** 2))
    assert float(ours[0][0]) == pytest.approx(float(first), rel=1e-8, abs=1e-8 * float(second))
    assert float(ours[1][0]) == pytest.approx(float(second), rel=1e-8)


def test_moments_to_many_digits():
    for power, mean, std in (
        *((0.0, 0.0, 1.0), (0.0, -1.0, 3.0), (0.15, 2.0, 5.0), (0.15, 40.0, 1e-6)),
        *((0.9, -1.0, 3.0), (1.9, 0.0, 1.0), (2.0, 2.0, 5.0), (2.0, 40.0, 1e-6)),
    ):
        check_moments_to_many_digits(power, mean, std)


def test_far_below_the_bound():
    """Almost surely negative, and yet positive: nearly exponential, with mean 1 / below."""
    for below in [5.0, 30.0, 1e3]:
        mean, std = transformed_moments(TargetMap(), np.array([-below]), np.ones(1), 0.0)
        mpmath.mp.dps = 60
        h = mpmath.npdf(below) / (mpmath.erfc(mpmath.mpf(below) / mpmath.sqrt(2)) / 2)
        assert mean[0] == pytest.approx(float(h - below), rel=1e-7)
        assert std[0] == pytest.approx(float(mpmath.sqrt(1 + below * h - h**2)), rel=1e-6)
        far = TargetScaling(np.zeros(1), np.ones(1), (), True)
        one = Predictive([PredictivePart(np.array([[-below]]), np.ones((1, 1)), far)])
        low, high = one.interval(0.95)
        assert 0 < low < mean[0] < high < 5 * mean[0]


def test_factors_of_a_transformed_network_count_by_their_variance():
    factors, weights = np.array([1.0, 3.0]), np.array([0.9, 0.1])
    one = Predictive([PredictivePart(MEAN, VARIANCE, scaling("log"), factors, weights)])
    same = Predictive([PredictivePart(MEAN, 1.8 * VARIANCE, scaling("log"))])
    np.testing.assert_allclose(one.mean(), same.mean(), rtol=1e-12)
    np.testing.assert_allclose(one.std(), same.std(), rtol=1e-12)
    theirs = 0.9 * stats.norm.cdf(2 / np.sqrt(VARIANCE)) + 0.1 * stats.norm.cdf(
        2 / 3 / np.sqrt(VARIANCE)
    )
    found = one.cdf(scaling("log").undo(MEAN + 2.0))
    np.testing.assert_allclose(found, theirs, rtol=1e-12)


def test_samples_have_the_distribution():
    for one in (mixture(), mixture(positive=True)):
        y = one.sample(400, 1)
        for row in range(3):
            ranks = [one.cdf(np.full((3, 1), v))[row, 0] for v in y[row, 0]]
            assert stats.kstest(ranks, "uniform").pvalue > 1e-3


def test_draws_of_a_process():
    one = single("log")
    draws = MEAN + np.sqrt(VARIANCE) * RNG.normal(size=(5, 3, 1))
    np.testing.assert_allclose(one.from_process(draws, 0), np.exp(draws * 1.3 + 0.7), rtol=1e-12)
    bounded = single(positive=True)
    y = bounded.from_process(draws, 0)
    assert (y > 0).all()
    plain = single().from_process(draws, 0)
    for i in range(5):  # the same rank
        np.testing.assert_allclose(bounded.cdf(y[i]), single().cdf(plain[i]), rtol=1e-9)
    wide = single().from_process(draws, 0, 2.0)
    np.testing.assert_allclose(wide - single().mean(), 2 * (plain - single().mean()), rtol=1e-10)


def test_wild_predictions_are_numbers():
    for kind in ["identity", "log", "yeo-johnson"]:
        for positive in [False, True]:
            mean = np.array([[1e6], [-1e6], [0.0], [30.0], [0.0]])
            variance = np.array([[1e12], [1.0], [0.0], [1e-30], [1e4]])
            factors, weights = np.array([0.5, 3.0]), np.array([0.5, 0.5])
            one = Predictive(
                [PredictivePart(mean, variance, scaling(kind, positive), factors, weights)]
            )
            for found in (one.mean(), one.std(), *one.interval(0.95), one.sample(3, 0)):
                assert np.isfinite(found).all()
            assert (one.std() >= 0).all()
            assert not np.isnan(one.log_density(np.full((5, 1), 2.0))).any()
            u = one.cdf(np.full((5, 1), 2.0))
            assert ((u >= 0) & (u <= 1)).all()


def test_several_outputs():
    targets = TargetScaling(
        np.zeros(2), np.ones(2), (TargetMap(), TargetMap("log")), positive=False
    )
    mean = np.column_stack([MEAN, MEAN + 1])
    one = Predictive([PredictivePart(mean, VARIANCE, targets)])
    np.testing.assert_allclose(one.mean()[:, :1], MEAN)
    np.testing.assert_allclose(one.mean()[:, 1:], np.exp(MEAN + 1 + VARIANCE / 2))
    assert one.quantile(0.2).shape == one.sample(7, 0)[..., 0].shape == (3, 2)


def test_quantile_of_a_mixture_against_brentq():
    one = mixture()
    for p in (0.01, 0.6):
        for row in range(3):
            root = optimize.brentq(
                lambda y, row=row, p=p: one.cdf(np.full((3, 1), y))[row, 0] - p,
                -50,
                200,
                xtol=1e-13,
            )
            assert one.quantile(p)[row, 0] == pytest.approx(root, rel=1e-8)


def test_one_network_needs_no_search_by_row():
    factors, weights = np.array([0.7, 1.0, 3.0]), np.array([0.2, 0.5, 0.3])
    one = Predictive([PredictivePart(MEAN, VARIANCE, scaling("log"), factors, weights)])
    for p in (1e-12, 0.025, 0.5, 0.8, 1 - 1e-9):
        np.testing.assert_allclose(one.quantile(p), one._solved(p), rtol=1e-7)


def test_refusals():
    with pytest.raises(ValueError, match="p must be between 0 and 1, got 1"):
        single().quantile(1)
    with pytest.raises(ValueError, match="coverage must be between 0 and 1, got 95"):
        single().interval(95)
