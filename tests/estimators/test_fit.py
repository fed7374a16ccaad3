"""What a fit learns beside its network: several networks, noise that varies, rounded targets, rows
that repeat; and the distributions that it predicts."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone

import nngp

FAST = {"effort": "fast", "budget": 40}
SETTINGS = {
    "depth": 2, "activation": "erf", "weight_var": 1.5, "bias_var": 0.2, "noise_var": 0.3,
    "network": nngp.Architecture(2, "erf", 1.5, 0.2),
    "relevance": False, "input_scaling": "standardize", "whitening": 0.2,
    "invariance": "auto", "image_shape": (2, 2), "column_maps": "identity",
    "n_networks": 2, "effort": "fast", "selection": "loo",
    "selection_size": 77, "budget": 9, "solver": "cholesky", "engine": "cpu", "random_state": 3,
    "progress": False,
}  # fmt: skip
OWN = {
    nngp.NNGPRegressor: {
        "noise": "heteroscedastic",
        "target_transform": "log",
        "calibrate": False,
        "target_scaling": "none",
    },
    nngp.NNGPClassifier: {"likelihood": "dirichlet", "class_weight": "balanced"},
}


def skewed(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = X[:, 0] ** 2 + 0.1 * rng.normal(size=n)
    X = np.column_stack([np.exp(1.5 * X[:, 0]), X[:, 1:]])
    X[5, 1] = 4000.0
    return X, np.exp(y)


@pytest.fixture(scope="module")
def mixture():
    X, y = skewed()
    model = nngp.NNGPRegressor(n_networks=3, target_transform="log", **FAST).fit(X, y)
    assert len(model.networks_) > 1
    return model, X[:12], y[:12]


def test_several_networks_have_shares(mixture):
    model, *_ = mixture
    assert len(model.network_weights_) == len(model.networks_) <= 3
    assert model.network_weights_.sum() == pytest.approx(1.0)
    assert (model.network_weights_ > 0).all()
    assert model.posterior_ is model.networks_[0].posterior
    kinds = {(n.network.activation.name, n.network.depth) for n in model.networks_}
    assert len(kinds) == len(model.networks_)


def test_several_networks_in_files_and_pickles(mixture, tmp_path):
    model, Xs, ys = mixture
    model.save(tmp_path / "model.nngp")
    for again in (nngp.load(tmp_path / "model.nngp"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.network_weights_, model.network_weights_)
        for call in (
            lambda m: m.predict(Xs, return_cov=True),
            lambda m: (m.predict_interval(Xs), m.log_density(Xs, ys)),
            lambda m: (m.sample_y(Xs, 5), m.left_out().mean()),
        ):
            for a, b in zip(call(again), call(model), strict=True):
                np.testing.assert_array_equal(a, b)
        assert again.column_maps_ == model.column_maps_
        assert again.target_transform_ == "log"


def test_draws_of_several_networks_are_those_of_the_mixture(mixture):
    """Ranks among all draws against the distribution function, and the covariance in logarithms,
    where tails are short."""
    model, Xs, _ = mixture
    draws = model.sample_y(Xs, 8000, random_state=1)
    assert (draws > 0).all()
    for q in (0.05, 0.5, 0.9):
        below = (draws < model.predict_quantile(Xs, q)[:, None]).mean(axis=1)
        np.testing.assert_allclose(below, q, atol=5 * np.sqrt(q * (1 - q) / 8000))
    mean, cov = model.predict(Xs, return_cov=True)
    np.testing.assert_array_equal(cov, cov.T)
    _, std = model.predict(Xs, return_std=True)
    np.testing.assert_allclose(np.sqrt(np.diagonal(cov)), std, rtol=1e-12)
    correlation, found = cov / np.outer(std, std), np.corrcoef(draws)
    assert np.abs(correlation - found).max() < 0.35  # of heavy tails
    assert np.linalg.eigvalsh(correlation).min() > -1e-6
    assert (mean > 0).all()


def test_predictions_of_positive_targets_are_positive(mixture):
    model, Xs, _ = mixture
    far = np.vstack([Xs, 0.5 * Xs])
    for coverage in (0.5, 0.95, 0.999):
        low, high = model.predict_interval(far, coverage)
        assert (low > 0).all()
        assert (low < high).all()


def test_predictions_near_zero_are_conditioned_on_being_positive():
    """Without a transform too: few targets, all positive and some next to zero."""
    X = np.linspace(0, 3, 15)[:, None]
    y = np.abs(np.sin(2 * X[:, 0])) + 1e-3
    model = nngp.NNGPRegressor(budget=6, effort="fast").fit(X, y)
    assert model.target_transform_ == "identity"
    mean, std = model.predict([[1.55], [2.5]], return_std=True)
    low, high = model.predict_interval([[1.55], [2.5]], 0.99)
    assert (low > 0).all()
    assert (low < mean).all()
    assert (mean < high).all()
    assert (std > 0).all()
    assert (model.sample_y([[1.55]], 500) > 0).all()
    plain = nngp.NNGPRegressor(budget=6, effort="fast", target_transform="identity").fit(X, y)
    assert plain.predict_interval([[1.55]], 0.99)[0] < 0


def test_quantiles_rise(mixture):
    model, Xs, _ = mixture
    levels = [0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999]
    table = np.array([model.predict_quantile(Xs, q) for q in levels])
    np.testing.assert_array_equal(model.predict_quantile(Xs, levels), table)
    assert (np.diff(table, axis=0) > 0).all()
    low, high = model.predict_interval(Xs, 0.8)
    np.testing.assert_allclose([low, high], [table[2], table[6]], rtol=1e-9)
    for q in (0.0, 1.0, 2):
        with pytest.raises(ValueError, match="between 0 and 1"):
            model.predict_quantile(Xs, q)


def test_densities_integrate_to_one(mixture):
    model, Xs, _ = mixture
    for row in Xs[:3]:
        ends = [float(model.predict_quantile(row[None], q)[0]) for q in (1e-7, 1 - 1e-7)]

        t = np.linspace(np.log(ends[0]), np.log(ends[1]), 3001)
        density = np.exp(model.log_density(np.tile(row, (3001, 1)), np.exp(t)) + t)
        assert np.trapezoid(density, t) == pytest.approx(1.0, abs=1e-5)
    with pytest.raises(ValueError, match="y has the shape"):
        model.log_density(Xs, [1.0])


def test_noise_that_depends_on_the_inputs(tmp_path):
    """Intervals are wide where the noise is, and cover alike on both sides."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(240, 1))
    scale = np.where(X[:, 0] > 0, 0.6, 0.06)
    y = np.sin(3 * X[:, 0]) + scale * rng.normal(size=240)
    options = {"depth": 1, "activation": "erf", **FAST}
    model = nngp.NNGPRegressor(noise="heteroscedastic", **options).fit(X, y)
    assert model.networks_[0].varying is not None
    Xs = rng.uniform(-0.9, 0.9, size=(400, 1))
    truth = np.where(Xs[:, 0] > 0, 0.6, 0.06)
    ys = np.sin(3 * Xs[:, 0]) + truth * rng.normal(size=400)
    low, high = model.predict_interval(Xs, 0.9)
    inside, loud = (low < ys) & (ys < high), Xs[:, 0] > 0
    assert np.median((high - low)[loud]) > 4 * np.median((high - low)[~loud])
    assert 0.8 < inside[loud].mean() < 0.98
    assert 0.8 < inside[~loud].mean() < 0.99
    plain = nngp.NNGPRegressor(**options).fit(X, y)
    assert model.log_density(Xs, ys).mean() > plain.log_density(Xs, ys).mean() + 0.2
    model.save(tmp_path / "model.nngp", factor=False)
    again = nngp.load(tmp_path / "model.nngp")
    np.testing.assert_allclose(again.predict_interval(Xs, 0.9), (low, high), rtol=1e-9)


def test_even_noise_stays_even():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 2))
    y = X[:, 0] + 0.2 * rng.normal(size=120)
    model = nngp.NNGPRegressor(noise="heteroscedastic", depth=1, activation="erf", **FAST)
    assert model.fit(X, y).networks_[0].varying is None
    with pytest.raises(ValueError, match="noise must be one of"):
        nngp.NNGPRegressor(noise="loud").fit(X, y)


def test_rounded_targets_keep_the_noise_of_rounding():
    """Twins agree in whole numbers, and the evidence takes that for freedom from noise."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(60, 2)), 2, axis=0)
    y = np.round(3 * X[:, 0] + 0.3 * X[:, 1])
    options = {"depth": 1, "activation": "erf", "target_transform": "identity", **FAST}
    with pytest.warns(nngp.errors.DuplicateRowsWarning, match="60 of 120"):
        model = nngp.NNGPRegressor(**options).fit(X, y)
    spread = model.networks_[0].targets.spread[0]
    assert model.noise_floor_ > 0
    assert model.noise_var_ * spread**2 >= 1 / 12 * (1 - 1e-9)
    assert model.duplicate_rows_ == 60


def test_the_floor_is_lifted_where_targets_were_not_rounded():
    """Whole numbers that are a function of the inputs, exactly."""
    X = np.random.default_rng(0).integers(-15, 16, size=(150, 2)).astype(float)
    X = np.unique(X, axis=0)
    y = 3 * X[:, 0] - 2 * X[:, 1]
    options = {"depth": 1, "activation": "relu", "target_transform": "identity", **FAST}
    model = nngp.NNGPRegressor(**options).fit(X, y)
    spread = model.networks_[0].targets.spread[0]
    assert model.noise_floor_ == 0.0
    assert model.noise_var_ * spread**2 < 1 / 12
    given = nngp.NNGPRegressor(**options, noise_var=0.5).fit(X, y)
    assert given.noise_var_ == 0.5


def test_rows_that_repeat_are_counted(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 2)), rng.normal(size=50)
    X[7], y[7] = X[3], y[3]
    with pytest.warns(nngp.errors.DuplicateRowsWarning, match="1 of 50 rows repeat another row"):
        model = nngp.NNGPRegressor(selection=None).fit(X, y)
    assert model.duplicate_rows_ == 1
    y[7] += 1  # the same inputs with another target are an observation
    assert nngp.NNGPRegressor(selection=None).fit(X, y).duplicate_rows_ == 0
    # Copies by weight are asked for, and rows without a weight are not there.
    few = nngp.NNGPRegressor(selection=None)
    last = np.arange(50) > 44
    few.fit(X * last[:, None], np.where(last, y, 0.0), sample_weight=last.astype(float))
    assert few.duplicate_rows_ == 0
    few.save(tmp_path / "model.nngp")
    assert nngp.load(tmp_path / "model.nngp").duplicate_rows_ == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        twice = nngp.NNGPRegressor(selection=None).fit(X, y, sample_weight=np.full(50, 2.0))
    assert twice.duplicate_rows_ == 0


@pytest.mark.parametrize("kind", OWN)
def test_every_parameter_is_cloned_and_shown(kind):
    given = {**SETTINGS, **OWN[kind]}
    model = kind(**given)
    assert set(model.get_params()) == set(given)
    twin = clone(model)
    assert twin.get_params() == given
    for name, value in given.items():
        assert f"{name}={value!r}" in repr(model).replace("\n", "").replace("  ", ""), name
    assert repr(kind()) == f"{kind.__name__}()"
    other = kind().set_params(**given)
    assert other.get_params() == given


def test_noise_that_was_given_is_used_as_it_is():
    whole = np.arange(30.0)
    options = {"selection": None, "activation": "erf", "noise_var": 1e-7}
    assert nngp.NNGPRegressor(**options).fit(whole[:, None], whole).noise_var_ == 1e-7
    auto = nngp.NNGPRegressor(**options | {"noise_var": "auto"}, target_scaling="none")
    assert auto.fit(whole[:, None], 4 * whole).noise_var_ == pytest.approx(16 / 12)
