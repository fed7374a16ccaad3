"""Conjugate gradients on a cluster: the same answer, also when a worker dies in the middle."""

import numpy as np
import pytest
from clusters import Killer, fit, is_alive, processes

import nngp


@pytest.mark.parametrize("preconditioner", ["nystrom", "single"])
def test_conjugate_gradients_agree_with_the_factor(client, problem, local, preconditioner):
    engine = nngp.DaskEngine(client)
    solver = nngp.CG(tolerance=1e-11, preconditioner=preconditioner)
    posterior = fit(problem, engine, solver=solver)
    (mean, variance), (mean0, variance0) = (p.predict(problem.Xs[:9]) for p in (posterior, local))
    np.testing.assert_allclose(mean, mean0, rtol=0, atol=1e-8 * np.abs(mean0).max())
    np.testing.assert_allclose(variance, variance0, rtol=0, atol=1e-8 * variance0.max())
    assert posterior.report.solver == "cg"
    assert len(engine.listener.pids) == 2


def test_a_worker_killed_in_the_middle_changes_nothing(problem, local):
    with processes() as client:
        engine = nngp.DaskEngine(client)
        solver = nngp.CG(tolerance=1e-10, rank=100, preconditioner="nystrom")
        calm = fit(problem, engine, solver=solver)
        seen = len(engine.listener.done)

        class InTheMiddle(Killer):
            def __call__(self, step):
                if step.phase.startswith("cg"):
                    super().__call__(step)

        killer = InTheMiddle(engine, after=seen + 20)
        posterior = fit(problem, engine, solver=solver, progress=killer)
        assert len(killer.killed) == 1
        assert not is_alive(killer.killed[0])
        assert posterior.report.iterations == calm.report.iterations
        np.testing.assert_allclose(posterior.mean(problem.Xs), local.mean(problem.Xs), atol=1e-7)


def test_auto_takes_conjugate_gradients_where_the_factor_does_not_fit(problem):
    with processes(memory="260MB") as client:
        engine = nngp.DaskEngine(client, 256)
        assert nngp.forecast(30_000, 12, engine=engine).fits is False
        assert nngp.forecast(3_000, 12, engine=engine).fits is True
