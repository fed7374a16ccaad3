"""Inference against eq. 8 and 9 written in plain NumPy, and against doing it the long way."""

import re
import time
import tracemalloc

import numpy as np
import plain_posterior as oracle
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import nngp

RNG = np.random.default_rng(0)
N, M, D, OUTPUTS, NOISE = 40, 23, 5, 3, 0.01
NET = nngp.Architecture(3, "relu", 1.6, 0.1)
UNEQUAL = RNG.standard_normal((N + M, D)) * RNG.uniform(0.3, 2.0, (N + M, 1))
Y = RNG.standard_normal((N, OUTPUTS))


@pytest.fixture(params=["equal norms", "unequal norms"])
def data(request):
    X = nngp.normalize(UNEQUAL) if request.param == "equal norms" else UNEQUAL
    return X[:N], X[N:]


def close(actual, expected, tolerance=1e-9):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@pytest.mark.slow_on_jax(data="unequal norms")
def test_mean_variance_covariance_evidence(data, engine):
    X, Xs = data
    mean, covariance, evidence = oracle.posterior(X, Y, Xs, 3, 1.6, 0.1, NOISE)
    posterior = nngp.condition(NET, X, Y, noise_var=NOISE, engine=engine)
    close(posterior.mean(Xs), mean)
    close(posterior.variance(Xs), np.diag(covariance))
    close(posterior.variance(Xs, noise=True), np.diag(covariance) + NOISE)
    close(posterior.covariance(Xs), covariance)
    close(posterior.covariance(Xs, noise=True), covariance + NOISE * np.eye(M))
    assert posterior.log_evidence == pytest.approx(evidence, rel=1e-9)
    both = posterior.predict(Xs)
    close(both[0], mean)
    close(both[1], np.diag(covariance))


def test_a_vector_of_targets_gives_vectors(data):
    X, Xs = data
    one, many = (nngp.condition(NET, X, y, noise_var=NOISE) for y in (Y[:, 0], Y[:, :1]))
    assert one.mean(Xs).shape == (M,)
    assert many.mean(Xs).shape == (M, 1)
    assert np.array_equal(one.mean(Xs), many.mean(Xs)[:, 0])
    assert one.leave_one_out().mean.shape == (N,)
    assert one.sample(Xs, 4, seed=0).shape == (4, M)
    assert many.sample(Xs, 4, seed=0).shape == (4, M, 1)


def evidence(X, depth, w, b, noise):
    return oracle.posterior(X, Y, X[:1], depth, w, b, noise)[2]


def central(function, at, step):
    """Five-point differences: the error is of fourth order."""
    values = [function(at + k * step) for k in (-2, -1, 1, 2)]
    return (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * step)


@pytest.mark.deep_on_jax(data="unequal norms")
@pytest.mark.slow_on_jax
def test_gradient_against_differences(data, engine):
    X, _ = data
    gradient = nngp.condition(NET, X, Y, noise_var=NOISE, engine=engine).evidence_gradient()
    expected = {
        "weight_var": central(lambda w: evidence(X, 3, w, 0.1, NOISE), 1.6, 1e-3),
        "bias_var": central(lambda b: evidence(X, 3, 1.6, b, NOISE), 0.1, 1e-4),
        "noise_var": central(lambda s: evidence(X, 3, 1.6, 0.1, s), NOISE, 1e-5),
    }
    assert gradient == pytest.approx(expected, rel=1e-6)


@pytest.mark.deep_on_jax(data="equal norms")
@pytest.mark.slow_on_jax
def test_gradient_by_layer_against_differences(data, engine):
    X, _ = data
    w, b = np.array([1.6, 1.2, 2.0]), np.array([0.1, 0.3, 0.05])
    net = nngp.Architecture(2, "relu", w, b)
    posterior = nngp.condition(net, X, Y, noise_var=NOISE, engine=engine)
    gradient = posterior.evidence_gradient(per_layer=True)
    for layer in range(3):
        unit = np.eye(3)[layer]
        by_w = central(lambda t, u=unit: evidence(X, 2, w + t * u, b, NOISE), 0.0, 1e-3)
        by_b = central(lambda t, u=unit: evidence(X, 2, w, b + t * u, NOISE), 0.0, 1e-4)
        assert gradient["weight_var"][layer] == pytest.approx(by_w, rel=1e-6)
        assert gradient["bias_var"][layer] == pytest.approx(by_b, rel=1e-6)
    shared = posterior.evidence_gradient()
    assert shared["weight_var"] == pytest.approx(gradient["weight_var"].sum(), rel=1e-9)
    assert shared["bias_var"] == pytest.approx(gradient["bias_var"].sum(), rel=1e-9)


TAKE_LONG = [pytest.param(n, marks=pytest.mark.slow) for n in ("relu", "gelu", "tanh", "hard_tanh")]


@pytest.mark.parametrize("name", ["erf", *TAKE_LONG])
def test_gradient_against_automatic_differentiation(name):
    jax = pytest.importorskip("jax")
    X = UNEQUAL[:12]
    net = nngp.Architecture(1 if name == "hard_tanh" else 2, name, 1.3, 0.2)  # JAX is slow there
    pair = nngp.jax_kernel(net)

    def log_evidence(w, b, noise):
        jnp = jax.numpy
        rows = jax.vmap(jax.vmap(lambda x, y: pair(x, y, w, b), (None, 0)), (0, None))
        K = rows(X, X) + noise * jnp.eye(len(X))
        fit = jnp.sum(Y[:12] * jnp.linalg.solve(K, Y[:12]))
        return -0.5 * (fit + OUTPUTS * jnp.linalg.slogdet(K)[1])

    with jax.enable_x64(True):
        expected = jax.jit(jax.grad(log_evidence, (0, 1, 2)))(1.3, 0.2, NOISE)
    gradient = nngp.condition(net, X, Y[:12], noise_var=NOISE).evidence_gradient()
    assert [gradient[k] for k in ("weight_var", "bias_var", "noise_var")] == pytest.approx(
        [float(e) for e in expected], rel=1e-7
    )


@pytest.mark.slow_on_jax
def test_gradient_with_duplicates(engine):
    """Coincident points move with the variance, also where the slope at c = 1 is infinite."""
    X = np.concatenate([UNEQUAL[:10], UNEQUAL[:3]])
    for name in ("relu", "step"):
        net = nngp.Architecture(2, name, 1.6, 0.3)

        def evidence(w, name=name):
            changed = nngp.Architecture(2, name, w, 0.3)
            return nngp.condition(changed, X, Y[:13], noise_var=NOISE).log_evidence

        gradient = nngp.condition(net, X, Y[:13], noise_var=NOISE, engine=engine)
        expected = central(evidence, 1.6, 1e-3)
        assert gradient.evidence_gradient()["weight_var"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("scale", [1e100, 1e-100])
@pytest.mark.filterwarnings("ignore::nngp.errors.ConstantKernelWarning")
def test_gradient_at_extreme_scales(scale):
    net = nngp.Architecture(2, "relu", 2.0, 0.0 if scale < 1 else 0.1)
    posterior = nngp.condition(net, scale * UNEQUAL[:N], Y, noise_var=NOISE)
    assert np.isfinite(list(posterior.evidence_gradient().values())).all()


@pytest.mark.slow_on_jax
def test_parallel_inputs_are_not_duplicates(engine):
    x = np.array([0.5, 1.0, 2.0, -1.0, -3.0, 1.0, 4.0])
    targets = np.arange(7.0)[:, None]
    test = np.array([[0.25], [2.0], [-1.5]])
    net = nngp.Architecture(2, "relu", 1.6, 0.5)
    posterior = nngp.condition(net, x[:, None], targets, noise_var=NOISE, engine=engine)
    mean, covariance, evidence = oracle.posterior(x[:, None], targets, test, 2, 1.6, 0.5, NOISE)
    close(posterior.mean(test), mean, 1e-7)  # arccos in the oracle costs digits at c = 1
    close(posterior.covariance(test), covariance, 1e-7)
    assert posterior.log_evidence == pytest.approx(evidence, rel=1e-7)


@pytest.mark.slow_on_jax
@pytest.mark.parametrize(("name", "depth", "weight_var"), [("erf", 20, 20.0), ("step", 2, 1.6)])
def test_networks_that_tear_near_inputs_apart(name, depth, weight_var, engine):
    """Chaos and jumps: near pairs are taken from the difference of their unit vectors."""
    X = nngp.normalize(UNEQUAL[:N])
    X[1], X[2] = X[0], -X[3]
    X[5:7] = nngp.normalize(X[4] + 1e-6 * RNG.standard_normal((2, D)))
    net = nngp.Architecture(depth, name, weight_var, 0.0)
    posterior = nngp.condition(net, X, Y, noise_var=NOISE, engine=engine)
    K = nngp.kernel(net, X)
    expected = K @ np.linalg.solve(K + NOISE * np.eye(N), Y)
    close(posterior.mean(X), expected)
    assert posterior.report.kernel_error < 1e-9


@pytest.mark.slow_on_jax
def test_numeric_activation_and_unequal_norms_on_any_engine(engine):
    net, n, others = nngp.Architecture(1, "tanh", 1.6, 0.1), 16, UNEQUAL[N : N + 4]
    posterior = nngp.condition(net, UNEQUAL[:n], Y[:n], noise_var=NOISE, engine=engine)
    K, cross = nngp.kernel(net, UNEQUAL[:n]), nngp.kernel(net, others, UNEQUAL[:n])
    close(posterior.mean(others), cross @ np.linalg.solve(K + NOISE * np.eye(n), Y[:n]))
    X = nngp.normalize(UNEQUAL[:n])
    equal = nngp.condition(net, X, Y[:n], noise_var=NOISE, engine=engine)
    K, cross = nngp.kernel(net, X), nngp.kernel(net, others, X)
    close(equal.mean(others), cross @ np.linalg.solve(K + NOISE * np.eye(n), Y[:n]))


@pytest.mark.deep_on_jax(data="unequal norms")
def test_leave_one_out_by_leaving_out(data, engine):
    X, _ = data
    posterior = nngp.condition(NET, X, Y, noise_var=NOISE, engine=engine)
    left, noisy = posterior.leave_one_out(), posterior.leave_one_out(noise=True)
    for i in range(0, N, 9):
        keep = np.arange(N) != i
        mean, covariance, _ = oracle.posterior(X[keep], Y[keep], X[[i]], 3, 1.6, 0.1, NOISE)
        close(left.mean[i], mean[0])
        assert left.variance[i] == pytest.approx(covariance[0, 0], rel=1e-9)
        assert noisy.variance[i] == pytest.approx(covariance[0, 0] + NOISE, rel=1e-9)


@pytest.mark.deep_on_jax(data="equal norms")
@pytest.mark.slow_on_jax
def test_update_equals_a_fresh_fit(data, engine):
    for steps in ((20,), (13, 1, 6)):
        X, Xs = data
        start = N - sum(steps)
        posterior = nngp.condition(NET, X[:start], Y[:start], noise_var=NOISE, engine=engine)
        for step in steps:
            new = slice(start, start + step)
            assert posterior.update(X[new], Y[new]) is posterior
            start += step
        fresh = nngp.condition(NET, X, Y, noise_var=NOISE, engine=engine)
        close(posterior.mean(Xs), fresh.mean(Xs))
        close(posterior.variance(Xs), fresh.variance(Xs))
        assert posterior.log_evidence == pytest.approx(fresh.log_evidence, rel=1e-9)
        assert posterior.n == posterior.report.n == N
        close(posterior.leave_one_out().mean, fresh.leave_one_out().mean)
        assert posterior.evidence_gradient() == pytest.approx(fresh.evidence_gradient(), rel=1e-8)


def test_the_report_follows_an_update():
    posterior = nngp.condition(NET, nngp.normalize(UNEQUAL[:N]), Y, noise_var=NOISE)
    first = posterior.report
    posterior.update(UNEQUAL[N:], RNG.standard_normal((M, OUTPUTS)))
    assert (first.n, first.method) == (N, "curve")
    assert (posterior.report.n, posterior.report.method) == (N + M, "pairwise")
    assert posterior.report.residual < 1e-10


def test_update_computes_no_old_tile_again(monkeypatch):
    from nngp.gram.host.matrix import HostMatrix

    posterior = nngp.condition(NET, UNEQUAL[:N], Y, noise_var=NOISE)
    rows_seen, block = [], HostMatrix.block

    def watched(self, rows, columns, **keywords):
        if "out" in keywords:  # a tile of the factor, not of the check
            rows_seen.append(rows)
        return block(self, rows, columns, **keywords)

    monkeypatch.setattr(HostMatrix, "block", watched)
    posterior.update(UNEQUAL[N:], RNG.standard_normal((M, OUTPUTS)))
    assert rows_seen
    assert all(rows.start >= N for rows in rows_seen)


def test_update_climbs_the_ladder_where_it_must():
    X = nngp.normalize(RNG.standard_normal((30, 4)))
    posterior = nngp.condition(nngp.Architecture(2), X, Y[:30], noise_var=1e-18)
    with pytest.warns(nngp.errors.NoiseWarning):
        posterior.update(X, Y[:30])
    assert posterior.report.failed_attempts > 0
    assert posterior.noise_var == posterior.report.noise_var > 1e-18
    assert np.isfinite(posterior.mean(X)).all()


def test_a_failed_update_changes_nothing():
    posterior = nngp.condition(NET, UNEQUAL[:N], Y, noise_var=NOISE)
    before = posterior.mean(UNEQUAL[N:])
    with pytest.raises(ValueError, match="features"):
        posterior.update(np.ones((2, D + 1)), Y[:2])
    with pytest.raises(ValueError, match="outputs"):
        posterior.update(UNEQUAL[:2], Y[:2, :1])
    with pytest.raises(ValueError, match="nan"):
        posterior.update(np.full((2, D), np.nan), Y[:2])
    assert np.array_equal(posterior.mean(UNEQUAL[N:]), before)


@pytest.mark.deep_on_jax(data="unequal norms")
def test_interpolation_without_noise(data, engine):
    X, _ = data
    posterior = nngp.condition(NET, X, Y, noise_var=0.0, engine=engine)
    close(posterior.mean(X), Y)
    assert posterior.variance(X).max() < 1e-10
    assert posterior.variance(X).min() >= 0


def test_draws_have_the_posterior_moments(data):
    X, Xs = data
    posterior = nngp.condition(NET, X, Y, noise_var=NOISE)
    draws = posterior.sample(Xs, 4000, seed=1)
    assert draws.shape == (4000, M, OUTPUTS)
    spread = np.sqrt(posterior.variance(Xs).max())
    close(draws.mean(axis=0), posterior.mean(Xs), 5 * spread / 4000**0.5)
    sampled = np.cov(draws[:, :, 1].T)
    assert np.abs(sampled - posterior.covariance(Xs)).max() < 0.1 * posterior.variance(Xs).max()
    assert np.array_equal(draws, posterior.sample(Xs, 4000, seed=1))


def test_prior_draws_have_the_kernel_as_covariance():
    X = nngp.normalize(RNG.standard_normal((6, 3)))
    draws = nngp.sample_prior(NET, X, 20_000, seed=0)
    K = nngp.kernel(NET, X)
    assert np.abs(np.cov(draws.T) - K).max() < 0.03 * K.max()
    assert np.array_equal(
        nngp.sample_prior(NET, X, 2, seed=3), nngp.sample_prior(NET, X, 2, seed=3)
    )
    noisy = nngp.sample_prior(NET, X, 20_000, seed=0, noise_var=0.5)
    assert np.abs(np.cov(noisy.T) - K - 0.5 * np.eye(6)).max() < 0.05


def test_draws_where_the_data_leave_no_doubt():
    """Rounding of the covariance is relative to the prior variance, of which nothing is left."""
    for name in ("erf", "tanh", "relu"):
        x = np.linspace(-1, 1, 60)
        posterior = nngp.condition(nngp.Architecture(2, name, 2.0, 0.1), x[:, None], np.sin(3 * x))
        between = np.linspace(-1, 1, 100)
        draws = posterior.sample(between[:, None], 3, seed=0)
        assert np.abs(draws - np.sin(3 * between)).max() < 0.01
        assert posterior.sample(between[:, None], 0).shape == (0, 100)


def test_draws_at_coincident_points_coincide():
    X = np.repeat(nngp.normalize(RNG.standard_normal((2, 3))), 3, axis=0)
    draws = nngp.sample_prior(NET, X, 5, seed=0)
    assert np.abs(draws[:, 0] - draws[:, 2]).max() < 1e-6


def test_predictions_do_not_depend_on_the_blocks(monkeypatch, data):
    X, Xs = data
    posterior = nngp.condition(NET, X, Y, noise_var=NOISE)
    whole = posterior.predict(Xs)
    monkeypatch.setattr("nngp.posterior.posterior.CHUNK", 4)
    pieces = posterior.predict(Xs)
    close(pieces[0], whole[0], 1e-12)
    close(pieces[1], whole[1], 1e-12)


@pytest.mark.filterwarnings("ignore::nngp.errors.ToleranceWarning")  # step on parallel inputs
@pytest.mark.filterwarnings(
    "ignore::nngp.errors.NoiseWarning", "ignore::nngp.errors.ConstantKernelWarning"
)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    n=st.integers(1, 30),
    m=st.integers(1, 12),
    d=st.integers(1, 4),
    outputs=st.integers(1, 3),
    depth=st.integers(0, 4),
    activation=st.sampled_from(["relu", "erf", "sin", "step"]),
    kind=st.sampled_from(["random", "normalized", "duplicates", "constant", "zeros", "tiny"]),
    noise=st.sampled_from([1e-10, 1e-6, 0.1]),
    seed=st.integers(0, 100),
)
def test_any_shape_and_degenerate_input(n, m, d, outputs, depth, activation, kind, noise, seed):
    rng = np.random.default_rng(seed)
    X, Xs = rng.standard_normal((n, d)), rng.standard_normal((m, d))
    if kind == "normalized":
        X, Xs = nngp.normalize(X), nngp.normalize(Xs)
    elif kind == "duplicates":
        X = X[rng.integers(0, max(n // 3, 1), n)]
    elif kind in ("constant", "zeros"):
        X = np.full((n, d), 1.0 if kind == "constant" else 0.0)
    elif kind == "tiny":
        X, Xs = 1e-120 * X, 1e-120 * Xs
    Y = rng.standard_normal((n, outputs))
    net = nngp.Architecture(depth, activation, 1.5, 0.2)
    posterior = nngp.condition(net, X, Y, noise_var=noise)
    try:
        mean, variance = posterior.predict(Xs)
    except nngp.errors.VarianceError:  # targets that contradict each other leave weights of 1/noise
        assert kind == "constant"
        assert noise <= 1e-10
        return
    prior = nngp.kernel_diag(net, Xs)
    assert mean.shape == (m, outputs)
    assert np.isfinite(mean).all()
    assert (variance >= 0).all()
    assert (variance <= prior * (1 + 1e-9) + 1e-12).all()
    assert np.isfinite(posterior.log_evidence)
    left = posterior.leave_one_out()
    assert np.isfinite(left.mean).all()
    assert (left.variance >= 0).all()
    assert posterior.noise_var >= noise


def test_tables_of_an_activation_without_closed_form_are_in_the_forecast():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(400, 5)), rng.normal(size=400)
    net = nngp.Architecture(1, "tanh", 1.5, 0.1)
    nngp.condition(net, X[:9], Y[:9], noise_var=1e-2, engine="cpu")  # what is made once
    tracemalloc.start()
    posterior = nngp.condition(net, X, Y, noise_var=1e-2, engine="cpu")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    tables = posterior.report.forecast_bytes - nngp.forecast(400, 5, engine="cpu").bytes
    assert 0.5 * peak < tables < 2 * peak
    with pytest.raises(MemoryError):
        nngp.condition(net, X, Y, solver="cholesky", memory=peak, engine="cpu")
    assert re.fullmatch(r"0\.\d GB", str(nngp.forecast(400, 5, network=net)))


def test_the_seconds_of_the_parts_are_within_the_whole():
    start = time.perf_counter()
    report = nngp.condition(nngp.Architecture(2), np.eye(5), np.ones(5), engine="cpu").report
    assert 0 < report.seconds["solve"] <= time.perf_counter() - start
