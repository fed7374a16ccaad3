"""Covariance between predictions of several rows, against sampling and a quadrature in two
dimensions; and the pieces of a mixture."""

import numpy as np
import pytest

from nngp.estimators.mixing import drawn_from, mixed_mean
from nngp.predictive.blend import Blend
from nngp.predictive.joint import joint_covariance
from nngp.predictive.predictive import Predictive, PredictivePart
from nngp.predictive.targets import TargetScaling

MEAN = np.array([[0.2], [-0.4], [1.1]])
ROOT = np.array([[0.6, 0.0, 0.0], [0.3, 0.5, 0.0], [-0.2, 0.1, 0.4]])
COV = ROOT @ ROOT.T
Y = np.exp(np.random.default_rng(0).normal(size=(60, 1)))


def part(transform, *, positive=False, factor=1.0, weight=1.0, shift=0.0):
    targets = TargetScaling.learn(Y, "standardize", transform, positive=positive)
    variance = np.diag(COV)[:, None]
    return PredictivePart(
        MEAN + shift, variance, targets, np.array([factor]), np.array([float(weight)])
    )


def by_quadrature(predictive, i, j, nodes=120):
    """E y_i y_j - E y_i E y_j of one part, on a product of Gauss-Hermite rules."""
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    w = w / w.sum()
    rho = COV[i, j] / np.sqrt(COV[i, i] * COV[j, j])
    a, b = (grid.ravel() for grid in np.meshgrid(x, x))
    weights = np.outer(w, w).ravel()
    z = np.zeros((len(a), 3, 1))
    z[:, i, 0], z[:, j, 0] = a, rho * a + np.sqrt(1 - rho**2) * b
    one = predictive.parts[0]
    values = predictive.from_process(one.mean + one.std * z, 0, one.common_factor)[:, :, 0]
    first, second = values[:, i], values[:, j]
    return weights @ (first * second) - (weights @ first) * (weights @ second)


def check_against_quadrature_in_two_dimensions(transform, positive):
    predictive = Predictive([part(transform, positive=positive, factor=1.3)])
    found = joint_covariance(predictive, [COV])[:, :, 0]
    np.testing.assert_array_equal(found, found.T)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        # A bound has a kink, which costs the product rule some digits.
        assert found[i, j] == pytest.approx(by_quadrature(predictive, i, j), rel=2e-3, abs=1e-4)
    np.testing.assert_allclose(np.diagonal(found), predictive.std()[:, 0] ** 2, rtol=1e-12)


TRANSFORMS = [
    ("log", True),
    ("yeo-johnson", False),
    ("yeo-johnson", True),
    ("identity", True),
]


def test_against_quadrature_in_two_dimensions():
    for transform, positive in TRANSFORMS:
        check_against_quadrature_in_two_dimensions(transform, positive)


def test_the_logarithm_in_closed_form():
    """Cov(exp a, exp b) = E exp a · E exp b · (exp(cov) - 1)."""
    predictive = Predictive([part("log", factor=1.2)])
    scale, spread = predictive.parts[0].targets, predictive.parts[0].targets.spread[0]
    unit = scale.maps[0]
    mean = MEAN[:, 0] * spread + scale.center[0]
    cov = 1.2**2 * spread**2 * COV
    expected = np.exp(mean + 0.5 * np.diag(cov))
    exact = np.outer(expected, expected) * np.expm1(cov)
    size = float(unit.inverse(np.zeros(1))[0])  # the value whose logarithm is zero
    found = joint_covariance(predictive, [COV])[:, :, 0]
    np.testing.assert_allclose(found, exact * size**2, rtol=1e-6)


def test_the_identity_is_the_covariance_of_the_posterior_to_the_bit():
    predictive = Predictive([part("identity")])
    spread = predictive.parts[0].targets.spread[0]
    found = joint_covariance(predictive, [COV])[:, :, 0]
    off = ~np.eye(3, dtype=bool)
    np.testing.assert_array_equal(found[off], (COV * spread**2)[off])
    np.testing.assert_allclose(np.diagonal(found), np.diag(COV) * spread**2, rtol=1e-14)


def test_a_mixture_against_draws():
    """Two networks of other transforms: the same draws that `sample_y` makes of them."""
    parts = [part("log", weight=0.3, factor=1.5), part("identity", weight=0.7, shift=0.5)]
    predictive = Predictive(parts)
    found = joint_covariance(predictive, [COV, COV])[:, :, 0]
    rng = np.random.default_rng(0)
    n = 200_000
    drawn = []
    for k, one in enumerate(parts):
        z = rng.normal(size=(round(n * one.weights[0]), 3)) @ ROOT.T
        drawn.append(predictive.from_process(one.mean + z[:, :, None], k, one.common_factor))
    y = np.concatenate(drawn)[:, :, 0]
    np.testing.assert_allclose(np.cov(y.T), found, rtol=0.04, atol=0.02 * found.max())
    np.testing.assert_allclose(y.mean(axis=0), predictive.mean()[:, 0], rtol=0.02)


def test_draws_are_assigned_by_their_shares():
    blend = Blend(np.array([1.0, 2.0]), np.array([[0.1, 0.2], [0.0, 0.0], [0.7, 0.0]]))
    draws = list(drawn_from(blend, 20_000, 3))
    every = np.sort(np.concatenate([one.which for one in draws]))
    np.testing.assert_array_equal(every, np.arange(20_000))
    shares = {(one.network, one.factor): len(one.which) / 20_000 for one in draws}
    assert shares == pytest.approx({(0, 1.0): 0.1, (0, 2.0): 0.2, (2, 1.0): 0.7}, abs=0.01)
    assert {one.network: one.part for one in draws} == {0: 0, 2: 1}  # networks with a share
    again = list(drawn_from(blend, 20_000, 3))
    assert [one.seed for one in draws] == [one.seed for one in again]
    (alone,) = drawn_from(Blend.plain(), 5, 7)
    assert (alone.network, alone.factor, alone.seed) == (0, 1.0, 7)


def test_the_mean_of_a_mixture():
    means = [np.array([[1.0], [2.0]]), np.array([[3.0], [5.0]])]
    np.testing.assert_allclose(mixed_mean(means, np.array([0.25, 0.75]))[:, 0], [2.5, 4.25])
    assert mixed_mean(means[:1], np.ones(1)) is means[0]
