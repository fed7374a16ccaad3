"""The CPU engine: a few threads, each doing whole chains with a single-threaded BLAS.

Chains are started in the order given and wait inside for what they need. As they only need
earlier ones this cannot lock up, and the updates of the next column run while a diagonal tile is
being finished.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack
from copy import copy
from typing import Any

import numpy as np

from nngp import _machine
from nngp._arrays import Array
from nngp.gram import HostBackend, KernelBackend, Tile
from nngp.linsolve.engines import blas
from nngp.linsolve.engines.engine import (
    Engine,
    EngineRun,
    Handle,
    TileChain,
    TileFunction,
    TileType,
)
from nngp.linsolve.tiling import even_size

TILE, SMALLEST_TILE, ALIGNED = 768, 192, 16
ROWS = 192


class CpuEngine(Engine):
    """Tiles in host memory."""

    name = "cpu"
    kernels: KernelBackend = HostBackend()
    dtype: TileType = np.dtype(np.float64)

    def single(self) -> "CpuEngine":
        """The same with float32 tiles."""
        out = copy(self)
        out.dtype = np.dtype(np.float32)
        return out

    def tile_size(self, n: int) -> int:
        """Even tiles of at most 768 rows; smaller if many cores would otherwise starve."""
        wanted = min(TILE, max(SMALLEST_TILE, n // (4 * _machine.threads())))
        return even_size(n, wanted, ALIGNED)

    @property
    def width(self) -> int:
        return _machine.threads()

    def rows_at_a_time(self, n: int) -> int:
        return ROWS

    def free_memory(self) -> int | None:
        return _machine.available_memory()

    def rate(self) -> float:
        """Multiply-adds a second, times two, from one product of tiles on every thread."""
        A = np.ones((TILE, TILE))

        def product() -> None:
            blas.update(np.zeros((TILE, TILE)), A, A)

        with self.run() as run:
            for _ in range(3):  # the first rounds wake things up
                start = time.perf_counter()
                for job in [run.apply(product) for _ in range(run.width)]:
                    run.wait(job)
                spent = time.perf_counter() - start
        return run.width * 2.0 * TILE**3 / spent

    def factor_memory(self) -> "Arena | None":
        return Arena() if self.dtype == np.float64 else None  # kernel blocks are float64

    def run(self) -> "CpuRun":
        return CpuRun(self.dtype)


class Arena:
    """Memory for lower tiles, one array for each row of tiles: large enough for huge pages."""

    def __init__(self) -> None:
        self._rows: dict[int, Array] = {}
        self._lock = threading.Lock()

    def tile(self, rows: slice, columns: slice) -> Array:
        """The memory of tile (rows, columns)."""
        height = rows.stop - rows.start
        with self._lock:
            if rows.start not in self._rows:
                self._rows[rows.start] = np.empty(height * rows.stop)
            flat = self._rows[rows.start]
        return flat[height * columns.start : height * columns.stop].reshape(height, -1)


class _StoppedError(Exception):
    """Raised inside chains when the job is given up."""


class _CallingThread(Executor):
    """Does at once what is submitted: chains need earlier ones only."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            # Its traceback would keep this frame, and the arrays of the failed job, alive until the
            # cyclic collector runs: another attempt needs that memory at once.
            future.set_exception(error.with_traceback(None))
        return future


class CpuRun(EngineRun):
    """A thread pool for the length of one job."""

    ahead = 1

    def __init__(self, dtype: TileType) -> None:
        self._dtype = dtype
        self.width = _machine.threads()
        self._stop = threading.Event()
        self._stack = ExitStack()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> "CpuRun":
        self._pool: Executor = _CallingThread()
        if self.width > 1:
            self._pool = ThreadPoolExecutor(
                self.width, thread_name_prefix="nngp", initializer=self._register
            )
        self._stack.enter_context(_machine.single_threaded_blas())
        return self

    def close(self, error: BaseException | None) -> None:
        self._stop.set()
        try:
            self._pool.shutdown(wait=error is None, cancel_futures=True)
            self._join_threads()
        finally:
            self._stack.close()

    def _register(self) -> None:
        self._threads.append(threading.current_thread())
        _machine.limit_this_thread()

    def _join_threads(self) -> None:
        """Wait for the threads, even if the user presses Ctrl-C repeatedly.

        Not by joining: a join that is interrupted takes its thread for dead.
        """
        while True:
            try:
                while any(thread.is_alive() for thread in self._threads):
                    time.sleep(0.002)
                return
            except KeyboardInterrupt:
                continue  # the first one is already on its way

    def begin(self, chain: TileChain) -> Handle:
        return self._pool.submit(self._compute, chain)

    def _compute(self, chain: TileChain) -> Tile:
        C = chain.first().astype(self._dtype, copy=False)
        for a, b in chain.pairs:
            self._check_stopped()
            if a is b and chain.ends_in_potrf:
                blas.update_lower(C, self.wait(a))
            else:
                blas.update(C, self.wait(a), self.wait(b), transposed=chain.transposed)
        self._check_stopped()
        if chain.ends_in_potrf:
            blas.potrf(C)
        elif chain.last is not None:
            blas.trsm(self.wait(chain.last), C, transposed=chain.transposed)
        return C if chain.then is None else chain.then(C, *map(self.wait, chain.beside))

    def apply(self, function: TileFunction, *handles: Handle) -> Handle:
        def job() -> Tile:
            self._check_stopped()
            return function(*(self.wait(h) for h in handles))

        return self._pool.submit(job)

    def wait(self, handle: Handle) -> Tile:
        return handle.result() if isinstance(handle, Future) else handle

    def fetch(self, handle: Handle) -> Array:
        return np.asarray(self.wait(handle))

    def put(self, array: Array) -> Tile:
        return np.ascontiguousarray(array, dtype=self._dtype)

    def zeros(self, rows: int, columns: int) -> Tile:
        return np.zeros((rows, columns), dtype=self._dtype)

    def copy(self, handle: Handle) -> Tile:
        return self.wait(handle).copy()

    def _check_stopped(self) -> None:
        if self._stop.is_set():
            raise _StoppedError
