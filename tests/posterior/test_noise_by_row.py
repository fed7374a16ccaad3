"""Noise by row against mpmath, against rows that are there twice, between solvers and engines, and
up the ladder; in units of the kernel's scale; and what is no noise."""

from functools import cache

import mpmath as mp
import numpy as np
import pytest
from engines import SmallTiles
from noisy_posterior import DIGITS, Dense, as_floats, slopes

import nngp
from nngp.linsolve import CpuEngine

RNG = np.random.default_rng(0)
N, M = 12, 5
DEPTH, W, B = 2, 1.6, 0.1
NET = nngp.Architecture(DEPTH, "relu", W, B)
UNEQUAL = RNG.standard_normal((N + M, 4)) * RNG.uniform(0.5, 2.0, (N + M, 1))
INPUTS = {"equal norms": nngp.normalize(UNEQUAL), "unequal norms": UNEQUAL}
Y = RNG.standard_normal(N)
NOISE = RNG.permutation(np.geomspace(1e-8, 1e2, N))  # ten orders of magnitude
MORE = RNG.uniform(0.1, 3.0, M)
TIGHT = [nngp.CG(tolerance=1e-13, preconditioner="nystrom", rank=6),
         nngp.CG(tolerance=1e-13, preconditioner="single")]  # fmt: skip


@pytest.fixture(params=INPUTS)
def kind(request):
    return request.param


@cache
def exact(kind):
    with mp.workdps(DIGITS):
        found = Dense(INPUTS[kind][:N], Y, NOISE, DEPTH, W, B)
        return found, *found.predict(INPUTS[kind][N:])


@cache
def exact_slopes(kind):
    with mp.workdps(DIGITS):
        return slopes(INPUTS[kind][:N], Y, NOISE, DEPTH, W, B)


def conditioned(kind, **options):
    return nngp.condition(NET, INPUTS[kind][:N], Y, **{"noise_var": NOISE, **options})


def close(found, expected, tolerance=1e-10):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@pytest.mark.slow_on_jax
def test_mean_variance_and_evidence_are_those_of_mpmath(kind, engine):
    Xs = INPUTS[kind][N:]
    dense, mean, covariance = exact(kind)
    posterior = conditioned(kind, engine=engine)
    assert posterior.report.failed_attempts == 0
    np.testing.assert_array_equal(posterior.noise_var, NOISE)
    close(posterior.mean(Xs), mean)
    close(posterior.variance(Xs), np.diag(covariance))
    close(posterior.covariance(Xs), covariance)
    close(posterior.predict(Xs, noise=MORE)[1], np.diag(covariance) + MORE)
    close(posterior.variance(Xs, noise=0.5), np.diag(covariance) + 0.5)
    close(posterior.covariance(Xs, noise=MORE), covariance + np.diag(MORE))
    assert posterior.log_evidence == pytest.approx(float(dense.evidence), rel=1e-11)


@pytest.mark.slow_on_jax
def test_leaving_out_is_that_of_mpmath(kind, engine):
    mean, variance = exact(kind)[0].left_out()
    posterior = conditioned(kind, engine=engine)
    with_noise, without = posterior.leave_one_out(noise=True), posterior.leave_one_out()
    close(with_noise.mean, mean)
    np.testing.assert_allclose(with_noise.variance, variance, rtol=1e-10)
    np.testing.assert_allclose(without.variance, variance - NOISE, atol=1e-10 * variance.max())
    assert (without.variance >= 0).all()


@pytest.mark.slow_on_jax
def test_gradients_are_those_of_mpmath(kind, engine):
    """Each entry to ten digits of the two terms that it is the difference of."""
    dense, expected = exact(kind)[0], exact_slopes(kind)
    posterior = conditioned(kind, engine=engine)
    evidence, (density, loo) = posterior.evidence_gradient(), posterior.leave_one_out_density()
    assert density == pytest.approx(float(dense.density), rel=1e-10)
    size = 0.5 * (as_floats(dense.alpha) ** 2 + as_floats(dense.precision))
    for found, exactly in ((evidence, expected[0]), (loo, expected[1])):
        assert found["weight_var"] == pytest.approx(exactly[0], rel=1e-8)
        assert found["bias_var"] == pytest.approx(exactly[1], rel=1e-8)
        assert found["noise_var"].shape == (N,)
        np.testing.assert_array_less(np.abs(found["noise_var"] - exactly[2:]), 1e-9 * size)
    layers = posterior.evidence_gradient(per_layer=True, per_input=True)
    assert layers["weight_var"].sum() == pytest.approx(expected[0][0], rel=1e-8)
    assert layers["noise_var"] == pytest.approx(evidence["noise_var"], rel=1e-12)


def test_half_the_noise_is_the_row_twice(kind):
    X, Xs = INPUTS[kind][:N], INPUTS[kind][N:]
    noise, half = np.full(N, 0.3), np.full(N, 0.3)
    half[4] /= 2
    twice = nngp.condition(
        NET, X[[*range(N), 4]], Y[[*range(N), 4]], noise_var=np.append(noise, 0.3)
    )
    once = nngp.condition(NET, X, Y, noise_var=half)
    for found, expected in zip(once.predict(Xs), twice.predict(Xs), strict=True):
        close(found, expected, 1e-12)
    # log N(y; f, s²)·2 = log N(y; f, s²/2) - ½ log(2π s²) - ½ log 2
    apart = -0.5 * np.log(2 * np.pi * 0.3) - 0.5 * np.log(2)
    assert twice.log_evidence == pytest.approx(once.log_evidence + apart, rel=1e-12)


def test_equal_rows_are_one_number(kind):
    X, Xs = INPUTS[kind][:N], INPUTS[kind][N:]
    one, rows = (nngp.condition(NET, X, Y, noise_var=v) for v in (0.25, np.full(N, 0.25)))
    for found, expected in zip(rows.predict(Xs), one.predict(Xs), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert rows.log_evidence == one.log_evidence
    by_row = rows.evidence_gradient()["noise_var"]
    assert by_row.sum() == pytest.approx(one.evidence_gradient()["noise_var"], rel=1e-12)
    assert isinstance(one.noise_var, float)


@pytest.mark.slow_on_jax
def test_conjugate_gradients_agree_with_the_factor(kind, engine):
    for solver in TIGHT:
        Xs = INPUTS[kind][N:]
        found = conditioned(kind, solver=solver, engine=engine)
        _, mean, covariance = exact(kind)
        assert found.report.solver == "cg"
        close(found.mean(Xs), mean, 1e-8)
        close(found.variance(Xs, noise=MORE), np.diag(covariance) + MORE, 1e-8)
        close(found.covariance(Xs), covariance, 1e-8)


def test_a_preconditioner_with_the_rows_noise_needs_few_iterations():
    """Without it, rows of much noise would look like rows of none."""
    rng = np.random.default_rng(1)
    X = nngp.normalize(rng.standard_normal((600, 3)))
    y, noise = np.sin(3 * X[:, 0]), 10.0 ** rng.uniform(-3, 5, 600)
    solver = nngp.CG(tolerance=1e-8, preconditioner="nystrom", rank=150)
    found = nngp.condition(NET, X, y, noise_var=noise, solver=solver, engine="cpu")
    direct = nngp.condition(NET, X, y, noise_var=noise, solver="cholesky", engine="cpu")
    assert found.report.iterations < 60
    close(found.mean(X[:20]), direct.mean(X[:20]), 1e-6)


def test_a_checkpoint_serves_one_noise_only(tmp_path):
    """It goes on where it was for the same noise, and is let alone for that of another row."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((200, 4))
    y, noise = np.sin(3 * X[:, 0]), 10.0 ** rng.uniform(-6, 2, 200)
    other = np.where(np.arange(200) == 77, 3 * noise, noise)
    solver = nngp.CG(checkpoint=tmp_path, preconditioner="nystrom", rank=16)
    seen = []

    def stop(step):
        seen.append(step.message.startswith("residual"))
        if sum(seen) == 6:
            raise KeyboardInterrupt

    def solved(noise, progress=None):
        return nngp.condition(NET, X, y, noise_var=noise, solver=solver, progress=progress)

    whole = solved(noise)
    with pytest.raises(KeyboardInterrupt):
        solved(noise, stop)
    (file,) = tmp_path.iterdir()
    found, direct = solved(other), nngp.condition(NET, X, y, noise_var=other)
    assert list(tmp_path.iterdir()) == [file]
    close(found.mean(X[:9]), direct.mean(X[:9]), 1e-6)
    seen.clear()
    rest = solved(noise, lambda step: seen.append(step.message.startswith("residual")))
    assert sum(seen) == whole.report.iterations - 6
    np.testing.assert_array_equal(rest.mean(X[:9]), whole.mean(X[:9]))
    assert list(tmp_path.iterdir()) == []


def test_noise_in_units_of_the_kernels_scale():
    X, Xs = INPUTS["equal norms"][:N], INPUTS["equal norms"][N:]
    deep = nngp.Architecture(40, "relu", W, B)
    noise = np.geomspace(1e-3, 10.0, N)
    relative = nngp.condition(deep, X, Y, noise_var=noise, relative_noise=True)
    unit = relative.report.noise_unit
    assert unit < 1e-2
    absolute = nngp.condition(deep, X, Y, noise_var=noise * unit)
    np.testing.assert_allclose(relative.noise_var, noise * unit, rtol=1e-14)
    for found, expected in zip(relative.predict(Xs), absolute.predict(Xs), strict=True):
        close(found, expected, 1e-9)

    def evidence(w, change=0.0, row=0):
        net = nngp.Architecture(40, "relu", w, B)
        moved = noise + change * (np.arange(N) == row)
        return nngp.condition(net, X, Y, noise_var=moved, relative_noise=True).log_evidence

    found, step = relative.evidence_gradient(), 1e-5
    slope = (evidence(W + step) - evidence(W - step)) / (2 * step)
    assert found["weight_var"] == pytest.approx(slope, rel=1e-5)
    slope = (evidence(W, 1e-5, 7) - evidence(W, -1e-5, 7)) / 2e-5
    assert found["noise_var"][7] == pytest.approx(slope, rel=1e-5)


def test_noise_of_a_network_whose_scale_is_tiny():
    """In units of the scale; the constant is apart."""
    X, Xs = INPUTS["equal norms"][:N], INPUTS["equal norms"][N:]
    noise = np.geomspace(1e-3, 1e7, N)
    deep = nngp.Architecture(300, "tanh", 0.9, 0.1)
    by_rows = nngp.condition(deep, X, Y, noise_var=noise, relative_noise=True, engine=SmallTiles())
    assert by_rows.report.noise_unit < 1e-6
    M_ = nngp.kernel(nngp.Architecture(300, "tanh", 0.9, 0.1), X)  # all alike, to rounding
    assert np.ptp(M_) < 1e-6
    solver = nngp.CG(tolerance=1e-12)
    other = nngp.condition(deep, X, Y, noise_var=noise, relative_noise=True, solver=solver)
    for found, expected in zip(other.predict(Xs), by_rows.predict(Xs), strict=True):
        close(found, expected, 1e-8)


def test_the_ladder_raises_the_rows_that_have_least():
    X, y = np.repeat(UNEQUAL[:4], 3, axis=0), np.repeat(Y[:4], 3)
    noise = np.array([1e-20, 1e-3, 1e-20, 1e-20, 1e-2, 0.5, 1e-20, 1e-20, 1e-20, 1.0, 1.0, 1.0])
    with pytest.warns(
        nngp.errors.NoiseWarning, match=r"from 1e-20 to .* in 6 of 12 rows, which had less"
    ):
        posterior = nngp.condition(NET, X, y, noise_var=noise)
    report, least = posterior.report, posterior.noise_var.min()
    assert 1e-20 < least < 1e-3
    np.testing.assert_array_equal(posterior.noise_var, np.maximum(noise, least))
    assert least == pytest.approx(1e-20 * 10.0**report.failed_attempts)
    assert (report.noise_var, report.noise_var_asked) == (least, 1e-20)
    assert (report.noise_var_largest, report.rows_raised) == (1.0, 6)
    cg = nngp.CG(tolerance=1e-6)
    again = nngp.condition(NET, X, y, noise_var=posterior.noise_var, solver=cg)
    close(again.mean(UNEQUAL[:4]), posterior.mean(UNEQUAL[:4]), 1e-3)


def test_no_noise_in_some_rows_is_interpolation_there():
    noise = np.where(np.arange(N) % 2, 0.0, 1.0)
    posterior = conditioned("unequal norms", noise_var=noise)
    mean, variance = posterior.predict(UNEQUAL[:N])
    assert posterior.report.failed_attempts == 0
    close(mean[1::2], Y[1::2], 1e-12)
    assert variance[1::2].max() < 1e-12 < variance[::2].min()


def test_update_is_conditioning_on_all(kind):
    for solver in ("cholesky", nngp.CG(tolerance=1e-12)):
        X, Xs = INPUTS[kind][:N], INPUTS[kind][N:]
        for engine in (CpuEngine(), SmallTiles()):
            posterior = nngp.condition(
                NET, X[:8], Y[:8], noise_var=NOISE[:8], engine=engine, solver=solver
            )
            with pytest.raises(ValueError, match="given by row, so the new rows need theirs"):
                posterior.update(X[8:], Y[8:])
            assert posterior.n == 8
            assert posterior.update(X[8:], Y[8:], noise_var=NOISE[8:]) is posterior
            np.testing.assert_array_equal(posterior.noise_var, NOISE)
            close(posterior.mean(Xs), exact(kind)[1], 1e-8)
            close(posterior.variance(Xs), np.diag(exact(kind)[2]), 1e-8)


def test_update_of_noise_that_rows_shared():
    X, Xs = UNEQUAL[:N], UNEQUAL[N:]
    noise = np.where(np.arange(N) < 8, 0.1, 0.7)
    whole = nngp.condition(NET, X, Y, noise_var=noise)
    posterior = nngp.condition(NET, X[:8], Y[:8], noise_var=0.1)
    posterior.update(X[8:], Y[8:], noise_var=0.7)
    np.testing.assert_array_equal(posterior.noise_var, noise)
    close(posterior.mean(Xs), whole.mean(Xs), 1e-12)
    assert posterior.log_evidence == pytest.approx(whole.log_evidence, rel=1e-12)
    shared = nngp.condition(NET, X[:8], Y[:8], noise_var=0.1).update(X[8:], Y[8:])
    assert shared.noise_var == 0.1


def test_an_update_that_climbs_raises_new_and_old_rows():
    X = UNEQUAL[:4]
    noise = np.array([1e-20, 1e-20, 1.0, 1.0])
    posterior = nngp.condition(NET, X, Y[:4], noise_var=noise)
    with pytest.warns(nngp.errors.NoiseWarning, match="in 3 of 6 rows"):
        posterior.update(X[:2], Y[:2], noise_var=[1e-20, 5.0])
    least = posterior.noise_var.min()
    expected = np.maximum([*noise, 1e-20, 5.0], least)
    np.testing.assert_array_equal(posterior.noise_var, expected)
    assert posterior.report.rows_raised == 3
    assert posterior.report.noise_var_asked == 1e-20


def test_draws_of_observations_have_their_noise():
    posterior = conditioned("unequal norms")
    draws = posterior.sample(UNEQUAL[N:], 4000, seed=0, noise=100 * MORE)
    expected = posterior.variance(UNEQUAL[N:]) + 100 * MORE
    np.testing.assert_allclose(draws.var(axis=0), expected, rtol=0.1)


def test_the_array_is_copied_and_shown():
    noise = NOISE.copy()
    posterior = conditioned("unequal norms", noise_var=noise)
    noise[:] = 7.0
    np.testing.assert_array_equal(posterior.noise_var, NOISE)
    posterior.noise_var[:] = 7.0
    np.testing.assert_array_equal(posterior.noise_var, NOISE)
    more = conditioned("unequal norms").update(UNEQUAL[N:], np.zeros(M), noise_var=MORE).noise_var
    again = posterior.update(UNEQUAL[N:], np.zeros(M), noise_var=MORE)
    np.testing.assert_array_equal(again.noise_var, more)
    assert "noise_var=1e-08 to 100," in repr(posterior)
    assert posterior.report.as_dict()["noise_var_largest"] == NOISE.max()


BAD = {
    "NaN": ([0.1] * 11 + [np.nan], ValueError, r"finite and not negative, got nan \(row 11\)"),
    "infinite": ([np.inf] + [0.1] * 11, ValueError, r"not negative, got inf \(row 0\)"),
    "negative": ([0.1, -1.0] + [0.1] * 10, ValueError, r"not negative, got -1.0 \(row 1\)"),
    "too short": ([0.1] * 11, ValueError, "has 11 numbers and .* 12"),
    "one in a list": ([0.1], ValueError, "has 1 numbers and .* 12"),
    "none": ([], ValueError, "has 0 numbers"),
    "a column": (np.full((12, 1), 0.1), ValueError, r"vector of one a row, got \(12, 1\)"),
    "masked": (np.ma.masked_less(np.arange(12.0), 1), TypeError, "masked values"),
    "text": (["a"] * 12, TypeError, "holds text"),
    "complex": (np.full(12, 1j), TypeError, "complex numbers"),
}  # fmt: skip


def test_what_is_no_noise():
    for name in BAD:
        bad, kind, words = BAD[name]
        with pytest.raises(kind, match=words) as caught:
            conditioned("unequal norms", noise_var=bad)
        assert "noise_var" in str(caught.value)
        posterior = conditioned("unequal norms", noise_var=0.1)
        with pytest.raises(kind, match=words):
            posterior.update(UNEQUAL[:N], Y, noise_var=bad)
        assert (posterior.n, posterior.noise_var) == (N, 0.1)
        for method in (
            posterior.predict,
            posterior.variance,
            posterior.covariance,
            posterior.sample,
        ):
            with pytest.raises(kind, match=words):
                method(UNEQUAL[:N], noise=bad)


def test_noise_of_new_observations_must_be_said():
    posterior = conditioned("unequal norms")
    for method in (posterior.predict, posterior.variance, posterior.covariance, posterior.sample):
        with pytest.raises(ValueError, match="given by row, so noise=True does not say"):
            method(UNEQUAL[N:], noise=True)
        for bad in (-1.0, np.nan, "much", np.full(M, True), None):
            with pytest.raises((TypeError, ValueError), match=r"^noise must be"):
                method(UNEQUAL[N:], noise=bad)


def test_one_row_out_of_proportion_is_said():
    with pytest.raises(nngp.errors.VarianceError, match=r"noise_var 1e\+304 is out of proportion"):
        conditioned("equal norms", noise_var=[*[0.1] * 11, 1e304])
