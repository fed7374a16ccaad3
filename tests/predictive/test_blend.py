"""Stacking against SciPy's optimiser; the scale mixture of held-out points; saving."""

import numpy as np
import pytest
from records import read_again
from scipy import optimize, stats
from scipy.special import logsumexp

from nngp.predictive.blend import Blend, stack
from nngp.predictive.targets import TargetScaling

RNG = np.random.default_rng(3)


def mixed(L, w):
    with np.errstate(divide="ignore"):
        return logsumexp(L + np.log(w), axis=1)


def test_a_point_that_hardly_counts_is_not_given_up():
    """Its density was let down to 1e-200, whose inverse squared is no number."""
    L = np.array([[0.0, -460.0], [-460.0, 0.0]])
    share = np.array([1 - 1e-4, 1e-4])
    np.testing.assert_allclose(stack(L, share), share, rtol=1e-6)


def check_stacking_against_scipy(n, k):
    y = RNG.standard_t(4, n)
    L = stats.norm.logpdf(y[:, None], RNG.normal(0, 1, k), RNG.uniform(0.5, 2, k))
    counts = RNG.uniform(0.5, 2.0, n)
    ours = stack(L, counts)

    def loss(a):
        return -float(counts @ mixed(L, np.exp(a - logsumexp(a))))

    theirs = optimize.minimize(loss, np.zeros(k), method="BFGS", options={"gtol": 1e-9})
    best = np.exp(theirs.x - logsumexp(theirs.x))
    assert ours.sum() == pytest.approx(1)
    assert counts @ mixed(L, ours) >= -theirs.fun - 1e-6 * n
    np.testing.assert_allclose(ours, best, atol=2e-3)
    P = np.exp(L - mixed(L, ours)[:, None])  # the conditions of Karush, Kuhn and Tucker
    gradient = counts @ P / counts.sum()
    assert gradient.max() < 1 + 1e-8
    np.testing.assert_allclose(gradient[ours > 1e-6], 1, atol=1e-6)


def test_stacking_against_scipy():
    for n, k in [(30, 2), (200, 4), (500, 7)]:
        check_stacking_against_scipy(n, k)


def test_one_density_that_is_best_everywhere_gets_all():
    L = np.column_stack([np.zeros(50), np.full(50, -3.0), np.full(50, -900.0)])
    np.testing.assert_allclose(stack(L), [1, 0, 0], atol=1e-9)


def test_equal_densities():
    assert stack(np.zeros((20, 3))).sum() == pytest.approx(1)
    np.testing.assert_array_equal(stack(np.zeros((5, 1))), [1.0])


def blend_of(z, **more):
    z = np.asarray(z, dtype=float)[:, None]
    return Blend.learn(z, stats.norm.logpdf(z), **more)


def interval_of(blend):
    targets = TargetScaling(np.zeros(1), np.ones(1))
    return blend.predictive([np.zeros((1, 1))], [np.ones((1, 1))], [targets]).interval(0.95)


def test_gaussian_residuals_change_little():
    low, high = interval_of(blend_of(stats.norm.ppf((np.arange(2000) + 0.5) / 2000)))
    assert high[0, 0] == pytest.approx(1.96, rel=0.01)
    assert low[0, 0] == pytest.approx(-high[0, 0])


def test_long_tails_are_found():
    for nu in [2.5, 4.0]:
        z = 1.3 * stats.t.ppf((np.arange(3000) + 0.5) / 3000, nu)
        blend = blend_of(z)
        assert interval_of(blend)[1][0, 0] == pytest.approx(1.3 * stats.t.ppf(0.975, nu), rel=0.04)
        targets = TargetScaling(np.zeros(1), np.ones(1))
        zeros = np.zeros((3000, 1))
        density = blend.predictive([zeros], [np.ones((3000, 1))], [targets]).log_density(z[:, None])
        student = stats.t.logpdf(z / 1.3, nu) - np.log(1.3)
        assert density.mean() > student.mean() - 0.003


def test_few_points_say_little():
    few = interval_of(blend_of([0.3, -3.0, 0.2]))[1][0, 0]
    many = interval_of(blend_of([0.3, -3.0, 0.2] * 40))[1][0, 0]
    assert 1.9 < few < many
    assert interval_of(blend_of([]))[1][0, 0] == pytest.approx(1.96, abs=1e-3)


def test_hyper_parameters_widen():
    z = stats.norm.ppf((np.arange(400) + 0.5) / 400)
    narrow, wide = (interval_of(blend_of(z, parameters=[p]))[1][0, 0] for p in (0, 40))
    assert wide / narrow == pytest.approx(np.sqrt(440 / 360), rel=0.02)
    fitted = interval_of(blend_of(z, parameters=[40], fitted=100))[1][0, 0]
    assert fitted / narrow == pytest.approx(np.sqrt(140 / 60), rel=0.05)
    most = interval_of(blend_of(z, parameters=[10_000]))[1][0, 0]
    assert most / narrow == pytest.approx(np.sqrt(3), rel=0.05)


def test_networks_and_factors_at_once():
    """The right network with twice its deviation, beside a wrong one."""
    y = RNG.normal(0, 2, 3000)
    z = np.column_stack([y, y - 5.0])
    blend = Blend.learn(z, stats.norm.logpdf(z))
    assert blend.network_weights[0] > 0.99
    common = np.sqrt(blend.weights[0] @ blend.factors**2 / blend.weights[0].sum())
    assert common == pytest.approx(2, rel=0.05)


def test_a_single_wild_residual():
    blend = blend_of([*RNG.normal(size=50), 1e9])
    assert np.isfinite(blend.weights).all()
    assert blend.weights.sum() == pytest.approx(1)


def test_plain():
    blend = Blend.plain(3)
    np.testing.assert_allclose(blend.network_weights, 1 / 3)
    np.testing.assert_allclose(blend.of_networks([0, 2]).network_weights, 0.5)
    assert interval_of(Blend.plain())[1][0, 0] == pytest.approx(1.959963984540054, rel=1e-14)


def test_saved_and_read():
    blend = Blend.learn(RNG.standard_t(3, (80, 2)), RNG.normal(size=(80, 2)))
    back = read_again(blend)
    np.testing.assert_array_equal(back.weights, blend.weights)
    np.testing.assert_array_equal(back.factors, blend.factors)


DAMAGED = [
    ("factors", lambda a: -a, "other numbers than those from 0.4"),
    ("factors", lambda a: 1e6 * a, "other numbers than those from 0.4"),
    ("weights", lambda a: 2 * a, "do not add up to one"),
    ("weights", lambda a: a[:, :-1], r"is float64 \(1, \d+\), expected"),
]


def test_damaged():
    for name, change, message in DAMAGED:
        blend = blend_of(RNG.standard_t(3, 80))
        with pytest.raises(ValueError, match=message):
            read_again(blend, **{name: change(getattr(blend, name))})
