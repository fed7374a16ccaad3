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


def test_update():
    for m, n, k in ((1, 1, 1), (5, 3, 4), (200, 130, 300), (1, 200, 7)):
        for transposed in (True, False):
            C, A = view(m, n), view(m, k)
            B = view(n, k) if transposed else view(k, n)
            expected = C - A @ (B.T if transposed else B)
            np.testing.assert_allclose(
                blas.update(C, A, B, transposed=transposed), expected, atol=1e-12
            )


def test_update_lower_leaves_the_upper_triangle_alone():
    C, A = view(150, 150), view(150, 40)
    before, expected = C.copy(), C - A @ A.T
    blas.update_lower(C, A)
    np.testing.assert_allclose(np.tril(C), np.tril(expected), atol=1e-12)
    assert np.array_equal(np.triu(C, 1), np.triu(before, 1))


def test_trsm():
    for size in (1, 2, 127, 128, 129, 300, 517):
        for transposed in (True, False):
            L = np.tril(view(size, size)) + 2 * size**0.5 * np.eye(size)
            C = view(9, size)
            expected = solve_triangular(L, C.T, lower=True, trans=0 if transposed else 1).T
            np.testing.assert_allclose(blas.trsm(L, C, transposed=transposed), expected, atol=1e-12)


def test_potrf():
    for size in (1, 2, 100, 128, 129, 300, 517):
        A = view(size, size)
        K = A @ A.T + size * np.eye(size)
        C = np.zeros((size, size + 5))[:, :size]
        C[...] = K
        np.testing.assert_allclose(blas.potrf(C), np.linalg.cholesky(K), atol=1e-11 * size)
        assert np.array_equal(np.triu(C, 1), np.zeros_like(C))


def test_potrf_says_when_there_is_no_factor():
    for spoil in (-1.0, np.nan, np.inf):
        for size in (1, 50, 300):
            C = np.eye(size)
            C[-1, -1] = spoil
            with pytest.raises(nngp.errors.NotPositiveDefiniteError, match="pivot"):
                blas.potrf(C)


def test_fortran_order_is_refused_rather_than_misread():
    with pytest.raises(ValueError, match="C-ordered"):
        blas.potrf(np.asfortranarray(np.eye(4) + 0.1 * np.arange(16).reshape(4, 4)))


SQUARE = np.eye(4) + 1.0
WRONG = {
    "too small": np.ones((2, 3)),
    "one row": np.ones((1, 384)),
    "one axis": np.ones(4),
    "three axes": np.ones((2, 2, 4)),
    "columns first": np.asfortranarray(np.arange(16.0).reshape(4, 4)),
    "rows backwards": np.ones((4, 4))[::-1],
    "columns backwards": np.ones((4, 4))[:, ::-1],
    "every other column": np.ones((4, 8))[:, ::2],
    "one row for all": np.broadcast_to(np.ones(4), (4, 4)),
    "rows that overlap": np.lib.stride_tricks.as_strided(np.ones(16), (4, 4), (16, 8)),
    "other bytes first": np.ones((4, 4), ">f8"),
    "not aligned": np.ones(129, np.uint8)[1:].view(np.float64).reshape(4, 4),
    "integers": np.ones((4, 4), int),
    "single precision": np.ones((4, 4), np.float32),
    "empty": np.ones((0, 4)),
}


def calls_with(wrong):
    return [
        lambda: blas.update(SQUARE.copy(), SQUARE, wrong),
        lambda: blas.update(SQUARE.copy(), wrong, SQUARE),
        lambda: blas.update(wrong, SQUARE, SQUARE),
        lambda: blas.update(SQUARE.copy(), SQUARE, wrong, transposed=False),
        lambda: blas.update_lower(wrong, SQUARE),
        lambda: blas.update_lower(SQUARE.copy(), wrong),
        lambda: blas.trsm(wrong, SQUARE.copy()),
        lambda: blas.trsm(np.eye(5), wrong),
        lambda: blas.trsm(wrong, SQUARE.copy(), transposed=False),
        lambda: blas.potrf(wrong[:, :3] if wrong.ndim == 2 else wrong),
    ]


def test_arrays_that_would_be_misread_are_refused():
    """A pointer carries no shape: with any of these BLAS would read or write elsewhere."""
    for wrong in WRONG.values():
        for call in calls_with(wrong):
            with pytest.raises(ValueError, match="tile"):
                call()


def test_what_must_not_be_written_is_not():
    fixed = SQUARE.copy()
    fixed.flags.writeable = False
    for call in (
        lambda: blas.update(fixed, SQUARE, SQUARE),
        lambda: blas.update_lower(fixed, SQUARE),
        lambda: blas.trsm(SQUARE, fixed),
        lambda: blas.potrf(fixed),
    ):
        with pytest.raises(ValueError, match="writeable"):
            call()
    assert np.array_equal(fixed, SQUARE)
    np.testing.assert_allclose(blas.update(SQUARE.copy(), fixed, fixed), SQUARE - SQUARE @ SQUARE.T)
