"""Estimators and depth: a constant kernel warns once, infinite depth is a depth like others."""

import math
import warnings

import numpy as np
import pytest

import nngp

pytestmark = pytest.mark.filterwarnings(
    "ignore::nngp.errors.TreesWarning"
)  # some are nearly linear
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.sin(2 * X[:, 0]) + 0.05 * RNG.normal(size=60)
LABELS = (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize("scaling", ["unit", "standardize"])
@pytest.mark.parametrize("kind", [nngp.NNGPRegressor, nngp.NNGPClassifier])
def test_a_constant_kernel_warns_once(kind, scaling):
    model = kind(
        depth=60,
        activation="relu",
        weight_var=0.7,
        bias_var=0.1,
        noise_var=1e-3,
        input_scaling=scaling,
        effort="fast",
    )
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for expected in ("NeverPredicted", "NoSignal", "Leakage"):
            warnings.simplefilter("ignore", getattr(nngp.errors, f"{expected}Warning"))
        model.fit(X, LABELS)
        model.predict(X)
    assert [type(warning.message) for warning in told] == [nngp.errors.ConstantKernelWarning]


@pytest.mark.filterwarnings("error", "ignore::nngp.errors.NoSignalWarning")
def test_healthy_networks_and_noisy_data_do_not_warn():
    nngp.NNGPRegressor(budget=8, activation="erf", depth=2).fit(X, RNG.normal(size=60))


def test_infinite_depth(tmp_path):
    model = nngp.NNGPRegressor(depth=math.inf, activation="erf", weight_var=0.6, bias_var=0.4)
    model.fit(X, Y)
    assert model.network_.depth == math.inf
    assert model.score(X, Y) > 0.4  # its kernel is nearly linear
    assert model.report_.offset == math.inf
    model.save(tmp_path / "deep.nngp")
    loaded = nngp.load(tmp_path / "deep.nngp")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.predict_interval(X), model.predict_interval(X))
    assert (loaded.network_, loaded.report_) == (model.network_, model.report_)
    assert loaded.get_params()["depth"] == math.inf
    np.testing.assert_array_equal(loaded.fit(X, Y).predict(X), model.predict(X))
    model.save(tmp_path / "small.nngp", factor=False)
    again = nngp.load(tmp_path / "small.nngp")
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-9)


def test_infinite_depth_chooses_its_variances():
    model = nngp.NNGPClassifier(depth=math.inf, activation="erf", budget=10).fit(X, LABELS)
    assert model.score(X, LABELS) > 0.9
    assert isinstance(model.network_.weight_var, float)
    assert set(model.selection_["depth"]) == {math.inf}


def test_saved_in_several_tiles_it_is_the_same_to_the_bit(tmp_path):
    many = np.random.default_rng(1).normal(size=(900, 3))
    model = nngp.NNGPRegressor(
        depth=30, activation="relu", weight_var=1.0, bias_var=0.1, input_scaling="unit"
    )
    model.set_params(noise_var=1e-12).fit(many, many[:, 0])
    assert len(model.posterior_.solution.factor.rows) > 1
    model.save(tmp_path / "tiles.nngp")
    loaded = nngp.load(tmp_path / "tiles.nngp")
    np.testing.assert_array_equal(
        loaded.predict(X, return_std=True), model.predict(X, return_std=True)
    )


def test_the_error_names_the_reason():
    model = nngp.NNGPRegressor(depth=math.inf, activation="erf", weight_var=3.0, bias_var=0.1)
    with pytest.raises(ValueError, match="chaotic phase"):
        model.fit(X, Y)


def test_relevances_are_not_learned_on_a_sphere():
    with pytest.raises(ValueError, match="relevance=True needs inputs off the sphere"):
        nngp.NNGPRegressor(depth=math.inf, relevance=True).fit(X, Y)


def test_infinite_depth_needs_one_norm():
    with pytest.raises(ValueError, match="inputs of equal norm"):
        nngp.NNGPRegressor(
            depth=math.inf, selection=None, weight_var=1.0, input_scaling="standardize"
        ).fit(X, Y)
