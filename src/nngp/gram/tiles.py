"""Filling a matrix by tiles: a product by BLAS, then elementwise work while it is in the cache.

Takes a function that computes any block; gives the matrix. Each thread does whole tiles with a
single-threaded BLAS, so that nothing waits for anything and no call is large (the OpenBLAS in the
NumPy wheels crashes on X @ X.T beyond 15,500 rows). Of a symmetric matrix the lower tiles are
computed, and mirrored while they are in the cache.
"""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

Array = NDArray[np.float64]

TILE = 640
STRIP = 32_768  # numbers transformed at a time: the temporaries fit the L2 cache


def fill(
    rows: int, columns: int, block: Callable[[slice, slice], Array], *, symmetric: bool
) -> Array:
    """The matrix whose blocks `block` computes."""
    out = allocate(rows, columns)

    def job(tile: tuple[slice, slice]) -> None:
        part = block(*tile)
        if symmetric and tile[0] == tile[1]:  # so far only up to the order of its sums
            part = np.tril(part) + np.tril(part, -1).T
        elif symmetric:
            out[tile[1], tile[0]] = part.T
        out[tile] = part

    tiles = [
        (down, across)
        for down in _slices(rows)
        for across in _slices(down.stop if symmetric else columns)
    ]
    with single_threaded_blas(), ThreadPoolExecutor(threads()) as pool:
        list(pool.map(job, tiles))
    return out


def _slices(size: int) -> list[slice]:
    return [slice(start, min(start + TILE, size)) for start in range(0, size, TILE)]


def strips(rows: slice, columns: slice) -> list[slice]:
    """`rows` in pieces whose block over `columns` has at most STRIP numbers."""
    height = max(1, STRIP // (columns.stop - columns.start))
    return [slice(s, min(s + height, rows.stop)) for s in range(rows.start, rows.stop, height)]


def single_threaded_blas() -> AbstractContextManager[Any]:
    """BLAS on one thread while tiles are computed, restored afterwards.

    Only from the main thread: from any other, OpenBLAS ignores the call that would restore it.
    """
    if threading.current_thread() is not threading.main_thread():
        return nullcontext()
    return _blas().limit(limits=1, user_api="blas")


@cache
def _blas() -> ThreadpoolController:
    import scipy.linalg.blas  # noqa: F401  # has its own OpenBLAS, which must be found as well

    return ThreadpoolController()


def threads() -> int:
    """How many threads this process may keep busy."""
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
    """Bytes that can be taken without swapping, or past a container's limit, where known."""
    known = [free for free in (_of_the_machine(), _of_the_container()) if free is not None]
    return min(known, default=None)


def _of_the_machine() -> int | None:
    fields = _fields("/proc/meminfo")
    return None if "MemAvailable:" not in fields else fields["MemAvailable:"] * 1024


def _of_the_container() -> int | None:
    """From the control group: its limit, less what is used and cannot be given up."""
    folder = "/sys/fs/cgroup/"
    try:
        limit = int(Path(folder, "memory.max").read_text())
        used = int(Path(folder, "memory.current").read_text())
    except (OSError, ValueError):  # no such group, or "max": no limit
        return None
    return limit - used + _fields(folder + "memory.stat").get("inactive_file", 0)


def _fields(path: str) -> dict[str, int]:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return {}
    return {words[0]: int(words[1]) for words in map(str.split, lines) if len(words) > 1}
