"""Conjugate gradients on a cluster: the same answer, also when a worker dies in the middle."""

import numpy as np
import pytest
from clusters import Killer, Problem, fit, is_alive, processes

import nngp
from nngp.posterior.setup import choose_solver, find_engine


@pytest.fixture(scope="module")
def small(problem):
    return Problem(problem.net, problem.X[:300], problem.Y[:300], problem.Xs[:3])


@pytest.fixture(scope="module")
def answer(small):
    return fit(small, "cpu").predict(small.Xs)


SLOW = pytest.param({"rank": 250}, marks=pytest.mark.slow)


@pytest.mark.parametrize("how", [SLOW, {"preconditioner": "single"}])
def test_conjugate_gradients_agree_with_the_factor(client, small, answer, how):
    engine = nngp.DaskEngine(client, 200)
    solver = nngp.CG(tolerance=1e-8, **how)
    posterior = fit(small, engine, solver=solver)
    for ours, theirs in zip(posterior.predict(small.Xs), answer, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5 * np.abs(theirs).max())
    assert (posterior.report.solver, posterior.report.engine) == ("cg", "dask")
    assert posterior.report.residual <= 1e-8
    assert len(engine.listener.pids) == 2


def test_single_precision_shares_the_connection(client):
    """A connection of its own would be one that nobody ends."""
    with nngp.DaskEngine(client.cluster) as engine:
        single = engine.single()
        assert (single.dtype, engine.dtype) == (np.float32, np.float64)
        assert single.client is engine.client
    assert single.client.status == "closed"


class InTheMiddle(Killer):
    """Kills once the iteration has begun."""

    def __call__(self, step):
        if step.phase.startswith("cg") and step.done > 0.2:
            super().__call__(step)


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_changes_nothing(small, answer):
    with processes() as client:
        engine = nngp.DaskEngine(client, 200)
        solver = nngp.CG(tolerance=1e-3, rank=100, preconditioner="nystrom")
        calm = fit(small, engine, solver=solver)
        killer = InTheMiddle(engine, after=1)
        posterior = fit(small, engine, solver=solver, progress=killer)
        assert len(killer.killed) == 1
        assert not is_alive(killer.killed[0])
        assert posterior.report.iterations == calm.report.iterations > 2
        assert posterior.report.cluster["computed_again"] >= 1
        np.testing.assert_allclose(posterior.mean(small.Xs), calm.mean(small.Xs), rtol=1e-12)


def test_auto_takes_conjugate_gradients_where_the_factor_does_not_fit(client, small, tmp_path):
    engine = nngp.DaskEngine(client)
    assert nngp.forecast(3_000, 12, engine=engine).fits
    assert not nngp.forecast(60_000, 12, engine=engine).fits
    assert fit(small, engine).report.solver == "cholesky"
    big = nngp.DaskEngine(client, store=tmp_path)
    assert (
        choose_solver("auto", find_engine(big, Points(60_000), 1, None, solver="auto")[1]) is None
    )
    none = find_engine(engine, Points(60_000), 1, None, solver="auto")[1]
    assert isinstance(choose_solver("auto", none), nngp.CG)


class Points:
    """Inputs of which there is nothing but a number."""

    def __init__(self, n):
        self.shape = n, 12


def test_iterations_leave_nothing_in_a_store(client, small, tmp_path):
    engine = nngp.DaskEngine(client, 200, store=tmp_path)
    solver = nngp.CG(tolerance=1e-2, rank=50, preconditioner="nystrom")
    posterior = fit(small, engine, solver=solver)
    posterior.variance(small.Xs)
    assert len(list(tmp_path.rglob("*.safetensors"))) == 3  # blocks of inputs


def test_float32_tiles_can_only_precondition(client, small):
    with pytest.raises(ValueError, match="float64 tiles"):
        fit(small, nngp.DaskEngine(client, dtype="float32"), solver="cg")
