"""The chains against SciPy, for every engine, with ragged tiles."""

import numpy as np
import pytest
from scipy.linalg import cholesky, solve_triangular

from nngp.errors import NotPositiveDefiniteError
from nngp.linsolve import Factor, Progress, backward, factorise, forward, inverse_rows, merge_last
from nngp.linsolve.tiling import cut, flops, spans

RNG = np.random.default_rng(1)
EDGES = [(0, 1), (0, 30), (0, 7, 14, 21, 28, 30), (0, 1, 2, 30), (0, 13, 14, 30)]


def matrix(n):
    A = RNG.standard_normal((n, n))
    return A @ A.T + n * np.eye(n)


def factor_of(run, K, edges, known=None):
    parts = spans(edges)

    def first(i, j):
        return run.put(K[parts[i], parts[j]].copy())

    rows, log_det, _ = factorise(run, first, edges, Progress("", 1.0, None), known)
    return Factor(edges, rows, 0.0, log_det)


def dense(factor):
    out = np.zeros((factor.n, factor.n))
    for i, row in zip(factor.slices, factor.rows, strict=True):
        for j, tile in zip(factor.slices, row, strict=False):
            out[i, j] = np.asarray(tile)
    return out


@pytest.mark.slow_on_jax("edges0")
@pytest.mark.slow_on_jax("edges1")
@pytest.mark.slow_on_jax("edges3")
@pytest.mark.slow_on_jax("edges4")
@pytest.mark.parametrize("edges", EDGES)
def test_factor_determinant_solves_and_inverse(engine, edges):
    K = matrix(edges[-1])
    L = cholesky(K, lower=True)
    B = RNG.standard_normal((4, edges[-1]))
    with engine.run() as run:
        factor = factor_of(run, K, edges)
        parts = factor.slices
        row = forward(run, factor, [lambda j: run.put(B[:, parts[j]].copy())])[0]
        there = np.concatenate([np.asarray(run.wait(t)) for t in row], axis=1)
        back = backward(run, factor, [run.wait(t) for t in row])
        solved = np.concatenate([np.asarray(run.wait(t)) for t in back], axis=1)
        inverse = np.zeros((factor.n, factor.n))
        for i, tiles in enumerate(inverse_rows(run, factor, range(len(parts)))):
            for j, tile in enumerate(tiles):
                inverse[parts[i], parts[i + j]] = np.asarray(run.wait(tile))
        found = dense(factor)
    np.testing.assert_allclose(found, L, atol=1e-12)
    assert factor.log_det == pytest.approx(np.linalg.slogdet(K)[1], rel=1e-13)
    np.testing.assert_allclose(there, solve_triangular(L, B.T, lower=True).T, atol=1e-12)
    np.testing.assert_allclose(solved, np.linalg.solve(K, B.T).T, atol=1e-12)
    np.testing.assert_allclose(inverse, np.linalg.inv(L).T, atol=1e-12)


@pytest.mark.slow_on_jax
def test_new_rows_extend_the_factor_and_small_tiles_are_merged(engine):
    K = matrix(30)
    with engine.run() as run:
        factor = factor_of(run, K[:20, :20], (0, 7, 14, 20))
        kept = factor.rows[0][0]
        for n in (21, 22, 30):
            edges = (*factor.edges[:-1], *cut(n, 7, factor.n))
            grown = factor_of(run, K[:n, :n], edges, factor.rows)
            factor = merge_last(run, grown, 7)
        L = dense(factor)
    assert factor.rows[0][0] is kept
    assert factor.edges == (0, 7, 14, 21, 22, 29, 30)
    np.testing.assert_allclose(L, cholesky(K, lower=True), atol=1e-12)
    assert factor.log_det == pytest.approx(np.linalg.slogdet(K)[1], rel=1e-13)


def test_a_matrix_without_factor(engine):
    for bad in (0, 10, 29):
        K = matrix(30)
        K[bad, bad] = -1.0
        with engine.run() as run, pytest.raises(NotPositiveDefiniteError):
            factor_of(run, K, (0, 7, 14, 21, 28, 30))


def test_operations_add_up():
    n = 1000
    assert flops(cut(n, 100)) == pytest.approx(n**3 / 3, rel=0.01)
    edges = cut(n, 100)
    assert flops(edges, begin=4) == pytest.approx(flops(edges) - flops(cut(400, 100)), rel=1e-12)


def test_stacked_solves_on_a_device(monkeypatch):
    """Solves are collected until they fill the device; here after every other tile."""
    jax = pytest.importorskip("jax")
    from nngp.linsolve.engines import gpu

    monkeypatch.setattr(gpu, "STACKS", (2, 1))
    K = matrix(60)
    with gpu.GpuEngine(jax.devices()[0], tile=7).run() as run:
        L = dense(factor_of(run, K, cut(60, 7)))
    np.testing.assert_allclose(L, cholesky(K, lower=True), atol=1e-12)


def test_an_error_in_a_kernel_tile_reaches_the_caller(engine):
    def first(i, j):
        raise ZeroDivisionError("a tile went wrong")

    with engine.run() as run, pytest.raises(ZeroDivisionError, match="a tile went wrong"):
        factorise(run, first, (0, 7, 14), Progress("", 1.0, None))
