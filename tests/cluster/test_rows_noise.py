"""Noise by row on a cluster: the answer of one machine, by both solvers, and after an update."""

import numpy as np
import pytest
from clusters import Problem, check_same

import nngp
from nngp.linsolve.engines.dask.dask_engine import DaskEngine

RNG = np.random.default_rng(0)
NET = nngp.Architecture(2, "relu", 1.6, 0.1)
X = RNG.standard_normal((120, 5))
XS = RNG.standard_normal((20, 5))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1]])
NOISE = 10.0 ** RNG.uniform(-5, 5, 120)


@pytest.fixture(params=["whole", pytest.param("split", marks=pytest.mark.slow)])
def problem(request):
    inputs = nngp.normalize if request.param == "split" else np.asarray
    return Problem(NET, inputs(X), Y, inputs(XS), NOISE)


@pytest.fixture
def engine(client):
    return DaskEngine(client, tile=60)


def conditioned(problem, engine, rows=slice(None), **options):
    X, Y, noise = problem.X[rows], problem.Y[rows], problem.noise[rows]
    return nngp.condition(problem.net, X, Y, noise_var=noise, engine=engine, **options)


def test_the_factor(problem, engine):
    local, found = (conditioned(problem, place) for place in ("cpu", engine))
    check_same(found, local, problem.Xs)
    np.testing.assert_array_equal(found.noise_var, NOISE)
    left, expected = found.leave_one_out(noise=True), local.leave_one_out(noise=True)
    np.testing.assert_allclose(left.variance, expected.variance, rtol=1e-9)
    first = conditioned(problem, engine, slice(100))
    first.update(problem.X[100:], problem.Y[100:], noise_var=NOISE[100:])
    check_same(first, local, problem.Xs)


@pytest.mark.slow
@pytest.mark.parametrize("preconditioner", ["nystrom", "single"])
def test_conjugate_gradients(engine, preconditioner):
    rank = 80 if preconditioner == "nystrom" else None
    solver = nngp.CG(tolerance=1e-9, preconditioner=preconditioner, rank=rank)
    problem = Problem(NET, X, Y, XS[:4], NOISE)
    local, found = conditioned(problem, "cpu"), conditioned(problem, engine, solver=solver)
    assert found.report.preconditioner == preconditioner
    (mean, variance), (mean0, variance0) = (p.predict(problem.Xs) for p in (found, local))
    np.testing.assert_allclose(mean, mean0, rtol=0, atol=1e-6 * np.abs(mean0).max())
    np.testing.assert_allclose(variance, variance0, rtol=0, atol=1e-6 * variance0.max())


def test_tiles_of_other_noise_are_not_used_again(problem, client, tmp_path):
    """Tiles in a store are named by all that they depend on."""
    engine = DaskEngine(client, tile=60, store=tmp_path)
    conditioned(problem, engine)
    other = NOISE.copy()
    other[70] *= 3
    found = nngp.condition(NET, problem.X, Y, noise_var=other, engine=engine)
    check_same(found, nngp.condition(NET, problem.X, Y, noise_var=other), problem.Xs)
