"""Trained ensembles agree with dense formulas, with ODE solvers and with mpmath at any depth, and
their two ends are the prior and the process of the tangent kernel."""

import math

import numpy as np
import pytest
import trained_exactly
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import nngp

RNG = np.random.default_rng(5)
X = nngp.normalize(RNG.normal(size=(25, 4)))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]])
XS = nngp.normalize(RNG.normal(size=(8, 4)))
SHAPES = nngp.Chain(
    nngp.Dense(1.5, 0.2),
    nngp.Repeat(nngp.Residual(nngp.Act("erf"), nngp.Dense(0.7, 0.1)), 3),
    nngp.Act("relu"),
    nngp.Dense(1.0, 0.0),
)
NETS = {
    "relu": nngp.Architecture(3, "relu", 1.6, 0.1),
    "constant apart": nngp.Architecture(12, "relu", 1.0, 0.3),
    "tanh": nngp.Architecture(2, "tanh", 1.3, 0.2),
    "residual": SHAPES,
}
TIMES = [0.0, 0.5, 20.0, 3e3, 1e6, math.inf]


def matrices(net, A, B=None):
    return nngp.kernel(net, A, B), nngp.kernel(nngp.NTK(net), A, B)


def dense(net, time, noise_var, rate=1.0):
    """Mean and covariance from whole matrices and a matrix exponential."""
    (K, T), (cross, tangent_cross) = matrices(net, X), matrices(net, XS, X)
    B = T + noise_var * np.eye(len(X))
    left = np.zeros_like(B) if time == math.inf else expm(-rate * time * B / Y.size)
    W = tangent_cross @ np.linalg.solve(B, np.eye(len(X)) - left)
    covariance = nngp.kernel(net, XS) - W @ cross.T - cross @ W.T + W @ K @ W.T
    return W @ Y, covariance


@pytest.mark.parametrize("net", NETS)
def test_moments_are_those_of_dense_formulas(net):
    for noise_var in (0.0, 0.2):
        networks = nngp.training.train_ensemble(
            NETS[net], X, Y, time=TIMES, noise_var=noise_var, learning_rate=0.7
        )
        mean, variance = networks.predict(XS)
        covariance = networks.covariance(XS)
        scale = float(nngp.kernel_diag(NETS[net], XS).max())
        for i, time in enumerate(TIMES):
            wanted, wanted_covariance = dense(NETS[net], time, noise_var, 0.7)
            np.testing.assert_allclose(mean[i], wanted, atol=1e-10)
            np.testing.assert_allclose(covariance[i], wanted_covariance, atol=1e-12 * scale)
            np.testing.assert_allclose(variance[i], np.diag(wanted_covariance), atol=1e-12 * scale)
            assert (variance[i] >= 0).all()
            assert (covariance[i] == covariance[i].T).all()
        np.testing.assert_array_equal(networks.mean(XS), mean)


@pytest.mark.parametrize("which", ["training", "test", "both"])
def test_norms_may_differ(monkeypatch, which):
    train = RNG.normal(size=X.shape) if which != "test" else X
    test = RNG.normal(size=XS.shape) if which != "training" else XS
    monkeypatch.setitem(globals(), "X", train)
    monkeypatch.setitem(globals(), "XS", test)
    networks = nngp.training.train_ensemble(NETS["relu"], train, Y, time=TIMES)
    mean, variance = networks.predict(test)
    covariance = networks.covariance(test)
    for i, time in enumerate(TIMES):
        wanted, wanted_covariance = dense(NETS["relu"], time, 0.0)
        np.testing.assert_allclose(mean[i], wanted, atol=1e-10)
        np.testing.assert_allclose(covariance[i], wanted_covariance, atol=1e-11)
        np.testing.assert_allclose(variance[i], np.diag(wanted_covariance), atol=1e-11)


def test_another_norm_under_a_deep_network_is_refused():
    for time in (1e25, math.inf):
        networks = nngp.training.train_ensemble(
            nngp.Architecture(100, "relu", 1.0, 0.1), X, Y, time=time
        )
        for compute in (networks.mean, networks.variance, networks.covariance):
            with pytest.raises(nngp.errors.VarianceError, match="test inputs have another norm"):
                compute(1.1 * XS)
        shallow = nngp.training.train_ensemble(
            nngp.Architecture(20, "relu", 1.0, 0.1), X, Y, noise_var=1e-3, time=time
        )
        shallow.mean(1.1 * XS)
        with pytest.raises(nngp.errors.VarianceError, match="move variances by"):
            nngp.training.train_ensemble(
                nngp.Architecture(60, "relu", 1.0, 0.1), X, Y, time=1e3
            ).variance(1.1 * XS)


@pytest.mark.slow_on_jax
@pytest.mark.parametrize("net", ["relu", "constant apart"])
def test_infinite_time_is_the_same_on_every_engine(engine, net):
    mean, variance = nngp.training.train_ensemble(NETS[net], X, Y, engine=engine).predict(XS)
    wanted, covariance = dense(NETS[net], math.inf, 0.0)
    np.testing.assert_allclose(mean, wanted, atol=1e-10)
    np.testing.assert_allclose(variance, np.diag(covariance), atol=1e-12)
    found = nngp.training.train_ensemble(NETS[net], X, Y, engine=engine).covariance(XS)
    np.testing.assert_allclose(found, covariance, atol=1e-12)


@pytest.mark.parametrize(
    ("depth", "noise_var"),
    [(2, 0.0), (100, 1e-2), *(pytest.param(250, v, marks=pytest.mark.slow) for v in (0.0, 1e-2))],
)
def test_depth_costs_no_precision_at_any_time(depth, noise_var):
    """Against 150 digits: at depth 250 the entries of K agree to 75 of them."""
    few, own, some = X[:6], Y[:6], XS[:3]
    net = nngp.Architecture(depth, "relu", 1.0, 0.1)
    unit = nngp.curves.compile_curve(nngp.NTK(net)).scale
    for progress in (1e-3, 1.0, 100.0, 1e9, math.inf):
        time = progress / unit
        mean, covariance, scale = trained_exactly.moments(
            depth, 1.0, 0.1, few, own, some, time, noise_var
        )
        networks = nngp.training.train_ensemble(
            net, few, own, time=time, noise_var=noise_var, relative_noise=True
        )
        largest = max(1.0, float(np.abs(covariance).max()))
        np.testing.assert_allclose(networks.mean(some), mean, rtol=0, atol=1e-12)
        found = networks.covariance(some) / scale
        np.testing.assert_allclose(found, covariance, rtol=0, atol=1e-12 * largest)
        variance = networks.variance(some) / scale
        np.testing.assert_allclose(variance, np.diag(covariance), rtol=0, atol=1e-12 * largest)


def test_drawn_functions_follow_the_differential_equation():
    """Functions drawn at initialisation are moved by a solver of the weights' equation, dθ/dt =
    -grad, seen from functions: their mean and covariance are those of the ensemble. Linear in the
    first function, so that unit vectors in place of draws give the covariance without chance."""
    net, time, rate, n, noise_var = NETS["relu"], 40.0, 0.5, 6, 0.3
    few, targets, some = X[:n], Y[:n, :1], XS[:3]
    both = np.concatenate([few, some])
    K, T = matrices(net, both)

    def derivative(_, state, goal):
        f, a = state[: n + 3], state[n + 3 :]  # θ - θ₀ is the gradients times a
        step = -(rate / n) * (f[:n] - goal + noise_var * a)
        return np.concatenate([T[:, :n] @ step, step])

    def moved(start, goal):
        state = np.concatenate([start, np.zeros(n)])
        found = solve_ivp(
            derivative, (0, time), state, "DOP853", args=(goal,), rtol=1e-10, atol=1e-12
        )
        return found.y[n : n + 3, -1]

    mean = moved(np.zeros(n + 3), targets[:, 0])
    linear = np.column_stack([moved(unit, np.zeros(n)) for unit in np.eye(n + 3)])
    networks = nngp.training.train_ensemble(
        net, few, targets[:, 0], time=time, learning_rate=rate, noise_var=noise_var
    )
    np.testing.assert_allclose(networks.mean(some), mean, atol=1e-8)
    np.testing.assert_allclose(networks.covariance(some), linear @ K @ linear.T, atol=1e-8)


def test_the_beginning_is_the_prior_and_the_end_that_of_the_tangent_kernel():
    net = NETS["relu"]
    end = nngp.training.train_ensemble(net, X, Y, noise_var=1e-3)
    begin = end.at(0.0)
    np.testing.assert_array_equal(begin.mean(XS), np.zeros((8, 2)))
    np.testing.assert_allclose(begin.covariance(XS), nngp.kernel(net, XS), rtol=1e-14)
    np.testing.assert_allclose(begin.variance(XS), nngp.kernel_diag(net, XS), rtol=1e-14)
    posterior = nngp.condition(nngp.NTK(net), X, Y, noise_var=1e-3)
    np.testing.assert_array_equal(end.mean(XS), posterior.mean(XS))
    soon, late = end.at(1e-9), end.at(1e12)
    np.testing.assert_allclose(soon.covariance(XS), begin.covariance(XS), rtol=1e-7)
    for found, wanted in zip(late.predict(XS), end.predict(XS), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-8)


def test_training_the_last_layer_alone_is_bayesian_inference():
    """A linear model has Θ = K: without bias its trained ensemble is the posterior, variance
    included."""
    net = nngp.Architecture(0, "relu", 1.3, 0.0)
    few, targets = X[:3], Y[:3, 0]
    networks, posterior = (
        nngp.training.train_ensemble(net, few, targets),
        nngp.condition(net, few, targets),
    )
    np.testing.assert_allclose(networks.mean(XS), posterior.mean(XS), atol=1e-8)
    np.testing.assert_allclose(networks.covariance(XS), posterior.covariance(XS), atol=1e-8)


def test_draws_have_the_mean_and_the_covariance():
    networks = nngp.training.train_ensemble(NETS["tanh"], X, Y, time=30.0)
    draws = networks.sample(XS, n=4000, seed=1)
    assert draws.shape == (4000, 8, 2)
    error = np.sqrt(networks.variance(XS) / 4000)[:, None]
    assert (np.abs(draws.mean(axis=0) - networks.mean(XS)) < 4.5 * error).all()
    found = np.cov(draws[:, :, 1].T)
    assert np.abs(found - networks.covariance(XS)).max() < 0.1 * networks.variance(XS).max()
    np.testing.assert_array_equal(draws[:3], networks.sample(XS, n=4000, seed=1)[:3])
    assert nngp.training.train_ensemble(NETS["tanh"], X, Y[:, 0]).sample(XS, n=2, seed=0).shape == (
        2,
        8,
    )
    with pytest.raises(ValueError, match="draws at several times"):
        networks.at([1.0, 2.0]).sample(XS)


@pytest.mark.parametrize("net", ["relu", "constant apart"])
def test_losses_are_those_of_mean_and_variance(net):
    for noise_var in (0.0, 0.2):
        networks = nngp.training.train_ensemble(NETS[net], X, Y, noise_var=noise_var)
        targets = np.cos(XS[:, :2])
        found = networks.losses(TIMES, XS, targets)
        data = {"train": (X, Y), "test": (XS, targets)}
        for name, (inputs, wanted) in data.items():
            mean, variance = networks.at(TIMES).predict(inputs)
            own = ((mean - wanted) ** 2).mean(axis=(1, 2)) / 2
            np.testing.assert_allclose(getattr(found, name), own, atol=1e-10)
            expected = own + variance.mean(axis=1) / 2
            np.testing.assert_allclose(getattr(found, f"{name}_expected"), expected, atol=1e-10)
        alone = networks.losses(TIMES)
        np.testing.assert_array_equal(alone.train, found.train)
        assert alone.test is None


@pytest.mark.parametrize(
    ("net", "n"), [("relu", 1), ("constant apart", 2), ("constant apart", 20), ("relu", 200)]
)
def test_descent_in_steps_is_stable_up_to_the_largest_rate(net, n):
    inputs = nngp.normalize(np.random.default_rng(1).normal(size=(n, 5)))
    T = nngp.kernel(nngp.NTK(NETS[net]), inputs)
    largest = np.linalg.eigvalsh(T)[-1]
    rate = nngp.training.max_learning_rate(NETS[net], inputs)
    assert rate == pytest.approx(2 * n / largest, rel=1e-8)
    assert rate <= 2 * n / largest * (1 + 1e-12)
    more = nngp.training.max_learning_rate(NETS[net], inputs, outputs=3, noise_var=0.5)
    assert more == pytest.approx(6 * n / (largest + 0.5), rel=1e-8)
    errors = np.random.default_rng(2).normal(size=n)

    def after(rate, steps=400):
        return np.linalg.norm(np.linalg.matrix_power(np.eye(n) - rate / n * T, steps) @ errors)

    assert after(0.98 * rate) < np.linalg.norm(errors)
    assert after(1.02 * rate) > 10 * np.linalg.norm(errors)


def test_the_largest_rate_of_a_deep_network():
    net = nngp.Architecture(400, "relu", 1.0, 0.1)
    rate = nngp.training.max_learning_rate(net, X)
    constant = nngp.kernel_diag(nngp.NTK(net), X)[0]  # all that is left
    assert rate == pytest.approx(2 / constant, rel=1e-10)


def test_rows_that_repeat_each_other_are_trained_together():
    """Their difference cannot be trained: it is left out, with a warning once time would show
    it. Noise makes it well defined."""
    twice, targets = np.concatenate([X, X[:3]]), np.concatenate([Y, Y[:3] + 0.1])
    early = nngp.training.train_ensemble(NETS["relu"], twice, targets, time=10.0)
    with pytest.warns(nngp.errors.ToleranceWarning, match="3 of 28 directions"):
        late = early.at(1e14)
    averaged = Y.copy()
    averaged[:3] += 0.05
    wanted = nngp.training.train_ensemble(NETS["relu"], X, averaged)
    np.testing.assert_allclose(late.mean(XS), wanted.mean(XS), atol=1e-8)
    np.testing.assert_allclose(late.variance(XS), wanted.variance(XS), atol=1e-8)
    noisy = nngp.training.train_ensemble(NETS["relu"], twice, targets, noise_var=1e-3)
    np.testing.assert_allclose(noisy.at(1e14).mean(XS), noisy.mean(XS), atol=1e-8)


def test_rounding_is_told_where_it_is_large():
    """Sixty points on a line under a smooth network: the smallest eigenvalues are rounding."""
    angles = np.linspace(0, 1, 60)
    inputs = nngp.normalize(np.column_stack([np.cos(angles), np.sin(angles)]))
    net, targets = nngp.Architecture(2, "erf", 1.0, 0.1), np.sin(9 * angles)
    networks = nngp.training.train_ensemble(net, inputs, targets, time=10.0)
    with pytest.warns(nngp.errors.ToleranceWarning):
        late = networks.at(1e20)
    with pytest.warns(nngp.errors.ToleranceWarning, match="rounding may move a variance"):
        mean, variance = late.predict(nngp.normalize([[1.0, 4.0], [-1.0, 3.0]]))
    assert np.isfinite(mean).all()
    assert (variance >= 0).all()
    assert np.isfinite(variance).all()


def test_wrong_arguments_are_told_in_one_sentence():
    net = NETS["relu"]
    for time in (-1.0, float("nan"), [1.0, -2.0]):
        with pytest.raises(ValueError, match="time must not be negative"):
            nngp.training.train_ensemble(net, X, Y, time=time)
    for rate in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="learning_rate must be finite and positive"):
            nngp.training.train_ensemble(net, X, Y, learning_rate=rate)
    with pytest.raises(ValueError, match="noise_var must be finite"):
        nngp.training.train_ensemble(net, X, Y, noise_var=-1.0)
    with pytest.raises(TypeError, match="noise_var must be one number"):
        nngp.training.train_ensemble(net, X, Y, noise_var=[1.0] * 25)
    with pytest.raises(TypeError, match="pass the network itself"):
        nngp.training.train_ensemble(nngp.NTK(net), X, Y)
    with pytest.raises(ValueError, match="finite depth"):
        nngp.training.train_ensemble(nngp.Architecture(math.inf, "relu", 1.0, 0.1), X, Y)
    networks = nngp.training.train_ensemble(net, X, Y)
    with pytest.raises(ValueError, match="Xs has 3 features"):
        networks.mean(XS[:, :3])
    with pytest.raises(ValueError, match="pass both Xs and Ys"):
        networks.losses([1.0], XS)
    with pytest.raises(ValueError, match="Ys has 1 outputs and Y had 2"):
        networks.losses([1.0], XS, XS[:, 0])


def test_networks_with_dropout_are_refused():
    net = nngp.Chain(nngp.Dense(2.0, 0.1), nngp.Act("relu"), nngp.Dropout(0.9), nngp.Dense(1.0))
    with pytest.raises(ValueError, match=r"leave nngp\.Dropout out"):
        nngp.training.train_ensemble(net, X, Y)
    with pytest.raises(ValueError, match=r"leave nngp\.Dropout out"):
        nngp.training.max_learning_rate(net, X)


def test_what_does_not_fit_is_refused_beforehand():
    net = NETS["relu"]
    many = np.ones((15_001, 1))
    with pytest.raises(
        ValueError, match=r"at most 15000 points can be decomposed; use time=math\.inf"
    ):
        nngp.training.train_ensemble(net, many, many[:, 0], time=1.0)
    some = nngp.normalize(RNG.normal(size=(4000, 3)))
    with pytest.raises(MemoryError, match=r"4000 points need .* GB .* at most 1[0-9]* points"):
        nngp.training.train_ensemble(net, some, some[:, 0], time=1.0, memory=150_000_000)


def test_variances_need_a_factor_and_means_do_not():
    networks = nngp.training.train_ensemble(NETS["relu"], X, Y, noise_var=1e-2, solver="cg")
    wanted, _ = dense(NETS["relu"], math.inf, 1e-2)
    np.testing.assert_allclose(networks.mean(XS), wanted, atol=1e-4)
    with pytest.raises(nngp.errors.NoFactorError, match="the covariance of trained networks"):
        networks.variance(XS)


def test_what_is_shown_of_it():
    networks = nngp.training.train_ensemble(NETS["relu"], X, Y, time=[1.0, 2.0])
    assert "n=25, time=2 times, learning_rate=1, noise_var=0" in repr(networks)
    assert networks.report is None
    end = networks.at(math.inf)
    assert end.report.solver == "cholesky"
    assert (end.n, end.time, end.network) == (25, math.inf, NETS["relu"])


def test_any_rate_is_stable_where_nothing_moves():
    net = nngp.Chain(nngp.Dense(1.0), nngp.Act("relu"), nngp.Dense(1.0))
    assert nngp.training.max_learning_rate(net, np.zeros((2, 3))) == math.inf
    assert nngp.training.max_learning_rate(net, np.zeros((2, 3)), noise_var=0.5) == 8.0


def test_a_tangent_kernel_is_not_trained():
    for use in (
        nngp.training.max_learning_rate,
        lambda net, X: nngp.training.train_ensemble(net, X, Y),
    ):
        with pytest.raises(TypeError, match="pass the network itself"):
            use(nngp.NTK(SHAPES), X)
