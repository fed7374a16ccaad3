"""Bad input, too little memory, interruptions: one clear sentence, and nothing left running."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import nngp

RNG = np.random.default_rng(0)
NET = nngp.Architecture(2, "relu", 1.6, 0.1)
X = RNG.standard_normal((30, 4))
Y = RNG.standard_normal((30, 2))


BAD_DATA = [
    (np.where(np.eye(30, 4) > 0, np.nan, X), Y, ValueError, r"X holds nan \(row 0, column 0\)"),
    (X, np.where(np.eye(30, 2) > 0, np.inf, Y), ValueError, "Y holds inf"),
    (X, Y[:29], ValueError, "Y has 29 rows and the inputs have 30"),
    (X[:0], Y[:0], ValueError, "X is empty"),
    (X, np.array(["a"] * 30), TypeError, "encode class labels"),
    (X, Y[None], ValueError, "must be a vector or a matrix"),
    (X, Y[:, :0], ValueError, "must be a vector or a matrix"),
    (X[None], Y, ValueError, "two-dimensional"),
    (0.3, Y, ValueError, "a single number"),
    (X, 1e200 * Y, ValueError, "whose squares overflow; rescale"),
    (np.ma.masked_greater(X, 1.0), Y, TypeError, "masked values"),
    (X.astype(str), Y, TypeError, "must hold real numbers"),
]


def test_bad_data():
    for X, Y, error, message in BAD_DATA:
        with pytest.raises(error, match=message):
            nngp.condition(NET, X, Y)


BAD_SETTINGS = [
    ({"noise_var": -1.0}, ValueError, "noise_var must be finite and not negative"),
    ({"noise_var": np.nan}, ValueError, "noise_var must be finite"),
    ({"noise_var": np.ones((30, 1))}, ValueError, "noise_var must be one number or a vector"),
    ({"noise_var": None}, TypeError, "noise_var must be one number"),
    ({"engine": None}, TypeError, r"'gpu' or an engine, such as"),
    ({"memory": "1GB"}, ValueError, "memory must be a positive number of bytes"),
    ({"progress": np.ones(2)}, TypeError, "progress must be"),
    ({"engine": "tpu"}, ValueError, "engine must be 'auto', 'cpu' or 'gpu'"),
    ({"progress": 3}, TypeError, "progress must be"),
    ({"memory": -5}, ValueError, "memory must be"),
]


def test_bad_settings():
    for keywords, error, message in BAD_SETTINGS:
        with pytest.raises(error, match=message):
            nngp.condition(NET, X, Y, **keywords)


def test_the_first_argument_is_an_architecture():
    with pytest.raises(TypeError, match=r"nngp\.Architecture"):
        nngp.condition("relu", X, Y)


def test_test_points_with_other_features():
    posterior = nngp.condition(NET, X, Y)
    for method in (posterior.mean, posterior.variance, posterior.covariance, posterior.predict):
        with pytest.raises(ValueError, match="Xs has 3 features and the training inputs have 4"):
            method(X[:, :3])


def test_one_point_is_told_from_many():
    posterior = nngp.condition(NET, X, Y)
    with pytest.raises(ValueError, match=r"Xs\.reshape\(1, -1\) for one point"):
        posterior.mean(X[0])


def test_bad_forecasts():
    for arguments in ((0, 1), (5, -3), ("a", 1), (5, 1, 0)):
        with pytest.raises(ValueError, match="whole number of at least 1"):
            nngp.forecast(*arguments, engine="cpu")


def test_prior_draws_with_bad_noise():
    for noise_var in (np.nan, -1.0):
        with pytest.raises(ValueError, match="noise_var must be finite"):
            nngp.sample_prior(NET, X, 2, noise_var=noise_var)


def test_no_gpu_is_said():
    jax = pytest.importorskip("jax")
    if jax.default_backend() == "gpu":
        pytest.skip("there is a GPU")
    with pytest.raises(RuntimeError, match="JAX sees none"):
        nngp.condition(NET, X, Y, engine="gpu")


def test_no_jax_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    monkeypatch.delitem(sys.modules, "nngp.linsolve.engines.gpu", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'nngp\[jax\]'"):
        nngp.condition(NET, X, Y, engine="gpu")


def test_too_little_memory_is_refused_before_any_work(monkeypatch):
    monkeypatch.setattr("nngp.gram.host.matrix.HostMatrix.block", None)  # any work would fail
    big = RNG.standard_normal((5000, 3))
    with pytest.raises(MemoryError, match=r"at most \d+ points would fit") as caught:
        nngp.condition(
            NET, big, np.zeros(5000), memory=120_000_000, engine="cpu", solver="cholesky"
        )
    largest = int(str(caught.value).split("at most ")[1].split()[0])
    assert nngp.forecast(largest, 3, engine="cpu").bytes <= 120_000_000
    assert nngp.forecast(largest + 1, 3, engine="cpu").bytes > 120_000_000


def test_the_gradient_asks_for_memory_too(monkeypatch):
    posterior = nngp.condition(NET, X, Y)
    monkeypatch.setattr("nngp._machine.available_memory", lambda: 100)
    with pytest.raises(MemoryError, match="the gradient of the evidence needs"):
        posterior.evidence_gradient()
    with pytest.raises(MemoryError, match="the covariance of 30 test points"):
        posterior.covariance(X)
    with pytest.raises(MemoryError, match="leave-one-out needs"):
        posterior.leave_one_out()
    with pytest.raises(MemoryError, match="an update with 2 points"):
        posterior.update(X[:2], Y[:2])


def test_the_memory_asked_for_holds_later_too():
    limit = nngp.forecast(30, 4, 2, engine="cpu").bytes
    posterior = nngp.condition(NET, X, Y, memory=limit, engine="cpu")
    with pytest.raises(MemoryError, match="an update with 4000 points"):
        posterior.update(RNG.standard_normal((4000, 4)), np.zeros((4000, 2)))
    assert posterior.n == 30


def test_one_point_one_feature_constant_inputs():
    for data in ((X[:1], Y[:1]), (X[:, :1], Y), (np.ones((30, 4)), Y)):
        posterior = nngp.condition(NET, *data)
        assert np.isfinite(posterior.mean(data[0])).all()
        assert (posterior.variance(data[0]) >= 0).all()
        assert np.isfinite(list(posterior.evidence_gradient().values())).all()


def test_one_class_only():
    targets = np.eye(3)[np.zeros(30, int)] - 1 / 3
    posterior = nngp.condition(NET, X, targets, noise_var=1e-4)
    assert (posterior.mean(X).argmax(axis=1) == 0).all()


def test_zero_targets():
    posterior = nngp.condition(NET, X, np.zeros(30))
    assert not posterior.mean(X).any()
    assert posterior.report.residual == 0


def test_duplicates_break_nothing():
    twice = np.concatenate([X, X, X])
    posterior = nngp.condition(NET, twice, np.tile(Y, (3, 1)))
    np.testing.assert_allclose(posterior.mean(X), Y, atol=1e-4)


def test_the_ladder_is_reported():
    with pytest.warns(nngp.errors.NoiseWarning, match="noise_var was raised from 1e-20"):
        posterior = nngp.condition(NET, np.tile(X, (20, 1)), np.tile(Y, (20, 1)), noise_var=1e-20)
    report = posterior.report
    assert report.failed_attempts > 0
    assert report.noise_var == pytest.approx(1e-20 * 10.0**report.failed_attempts)
    assert report.noise_var_asked == 1e-20


def test_beyond_the_ladder_duplicates_are_named():
    net = nngp.Architecture(1, "identity", 1e18, 0.0)
    twice = np.concatenate([X, X])
    with pytest.raises(nngp.errors.NotPositiveDefiniteError, match="30 duplicated row"):
        nngp.condition(net, twice, np.concatenate([Y, Y]))


def test_beyond_the_ladder_a_constant_kernel_is_named():
    net = nngp.Architecture(60, "relu", 1.0, 1e16)
    with pytest.raises(
        nngp.errors.NotPositiveDefiniteError, match="at depth 60 the kernel has become"
    ):
        nngp.condition(net, RNG.standard_normal((100, 3)), np.zeros(100))


def test_beyond_the_ladder_a_huge_variance_is_named():
    net = nngp.Architecture(0, "relu", 1e18, 0.0)
    with pytest.raises(
        nngp.errors.NotPositiveDefiniteError, match=r"variance is .* above the noise"
    ):
        nngp.condition(net, X, Y)  # rank 4


def test_an_update_past_the_limit_changes_nothing():
    net = nngp.Architecture(0, "relu", 1e18, 0.0)
    posterior = nngp.condition(net, X[:3], Y[:3], noise_var=0.1)
    with pytest.raises(nngp.errors.NotPositiveDefiniteError, match="duplicated row"):
        posterior.update(X[:3], Y[:3])
    assert (posterior.n, posterior.noise_var) == (3, 0.1)


def test_an_update_does_not_climb_past_the_limit(monkeypatch):
    posterior = nngp.condition(NET, X, Y, noise_var=0.1)

    def fails(*arguments):
        raise nngp.errors.NotPositiveDefiniteError("a pivot")

    monkeypatch.setattr("nngp.posterior.by_cholesky._extend", fails)
    with pytest.raises(nngp.errors.NotPositiveDefiniteError, match=r"even with noise_var 0\.1"):
        posterior.update(X, Y)
    assert posterior.n == 30


def test_inputs_of_an_extreme_size():
    net = nngp.Architecture(2, "relu", 2.0, 0.1)
    with pytest.raises(nngp.errors.VarianceError, match="past the range of float64"):
        nngp.condition(net, 1e150 * nngp.normalize(X), Y, noise_var=1e-3)


def test_inputs_changed_later():
    mine = X.copy()
    posterior = nngp.condition(NET, mine, Y, noise_var=1e-3)
    before = posterior.mean(X)
    mine *= -1
    assert np.array_equal(posterior.mean(X), before)  # small arrays are copied


def test_inputs_changed_later_are_noticed_where_they_are_not_copied(monkeypatch):
    monkeypatch.setattr("nngp.gram.inputs.COPIED", 0)
    for change in (lambda a: a.__imul__(-1), lambda a: a.sort(axis=0), lambda a: a.fill(1.0)):
        mine = X.copy()
        posterior = nngp.condition(NET, mine, Y, noise_var=1e-3)
        posterior.mean(X)
        change(mine)
        with pytest.raises(ValueError, match="were changed after they were conditioned on"):
            posterior.mean(X)


def test_a_poor_solution_is_said(monkeypatch):
    monkeypatch.setattr("nngp.posterior.by_cholesky.residual", lambda *arguments: 0.5)
    with pytest.warns(nngp.errors.ToleranceWarning, match="residual of 5.0e-01"):
        nngp.condition(NET, X, Y, noise_var=0.01)


@pytest.fixture
def pretended_gpu(monkeypatch):
    jax = pytest.importorskip("jax")
    monkeypatch.setattr("nngp.linsolve.engines.choose._gpu_in_sight", lambda: True)
    monkeypatch.setattr("nngp.linsolve.engines.choose.GPU_FROM", 10)
    monkeypatch.setattr("nngp.linsolve.engines.gpu.gpu_device", lambda: jax.devices()[0])


@pytest.mark.usefixtures("pretended_gpu")
def test_auto_takes_a_gpu_where_it_suits(monkeypatch):
    assert nngp.condition(NET, X, Y, noise_var=0.01).report.engine == "gpu"
    tanh = nngp.Architecture(1, "tanh")
    assert nngp.condition(tanh, X, Y, noise_var=0.01).report.engine == "cpu"
    assert nngp.condition(tanh, nngp.normalize(X), Y, noise_var=0.01).report.engine == "gpu"
    monkeypatch.setattr("nngp.linsolve.engines.gpu.GpuEngine.free_memory", lambda self: 1000)
    assert nngp.condition(NET, X, Y, noise_var=0.01).report.engine == "cpu"
    with pytest.raises(MemoryError):
        nngp.condition(NET, X, Y, noise_var=0.01, engine="gpu")


def test_auto_goes_by_the_number_of_points(monkeypatch):
    """Small problems stay here, and the forecast says why."""
    choose = "nngp.linsolve.engines.choose"
    monkeypatch.setattr(f"{choose}._gpu_in_sight", lambda: True)
    monkeypatch.setattr(f"{choose}._gpu", lambda: nngp.linsolve.CpuEngine())  # it need not be one
    assert nngp.forecast(3999, 784).reason == "fewer than 4,000 points are not worth a GPU"
    taken = "there is a GPU, and 4,000 points are worth it"
    assert nngp.forecast(4000, 784).reason == taken
    assert nngp.forecast(20_000, 3).reason == taken
    monkeypatch.setattr(f"{choose}._gpu_in_sight", lambda: False)
    assert nngp.forecast(20_000, 784).reason == "no GPU that JAX could use is in sight"
    assert nngp.forecast(20_000, 784, engine="cpu").reason == "as asked for"


def test_the_report_is_a_plain_record():
    record = nngp.condition(NET, X, Y, noise_var=0.01).report.as_dict()
    assert (record["n"], record["d"]) == X.shape
    assert record["method"] == "pairwise"
    assert "norms differ" in record["reason"]
    assert record["residual"] < 1e-12
    assert record["kernel_error"] < 1e-9
    assert set(record["seconds"]) == {"factor", "solve"}
    assert record["factor_bytes"] >= 30 * 31 // 2 * 8


def test_the_seconds_of_a_report_lie_within_those_of_the_call():
    for options in ({}, {"solver": "cg"}):
        start = time.perf_counter()
        posterior = nngp.condition(NET, X, Y, noise_var=0.01, **options)
        posterior.update(X[:2] + 0.5, Y[:2])
        seconds = posterior.report.seconds
        assert min(seconds.values()) >= 0
        assert 0 < sum(seconds.values()) <= time.perf_counter() - start


def test_progress_is_told():
    steps = []
    nngp.condition(NET, RNG.standard_normal((900, 3)), np.zeros(900), progress=steps.append)
    done = [step.done for step in steps]
    assert done[0] == 0
    assert done == sorted(done)
    assert done[-1] == pytest.approx(1.0)
    assert all("factor" in step.phase and step.seconds >= 0 for step in steps)


def workers():
    return [thread for thread in threading.enumerate() if thread.name.startswith("nngp")]


@pytest.mark.parametrize("exception", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_job_leaves_no_threads(exception):
    from threadpoolctl import threadpool_info

    def counts():
        return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]

    def stop(step):
        if step.done > 0.3:
            raise exception

    before = counts()
    with pytest.raises(exception):
        nngp.condition(
            NET, RNG.standard_normal((2000, 3)), np.zeros(2000), progress=stop, engine="cpu"
        )
    assert workers() == []
    assert counts() == before


def test_ctrl_c_in_the_middle():
    """Real SIGINTs, sent while the factor is under way, by an impatient user too."""
    code = (
        "import numpy as np, nngp, signal, threading\n"
        # Only within the library: the lines below are not what this test examines.
        "def interrupt(number, frame):\n"
        "    while frame:\n"
        "        if frame.f_globals['__name__'].startswith('nngp'): raise KeyboardInterrupt\n"
        "        frame = frame.f_back\n"
        "signal.signal(signal.SIGINT, interrupt)\n"
        "from threadpoolctl import threadpool_info\n"
        "def threads(): return {i['num_threads'] for i in threadpool_info()}\n"
        "before = threads()\n"
        "X = np.random.default_rng(0).standard_normal((6000, 30))\n"
        "def tell(step):\n"
        "    if step.done > 0.02: print('busy', flush=True)\n"
        "try:\n"
        "    net = nngp.Architecture(2)\n"
        "    nngp.condition(net, X, np.zeros(6000), progress=tell, engine='cpu')\n"
        "    print('done')\n"
        "except KeyboardInterrupt:\n"
        "    names = [t.name for t in threading.enumerate()]\n"
        "    print('interrupted', names, threads() == before)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout.readline().strip() == "busy"
    start = time.monotonic()
    for _ in range(3):
        os.kill(child.pid, signal.SIGINT)
        time.sleep(0.005)
    output, errors = child.communicate(timeout=60)
    assert "interrupted ['MainThread'] True" in output, errors
    assert time.monotonic() - start < 30


def test_inference_from_another_thread():
    result = []
    thread = threading.Thread(target=lambda: result.append(nngp.condition(NET, X, Y).mean(X)))
    thread.start()
    thread.join()
    np.testing.assert_allclose(result[0], nngp.condition(NET, X, Y).mean(X), atol=1e-9)
