"""Derivatives of a regressor's predictions, in the units of the data, against differences."""

import numpy as np
import pytest

import nngp
from nngp.frames.maps import ColumnMap, learn_ranks
from nngp.frames.scaling import InputScaling, learn_whitening

RNG = np.random.default_rng(3)
X = np.column_stack([RNG.normal(size=60), 50 * RNG.normal(size=60), RNG.lognormal(2, 1, 60)])
Y = np.column_stack([np.sin(X[:, 0]) + 0.01 * X[:, 1], np.log(X[:, 2])])
XS = X[:5] * 1.01 + 0.03


def differences(function, points, steps):
    out = []
    for axis in np.diag(steps):
        far, near, nearer, farther = (function(points + s * axis) for s in (2, 1, -1, -2))
        out.append((8 * (near - nearer) - (far - farther)) / 12)
    return np.moveaxis(np.stack(out) / np.reshape(steps, (-1, *[1] * out[0].ndim)), 0, 1)


MODELS = {
    "plain": {},
    "sphere": {"input_scaling": "sphere"},
    "unit": {"input_scaling": "unit"},
    "log": {"target_transform": "log"},
    "yeo-johnson": {"target_transform": "yeo-johnson"},
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("outputs", [1, 2])
def test_gradients_are_those_of_differences(name, outputs):
    y = np.exp(0.3 * Y) + 0.5 if "log" in name or "yeo" in name else Y
    y = y[:, 0] if outputs == 1 else y
    model = nngp.NNGPRegressor(selection=None, noise_var=0.01, depth=2, **MODELS[name]).fit(X, y)
    mean, std, columns = model.predict_gradient(XS, return_std=True)
    steps = 1e-4 * np.array([1.0, 50.0, 5.0])
    wanted = differences(model.predict, XS, steps)
    assert mean.shape == std.shape == ((5, 3) if outputs == 1 else (5, 3, 2))
    np.testing.assert_allclose(mean, wanted, atol=1e-6 * np.abs(wanted).max())
    of_std = differences(lambda P: model.predict(P, return_std=True)[1], XS, steps)
    np.testing.assert_allclose(std, of_std, atol=1e-6 * np.abs(of_std).max())
    assert columns == ("x0", "x1", "x2")
    assert model.predict_gradient(XS).std is None


def test_a_mixture_with_maps_that_a_search_found():
    y = Y[:, 0] + 0.1 * RNG.normal(size=60)
    model = nngp.NNGPRegressor(effort="fast", n_networks=2, random_state=0).fit(X, y)
    mean, std, _ = model.predict_gradient(XS, return_std=True)
    steps = 2e-3 * np.array([1.0, 50.0, 5.0])
    wanted = differences(model.predict, XS, steps)
    np.testing.assert_allclose(mean, wanted, atol=1e-4 * np.abs(wanted).max())
    of_std = differences(lambda P: model.predict(P, return_std=True)[1], XS, steps)
    np.testing.assert_allclose(std, of_std, atol=1e-3 * np.abs(of_std).max())


def test_columns_of_a_data_frame_that_hold_numbers():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": X[:, 0], "kind": ["u", "v", "w"] * 20, "b": X[:, 1]})
    model = nngp.NNGPRegressor(selection=None, noise_var=0.01).fit(frame, Y[:, 0])
    mean, _, columns = model.predict_gradient(frame[:4])
    assert columns == ("a", "b")
    for j, (name, step) in enumerate([("a", 1e-3), ("b", 5e-2)]):
        ends = [
            model.predict(frame[:4].assign(**{name: frame[name][:4] + s})) for s in (step, -step)
        ]
        np.testing.assert_allclose(mean[:, j], (ends[0] - ends[1]) / (2 * step), atol=1e-5)


MAPS = {
    "yeo-johnson": ColumnMap("yeo-johnson", 1.0, 2.0, 0.4, -1.0, 3.0),
    "steep": ColumnMap("yeo-johnson", 1.0, 2.0, 2.3, -1.0, 3.0),
    "log": ColumnMap("log", 0.0, 2.0, 0.0, 0.5, 4.0),
    "bounded": ColumnMap("bounded", 1.0, 0.5),
    "ranks": learn_ranks(np.array([0.3, 1.0, 2.5, 2.7, 6.0]), 1.0, 2.0),
}


@pytest.mark.parametrize("name", MAPS)
def test_derivatives_of_maps(name):
    x = np.array([-8.0, -1.3, 0.1, 0.7, 2.6, 4.1, 9.0, 30.0])
    one, h = MAPS[name], 1e-6
    wanted = (one(x + h) - one(x - h)) / (2 * h)
    np.testing.assert_allclose(one.derivative(x), wanted, atol=1e-8, rtol=1e-6)


@pytest.mark.parametrize("kind", ["standardize", "sphere", "unit", "none", "whiten"])
def test_scalings_carry_derivatives_back(kind):
    scaling = learn_whitening(X) if kind == "whiten" else InputScaling.learn(X, kind)
    G = RNG.normal(size=(*scaling(XS).shape, 2))
    found = scaling.back(XS, G)
    steps = 1e-5 * np.array([1.0, 50.0, 5.0])
    rates = differences(scaling, XS, steps)  # (m, columns, scaled columns)
    np.testing.assert_allclose(found, np.einsum("icj,ijo->ico", rates, G), atol=1e-8)


def test_what_has_no_derivative_is_said():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"kind": ["u", "v", "w"] * 20})
    model = nngp.NNGPRegressor(selection=None, noise_var=0.01).fit(frame, Y[:, 0])
    with pytest.raises(ValueError, match="no column holds numbers"):
        model.predict_gradient(frame)
