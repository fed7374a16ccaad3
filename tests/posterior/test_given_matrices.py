"""Inference from given matrices: the same as from the network, and as dense formulas; and training
in function space against closed forms, steps of gradient descent, and autodiff."""

import math

import numpy as np
import pytest

import nngp

RNG = np.random.default_rng(11)
X, XS = RNG.normal(size=(60, 3)), RNG.normal(size=(7, 3))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]])
NET = nngp.Architecture(2, "erf", 2.0, 0.3)
K, CROSS, OWN = nngp.kernel(NET, X), nngp.kernel(NET, XS, X), nngp.kernel(NET, XS)
THETA, THETA_CROSS = nngp.kernel(nngp.NTK(NET), X), nngp.kernel(nngp.NTK(NET), XS, X)


@pytest.mark.parametrize("noise", [1e-3, np.linspace(1e-3, 1e-1, 60)])
def test_predictions_are_those_of_dense_formulas(noise):
    posterior = nngp.condition_matrix(K, Y, noise_var=noise)
    B = K + np.diag(np.broadcast_to(noise, 60))
    mean, variance = posterior.predict(CROSS, np.diag(OWN))
    left = OWN - CROSS @ np.linalg.solve(B, CROSS.T)
    np.testing.assert_allclose(mean, CROSS @ np.linalg.solve(B, Y), atol=1e-11)
    np.testing.assert_array_equal(posterior.mean(CROSS), mean)
    np.testing.assert_allclose(variance, np.diag(left), atol=1e-12)
    np.testing.assert_allclose(posterior.covariance(CROSS, OWN), left, atol=1e-12)
    log_det, fit = np.linalg.slogdet(B)[1], np.sum(Y * np.linalg.solve(B, Y))
    evidence = -0.5 * (fit + 2 * log_det + 2 * 60 * math.log(2 * math.pi))
    assert posterior.log_evidence == pytest.approx(evidence, rel=1e-11)


def test_leave_one_out_is_that_of_refitting():
    mean, variance = nngp.condition_matrix(K, Y, noise_var=0.01).leave_one_out()
    for i in (0, 17, 59):
        rest = np.delete(np.arange(60), i)
        others = nngp.condition_matrix(K[np.ix_(rest, rest)], Y[rest], noise_var=0.01)
        wanted, spread = others.predict(K[i, rest][None], [K[i, i]])
        np.testing.assert_allclose(mean[i], wanted[0], atol=1e-10)
        np.testing.assert_allclose(variance[i], spread[0], atol=1e-10)


def test_several_tiles_give_the_same_as_the_network(monkeypatch):
    from nngp.linsolve import CpuEngine

    monkeypatch.setattr(CpuEngine, "tile_size", lambda self, n: 17)
    given, own = nngp.condition_matrix(K, Y[:, 0]), nngp.condition(NET, X, Y[:, 0], noise_var=0.0)
    assert given.report.tile == 17
    np.testing.assert_allclose(given.mean(CROSS), own.mean(XS), atol=1e-7)
    assert given.noise_var == own.noise_var


def test_the_ladder_is_climbed_and_told():
    twice = np.tile(K[:20, :20], (2, 2))
    with pytest.warns(nngp.errors.NoiseWarning, match="raised from 0 to"):
        posterior = nngp.condition_matrix(twice, np.r_[Y[:20, 0], Y[:20, 0] + 0.1])
    assert posterior.noise_var == posterior.report.noise_var > 0
    assert posterior.report.failed_attempts > 0


def test_relative_noise_is_in_units_of_the_mean_of_the_diagonal():
    posterior = nngp.condition_matrix(7.0 * K, Y, noise_var=0.1, relative_noise=True)
    assert posterior.noise_var == pytest.approx(0.7 * np.trace(K) / 60, rel=1e-14)


BAD_MATRICES = [
    (np.where(np.eye(60) == 1, np.nan, K), "K holds nan"),
    (K + np.triu(np.ones((60, 60)), 1), "must be symmetric"),
    (K[:, :59], "must be square"),
    (3.0, "must be a matrix of covariances, got one number"),
    (K[0], "must be a matrix of covariances, got an array"),
    (K - 10 * np.eye(60), "the diagonal of K must hold variances"),
    (np.empty((0, 0)), "is empty"),
]


@pytest.mark.parametrize(("bad", "message"), BAD_MATRICES)
def test_bad_matrices_are_refused(bad, message):
    with pytest.raises(ValueError, match=message):
        nngp.condition_matrix(bad, Y)
    with pytest.raises(ValueError, match=message):
        nngp.training.train_matrix_ensemble(bad, THETA, Y)
    with pytest.raises(ValueError, match=message.replace("K ", "theta ").replace("of K", "of th")):
        nngp.training.descend_in_function_space(bad, Y, "squared", time=1.0)


def test_bad_test_points_are_refused():
    posterior = nngp.condition_matrix(K, Y, noise_var=0.1)
    with pytest.raises(ValueError, match=r"pass K_star\.T"):
        posterior.mean(CROSS.T)
    with pytest.raises(ValueError, match="one variance for each of 7 points"):
        posterior.predict(CROSS, np.ones(6))
    with pytest.raises(ValueError, match="entry 0 is -1"):
        posterior.predict(CROSS, -np.ones(7))
    with pytest.raises(ValueError, match=r"of shape \(7, 7\)"):
        posterior.covariance(CROSS, OWN[:6, :6])
    with pytest.raises(ValueError, match="60 rows and theta_star has 7"):
        nngp.training.train_matrix_ensemble(K, THETA, Y).predict(K, THETA_CROSS, np.ones(60))
    with pytest.raises(TypeError, match="relative_noise"):
        nngp.condition_matrix(K, Y, relative_noise=1)


def test_a_large_matrix_is_not_copied_and_watched(monkeypatch):
    monkeypatch.setattr("nngp.posterior.given.COPIED", 100)
    own = K.copy()
    posterior = nngp.condition_matrix(own, Y, noise_var=0.1)
    own[3, 4] += 1.0
    with pytest.raises(ValueError, match="were changed"):
        posterior.mean(CROSS)


@pytest.mark.parametrize("layers", ["all", "last"])
def test_ensembles_are_those_of_the_network(layers):
    times, theta = [0.0, 3.0, 1e4, math.inf], THETA if layers == "all" else K
    cross = THETA_CROSS if layers == "all" else CROSS
    theta = theta if layers == "all" else None
    given = nngp.training.train_matrix_ensemble(K, theta, Y, time=times, noise_var=0.01)
    own = nngp.training.train_ensemble(NET, X, Y, time=times, noise_var=0.01, layers=layers)
    mean, variance = given.predict(CROSS, cross, np.diag(OWN))
    np.testing.assert_allclose(mean, own.mean(XS), atol=1e-10)
    np.testing.assert_allclose(given.mean(cross), mean, atol=1e-14)
    np.testing.assert_allclose(variance, own.variance(XS), atol=1e-11)
    wanted = own.covariance(XS)
    np.testing.assert_allclose(given.covariance(CROSS, cross, OWN), wanted, atol=1e-11)


def test_training_the_last_layer_ends_in_the_posterior():
    networks = nngp.training.train_ensemble(
        NET, X, Y, time=[1e9, math.inf], noise_var=0.01, layers="last"
    )
    posterior = nngp.condition(NET, X, Y, noise_var=0.01)
    for mean, variance, covariance in zip(
        *networks.predict(XS), networks.covariance(XS), strict=True
    ):
        np.testing.assert_allclose(mean, posterior.mean(XS), atol=1e-11)
        np.testing.assert_allclose(variance, posterior.variance(XS), atol=1e-12)
        np.testing.assert_allclose(covariance, posterior.covariance(XS), atol=1e-12)
    assert nngp.training.train_ensemble(NET, X, Y, time=None, layers="last").time == math.inf


def test_the_last_layer_must_be_an_affine_map():
    block = nngp.Residual(nngp.Act("relu"), nngp.Dense(1.0))
    net = nngp.Chain(nngp.Dense(1.0), block)
    with pytest.raises(ValueError, match="does not end in one"):
        nngp.training.train_ensemble(net, X, Y, layers="last")
    with pytest.raises(ValueError, match="'all' or 'last'"):
        nngp.training.train_ensemble(NET, X, Y, layers="first")


def test_relative_noise_of_ensembles():
    given = nngp.training.train_matrix_ensemble(
        K, THETA, Y, time=5.0, noise_var=0.1, relative_noise=True
    )
    same = nngp.training.train_matrix_ensemble(
        K, THETA, Y, time=5.0, noise_var=0.1 * np.trace(THETA) / 60
    )
    np.testing.assert_allclose(given.mean(THETA_CROSS), same.mean(THETA_CROSS), atol=1e-13)


def test_the_squared_error_has_its_closed_form():
    times = [50.0, 0.0, 2.0]
    found = nngp.training.descend_in_function_space(
        THETA, Y, "squared", time=times, learning_rate=0.7
    )
    exact = nngp.training.train_matrix_ensemble(K, THETA, Y, time=times, learning_rate=0.7)
    np.testing.assert_allclose(found.predict(THETA_CROSS), exact.mean(THETA_CROSS), atol=1e-8)
    np.testing.assert_allclose(found.outputs, exact.mean(THETA), atol=1e-8)


def softmax(f):
    e = np.exp(f - f.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("momentum", [None, 0.8])
def test_cross_entropy_is_followed_as_by_small_steps(momentum):
    classes = np.eye(2)[(X[:, 0] > 0).astype(int)]
    start = np.random.default_rng(0).multivariate_normal(np.zeros(60), K, size=2).T
    found = nngp.training.descend_in_function_space(
        THETA, classes, "cross_entropy", time=[1.0, 8.0], start=start, momentum=momentum
    )
    gaps = []
    for steps in (500, 1000):  # of an explicit scheme of first order, whose error halves
        h, f, speed = 8.0 / steps, start.copy(), np.zeros_like(start)
        for _ in range(steps):
            force = -THETA @ (softmax(f) - classes) / 60
            speed = force if momentum is None else speed + h * (force - (1 - momentum) * speed)
            f = f + h * speed
        gaps.append(f - found.outputs[1])
    np.testing.assert_allclose(2 * gaps[1] - gaps[0], 0.0, atol=2e-5)
    assert np.abs(gaps[1]).max() > 1e-4  # the steps alone are not as good


def test_a_function_of_jax_is_a_loss():
    jnp = pytest.importorskip("jax.numpy")
    import jax

    def loss(f, Y):
        return -jnp.mean(jnp.sum(Y * jax.nn.log_softmax(f), axis=1))

    classes = np.eye(2)[(X[:, 0] > 0).astype(int)]
    own = nngp.training.descend_in_function_space(THETA, classes, loss, time=30.0).outputs
    named = nngp.training.descend_in_function_space(
        THETA, classes, "cross_entropy", time=30.0
    ).outputs
    np.testing.assert_allclose(own, named, atol=1e-9)


def test_bad_arguments_of_descent():
    def descend(**more):
        more = {"loss": "squared", "time": 1.0, **more}
        return nngp.training.descend_in_function_space(THETA, Y, **more)

    for more, message in [
        ({"time": math.inf}, "time must be finite"),
        ({"loss": "hinge"}, "loss must be"),
        ({"momentum": 1.0}, "momentum must be"),
        ({"start": np.ones(60)}, r"shape \(60, 2\)"),
        ({"learning_rate": 0.0}, "learning_rate"),
    ]:
        with pytest.raises(ValueError, match=message):
            descend(**more)
    jnp = pytest.importorskip("jax.numpy")
    with pytest.raises(nngp.errors.NotConvergedError, match="could not be followed"):
        descend(loss=lambda f, Y: jnp.sum(jnp.sqrt(f - 1.0)))


def test_training_along_a_negative_eigenvalue_is_refused_at_any_time():
    K, Y = np.eye(3), np.ones(3)
    theta = np.diag([1.0, 2.0, -1.0]) + 0.0
    theta[2, 2], theta[1, 2], theta[2, 1] = 0.5, 2.0, 2.0  # eigenvalues 1, -0.89 and 3.39
    with pytest.raises(nngp.errors.NotPositiveDefiniteError, match=r"the eigenvalue -0\.886"):
        nngp.training.train_matrix_ensemble(K, theta, Y, time=3.0)
