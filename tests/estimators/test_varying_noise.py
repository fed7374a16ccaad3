"""Noise that depends on the inputs: found where it is, refused where it is not, saved."""

import numpy as np
import pytest
from records import read_again
from scipy import stats

import nngp
from nngp.estimators.saved import SavedNoise
from nngp.estimators.varying_noise import (
    VaryingNoise,
    _log_noise,
    _State,
    learn_varying_noise,
)
from nngp.posterior.saved import SavedPosterior

NET = nngp.Architecture(2, "erf", 4.0, 0.5)


def data(n, vary, seed=0, outputs=1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 1))
    std = 0.05 + 0.25 * np.abs(X[:, 0]) if vary else np.full(n, 0.3)
    Y = np.sin(2 * X + np.arange(outputs)) + std[:, None] * rng.normal(size=(n, outputs))
    return X, Y, std**2


@pytest.fixture(scope="module")
def found():
    X, Y, variance = data(200, vary=True)
    return learn_varying_noise(NET, X, Y, float(variance.mean()))


def test_noise_is_found(found):
    X, _, variance = data(200, vary=True)
    assert found.gain > 20
    assert np.corrcoef(np.log(found.row_noise), np.log(variance))[0, 1] > 0.9
    assert np.abs(np.log(found.row_noise / variance)).mean() < 0.5
    np.testing.assert_allclose(found.noise_at(X), found.row_noise, rtol=1e-10)


def test_new_points_gain(found):
    X, Y, variance = data(200, vary=True)
    Xs, Ys, _ = data(400, vary=True, seed=1)
    plain = nngp.condition(NET, X, Y, noise_var=float(variance.mean()))
    mean, var = plain.predict(Xs, noise=True)
    before = stats.norm.logpdf(Ys[:, 0], mean[:, 0], np.sqrt(var)).mean()
    varied = nngp.condition(NET, X, Y, noise_var=found.row_noise)
    mean, var = varied.predict(Xs, noise=found.noise_at(Xs))
    after = stats.norm.logpdf(Ys[:, 0], mean[:, 0], np.sqrt(var)).mean()
    assert after > before + 0.1


@pytest.mark.parametrize("seed", range(3))
def test_constant_noise_stays_constant(seed):
    X, Y, variance = data(120, vary=False, seed=seed)
    assert learn_varying_noise(NET, X, Y, float(variance[0])) is None


def test_a_wrong_level_alone_does_not_pay():
    X, Y, variance = data(120, vary=False)
    assert learn_varying_noise(NET, X, Y, 9 * float(variance[0])) is None


def test_few_points_say_nothing():
    X, Y, variance = data(30, vary=True)
    assert learn_varying_noise(NET, X, Y, float(variance.mean())) is None


def test_several_outputs_say_more():
    X, Y, variance = data(60, vary=True, outputs=4)
    found = learn_varying_noise(NET, X, Y, float(variance.mean()))
    assert np.corrcoef(np.log(found.row_noise), np.log(variance))[0, 1] > 0.9


def test_least_noise():
    X, Y, variance = data(200, vary=True)
    found = learn_varying_noise(NET, X, Y, float(variance.mean()), least=0.02)
    assert found.row_noise.min() == 0.02
    assert found.noise_at(np.zeros((1, 1)))[0] == 0.02


def test_known_noise_is_not_learned_again():
    """What is known to vary leaves nothing to be found; weights are rows of less noise."""
    X, Y, variance = data(200, vary=True)
    assert learn_varying_noise(NET, X, Y, 1e-3, known=variance) is None
    assert learn_varying_noise(NET, X, Y, 1.0, weights=1 / variance) is None


def test_saved_and_read(found):
    posterior = SavedPosterior.of(found.posterior, factor=True)
    saved = SavedNoise(posterior, found.level, found.least, found.gain)
    back = read_again(saved)
    process = back.posterior.restore(engine="cpu")
    again = VaryingNoise(process, back.level, back.least, np.empty(0), back.gain)
    Xs = np.linspace(-2, 2, 9)[:, None]
    np.testing.assert_array_equal(again.noise_at(Xs), found.noise_at(Xs))
    with pytest.raises(ValueError, match=r"level is 0.0, expected a finite number above 0"):
        read_again(saved, {"level": 0.0})


@pytest.mark.parametrize("outputs", [1, 3])
def test_logarithms_of_residuals_are_unbiased(outputs):
    rng = np.random.default_rng(5)
    n, function, noise = 20_000, 0.3, 0.7
    residuals = rng.normal(0, np.sqrt(function + noise), (n, outputs))
    state = _State(residuals, np.full(n, function), np.zeros(n), np.ones(n))
    logs = _log_noise(state, np.full(n, noise))
    assert logs.mean() == pytest.approx(np.log(noise), abs=0.06)
