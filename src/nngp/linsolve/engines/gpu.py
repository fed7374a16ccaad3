"""The GPU engine: the same chains as jitted JAX programs, queued one after the other.

JAX returns before the device has computed, so the queue is always full; a chain donates its tile
from link to link, and memory is the lower tiles and a few in flight. Runs on JAX's CPU as well,
which is how it is tested without a GPU.
"""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from copy import copy
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nngp._arrays import Array, DeviceArray
from nngp.errors import NotPositiveDefiniteError
from nngp.gram import KernelBackend, Tile
from nngp.gram.device.backend import DeviceBackend
from nngp.linsolve.engines.engine import (
    Engine,
    EngineRun,
    Handle,
    TileChain,
    TileFunction,
    TileType,
)
from nngp.linsolve.tiling import even_size

DOUBLE = np.dtype(np.float64)
TILE, SMALL_TILE, SMALL_N = 3072, 2048, 60_000
LARGEST_WHOLE_MATRIX = 24_576
ALIGNED = 16  # rows of a tile are a multiple of this: products are much slower otherwise
PRODUCT = 8192  # rows of a tile that is multiplied by: large, as each costs the host some time
STACK = 8192  # rows solved at a time: a triangular solve of one tile leaves the device idle


@partial(jax.jit, donate_argnums=0, static_argnames="transposed")
def _update(C: DeviceArray, A: DeviceArray, B: DeviceArray, *, transposed: bool) -> DeviceArray:
    # float32 products would be rounded to 10 bits on the way
    precision = lax.Precision.HIGHEST if C.dtype == jnp.float32 else None
    return C - jnp.matmul(A, B.T if transposed else B, precision=precision)


@partial(jax.jit, donate_argnums=0)
def _potrf(C: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    L = lax.linalg.cholesky(C, symmetrize_input=False)
    return L, jnp.isfinite(jnp.diagonal(L)).all()


@partial(jax.jit, donate_argnums=1, static_argnames="transposed")
def _trsm(L: DeviceArray, tiles: tuple[DeviceArray, ...], *, transposed: bool) -> list[DeviceArray]:
    C = jnp.concatenate(tiles)
    X = lax.linalg.triangular_solve(L, C, left_side=False, lower=True, transpose_a=transposed)
    return jnp.split(X, np.cumsum([len(tile) for tile in tiles])[:-1])


@partial(jax.jit, static_argnames="cuts")
def _columns(X: DeviceArray, cuts: tuple[int, ...]) -> list[DeviceArray]:
    return jnp.split(X, cuts, axis=1)


@cache
def _jitted(function: TileFunction) -> TileFunction:
    return jax.jit(function)


def _program(function: TileFunction) -> TileFunction:
    """The function as one compiled program, if it is marked so."""
    return _jitted(function) if getattr(function, "compiled", False) else function


def gpu_device() -> jax.Device | None:
    """The first GPU that JAX sees, or None."""
    try:
        return jax.devices("gpu")[0]
    except RuntimeError:
        return None


class GpuEngine(Engine):
    """Tiles on one JAX device."""

    name = "gpu"
    kernels: KernelBackend = DeviceBackend()
    copies_inputs = True
    largest_rank = 20_480
    single_cost = 1.0
    width: int = 1
    product_tiles_in_flight: int = 12  # a program for a tile has intermediate arrays of its size
    dtype: TileType = DOUBLE

    def __init__(self, device: jax.Device | None = None, tile: int | None = None) -> None:
        self.device: Any = device or gpu_device()
        self._tile = tile
        self.largest_whole_matrix = tile or LARGEST_WHOLE_MATRIX

    def tile_size(self, n: int) -> int:
        """Even tiles of at most 3072 rows, or 2048 for a smaller matrix."""
        wanted = self._tile or (SMALL_TILE if n <= SMALL_N else TILE)
        return even_size(n, wanted, ALIGNED)

    def product_size(self, n: int) -> int:
        """Tiles of one size if n allows it: every other one is compiled for anew."""
        if self._tile is not None or n <= PRODUCT:
            return even_size(n, self._tile or PRODUCT, ALIGNED)
        even = [s for s in range(PRODUCT // 2, PRODUCT * 5 // 4, ALIGNED) if n % s == 0]
        return max(even, default=even_size(n, PRODUCT, ALIGNED))

    def single(self) -> "GpuEngine":
        """The same with float32 tiles; what kernel blocks are computed in stays float64."""
        out = copy(self)
        out.dtype = np.dtype(np.float32)
        return out

    def padded_size(self, n: int) -> int:
        """A power of two up to 1,024 rows, a multiple of 1,024 beyond."""
        return max(64, 1 << (n - 1).bit_length()) if n < 1024 else -(-n // 1024) * 1024

    def rows_at_a_time(self, n: int) -> int:
        """As many as fill a quarter of what is free, or 4.5 GB."""
        free = self.free_memory()
        room = 4.5e9 if free is None else min(4.5e9, free / 4)
        return int(min(16_384, max(256, room // (8 * n))))

    def free_memory(self) -> int | None:
        """Free bytes of JAX's pool; XLA_PYTHON_CLIENT_MEM_FRACTION makes the pool larger."""
        stats: dict[str, int] = self.device.memory_stats() or {}
        if "bytes_limit" not in stats:
            return None
        return int(stats["bytes_limit"] - stats["bytes_in_use"])

    def rate(self) -> float:
        return _measured_rate(self.device)

    def run(self) -> "GpuRun":
        return GpuRun(self.device, self.dtype)


@cache
def _measured_rate(device: jax.Device) -> float:
    """From a few products of tiles, once compiled."""
    size = SMALL_TILE
    with GpuRun(device) as run:
        A, C = run.put(np.ones((size, size))), run.put(np.zeros((size, size)))
        C = run.wait(_update(C, A, A, transposed=True))
        start = time.perf_counter()
        for _ in range(8):
            C = _update(C, A, A, transposed=True)
        run.wait(C)
        return 8 * 2.0 * size**3 / (time.perf_counter() - start)


class _Unsolved:
    """A tile whose triangular solve waits for company."""

    tile: DeviceArray = None


class GpuRun(EngineRun):
    """Double precision and the device, for the length of one job."""

    width = ahead = 1

    def __init__(self, device: jax.Device, dtype: TileType = DOUBLE) -> None:
        self._device, self._dtype, self._stack = device, dtype, ExitStack()
        self._pivots: dict[int, DeviceArray] = {}
        self._queue: list[tuple[_Unsolved, DeviceArray]] = []
        self._queue_with, self._diagonal = (0, True), None

    def __enter__(self) -> "GpuRun":
        self._stack.enter_context(jax.enable_x64(True))
        self._stack.enter_context(jax.default_device(self._device))
        return self

    def close(self, error: BaseException | None) -> None:
        self._stack.close()
        if isinstance(error, RuntimeError) and "RESOURCE_EXHAUSTED" in str(error):
            raise MemoryError(
                "the GPU ran out of memory; use fewer points or engine='cpu', or give JAX more of "
                "the GPU with XLA_PYTHON_CLIENT_MEM_FRACTION=0.95"
            ) from error

    def begin(self, chain: TileChain) -> Handle:
        C = chain.first().astype(self._dtype)
        for a, b in chain.pairs:
            C = _update(C, self._value(a), self._value(b), transposed=chain.transposed)
        if chain.ends_in_potrf:
            C, positive = _potrf(C)
            self._pivots[id(C)] = positive
        elif chain.last is not None:
            C = self._solve(self._value(chain.last), C, chain.transposed)
        return C if chain.then is None else self.apply(chain.then, C, *chain.beside)

    def apply(self, function: TileFunction, *handles: Handle) -> Handle:
        return _program(function)(*(self._value(h) for h in handles))

    def wait(self, handle: Handle) -> DeviceArray:
        positive = self._pivots.pop(id(handle), None)
        if positive is not None and not bool(positive):
            raise NotPositiveDefiniteError("a pivot of the Cholesky factorisation is not positive")
        tile = self._value(handle)
        return tile.block_until_ready() if isinstance(tile, jax.Array) else tile

    def fetch(self, handle: Handle) -> Array:
        return np.asarray(self.wait(handle))

    def put(self, array: Array) -> Tile:
        return jnp.asarray(array, dtype=self._dtype)

    def columns(self, array: Array, edges: Sequence[int]) -> list[Tile]:
        return _columns(self.put(array), tuple(edges[1:-1]))

    def zeros(self, rows: int, columns: int) -> Tile:
        return jnp.zeros((rows, columns), dtype=self._dtype)

    def copy(self, handle: Handle) -> Tile:
        return self._value(handle).copy()

    def _solve(self, L: Tile, C: Tile, transposed: bool) -> Handle:
        """Queue a solve; solves with one diagonal tile are done together."""
        if self._queue and self._queue_with != (id(L), transposed):
            self._flush()
        handle = _Unsolved()
        self._queue_with, self._diagonal = (id(L), transposed), L
        self._queue.append((handle, C))
        if sum(len(tile) for _, tile in self._queue) >= STACK:
            self._flush()
        return handle

    def _flush(self) -> None:
        handles, tiles = zip(*self._queue, strict=True)
        solved = _trsm(self._diagonal, tiles, transposed=self._queue_with[1])
        for handle, tile in zip(handles, solved, strict=True):
            handle.tile = tile
        self._queue = []

    def _value(self, handle: Handle) -> DeviceArray:
        if not isinstance(handle, _Unsolved):
            return handle
        if handle.tile is None:
            self._flush()
        return handle.tile
