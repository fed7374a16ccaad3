"""Positive definite matrices that fit in memory, in place, by the threads of a pool.

Takes a matrix whose lower triangle is set; gives its factor, its inverse, products. Without a pool
these are single calls of BLAS and LAPACK. With one, the same work in blocks of columns: threads of
BLAS itself would wait for each other by spinning.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np

from nngp._arrays import Array
from nngp.linsolve.engines import blas

FACTORED, INVERTED = 256, 128  # columns at a time, by measurement
SMALLEST = 768  # rows from which threads pay


def factor(K: Array, pool: Executor | None = None) -> Array:
    """The lower Cholesky factor, in place; what is above the diagonal is not touched."""
    n = len(K)
    if pool is None or n < SMALLEST:
        return blas.potrf(K, clean=False)
    for columns in _blocks(0, n, FACTORED):
        corner = blas.potrf(K[columns, columns], clean=False)
        below = list(_blocks(columns.stop, n, FACTORED))

        def solve(rows: slice, corner: Array = corner, columns: slice = columns) -> None:
            blas.trsm(corner, K[rows, columns])

        def update(rows: slice, columns: slice = columns) -> None:
            if rows.start > columns.stop:
                before = slice(columns.stop, rows.start)
                blas.update(K[rows, before], K[rows, columns], K[before, columns])
            blas.update_lower(K[rows, rows], K[rows, columns])

        _each(pool, solve, below)
        _each(pool, update, below[::-1])  # the longest first
    return K


def inverse(L: Array, pool: Executor | None = None, out: Array | None = None) -> Array:
    """The inverse of L Lᵀ in the lower triangle of `out`, or of L if there is no pool.

    Column block c of the inverse is L⁻ᵀ L⁻¹ E with E that block of the identity, and below its
    first row only the part of L below that row matters.
    """
    n = len(L)
    if pool is None or n < SMALLEST:
        return blas.potri(L)
    result = np.empty_like(L) if out is None else out

    def solve(columns: slice) -> None:
        size, rest = columns.stop - columns.start, slice(columns.start, n)
        rows = np.eye(size, n - columns.start)  # transposed, as BLAS here sees rows
        blas.trsm(L[rest, rest], rows)
        blas.trsm(L[rest, rest], rows, transposed=False)
        result[rest, columns] = rows.T

    _each(pool, solve, list(_blocks(0, n, INVERTED)))
    return result


def product(A: Array, B: Array, pool: Executor | None = None) -> Array:
    """A B."""
    out = np.empty((len(A), B.shape[1]))

    def multiply(rows: slice) -> None:
        np.matmul(A[rows], B, out=out[rows])

    if pool is None or len(A) < SMALLEST:
        multiply(slice(None))
    else:
        _each(pool, multiply, list(_blocks(0, len(A), FACTORED)))
    return out


def mirror(lower: Array) -> Array:
    """Copy the lower triangle to the upper one, in place."""
    for rows in _blocks(0, len(lower), INVERTED):
        corner = lower[rows, rows]
        corner[...] = np.tril(corner) + np.tril(corner, -1).T
        lower[: rows.start, rows] = lower[rows, : rows.start].T
    return lower


def _blocks(start: int, stop: int, size: int) -> Iterator[slice]:
    for first in range(start, stop, size):
        yield slice(first, min(first + size, stop))


def _each(pool: Executor, work: Callable[[slice], Any], blocks: Sequence[slice]) -> None:
    for _ in pool.map(work, blocks):
        pass
