"""Posteriors of networks averaged over transformations: dense algebra and differences, on the CPU
and with JAX; noise, evidence, leave-one-out, updates, training."""

import numpy as np
import pytest

import nngp
from nngp import images, symmetries

RNG = np.random.default_rng(1)
ROWS, TESTS = RNG.standard_normal((60, 48)), RNG.standard_normal((9, 48))
NOISE = 1e-2
VALUES = {
    "weight_var": 1.6,
    "bias_var": 0.1,
    "flips.probability": 0.3,
    "shifts.width": 0.9,
    "noise_var": NOISE,
}


def network(values=VALUES):
    families = [
        images.flips((4, 4, 3), probability=values["flips.probability"]),
        images.shifts(1, (4, 4, 3), width=values["shifts.width"]),
    ]
    chain = nngp.Architecture(3, "relu", values["weight_var"], values["bias_var"])
    return nngp.Invariant(chain, families)


def data(unit, count=16):
    X, Xs = (nngp.normalize(rows) if unit else rows for rows in (ROWS[:count], TESTS))
    return X, np.column_stack([X[:, 0], X[:, 1] * X[:, 2]]), Xs


def dense(net, X, Y, Xs):
    """Mean and covariance by NumPy's inverse."""
    inverse = np.linalg.inv(nngp.kernel(net, X) + NOISE * np.eye(len(X)))
    crossed = nngp.kernel(net, Xs, X)
    return crossed @ inverse @ Y, nngp.kernel(net, Xs) - crossed @ inverse @ crossed.T, inverse


@pytest.mark.parametrize("unit", [True, False], ids=["one norm", "any norms"])
@pytest.mark.parametrize("solver", ["cholesky", nngp.CG(tolerance=1e-11)], ids=["factor", "cg"])
@pytest.mark.slow_on_jax("cg")
@pytest.mark.slow_on_jax("any norms")
def test_predictions(engine, solver, unit):
    net, (X, Y, Xs) = network(), data(unit)
    mean, covariance, inverse = dense(net, X, Y, Xs)
    posterior = nngp.condition(net, X, Y, noise_var=NOISE, solver=solver, engine=engine)
    found, variance = posterior.predict(Xs)
    np.testing.assert_allclose(found, mean, atol=1e-9)
    np.testing.assert_allclose(variance, np.diagonal(covariance), atol=1e-11)
    np.testing.assert_allclose(posterior.covariance(Xs), covariance, atol=1e-11)
    if solver == "cholesky":
        left_out, own = posterior.leave_one_out(), np.diagonal(inverse)
        np.testing.assert_allclose(left_out.mean, Y - inverse @ Y / own[:, None], atol=1e-10)
        np.testing.assert_allclose(left_out.variance, 1 / own - NOISE, atol=1e-11)


@pytest.mark.parametrize("unit", [True, False], ids=["one norm", "any norms"])
@pytest.mark.slow_on_jax
def test_gradients_against_differences(engine, unit):
    X, Y, _ = data(unit)

    def evidence(**changed):
        values = {**VALUES, **changed}
        noise = values["noise_var"]
        return nngp.condition(network(values), X, Y, noise_var=noise, engine="cpu").log_evidence

    posterior = nngp.condition(network(), X, Y, noise_var=NOISE, engine=engine)
    gradient = posterior.evidence_gradient()
    assert sorted(gradient) == sorted(VALUES)
    for name, value in VALUES.items():
        h = 1e-5 * value
        slope = (evidence(**{name: value + h}) - evidence(**{name: value - h})) / (2 * h)
        assert gradient[name] == pytest.approx(slope, rel=1e-6), name
    per_layer = posterior.evidence_gradient(per_layer=True)
    assert per_layer["weight_var"].shape == (4,)
    assert per_layer["weight_var"].sum() == pytest.approx(gradient["weight_var"], rel=1e-10)
    assert per_layer["flips.probability"] == pytest.approx(gradient["flips.probability"])
    with pytest.raises(ValueError, match="not available for an"):
        posterior.evidence_gradient(per_input=True)


@pytest.mark.slow_on_jax
def test_the_left_out_density_has_derivatives_in_the_families(engine):
    X, Y, _ = data(True)

    def density(**changed):
        net = network({**VALUES, **changed})
        return nngp.condition(net, X, Y, noise_var=NOISE, engine="cpu").leave_one_out_density()[0]

    _, gradient = nngp.condition(
        network(), X, Y, noise_var=NOISE, engine=engine
    ).leave_one_out_density()
    for name in ("flips.probability", "shifts.width", "weight_var"):
        h = 1e-5 * VALUES[name]
        slope = (density(**{name: VALUES[name] + h}) - density(**{name: VALUES[name] - h})) / 2 / h
        assert gradient[name] == pytest.approx(slope, rel=1e-6), name


def test_a_weight_of_zero_has_a_slope():
    """No product is done for it in the kernel, but in the gradient."""
    X, Y, _ = data(True)
    chain = nngp.Architecture(2, "relu", 1.6, 0.1)

    def evidence(p):
        net = nngp.Invariant(chain, images.flips((4, 4, 3), probability=p))
        return nngp.condition(net, X, Y, noise_var=NOISE)

    slope = (evidence(1e-6).log_evidence - evidence(0.0).log_evidence) / 1e-6
    assert evidence(0.0).evidence_gradient()["flips.probability"] == pytest.approx(slope, rel=1e-4)
    assert evidence(0.0).log_evidence == pytest.approx(
        nngp.condition(chain, X, Y, noise_var=NOISE).log_evidence, rel=1e-12
    )


@pytest.mark.parametrize("unit", [True, False], ids=["one norm", "any norms"])
@pytest.mark.slow_on_jax
def test_updates(engine, unit):
    net, (X, Y, Xs) = network(), data(unit, 60)
    mean, _, _ = dense(net, X, Y, Xs)
    posterior = nngp.condition(net, X[:40], Y[:40], noise_var=NOISE, engine=engine)
    np.testing.assert_allclose(posterior.update(X[40:], Y[40:]).mean(Xs), mean, atol=1e-10)


@pytest.mark.slow_on_jax
def test_functions_of_rows(engine):
    X, Y, Xs = data(True)
    net = turning(0.2)
    mean, covariance, _ = dense(net, X, Y, Xs)
    posterior = nngp.condition(net, X, Y, noise_var=NOISE, engine=engine)
    found, variance = posterior.predict(Xs)
    np.testing.assert_allclose(found, mean, atol=1e-10)
    np.testing.assert_allclose(variance, np.diagonal(covariance), atol=1e-11)
    check_probability(turning, engine, X, Y)


def turning(probability):
    families = [
        images.rotations((4, 4, 3), degrees=15, count=2),
        images.flips((4, 4, 3), probability=probability),
    ]
    return nngp.Invariant(nngp.Architecture(2, "relu", 1.6, 0.1), families)


def check_probability(make, engine, X, Y):
    """The derivative of the evidence in the probability of flips, against a difference."""
    more, less = (
        nngp.condition(make(0.2 + h), X, Y, noise_var=NOISE).log_evidence for h in (1e-5, -1e-5)
    )
    found = nngp.condition(make(0.2), X, Y, noise_var=NOISE, engine=engine).evidence_gradient()
    assert found["flips.probability"] == pytest.approx((more - less) / 2e-5, rel=1e-6)


@pytest.mark.slow_on_jax
@pytest.mark.parametrize("unit", [True, False], ids=["one norm", "any norms"])
def test_behind_dropout_an_input_is_one_draw_with_itself(engine, unit):
    """Its mirror image is another: derivatives know it, too."""
    parts = nngp.Dense(1.6, 0.1), nngp.Act("relu"), nngp.Dropout(0.6), nngp.Dense(1.6, 0.1)

    def make(probability):
        return nngp.Invariant(nngp.Chain(*parts), images.flips((4, 4, 3), probability=probability))

    X, Y, Xs = data(unit)
    mean, _, _ = dense(make(0.2), X, Y, Xs)
    posterior = nngp.condition(make(0.2), X, Y, noise_var=NOISE, engine=engine)
    np.testing.assert_allclose(posterior.mean(Xs), mean, atol=1e-10)
    check_probability(make, engine, X, Y)


def test_signs_on_a_device(engine):
    """Functions that are even: the posterior mean is, too."""
    X, Y, Xs = data(True)
    net = nngp.Invariant(nngp.Architecture(2, "gelu", 1.6, 0.1), symmetries.signs())
    posterior = nngp.condition(net, X, Y, noise_var=NOISE, engine=engine)
    np.testing.assert_allclose(posterior.mean(-Xs), posterior.mean(Xs), atol=1e-12)
    np.testing.assert_allclose(posterior.mean(Xs), dense(net, X, Y, Xs)[0], atol=1e-10)


@pytest.mark.slow_on_jax
def test_tests_of_another_norm(engine):
    net, (X, Y, Xs) = network(), data(True)
    mean, covariance, _ = dense(net, X, Y, 2 * Xs)
    found, variance = nngp.condition(net, X, Y, noise_var=NOISE, engine=engine).predict(2 * Xs)
    np.testing.assert_allclose(found, mean, atol=1e-9)
    np.testing.assert_allclose(variance, np.diagonal(covariance), atol=1e-9)


@pytest.mark.parametrize("unit", [True, False], ids=["one norm", "any norms"])
def test_training(unit):
    net, (X, Y, Xs) = network(), data(unit)
    tangent = nngp.Invariant(nngp.NTK(net.network), net.transformations)
    inverse = np.linalg.inv(nngp.kernel(tangent, X) + NOISE * np.eye(len(X)))
    weights = nngp.kernel(tangent, Xs, X) @ inverse
    K, crossed = nngp.kernel(net, X), nngp.kernel(net, Xs, X)
    mixed = crossed @ weights.T
    covariance = nngp.kernel(net, Xs) - mixed - mixed.T + weights @ K @ weights.T
    end = nngp.training.train_ensemble(net, X, Y, noise_var=NOISE)
    np.testing.assert_allclose(end.mean(Xs), weights @ Y, atol=1e-11)
    np.testing.assert_allclose(end.covariance(Xs), covariance, atol=1e-11)
    np.testing.assert_allclose(end.at(1e12).variance(Xs), np.diagonal(covariance), atol=1e-11)
    assert nngp.training.max_learning_rate(net, X) > 0


def test_a_forecast_of_conjugate_gradients_counts_the_products():
    few, many = (nngp.Invariant(network().network, images.shifts(s, (32, 32))) for s in (1, 3))
    options = {"engine": "cpu", "solver": "cg", "memory": 2_000_000_000}
    needed = [
        nngp.forecast(8_000, 1024, 10, network=one, **options).bytes for one in (None, few, many)
    ]
    assert needed[0] > needed[1] > needed[2]  # fewer landmarks, as each takes its products


def test_a_saved_posterior_knows_its_transformations(tmp_path):
    X, Y, Xs = data(True)
    model = nngp.NNGPRegressor(network=network(), input_scaling="unit", selection=None)
    model.fit(X, Y[:, 0])
    model.save(tmp_path / "model.nngp")
    again = nngp.load(tmp_path / "model.nngp")
    assert again.network_ == network()
    np.testing.assert_array_equal(again.predict(Xs), model.predict(Xs))
