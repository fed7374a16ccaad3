"""Predictions in the units of the data, against scikit-learn's own Gaussian process."""

import numpy as np
import pytest
from scipy import integrate, special, stats
from sklearn.datasets import load_diabetes, load_digits
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import nngp
from nngp.plots.uncertainty import calibrations
from nngp.predictive import probability
from nngp.predictive.probability import largest_probability


@pytest.fixture(scope="module")
def tables():
    X, y = load_diabetes(return_X_y=True)
    return X[:120], y[:120], X[120:150], y[120:150]


def test_against_scikit_learn(tables):
    """The same kernel and noise in `GaussianProcessRegressor`: mean, covariance, density."""
    X, y, Xs, _ = tables
    given = {"weight_var": 1.5, "bias_var": 0.2, "noise_var": 0.3, "relevance": False}
    plain = {"column_maps": "identity", "target_transform": "identity"}
    model = nngp.NNGPRegressor(depth=2, activation="erf", **given, **plain).fit(X, y)
    scaler = StandardScaler().fit(X)
    kernel = nngp.NNGPKernel(2, "erf", 1.5, 0.2, "fixed", "fixed") + WhiteKernel(0.3, "fixed")
    theirs = GaussianProcessRegressor(kernel, alpha=0.0, normalize_y=True, optimizer=None)
    theirs.fit(scaler.transform(X), y)
    mean, std = theirs.predict(scaler.transform(Xs), return_std=True)
    ours = model.predict(Xs, return_std=True)
    np.testing.assert_allclose(ours[0], mean, rtol=1e-9)
    np.testing.assert_allclose(ours[1], std, rtol=1e-7)
    _, cov = theirs.predict(scaler.transform(Xs), return_cov=True)
    _, own = model.predict(Xs, return_cov=True)
    np.testing.assert_allclose(own, cov, rtol=1e-6, atol=1e-6 * cov.max())
    scaled = theirs.log_marginal_likelihood_value_ - len(y) * np.log(y.std())
    assert model.log_marginal_likelihood_ == pytest.approx(scaled, rel=1e-10)


def test_variances_with_and_without_noise(tables):
    X, y, Xs, _ = tables
    model = nngp.NNGPRegressor(selection=None).fit(X, y)
    _, of_observations = model.predict(Xs, return_std=True)
    _, of_function = model.predict(Xs, return_std=True, noise=False)
    np.testing.assert_allclose(of_observations**2 - of_function**2, 0.1 * y.var(), rtol=1e-6)
    lower, upper = model.predict_interval(Xs, 0.8)
    np.testing.assert_allclose(upper - lower, 2 * stats.norm.ppf(0.9) * of_observations)


def test_draws(tables):
    X, y, Xs, _ = tables
    model = nngp.NNGPRegressor(selection=None).fit(X, y)
    draws = model.sample_y(Xs, 4000, random_state=3)
    mean, cov = model.predict(Xs, return_cov=True)
    assert draws.shape == (30, 4000)
    error = np.sqrt(np.diagonal(cov) / 4000)
    assert (np.abs(draws.mean(axis=1) - mean) < 5 * error).all()
    np.testing.assert_allclose(np.cov(draws), cov, atol=0.12 * cov.max())
    np.testing.assert_array_equal(draws, model.sample_y(Xs, 4000, random_state=3))


@pytest.mark.parametrize("options", [{}, {"column_maps": "identity"}])
def test_units_do_not_matter(tables, options):
    """Nor does zero, where no map or transform has to tell what is positive."""
    X, y, Xs, _ = tables
    shift, below = (7, 5) if options else (0, 0)
    options = {**options, "target_transform": "identity" if options else "auto", "budget": 15}
    model = nngp.NNGPRegressor(**options).fit(X, y)
    other = nngp.NNGPRegressor(**options).fit(X * 1000 + shift, y * 1e-3 - below)
    mean, std = model.predict(Xs, return_std=True)
    moved, shrunk = other.predict(Xs * 1000 + shift, return_std=True)
    np.testing.assert_allclose(moved, mean * 1e-3 - below, rtol=1e-5)
    np.testing.assert_allclose(shrunk, std * 1e-3, rtol=1e-5)


def check_the_probability_of_being_largest(classes):
    rng = np.random.default_rng(classes)
    mean, variance = rng.normal(size=(3, classes)), np.array([0.01, 1.0, 30.0])
    table = largest_probability(mean, variance)
    np.testing.assert_allclose(table.sum(axis=1), 1.0, rtol=1e-14)
    for row, m, v in zip(table, mean, variance, strict=True):
        for k in (0, int(m.argmax())):
            others, s = np.delete(m, k), np.sqrt(v)

            def integrand(t, k=k, m=m, s=s, others=others):
                return stats.norm.pdf(t, m[k], s) * np.prod(stats.norm.cdf((t - others) / s))

            ends = m[k] - 12 * s, m[k] + 12 * s
            exact, _ = integrate.quad(integrand, *ends, epsabs=1e-13, limit=500)
            assert row[k] == pytest.approx(exact, abs=1e-11)
    draws = mean[1] + rng.normal(size=(100_000, classes))
    share = np.bincount(draws.argmax(axis=1), minlength=classes) / 100_000
    np.testing.assert_allclose(table[1], share, atol=0.01)


def test_the_probability_of_being_largest():
    """Against adaptive quadrature of the integral, and against sampling."""
    for classes in [2, 3, 10, 40]:
        check_the_probability_of_being_largest(classes)


@pytest.mark.parametrize("classes", [65, 300])
def test_the_probability_of_being_largest_of_many(classes, monkeypatch):
    """Against the sums themselves, with far fewer evaluations than classes times nodes."""
    rng = np.random.default_rng(classes)
    mean, variance = rng.normal(size=(200, classes)), 10.0 ** rng.uniform(-3, 3, size=200)
    mean[0], variance[1] = 0.0, 0.0
    evaluations = []
    monkeypatch.setattr(
        probability, "log_ndtr", lambda x: evaluations.append(x.size) or special.log_ndtr(x)
    )
    for step in (0.125, 0.25):
        table = largest_probability(mean, variance, step)
        nodes = np.arange(-9.5, 9.5 + step / 2, step)
        for row, m, v in zip(table[2:42], mean[2:], variance[2:], strict=False):
            gap = nodes[:, None] - (m - m.max()) / np.sqrt(v)
            log_cdf = special.log_ndtr(gap)
            log_density = log_cdf.sum(axis=1, keepdims=True) - log_cdf - gap**2 / 2
            sums = np.exp(log_density).sum(axis=0)
            np.testing.assert_allclose(row, sums / sums.sum(), rtol=1e-8, atol=2e-15)
    np.testing.assert_allclose(table[0], 1 / classes, rtol=1e-13)
    np.testing.assert_allclose(table[1], np.arange(classes) == mean[1].argmax(), atol=1e-30)
    assert sum(evaluations) < mean.size * 20  # 230 by the sums


def test_probabilities_at_extreme_means_and_variances():
    mean = np.array([[0.0, 0.0, -1.0], [5.0, 1.0, 0.0], [1e300, 0.0, -1e300], [0.1, 0.1, 0.1]])
    table = largest_probability(mean, np.array([0.0, 1e-300, 1e-3, 1e300]))
    np.testing.assert_allclose(table[0], [0.5, 0.5, 0.0])
    np.testing.assert_allclose(table[1:3], [[1, 0, 0], [1, 0, 0]])
    np.testing.assert_allclose(table[3], 1 / 3)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return nngp.NNGPClassifier(budget=60).fit(X[:500], y[:500]), X[500:], y[500:]


def test_probabilities_are_calibrated(digits):
    model, Xs, ys = digits
    assert model.score(Xs, ys) > 0.93
    ours, softmax = calibrations(model, Xs, ys)
    assert ours.error < 0.05
    assert softmax.error > 5 * ours.error
    table = model.predict_proba(Xs)
    np.testing.assert_array_equal(model.classes_[table.argmax(axis=1)], model.predict(Xs))


def test_probabilities_are_those_of_the_posterior():
    """Classes of very different sizes: the table against draws of the outputs themselves."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=150), [0.3, 1.8])
    with pytest.warns(nngp.errors.NeverPredictedWarning, match=r"class 2 \(3 rows\)"):
        model = nngp.NNGPClassifier(budget=30, likelihood="regression").fit(X, y)
    share = np.bincount(y) / 150
    assert share.min() < 0.1
    link, relative = model._models[0].link, share * (1 - share) / np.mean(share * (1 - share))
    Xs = rng.normal(size=(20, 2))
    scaled_inputs = model.networks_[0].inputs(Xs)
    draws = model.posterior_.sample(scaled_inputs, 20_000, 1, noise=True)
    mean = model.posterior_.mean(scaled_inputs)
    scaled = mean + (draws - mean) * np.sqrt(model.output_scale_ * relative**link.exponent)
    largest = np.stack([(scaled.argmax(axis=2) == k).mean(axis=0) for k in range(3)], axis=1)
    expected = (1 - link.mixing) * largest + link.mixing * share
    np.testing.assert_allclose(model.predict_proba(Xs), expected, atol=0.02)
    np.testing.assert_allclose(
        model.predict_variance(Xs),
        model.posterior_.variance(scaled_inputs)
        * model.output_scale_
        * _one_hot(y).var(axis=0).mean(),
    )


def _one_hot(y):
    return np.eye(3)[y] - 1 / 3


def test_uncertainty_is_larger_where_errors_are(digits):
    model, Xs, ys = digits
    confidence, right = model.predict_proba(Xs).max(axis=1), model.predict(Xs) == ys
    sure = confidence > np.median(confidence)
    assert right[sure].mean() > 0.995
    assert right[~sure].mean() < right[sure].mean()
    with pytest.warns(nngp.errors.ExtrapolationWarning, match="1297 of 1297"):
        far = model.predict_variance(Xs * 0 + 100.0)
    assert far.min() > 2 * np.median(model.predict_variance(Xs))


def test_one_class_and_two():
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.warns(nngp.errors.FewDataWarning, match="all labels are the same"):
        alone = nngp.NNGPClassifier().fit(X, ["a"] * 30)
    np.testing.assert_array_equal(alone.predict_proba(X), 1.0)
    two = nngp.NNGPClassifier(budget=20).fit(X, X[:, 0] > 0)
    assert two.predict(X).dtype == bool
    assert two.score(X, X[:, 0] > 0) > 0.9


@pytest.mark.parametrize("activation", ["relu", "erf", "tanh"])
def test_the_kernels_gradient(activation):
    X = np.random.default_rng(0).normal(size=(20, 3))
    X[4] = X[9]
    kernel = nngp.NNGPKernel(3, activation, 1.3, 0.2)
    K, gradient = kernel(X, eval_gradient=True)
    np.testing.assert_array_equal(K, kernel(X))
    np.testing.assert_allclose(np.diagonal(K), kernel.diag(X), rtol=1e-13)
    for k, h in enumerate(1e-6 * np.eye(2)):
        up, down = (kernel.clone_with_theta(kernel.theta + s * h)(X) for s in (1, -1))
        np.testing.assert_allclose(gradient[:, :, k], (up - down) / 2e-6, atol=1e-8)
    fixed = nngp.NNGPKernel(3, activation, 1.3, 0.2, bias_var_bounds="fixed")
    np.testing.assert_array_equal(fixed(X, eval_gradient=True)[1], gradient[:, :, 1:])
    assert fixed.bounds.shape == (1, 2)


def test_the_kernel_in_scikit_learns_own_models():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)
    kernel = nngp.NNGPKernel(2, "erf", bias_var_bounds="fixed") + WhiteKernel(0.01)
    model = GaussianProcessRegressor(kernel).fit(X, y)
    assert model.kernel_.k1.weight_var != 1.6
    assert model.score(X, y) > 0.95
    labels = (y > 0).astype(int)
    fixed = nngp.NNGPKernel(1, bias_var_bounds="fixed")
    assert GaussianProcessClassifier(fixed).fit(X, labels).score(X, labels) > 0.9
    assert SVC(kernel=nngp.NNGPKernel(2)).fit(X, labels).score(X, labels) > 0.9
    K = nngp.NNGPKernel(2, "erf")(X)
    assert KernelRidge(alpha=0.01, kernel="precomputed").fit(K, y).score(K, y) > 0.95
