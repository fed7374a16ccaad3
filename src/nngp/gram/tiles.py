"""Filling a matrix by tiles: a product by BLAS, then elementwise work while it is in the cache.

Takes unit vectors and an elementwise `transform`; gives the transformed matrix of inner products.
Each thread does whole tiles with a single-threaded BLAS, so that nothing waits for anything and no
call is large (the OpenBLAS in the NumPy wheels crashes on X @ X.T beyond 15,500 rows). Of a
symmetric matrix the lower tiles are computed, and mirrored while they are in the cache.
"""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

Array = NDArray[np.float64]
Transform = Callable[[Array, slice, slice], None]  # in place on block[rows, columns]

TILE = 640
STRIP = 32_768  # numbers transformed at a time: the temporaries fit the L2 cache


def fill(left: Array, right: Array | None, transform: Transform) -> Array:
    """The matrix of transformed products left · rightᵀ; `right` None means left, symmetric."""
    symmetric, other = right is None, left if right is None else right
    out = allocate(len(left), len(other))

    def job(tile: tuple[slice, slice]) -> None:
        rows, columns = tile
        block = left[rows] @ other[columns].T
        for strip in _strips(rows, columns):
            local = slice(strip.start - rows.start, strip.stop - rows.start)
            transform(block[local], strip, columns)
        if symmetric and rows == columns:  # so far only up to the order of its sums
            block = np.tril(block) + np.tril(block, -1).T
        elif symmetric:
            out[columns, rows] = block.T
        out[rows, columns] = block

    tiles = [
        (rows, columns)
        for rows in _slices(len(left))
        for columns in _slices(rows.stop if symmetric else len(other))
    ]
    with _single_threaded_blas(), ThreadPoolExecutor(_threads()) as pool:
        list(pool.map(job, tiles))
    return out


def _slices(size: int) -> list[slice]:
    return [slice(start, min(start + TILE, size)) for start in range(0, size, TILE)]


def _strips(rows: slice, columns: slice) -> list[slice]:
    height = max(1, STRIP // (columns.stop - columns.start))
    return [slice(s, min(s + height, rows.stop)) for s in range(rows.start, rows.stop, height)]


def _single_threaded_blas() -> AbstractContextManager[Any]:
    """BLAS on one thread while tiles are filled, restored afterwards.

    Only from the main thread: from any other, OpenBLAS ignores the call that would restore it.
    """
    if threading.current_thread() is not threading.main_thread():
        return nullcontext()
    return _blas().limit(limits=1, user_api="blas")


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def _threads() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def allocate(rows: int, columns: int) -> Array:
    """An uninitialised matrix, refused with a sentence where memory cannot hold it."""
    needed, free = rows * columns * 8, available_memory()
    if free is not None and needed > free:
        raise MemoryError(
            f"a {rows} x {columns} kernel matrix takes {needed / 1e9:.1f} GB and "
            f"{free / 1e9:.1f} GB are free; use at most {int((free / 8) ** 0.5)} points at a time"
        )
    return np.empty((rows, columns))


def available_memory() -> int | None:
    """Bytes that can be taken without swapping, where the system tells."""
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None
