"""Posteriors by conjugate gradients against those by Cholesky: means, variances, covariance, draws,
updates, files, and what cannot be had without a factor."""

import copy
import functools
import json
import pickle

import numpy as np
import pytest
from damage import parts_of
from engines import SmallTiles
from sklearn.datasets import load_digits

import nngp
from nngp.linsolve import CpuEngine
from nngp.linsolve.cg.nystrom import LandmarkFactor

RNG = np.random.default_rng(0)
X = RNG.standard_normal((53, 4))
SPHERE = nngp.normalize(X)
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2], np.full(53, 3.0)])
TEST = RNG.standard_normal((11, 4))
NETS = {
    "relu": nngp.Architecture(3, "relu", 1.6, 0.1),
    "erf": nngp.Architecture(2, "erf", 2.0, 0.5),
    "deep": nngp.Architecture(60, "relu", 1.6, 0.1),
}


@pytest.fixture(params=["cpu", "jax"])
def engine(request):
    """JAX with one tile: compiling for many shapes is what takes it long."""
    return SmallTiles() if request.param == "cpu" else jax_engine(64)


def jax_engine(tile):
    jax = pytest.importorskip("jax")
    from nngp.linsolve.engines.gpu import GpuEngine

    return GpuEngine(jax.devices()[0], tile=tile)


TIGHT = nngp.CG(tolerance=1e-11, preconditioner="nystrom", rank=20)
SINGLE = nngp.CG(tolerance=1e-11, preconditioner="single")


@functools.cache
def digits(n):
    """Real images, jittered so that none are alike; one-hot targets."""
    bunch, rng = load_digits(), np.random.default_rng(0)
    rows = rng.permutation(len(bunch.data))[:n]
    images = nngp.normalize(bunch.data[rows] + rng.normal(0, 0.5, (n, 64)))
    return images, np.eye(10)[bunch.target[rows]] - 0.1


def close(found, expected, tolerance=1e-8):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@pytest.mark.slow_on_jax("split")
@pytest.mark.slow_on_jax("whole")
@pytest.mark.slow_on_jax("another norm")
@pytest.mark.parametrize(
    ("net", "inputs", "test"),
    [("relu", SPHERE, nngp.normalize(TEST)), ("relu", X, TEST),
     ("deep", SPHERE, nngp.normalize(TEST)), ("relu", SPHERE, TEST)],
    ids=["split", "whole", "deep", "another norm"],
)  # fmt: skip
def test_agrees_with_cholesky(engine, net, inputs, test):
    for solver in TIGHT, SINGLE:
        noise = {"noise_var": 1e-3, "relative_noise": net == "deep"}
        direct = nngp.condition(
            NETS[net], inputs, Y, engine=CpuEngine(), solver="cholesky", **noise
        )
        found = nngp.condition(NETS[net], inputs, Y, engine=engine, solver=solver, **noise)
        assert (direct.report.solver, found.report.solver) == ("cholesky", "cg")
        assert found.report.residual <= 1e-11
        close(found.mean(test), direct.mean(test))
        close(found.variance(test), direct.variance(test))
        close(found.covariance(test, noise=True), direct.covariance(test, noise=True))
        for one, other in zip(found.predict(test), direct.predict(test), strict=True):
            close(one, other)


def test_draws_have_the_posterior_as_their_law():
    posterior = nngp.condition(NETS["erf"], X, Y[:, 0], noise_var=1e-2, solver=TIGHT)
    draws = posterior.sample(TEST, 4000, seed=0)
    covariance = posterior.covariance(TEST)
    np.testing.assert_allclose(draws.mean(axis=0), posterior.mean(TEST), atol=0.05)
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.05 * covariance.max())


@pytest.mark.slow
def test_tiles_that_differ_in_size_on_jax():
    test, engine = nngp.normalize(TEST), jax_engine(32)  # of 32 and 21 rows
    direct = nngp.condition(NETS["relu"], SPHERE, Y, noise_var=1e-3, solver="cholesky")
    for solver in TIGHT, SINGLE:
        found = nngp.condition(
            NETS["relu"], SPHERE, Y, noise_var=1e-3, engine=engine, solver=solver
        )
        assert found.solution.edges == (0, 32, 53)
        close(found.mean(test), direct.mean(test))
        close(found.variance(test), direct.variance(test))


def test_a_variance_is_never_too_small_and_comes_down_with_the_tolerance():
    images, targets = digits(700)
    images = images * np.linspace(0.8, 1.2, 700)[:, None]  # so that K is taken whole
    train, Y, test = images[:600], targets[:600], images[600:620]
    exact = nngp.condition(NETS["relu"], train, Y, noise_var=1e-3).variance(test)
    over = []
    for tolerance in (1e-1, 1e-2, 1e-6):
        solver = nngp.CG(tolerance=tolerance, preconditioner="nystrom", rank=30)
        rough = nngp.condition(NETS["relu"], train, Y, noise_var=1e-3, solver=solver)
        over.append(rough.variance(test) - exact)
    assert min(float(part.min()) for part in over) > -1e-9 * exact.max()
    assert over[0].max() > over[1].max() > over[2].max()
    assert over[0].max() > 1e-3 * exact.max()
    assert over[2].max() < 1e-5 * exact.max()


def test_nor_is_the_share_of_the_constant():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        n, d, depth = rng.integers([5, 2, 1], [60, 6, 6])
        X, test = (nngp.normalize(rng.normal(size=(m, d))) for m in (n, 7))
        net = nngp.Architecture(int(depth), "relu", *rng.uniform([0.5, 0.0], 3.0))
        solver = nngp.CG(tolerance=1e-2, preconditioner="nystrom", rank=2)
        noise = float(10 ** rng.uniform(-3, 0))
        rough = nngp.condition(net, X, rng.normal(size=n), noise_var=noise, solver=solver)
        K, k = nngp.kernel(net, X) + noise * np.eye(n), nngp.kernel(net, test, X)
        exact = nngp.kernel(net, test) - k @ np.linalg.solve(K, k.T)
        joint = rough.covariance(test)
        close(np.diag(joint), rough.variance(test), 1e-12)
        assert np.linalg.eigvalsh(joint - exact).min() > -1e-13 * K[0, 0]


@pytest.fixture
def count():
    """Iterations for jittered digits at noise 1e-10, rank 300."""

    def iterations():
        images, targets = digits(1500)
        solver = nngp.CG(tolerance=1e-6, preconditioner="nystrom", rank=300)
        found = nngp.condition(
            NETS["relu"], images, targets, noise_var=1e-10, solver=solver, engine="cpu"
        )
        return found.report.iterations

    return iterations


@pytest.mark.slow
def test_iterations_are_few_because_the_shift_has_the_tail_in_it(count, monkeypatch):
    few = count()
    assert few <= 65
    without = property(lambda self: 0.0, lambda self, tail: None)
    monkeypatch.setattr(LandmarkFactor, "tail", without, raising=False)
    assert count() > 3 * few


def test_a_float32_factor_reaches_ten_digits():
    images, targets = digits(1500)
    solver = nngp.CG(tolerance=1e-10, preconditioner="single")
    for noise in (1e-2, 1e-10):
        report = nngp.condition(
            NETS["relu"], images, targets, noise_var=noise, solver=solver, engine="cpu"
        ).report
        assert report.iterations <= 16
        assert report.residual <= 1e-10
        assert report.preconditioner == "single"


def test_the_report_says_how():
    report = nngp.condition(NETS["relu"], SPHERE, Y, solver=TIGHT, engine=SmallTiles()).report
    assert (report.preconditioner, report.rank, report.tolerance) == ("nystrom", 20, 1e-11)
    assert report.kept == 1.0
    assert report.iterations > 1
    assert set(report.seconds) == {"kernel", "preconditioner", "cg"}
    json.dumps(report.as_dict())
    direct = nngp.condition(NETS["relu"], SPHERE, Y).report
    assert (direct.solver, direct.iterations, direct.preconditioner) == ("cholesky", 0, "")


def test_a_missed_tolerance_is_an_error():
    solver = nngp.CG(max_iterations=3, rank=2, preconditioner="nystrom")
    with pytest.raises(nngp.errors.NotConvergedError, match="3 iterations"):
        nngp.condition(NETS["relu"], SPHERE, Y, solver=solver)


def test_without_a_factor_there_is_no_evidence():
    posterior = nngp.condition(NETS["relu"], SPHERE, Y, solver="cg")
    assert "solver='cg'" in repr(posterior)
    for asked in (
        lambda: posterior.log_evidence,
        posterior.evidence_gradient,
        posterior.leave_one_out,
        posterior.leave_one_out_density,
    ):
        with pytest.raises(nngp.errors.NoFactorError, match="solver='cholesky'"):
            asked()


def test_a_matrix_that_is_not_positive_definite_climbs_the_ladder(monkeypatch):
    """K less a little: no network has such a kernel, rounding may."""
    from nngp.linsolve.cg.product import KernelProduct

    images, targets = digits(200)
    solver = nngp.CG(rank=20, preconditioner="nystrom")
    smallest = np.linalg.eigvalsh(nngp.kernel(NETS["relu"], images))[0]
    scale = nngp.condition(NETS["relu"], images, targets).report.scale
    less, times = 2 * smallest / scale, KernelProduct.__call__
    monkeypatch.setattr(
        KernelProduct, "__call__", lambda self, run, V: times(self, run, V) - less * V
    )
    with pytest.warns(nngp.errors.NoiseWarning, match="not positive definite"):
        posterior = nngp.condition(
            NETS["relu"], images, targets, noise_var=1e-6, solver=solver, engine="cpu"
        )
    assert posterior.report.failed_attempts > 0
    assert posterior.noise_var > 0.9 * smallest


def test_a_variance_that_cannot_be_had_says_why(monkeypatch):
    from nngp.linsolve.cg.product import KernelProduct

    images, targets = digits(200)
    solver = nngp.CG(rank=20, preconditioner="nystrom")
    posterior = nngp.condition(NETS["relu"], images, targets, noise_var=1e-3, solver=solver)
    monkeypatch.setattr(KernelProduct, "__call__", lambda self, run, V: -V)
    with pytest.raises(
        nngp.errors.NotPositiveDefiniteError, match="pass a larger noise_var"
    ) as caught:
        posterior.variance(images[:3])
    assert caught.value.noise_var == 1e-3


def test_a_covariance_that_does_not_fit_this_machine(monkeypatch):
    images, targets = digits(200)
    posterior = nngp.condition(NETS["relu"], images, targets, noise_var=1e-2, solver="cg")
    monkeypatch.setattr("nngp.linsolve.CpuEngine.free_memory", lambda self: 8 * (3 * 200 * 9 + 80))
    with pytest.raises(MemoryError, match="covariance of 9 test points"):
        posterior.covariance(images[:9])
    monkeypatch.setattr("nngp.linsolve.CpuEngine.free_memory", lambda self: 8 * (3 * 200 * 9 + 81))
    assert posterior.covariance(images[:9]).shape == (9, 9)


# Which solver


def test_auto_takes_the_factor_while_it_fits():
    images, targets = digits(1500)
    direct = nngp.condition(NETS["relu"], images, targets, noise_var=1e-2, engine="cpu")
    small = nngp.forecast(1500, 64, 10, engine="cpu").bytes - 1
    found = nngp.condition(
        NETS["relu"], images, targets, noise_var=1e-2, engine="cpu", memory=small
    )
    assert (direct.report.solver, found.report.solver) == ("cholesky", "cg")
    assert found.report.forecast_bytes <= small
    close(found.mean(images[:50]), direct.mean(images[:50]), 1e-7)
    with pytest.raises(MemoryError):
        nngp.condition(NETS["relu"], images, targets, engine="cpu", memory=small, solver="cholesky")
    with pytest.raises(MemoryError, match="conjugate gradients"):
        nngp.condition(NETS["relu"], images, targets, engine="cpu", memory=int(6e7))


def test_a_solver_that_there_is_none():
    for wrong in ("lu", None, 3):
        with pytest.raises(ValueError, match="solver must be"):
            nngp.condition(NETS["relu"], X, Y, solver=wrong)
        with pytest.raises(ValueError, match="solver must be"):
            nngp.NNGPRegressor(selection=None, solver=wrong).fit(X, Y)


# Data that come later, and interruptions


@pytest.mark.slow_on_jax
def test_an_update_is_as_good_as_all_at_once(engine):
    for inputs in (SPHERE, X):
        posterior = nngp.condition(
            NETS["relu"], inputs[:40], Y[:40], noise_var=1e-3, engine=engine, solver=TIGHT
        )
        posterior.update(inputs[40:], Y[40:])
        fresh = nngp.condition(NETS["relu"], inputs, Y, noise_var=1e-3, solver="cholesky")
        close(posterior.mean(TEST), fresh.mean(TEST))
        close(posterior.variance(TEST), fresh.variance(TEST))


def test_an_update_begins_at_the_old_weights():
    images, targets = digits(700)
    solver = nngp.CG(tolerance=1e-6, preconditioner="nystrom", rank=30)
    posterior = nngp.condition(
        NETS["relu"], images[:699], targets[:699], noise_var=1e-2, solver=solver
    )
    cold = nngp.condition(NETS["relu"], images, targets, noise_var=1e-2, solver=solver)
    posterior.update(images[699:], targets[699:])
    assert posterior.report.iterations < 0.9 * cold.report.iterations


def test_it_can_be_pickled_and_copied():
    images, targets = digits(300)
    posterior = nngp.condition(NETS["relu"], images, targets, noise_var=1e-2, solver="cg")
    expected = posterior.predict(images[:5])
    for other in (pickle.loads(pickle.dumps(posterior)), copy.deepcopy(posterior)):
        mean, variance = other.predict(images[:5])
        assert np.array_equal(mean, expected[0])
        close(variance, expected[1], 1e-6)


def test_a_forecast_of_either_solver():
    options = {"engine": "cpu", "memory": 200e6}
    direct, cg = (nngp.forecast(8_000, 10, solver=s, **options) for s in ("cholesky", "cg"))
    assert not direct.fits
    assert cg.fits
    assert direct.largest < 8_000 < cg.largest
    assert nngp.forecast(8_000, 10, solver="auto", **options).bytes == cg.bytes
    with pytest.raises(ValueError, match="solver must be"):
        nngp.forecast(10, 10, solver="lu")


def test_a_folder_that_is_none_is_noticed_before_the_work(tmp_path):
    (tmp_path / "file").write_text("")
    images, targets = digits(300)
    steps, solver = [], nngp.CG(checkpoint=tmp_path / "file")
    with pytest.raises(ValueError, match="is no folder that can be used"):
        nngp.condition(NETS["relu"], images, targets, solver=solver, progress=steps.append)
    assert not steps


class StopError(Exception):
    pass


def test_a_covariance_is_never_too_small():
    images, targets = digits(300)
    train, Y, test = images[:260], targets[:260], images[260:290]
    exact = nngp.condition(NETS["relu"], train, Y, noise_var=1e-3).covariance(test)
    solver = nngp.CG(tolerance=1e-2, preconditioner="nystrom", rank=20)
    rough = nngp.condition(NETS["relu"], train, Y, noise_var=1e-3, solver=solver)
    more = np.linalg.eigvalsh(rough.covariance(test) - exact)
    assert more[-1] > 1e-9  # it is rough
    assert more[0] > -1e-12
    np.testing.assert_allclose(
        np.diagonal(rough.covariance(test)), rough.variance(test), rtol=1e-9, atol=1e-12
    )


def test_a_checkpoint_serves_the_same_call_only(tmp_path):
    images, targets = digits(400)
    seen = []

    def stop(step):
        seen.append(step)
        if sum(s.message.startswith("residual") for s in seen) == 8:
            raise StopError

    def condition(noise=1e-3, progress=None):
        solver = nngp.CG(checkpoint=tmp_path, preconditioner="nystrom", rank=20)
        return nngp.condition(
            NETS["relu"], images, targets, noise_var=noise, solver=solver, progress=progress
        )

    whole = condition()
    with pytest.raises(StopError):
        condition(progress=stop)
    assert {"preconditioner", "kernel"} <= {step.phase for step in seen}
    rest = condition()
    assert np.array_equal(rest.mean(images[:5]), whole.mean(images[:5]))
    assert rest.report.iterations == whole.report.iterations
    seen.clear()
    with pytest.raises(StopError):
        condition(progress=stop)
    (file,) = tmp_path.iterdir()
    other = condition(noise=1e-2)
    assert list(tmp_path.iterdir()) == [file]
    direct = nngp.condition(NETS["relu"], images, targets, noise_var=1e-2)
    close(other.mean(images[:5]), direct.mean(images[:5]), 1e-6)


# Estimators and files


@pytest.mark.parametrize(
    "kind", [nngp.NNGPRegressor, pytest.param(nngp.NNGPClassifier, marks=pytest.mark.slow)]
)
def test_an_estimator_and_its_file(tmp_path, kind):
    images, targets = digits(300)
    labels = targets.argmax(axis=1)
    solver = nngp.CG(tolerance=1e-10, rank=40, preconditioner="nystrom", checkpoint=tmp_path)
    options = {"depth": 2, "activation": "relu", "weight_var": 1.5, "bias_var": 0.2}
    options |= {"noise_var": 1e-2, "selection": None, "input_scaling": "unit"}
    model = kind(**options, solver=solver).fit(images, labels)
    direct = kind(**options, solver="cholesky").fit(images, labels)
    method = "predict" if kind is nngp.NNGPRegressor else "predict_proba"
    close(getattr(model, method)(images[:9]), getattr(direct, method)(images[:9]), 1e-5)
    model.save(tmp_path / "model.nngp")
    arrays = parts_of((tmp_path / "model.nngp").read_bytes())[1]
    assert not [name for name in arrays if "solution.factor" in name or name.endswith(".z")]
    again = nngp.load(tmp_path / "model.nngp", engine="cpu")
    assert again.report_ == model.report_
    assert again.posterior_.solution.problem.options == again.get_params()["solver"]
    assert again.get_params()["solver"] == nngp.CG(
        tolerance=1e-10, rank=40, preconditioner="nystrom"
    )
    np.testing.assert_array_equal(
        again.posterior_.mean(images[:9]), model.posterior_.mean(images[:9])
    )
    close(again.posterior_.variance(images[:9]), direct.posterior_.variance(images[:9]), 1e-7)
    if kind is nngp.NNGPRegressor:
        with pytest.raises(nngp.errors.NoFactorError):
            _ = again.log_marginal_likelihood_


def test_loading_solves_nothing_anew(tmp_path, monkeypatch):
    from nngp.linsolve import Iteration

    model = nngp.NNGPRegressor(selection=None, solver="cg").fit(X, Y[:, 0])
    model.save(tmp_path / "model.nngp")
    monkeypatch.setattr(Iteration, "solve", None)
    again = nngp.load(tmp_path / "model.nngp")
    np.testing.assert_array_equal(again.predict(TEST), model.predict(TEST))


def test_the_command_takes_a_solver(run, tmp_path):
    table = "\n".join(["a,b", *(f"{i / 10},{np.sin(i / 10)}" for i in range(60))])
    (tmp_path / "t.csv").write_text(table)
    code, out, _ = run("fit t.csv --target b --selection none --solver cg --json")
    assert code == 0
    assert json.loads(out)["solver"] == "cg"
    code, _, error = run("fit t.csv --target b --solver lu")
    assert code == 2
    assert "solver must be" in error
