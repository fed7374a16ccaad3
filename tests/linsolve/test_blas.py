"""Tile functions against NumPy and SciPy, on views with any row stride."""

import numpy as np
import pytest
from scipy.linalg import solve_triangular

import nngp
from nngp.linsolve.engines import blas

RNG = np.random.default_rng(0)


def view(rows, columns):
    """A random matrix whose rows are not contiguous in memory."""
    return RNG.standard_normal((rows, columns + 7))[:, 3 : 3 + columns]


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (5, 3, 4), (200, 130, 300), (1, 200, 7)])
@pytest.mark.parametrize("transposed", [True, False])
def test_update(m, n, k, transposed):
    C, A = view(m, n), view(m, k)
    B = view(n, k) if transposed else view(k, n)
    expected = C - A @ (B.T if transposed else B)
    np.testing.assert_allclose(blas.update(C, A, B, transposed=transposed), expected, atol=1e-12)


def test_update_lower_leaves_the_upper_triangle_alone():
    C, A = view(150, 150), view(150, 40)
    before, expected = C.copy(), C - A @ A.T
    blas.update_lower(C, A)
    np.testing.assert_allclose(np.tril(C), np.tril(expected), atol=1e-12)
    assert np.array_equal(np.triu(C, 1), np.triu(before, 1))


@pytest.mark.parametrize("size", [1, 2, 127, 128, 129, 300, 517])
@pytest.mark.parametrize("transposed", [True, False])
def test_trsm(size, transposed):
    L = np.tril(view(size, size)) + 2 * size**0.5 * np.eye(size)
    C = view(9, size)
    expected = solve_triangular(L, C.T, lower=True, trans=0 if transposed else 1).T
    np.testing.assert_allclose(blas.trsm(L, C, transposed=transposed), expected, atol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 100, 128, 129, 300, 517])
def test_potrf(size):
    A = view(size, size)
    K = A @ A.T + size * np.eye(size)
    C = np.zeros((size, size + 5))[:, :size]
    C[...] = K
    np.testing.assert_allclose(blas.potrf(C), np.linalg.cholesky(K), atol=1e-11 * size)
    assert np.array_equal(np.triu(C, 1), np.zeros_like(C))


@pytest.mark.parametrize("spoil", [-1.0, np.nan, np.inf])
@pytest.mark.parametrize("size", [1, 50, 300])
def test_potrf_says_when_there_is_no_factor(size, spoil):
    C = np.eye(size)
    C[-1, -1] = spoil
    with pytest.raises(nngp.NotPositiveDefiniteError, match="pivot"):
        blas.potrf(C)


def test_fortran_order_is_refused_rather_than_misread():
    with pytest.raises(ValueError, match="C-ordered"):
        blas.potrf(np.asfortranarray(np.eye(4) + 0.1 * np.arange(16).reshape(4, 4)))
