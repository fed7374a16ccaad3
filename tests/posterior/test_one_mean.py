"""One mean: every call that gives a posterior mean gives the same bits, whatever else it computes.

With little noise and duplicates the weights are huge, and two ways to add up the same mean differ
in the second digit. As exact as the conditioning allows it is, against mpmath with 60 digits."""

import mpmath
import numpy as np
import pytest
from engines import SmallTiles

import nngp

RNG = np.random.default_rng(3)
ONCE = RNG.uniform(-1, 1, size=(30, 2))
X = np.vstack([ONCE, ONCE])
Y = np.column_stack([np.sin(3 * X[:, 0]), X[:, 1]]) + 0.1 * RNG.normal(size=(60, 2))
XS = RNG.uniform(-1, 1, size=(400, 2))
NETS = {
    "shallow": nngp.Architecture(1, "erf", 2.0, 0.1),
    "deep, on a sphere": nngp.Architecture(30, "relu", 1.5, 0.1),
}


def data_of(net):
    return (nngp.normalize(X), nngp.normalize(XS)) if "sphere" in net else (X, XS)


@pytest.mark.filterwarnings("ignore::nngp.errors.ToleranceWarning")
@pytest.mark.slow_on_jax
def test_the_mean_is_the_same_with_and_without_a_variance(engine):
    for noise in (1e-14, 1e-2):
        for net in NETS:
            train, test = data_of(net)
            posterior = nngp.condition(
                NETS[net],
                train,
                Y,
                noise_var=noise,
                relative_noise=True,
                engine=engine,
                solver="cholesky",
            )
            for some in (test, test[:1], test[:70]):
                np.testing.assert_array_equal(posterior.predict(some)[0], posterior.mean(some))


def test_the_mean_is_the_same_without_a_factor():
    for net in NETS:
        train, test = data_of(net)
        for engine in (SmallTiles(), "cpu"):
            posterior = nngp.condition(
                NETS[net], train, Y, noise_var=1e-2, relative_noise=True, engine=engine, solver="cg"
            )
            mean, variance = posterior.predict(test[:60])
            np.testing.assert_array_equal(mean, posterior.mean(test[:60]))
            np.testing.assert_array_equal(variance, posterior.variance(test[:60]))


def test_variances_without_a_factor_are_those_with_one(monkeypatch):
    """However few right-hand sides are solved together."""
    exact = nngp.condition(NETS["shallow"], X, Y, noise_var=1e-2, solver="cholesky").predict(XS)
    for at_once in (4e8, 60 * 8 * 7):
        monkeypatch.setattr("nngp.posterior.by_cg.AT_ONCE", at_once)
        posterior = nngp.condition(NETS["shallow"], X, Y, noise_var=1e-2, solver="cg")
        for found, wanted in zip(posterior.predict(XS), exact, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.filterwarnings("ignore::nngp.errors.ToleranceWarning")
def test_estimators_predict_one_mean():
    """Mean, mean with deviation, with covariance, of draws; and classes by mean or probability."""
    model = nngp.NNGPRegressor(selection=None, noise_var=1e-14).fit(X, Y[:, 0])
    mean = model.predict(XS)
    np.testing.assert_array_equal(model.predict(XS, return_std=True)[0], mean)
    np.testing.assert_array_equal(model.predict(XS, return_cov=True)[0], mean)
    lower, upper = model.predict_interval(XS)
    np.testing.assert_allclose((lower + upper) / 2, mean, rtol=1e-12)
    labels = (Y[:, 0] > 0).astype(int)
    classifier = nngp.NNGPClassifier(selection=None, noise_var=1e-14).fit(X, labels)
    probable = classifier.predict_proba(XS).argmax(axis=1)
    np.testing.assert_array_equal(classifier.predict(XS), classifier.classes_[probable])


@pytest.mark.parametrize("noise", [1e-10, pytest.param(1e-4, marks=pytest.mark.slow)])
def test_the_mean_is_as_exact_as_the_conditioning_allows(noise):
    net = NETS["shallow"]
    posterior = nngp.condition(net, X, Y, noise_var=noise)
    K, cross = nngp.kernel(net, X), nngp.kernel(net, XS[:8], X)
    with mpmath.workdps(60):
        A = mpmath.matrix(K.tolist()) + noise * mpmath.eye(len(X))
        exact = mpmath.matrix(cross.tolist()) * mpmath.lu_solve(A, mpmath.matrix(Y[:, 0].tolist()))
    exact = np.array([float(value) for value in exact])
    condition = np.linalg.norm(K, 2) / noise
    missed = np.abs(posterior.mean(XS[:8])[:, 0] - exact).max()
    assert missed < 10 * np.finfo(float).eps * condition
