"""Scaling of targets: transforms against SciPy and differences, limits, candidates, saving."""

import numpy as np
import pytest
from records import read_again
from scipy import stats

import nngp
from nngp.predictive.targets import TargetScaling, candidates
from nngp.predictive.transforms import TargetMap

RNG = np.random.default_rng(0)
SKEWED = np.exp(RNG.normal(1.0, 0.8, 200))


def column(y):
    return np.asarray(y, dtype=float)[:, None]


def transforms():
    kinds = [TargetMap("log")]
    return kinds + [TargetMap("yeo-johnson", p, 2.5, 1.7) for p in (0.0, 1e-12, 0.3, 1.0, 1.6, 2.0)]


def test_yeo_johnson_is_that_of_scipy():
    for power in [0.0, 0.4, 1.0, 1.5, 2.0]:
        y = np.linspace(-4, 9, 31)
        ours = TargetMap("yeo-johnson", power, 0.5, 2.0)(y)
        np.testing.assert_allclose(ours, stats.yeojohnson((y - 0.5) / 2, power), rtol=1e-13)


def test_inverse_and_slope():
    for one in transforms():
        y = np.geomspace(0.05, 1e3, 61)
        t = one(y)
        assert (np.diff(t) > 0).all()
        np.testing.assert_allclose(one.inverse(t), y, rtol=1e-11, atol=1e-11)
        h = 1e-5 * y
        slope = (one(y + h) - one(y - h)) / (2 * h)
        np.testing.assert_allclose(one.log_slope(y), np.log(slope), atol=1e-6)


def test_whatever_is_predicted_is_a_number():
    for one in transforms():
        wild = np.array([-1e308, -1e10, -800.0, 0.0, 800.0, 1e10, 1e308])
        back = one.inverse(wild)
        assert np.isfinite(back).all()
        assert (np.diff(back) >= 0).all()
        assert np.isfinite(one(wild)).all()
        assert np.isfinite(one.log_slope(wild)).all()


def test_power_is_the_most_likely_one():
    one = TargetMap.learn(SKEWED, "yeo-johnson")
    u = (SKEWED - one.origin) / one.unit
    found = stats.yeojohnson_llf(one.power, u)
    others = [stats.yeojohnson_llf(p, u) for p in np.linspace(0, 2, 401)]
    assert 0 < one.power < 1
    assert found >= max(others) - 1e-6


def test_units_do_not_matter():
    one = TargetScaling.learn(column(SKEWED), "standardize", "yeo-johnson")
    other = TargetScaling.learn(column(1e9 * SKEWED - 1e5), "standardize", "yeo-johnson")
    np.testing.assert_allclose(
        other(column(1e9 * SKEWED - 1e5)), one(column(SKEWED)), rtol=1e-4, atol=1e-4
    )


def test_density_of_targets_from_that_of_scaled_ones():
    for kind in ["identity", "log", "yeo-johnson"]:
        Y = np.column_stack([SKEWED, SKEWED[::-1] ** 2])
        scaling = TargetScaling.learn(Y, "standardize", kind)
        np.testing.assert_allclose(scaling(Y).mean(axis=0), 0, atol=1e-10)
        np.testing.assert_allclose(scaling(Y).std(axis=0), 1, rtol=1e-10)
        np.testing.assert_allclose(scaling.undo(scaling(Y)), Y, rtol=1e-10)
        h = 1e-6
        slopes = (scaling(Y * (1 + h)) - scaling(Y * (1 - h))) / (2 * h * Y)
        assert scaling.log_jacobian(Y) == pytest.approx(np.log(slopes).sum(), rel=1e-8)


def test_log_normal_density():
    scaling = TargetScaling.learn(column(SKEWED), "standardize", "log")
    ours = stats.norm.logpdf(scaling(column(SKEWED))).sum() + scaling.log_jacobian(column(SKEWED))
    theirs = stats.lognorm.logpdf(SKEWED, scaling.spread[0], scale=np.exp(scaling.center[0])).sum()
    assert ours == pytest.approx(theirs, rel=1e-12)


def test_one_wild_target():
    y = np.append(RNG.normal(0, 1, 50), 1e300)
    for one in candidates(column(y), "standardize", "auto"):
        assert np.isfinite(one(column(y))).all()
        assert np.isfinite(one.undo(np.linspace(-1e3, 1e3, 9)[:, None])).all()
        assert np.isfinite(one.log_jacobian(column(y)))


def kinds(y, transform="auto"):
    return [one.transform for one in candidates(column(y), "standardize", transform)]


def test_candidates():
    assert kinds(SKEWED) == ["identity", "log", "yeo-johnson"]
    assert kinds(SKEWED - 2) == ["identity", "yeo-johnson"]
    assert kinds(stats.norm.ppf((np.arange(200) + 0.5) / 200)) == ["identity"]
    assert kinds(SKEWED[:10]) == ["identity"]
    assert kinds(np.ones(50)) == ["identity"]
    assert kinds(np.arange(50) % 2) == ["identity"]
    assert kinds(SKEWED, "log") == ["log"]
    assert kinds(np.arange(1, 50) % 2 + 1.0, "log") == ["identity"]
    assert kinds(1e6 + SKEWED / 10) == ["identity", "yeo-johnson"]  # its logarithm is linear


def test_positive_targets():
    positive = [one.positive for one in candidates(column(SKEWED), "standardize", "auto")]
    assert positive == [True, True, True]
    assert not candidates(column(SKEWED), "standardize", "identity")[0].positive
    assert not candidates(column(SKEWED - 2), "standardize", "auto")[0].positive


def test_refusals():
    with pytest.raises(ValueError, match="needs positive targets, got -1"):
        TargetScaling.learn(column([1.0, 2.0, -1.0]), "standardize", "log")
    with pytest.raises(ValueError, match="must be one of auto, identity"):
        candidates(column(SKEWED), "standardize", "sqrt")
    with pytest.raises(ValueError, match="got -3, so call fit with all rows"):
        TargetScaling.learn(column(SKEWED), "standardize", "log").holding(column([1.0, -3.0]))


def test_noise_floor():
    whole = RNG.integers(0, 30, 300).astype(float)
    plain = TargetScaling.learn(column(whole), "standardize")
    assert plain.noise_floor == pytest.approx(1 / 12 / whole.var(), rel=1e-9)
    assert TargetScaling.learn(column(whole * 100), "none").noise_floor == pytest.approx(1e4 / 12)
    assert TargetScaling.learn(column(SKEWED), "standardize").noise_floor == 0.0
    both = TargetScaling.learn(np.column_stack([whole, SKEWED[0] + RNG.normal(size=300)]), "none")
    assert both.noise_floor == 0.0
    assert plain.without_floor().noise_floor == 0.0
    # of a logarithm: the mean squared slope
    logs = TargetScaling.learn(column(whole + 1), "none", "log")
    assert logs.noise_floor == pytest.approx((1 / (whole + 1) ** 2).mean() / 12, rel=1e-9)


def test_saved_and_read():
    for kind in ["identity", "log", "yeo-johnson"]:
        Y = np.column_stack([np.ceil(SKEWED), np.ceil(SKEWED[::-1])])
        scaling = TargetScaling.learn(Y, "standardize", kind, positive=True)
        back = read_again(scaling)
        np.testing.assert_array_equal(back(Y), scaling(Y))
        assert back.transforms == scaling.transforms
        assert (back.positive, back.noise_floor) == (True, scaling.noise_floor)


DAMAGED = [
    ({"transforms": [{"type": "TargetMap", "kind": "cube"}]}, "has other values than TargetMap"),
    ({"transforms": [1]}, "expected a record of TargetMap"),
    ({"positive": 1}, "expected true or false"),
    ({"noise_floor": -1.0}, "expected a finite number"),
]


def test_damaged():
    scaling = TargetScaling.learn(column(SKEWED), "standardize", "yeo-johnson")
    for changes, message in DAMAGED:
        with pytest.raises(nngp.errors.ModelFileError, match=message):
            read_again(scaling, changes)
    for name in ("spread", "center"):
        with pytest.raises(nngp.errors.ModelFileError, match=f"{name} holds other numbers"):
            read_again(scaling, **{name: np.full(1, -1e306)})
    for changes in ({"kind": "cube"}, {"unit": -1.0}, {"power": 2.5}):
        with pytest.raises(nngp.errors.ModelFileError, match="expected"):
            read_again(scaling.transforms[0], changes)
