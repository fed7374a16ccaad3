"""Maps of columns: monotone, bounded where they say so, saved, chosen where they help."""

from dataclasses import replace

import numpy as np
import pytest
from records import read_again
from scipy.stats import yeojohnson

import nngp
from nngp.frames.maps import ColumnMap, MapFamily, likeliest_power, transformed, units_of
from nngp.frames.scaling import InputScaling


def test_yeo_johnson_against_scipy():
    for power in [-2.0, -1e-9, 0.0, 0.3, 1.0, 1.7, 2.0, 4.0]:
        t = np.concatenate([np.linspace(-5, 5, 41), [1e-12, -1e-12, 1e-5, -1e-5]])
        value, slope = transformed(t, np.full_like(t, power))
        np.testing.assert_allclose(value, yeojohnson(t, power), rtol=1e-7, atol=1e-12)
        h = 1e-5
        up, down = (transformed(t, np.full_like(t, power + s))[0] for s in (h, -h))
        np.testing.assert_allclose(slope, (up - down) / (2 * h), rtol=1e-5, atol=1e-7)


def test_the_likeliest_power_against_scipy():
    x = np.random.default_rng(0).lognormal(size=300)
    assert likeliest_power(x) == pytest.approx(yeojohnson(x)[1], abs=1e-3)


def family(x):
    return MapFamily(np.asarray(x, dtype=float), mappable=True)


def test_maps_are_monotone_finite_and_saved():
    for kind in ["identity", "yeo-johnson", "log", "ranks", "bounded"]:
        for power in [-1.5, 0.5, 3.0]:
            x = np.random.default_rng(0).lognormal(size=200)
            one = family(x).make(kind, power)
            everywhere = np.concatenate([[-1e300, -1e5, -1.0, 0.0], np.sort(x), [1e3, 1e100]])
            with np.errstate(over="raise", invalid="raise"):
                u = one(everywhere)
            assert np.isfinite(u).all()
            assert (np.diff(u) >= 0).all()
            assert (np.diff(one(np.sort(x))) > 0).all()
            np.testing.assert_array_equal(read_again(one)(everywhere), u)


def test_units_do_not_matter():
    x = np.random.default_rng(0).lognormal(size=200)
    for kind in ("yeo-johnson", "log", "ranks", "bounded"):
        u, v = family(x).make(kind, 0.3)(x), family(1000 * x).make(kind, 0.3)(1000 * x)
        u, v = ((w - w.mean()) / w.std() for w in (u, v))
        np.testing.assert_allclose(u, v, rtol=1e-9, atol=1e-9)


def test_a_heavy_tail_gets_a_bounded_map():
    x = np.random.default_rng(0).normal(size=200)
    assert family(x).default.kind == "identity"
    x[0] = 4000.0
    assert family(x).default.kind == "bounded"
    assert np.abs(family(x).default(x)).max() <= 8
    np.testing.assert_allclose(
        family(x).default(x)[1:], (x[1:] - units_of(x).center) / units_of(x).unit
    )
    assert MapFamily(x, mappable=False).default.kind == "identity"
    sparse = np.where(np.arange(200) < 6, 16.0, 0.0)  # a pixel at the rim is not heavy
    assert family(sparse).default.kind == "identity"


DAMAGE = [
    ({"kind": "cube"}, "one of identity"),
    ({"unit": 0.0}, "above 0"),
    ({"power": 9.0}, "finite number"),
    ({"high": -1e9}, "the range of a map is empty"),
]


def test_a_damaged_map_is_refused():
    for damage, message in DAMAGE:
        with pytest.raises(ValueError, match=message):
            read_again(family(np.arange(1.0, 50.0)).make("yeo-johnson", 0.5), damage)


def test_scaling_is_saved_with_its_maps():
    X = np.random.default_rng(0).lognormal(size=(60, 3))
    maps = (family(X[:, 0]).make("log"), ColumnMap(), family(X[:, 2]).make("yeo-johnson", 0.2))
    scaling = InputScaling.learn(X, "standardize", maps).stretched(np.array([1.0, 2.0, 0.5]))
    np.testing.assert_allclose(scaling(X).std(axis=0), np.sqrt([1.0, 2.0, 0.5]))
    np.testing.assert_array_equal(read_again(scaling)(2 * X), scaling(2 * X))
    with pytest.raises(ValueError, match="maps are not those"):
        read_again(replace(scaling, maps=maps[:2]))


def test_one_wild_value_does_no_harm():
    """A value 4,000 deviations out in training: the error is as without that row."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(260, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=260)
    train, test = slice(0, 120), slice(120, None)
    wild = X[train].copy()
    wild[17, 0] = 4000.0
    errors = []
    for inputs, rows in ((wild, np.arange(120)), (wild, np.delete(np.arange(120), 17))):
        model = nngp.NNGPRegressor(effort="fast").fit(inputs[rows], y[train][rows])
        errors.append(np.sqrt(np.mean((model.predict(X[test]) - y[test]) ** 2)))
    assert errors[0] < 1.25 * errors[1]


def test_the_right_map_is_found_and_the_identity_is_kept():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.lognormal(0, 1.5, 150), rng.normal(size=150)])
    y = np.sin(2 * np.log(X[:, 0])) + 0.5 * X[:, 1] + 0.05 * rng.normal(size=150)
    model = nngp.NNGPRegressor(effort="fast").fit(X, y)
    kinds = [one.kind for one in model.networks_[0].inputs.maps]
    assert kinds[0] != "identity"
    assert kinds[1] == "identity"
    plain = nngp.NNGPRegressor(effort="fast", input_scaling="standardize").fit(X, y)
    assert model.log_evidence_ > plain.log_evidence_ + 20


@pytest.mark.parametrize("kind", ["yeo-johnson", "log", "ranks", "bounded"])
def test_the_derivative_of_a_map_is_finite_everywhere(kind):
    x = np.random.default_rng(0).lognormal(size=200)
    one = family(x).make(kind, 0.5)
    with np.errstate(over="raise", invalid="raise"):
        slopes = one.derivative(np.array([-1e9, -1e5, 0.0, 1.0, 1e4, 1e9]))
    assert np.isfinite(slopes).all()
    assert (slopes >= 0).all()
