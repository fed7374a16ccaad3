"""A cluster's answer is that of one machine."""

import copy
import gc
import os
import pickle
import time

import numpy as np
import pytest
from clusters import check_same, fit

import nngp


def test_the_answer_is_that_of_one_machine(client, problem, local):
    engine = nngp.DaskEngine(client)
    posterior = fit(problem, engine)
    check_same(posterior, local, problem.Xs)
    assert posterior.report.engine == "dask"
    told = posterior.report.cluster
    assert (told["workers"], told["threads"], told["computed_again"]) == (2, 2, 0)
    assert told["chains"] >= 45  # lower tiles
    assert told["largest_worker_bytes"] > 20e6
    assert local.report.cluster == {}
    assert len(engine.listener.pids) == 2  # both processes worked
    assert os.getpid() not in engine.listener.pids


@pytest.mark.slow
@pytest.mark.parametrize("tile", [150, 700, 4096])
def test_tiles_of_any_size(client, problem, local, tile):
    check_same(fit(problem, nngp.DaskEngine(client, tile)), local, problem.Xs)


@pytest.mark.slow
def test_mean_alone_covariance_and_leave_one_out(client, problem, local):
    posterior = fit(problem, nngp.DaskEngine(client))
    np.testing.assert_allclose(posterior.mean(problem.Xs), local.mean(problem.Xs), atol=1e-11)
    np.testing.assert_allclose(
        posterior.covariance(problem.Xs), local.covariance(problem.Xs), atol=1e-12
    )
    for ours, theirs in zip(posterior.leave_one_out(), local.leave_one_out(), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_inputs_of_any_norm_and_an_activation_of_ones_own(client, problem):
    rng = np.random.default_rng(1)
    X, Xs = rng.normal(size=(400, 5)), rng.normal(size=(20, 5))
    X[7] = X[3] * (1 + 1e-13)  # a near pair, whose error must come home
    net = nngp.Architecture(2, "erf", [1.5, 1.2, 1.0], 0.2)
    for net_, X_, Xs_ in (
        (net, X, Xs),
        (nngp.Architecture(2, nngp.Activation(np.arctan, "atan")), *map(nngp.normalize, (X, Xs))),
    ):
        engines = "cpu", nngp.DaskEngine(client, 100)
        local, ours = (
            nngp.condition(net_, X_, X[:, 0], noise_var=1e-2, engine=engine) for engine in engines
        )
        check_same(ours, local, Xs_)
        assert ours.report.kernel_error == pytest.approx(local.report.kernel_error, rel=1e-12)


def test_a_deep_network_keeps_its_constant_apart(client, problem):
    deep = nngp.Architecture(60, "relu", 1.2, 0.1)
    options = {"noise_var": 1e-3, "relative_noise": True}
    local = nngp.condition(deep, problem.X[:300], problem.Y[:300], engine="cpu", **options)
    engine = nngp.DaskEngine(client)
    ours = nngp.condition(deep, problem.X[:300], problem.Y[:300], engine=engine, **options)
    check_same(ours, local, problem.Xs)


def test_single_precision(client, problem, local):
    posterior = fit(problem, nngp.DaskEngine(client, dtype="float32"))
    mean, mean0 = posterior.mean(problem.Xs), local.mean(problem.Xs)
    error = np.abs(mean - mean0).max() / np.abs(mean0).max()
    assert 1e-9 < error < 1e-3  # it is single precision, and no worse
    assert posterior.log_evidence == pytest.approx(local.log_evidence, rel=1e-4)
    assert 1e-12 < posterior.report.residual < 1e-3


@pytest.mark.slow
def test_new_rows_extend_the_factor(client, problem):
    engine, half = nngp.DaskEngine(client), 1200
    posterior = nngp.condition(
        problem.net, problem.X[:half], problem.Y[:half], noise_var=1e-2, engine=engine
    )
    posterior.update(problem.X[half:], problem.Y[half:])
    local = nngp.condition(problem.net, problem.X, problem.Y, noise_var=1e-2, engine="cpu")
    check_same(posterior, local, problem.Xs)


@pytest.mark.slow
def test_the_noise_ladder(client, problem):
    X = np.concatenate([problem.X[:300], problem.X[:300]])
    Y = np.concatenate([problem.Y[:300], problem.Y[:300]])
    engine = nngp.DaskEngine(client)
    with pytest.warns(nngp.errors.NoiseWarning):
        ours = nngp.condition(problem.net, X, Y, noise_var=1e-18, engine=engine)
    assert ours.noise_var == pytest.approx(1e-18 * 10**ours.report.failed_attempts)
    assert ours.report.failed_attempts > 0
    del ours
    assert tasks_left(client) == 0  # what a failure raised holds on to nothing
    local = nngp.condition(problem.net, X, Y, noise_var=1e-5, engine="cpu")
    check_same(nngp.condition(problem.net, X, Y, noise_var=1e-5, engine=engine), local, problem.Xs)


def tasks_left(client):
    gc.collect()
    for _ in range(50):
        if not (left := client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))):
            break
        time.sleep(0.1)
    return left


def test_no_factor_at_all(client):
    X = np.random.default_rng(0).normal(size=(150, 3))
    net = nngp.Architecture(1, "relu", 1e30, 0.0)
    with pytest.raises(nngp.errors.NotPositiveDefiniteError, match="150 duplicated") as caught:
        nngp.condition(net, np.tile(X, (2, 1)), np.arange(300.0), engine=nngp.DaskEngine(client))
    assert caught.value.failed_attempts > 5


def test_derivatives_say_where_they_are_computed(client, problem):
    engine = nngp.DaskEngine(client)
    with pytest.raises(ValueError, match="one machine"):
        fit(problem, engine).evidence_gradient()


def test_a_cluster_or_an_address_is_connected_to(client, problem, local):
    with nngp.DaskEngine(client.cluster) as engine:
        posterior = fit(problem, engine)
        check_same(posterior, local, problem.Xs)
    assert engine.client.status == "closed"
    for use in (lambda: posterior.mean(problem.Xs), lambda: fit(problem, engine), engine.__enter__):
        with pytest.raises(nngp.errors.ClusterError, match="is closed; make a new DaskEngine"):
            use()
    with pytest.raises(TypeError, match=r"such as nngp\.DaskEngine\(client\), got Client"):
        fit(problem, client)
    with nngp.DaskEngine(client) as engine:
        assert copy.deepcopy(engine) is engine
    assert client.status == "running"  # it was not ours
    again = pickle.loads(pickle.dumps(nngp.DaskEngine(client, 300)))
    assert (again.tile, again.client.scheduler.address) == (300, client.scheduler.address)
    again.close()
    with pytest.raises(nngp.errors.ClusterError, match="connect a new one"):
        nngp.DaskEngine(again.client)


def test_the_error_of_near_pairs_comes_home_to_every_engine(client, tmp_path):
    """Also where another engine has had the same kernel computed, or left it in the store."""
    X = np.random.default_rng(2).normal(size=(300, 4))
    X[180] = X[150] * (1 + 1e-12)  # not among the rows that are recomputed for the report
    X[180, 0] += 1e-13
    net = nngp.Architecture(1, "relu", 1.7, 0.3)
    local = nngp.condition(net, X, X[:, 0], noise_var=1e-2, engine="cpu").report.kernel_error
    for store in (None, None, tmp_path, tmp_path):
        with nngp.DaskEngine(client, 100, store) as engine:
            report = nngp.condition(net, X, X[:, 0], noise_var=1e-2, engine=engine).report
            assert report.kernel_error == pytest.approx(local, rel=1e-9)
    assert report.cluster["found_in_store"] > 0


def test_the_error_of_other_data_stays_with_them(client):
    X = np.random.default_rng(2).normal(size=(100, 4))
    near = np.vstack([X, X[50] * (1 + 1e-12)])
    net, engine = nngp.Architecture(1, "relu", 1.7, 0.3), nngp.DaskEngine(client, 100)
    errors = [
        nngp.condition(net, data, data[:, 0], noise_var=1e-2, engine=engine).report.kernel_error
        for data in (X, near, X)
    ]
    assert errors[0] == errors[2] != errors[1]


@pytest.mark.parametrize(
    "rows", [pytest.param(2, marks=pytest.mark.slow), pytest.param(32, marks=pytest.mark.deep)]
)
def test_activations_that_differ_far_out_are_told_apart(client, rows):
    X = nngp.normalize(np.random.default_rng(3).normal(size=(rows, 3)))
    X[::2] *= 60.0  # two norms: with one the scale of the kernel would tell them apart
    X[1::2] *= 40.0
    clips = (lambda x: np.clip(x, -50.0, 50.0)), (lambda x: np.clip(x, -90.0, 90.0))
    nets = [nngp.Architecture(1, nngp.Activation(clip, "c"), 2.0, 0.1) for clip in clips]
    ours, local = (  # the cluster still holds the first kernel when it is asked for the second
        [nngp.condition(net, X, X[:, 0], noise_var=1.0, engine=engine) for net in nets]
        for engine in (nngp.DaskEngine(client, 16), "cpu")
    )
    for one, other in zip(ours, local, strict=True):
        check_same(one, other, X[:5], 1e-8)
    assert ours[0].log_evidence != ours[1].log_evidence


@pytest.mark.parametrize("unit", [True, False], ids=["one norm", "any norms"])
def test_layers_on_top_of_an_average(client, unit):
    """Workers compute blocks as one machine does; what they scale by is that of their own rows."""
    rng = np.random.default_rng(7)
    X, Xs = rng.normal(size=(90, 6)), rng.normal(size=(12, 6))
    X[7] = X[3] * (1 + 1e-9)  # a near pair, whose error must come home
    if unit:
        X, Xs = nngp.normalize(X), nngp.normalize(Xs)
    average = nngp.Invariant(nngp.Architecture(1, "relu", 1.6, 0.1), nngp.images.flips((2, 3)))
    net = nngp.WithHead(average, nngp.Architecture(2, "relu", 2.0, 0.1))
    engines = "cpu", nngp.DaskEngine(client, 32)
    local, ours = (nngp.condition(net, X, X[:, 0], noise_var=1e-2, engine=e) for e in engines)
    check_same(ours, local, Xs)
    assert ours.report.kernel_error == pytest.approx(local.report.kernel_error, rel=1e-12)


def test_tangent_kernels_of_layers_on_top_of_an_average(client):
    rng = np.random.default_rng(8)
    X, Xs = rng.normal(size=(60, 6)), rng.normal(size=(9, 6))
    families = nngp.images.flips((2, 3))
    average = nngp.Invariant(nngp.NTK(nngp.Architecture(1, "erf", 1.6, 0.1)), families)
    net = nngp.WithHead(average, nngp.NTK(nngp.Architecture(1, "erf", 2.0, 0.1)))
    engines = "cpu", nngp.DaskEngine(client, 32)
    local, ours = (nngp.condition(net, X, X[:, 0], noise_var=1e-2, engine=e) for e in engines)
    check_same(ours, local, Xs)


def test_an_average_of_zero_has_no_head_on_a_cluster(client):
    odd = nngp.Invariant(nngp.Architecture(1, "erf", 1.0, 0.0), nngp.symmetries.signs())
    X, engine = nngp.normalize(np.eye(3) + 0.1), nngp.DaskEngine(client)
    with pytest.raises(nngp.errors.VarianceError, match="nothing for the head"):
        nngp.condition(nngp.WithHead(odd, nngp.Architecture(1)), X, np.ones(3), engine=engine)
