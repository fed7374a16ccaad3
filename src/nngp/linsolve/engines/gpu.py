"""The GPU engine: the same chains as jitted JAX programs, queued one after the other.

JAX returns before the device has computed, so the queue is always full; a chain donates its tile
from link to link, and memory is the lower tiles and a few in flight. Runs on JAX's CPU as well,
which is how it is tested without a GPU.
"""

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
from nngp.gram import KernelBackend, KernelMatrix, Tile
from nngp.gram.device.arrays import DeviceProgram, donating, padded_rows, program, put, put_as
from nngp.gram.device.backend import DeviceBackend
from nngp.linsolve.engines.engine import (
    Engine,
    EngineRun,
    Handle,
    TileChain,
    TileFunction,
    TileType,
)
from nngp.linsolve.tiling import Edges, cut, even_size, spans

SINGLE_PRECISION = lax.Precision.HIGHEST  # float32 products would be rounded to 10 bits
DOUBLE = np.dtype(np.float64)
SMALL_TILES = (64, 128, 256, 512, 1024, 1536)  # of a matrix that is a single one
TILES = range(2048, 3585, 128)
LOST = 1000  # a product of tiles of s rows takes 1 + LOST / s times as long as one of endless ones
COPIES = 4  # of a whole matrix that its factorisation takes memory for
TEST_ROWS = 512  # blocks of test points have a multiple of this
FEWEST, FEW = 64, 512  # test points that are filled up to a power of two
ALIGNED = 16  # rows of a tile are a multiple of this: products are much slower otherwise
PRODUCT = 8192  # rows of a tile that is multiplied by: large, as each costs the host some time
STACKS = (4, 2, 1)  # tiles solved at a time: a triangular solve of one leaves the device idle


@donating(0)
def _update(C: DeviceArray, A: DeviceArray, B: DeviceArray, *, transposed: bool) -> DeviceArray:
    precision = SINGLE_PRECISION if C.dtype == jnp.float32 else None
    # Added, and not subtracted: only so XLA has the product itself write to C.
    return C + (-1.0) * jnp.matmul(A, B.T if transposed else B, precision=precision)


@donating(0)
def _potrf(C: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    L = lax.linalg.cholesky(C, symmetrize_input=False)
    return L, jnp.isfinite(jnp.diagonal(L)).all()


@donating(1)
def _trsm(L: DeviceArray, tiles: tuple[DeviceArray, ...], *, transposed: bool) -> list[DeviceArray]:
    C = jnp.concatenate(tiles) if len(tiles) > 1 else tiles[0]
    X = lax.linalg.triangular_solve(L, C, left_side=False, lower=True, transpose_a=transposed)
    return jnp.split(X, len(tiles))


@program
def _copy(tile: DeviceArray) -> DeviceArray:
    return tile.copy()


@program
def _zeros(*, rows: int, columns: int, dtype: str) -> DeviceArray:
    return jnp.zeros((rows, columns), dtype=dtype)


@cache
def _compiled(function: TileFunction) -> TileFunction:
    return DeviceProgram(function)


def _program(function: TileFunction) -> Any:
    """The function as one compiled program, if it is marked so."""
    if isinstance(function, partial) and getattr(function.func, "compiled", False):
        return partial(_compiled(function.func), *function.args, **function.keywords)
    return _compiled(function) if getattr(function, "compiled", False) else function


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

    def tile_size(self, n: int) -> int:
        """Tiles of few sizes, so that few programs serve every n: the one whose products, with the
        rows that fill up the last tile, are done first."""
        if self._tile is not None:
            return self._tile
        if n <= SMALL_TILES[-1]:
            return next(size for size in SMALL_TILES if n <= size)
        return min(TILES, key=lambda size: (1 + LOST / size) * float(-(-n // size) * size) ** 3)

    def edges(self, matrix: KernelMatrix, start: int = 0, like: Edges | None = None) -> Edges:
        n = len(matrix.left)
        if not matrix.supports_padding:
            return super().edges(matrix, start)
        size = self.tile_size(n)
        if like is not None and like[1] in TILES:
            size = like[1]
        return cut(-(-(n - start) // size) * size + start, size, start)

    def filled(self, n: int) -> int:
        size = self.tile_size(n)
        return -(-n // size) * size

    def whole_matrix(self, matrix: KernelMatrix) -> "WholeOnDevice | None":
        free, edges = self.free_memory(), self.edges(matrix)
        fits = free is None or COPIES * 8 * edges[-1] ** 2 < free
        return WholeOnDevice(self, matrix, edges) if fits else None

    def product_size(self, n: int) -> int:
        """Tiles of one size if n allows it: every other one is compiled for again."""
        if self._tile is not None or n <= PRODUCT:
            return even_size(n, self._tile or PRODUCT, ALIGNED)
        even = [s for s in range(PRODUCT // 2, PRODUCT * 5 // 4, ALIGNED) if n % s == 0]
        return max(even, default=even_size(n, PRODUCT, ALIGNED))

    def single(self) -> "GpuEngine":
        """The same with float32 tiles; what kernel blocks are computed in stays float64."""
        out = copy(self)
        out.dtype = np.dtype(np.float32)
        return out

    def test_blocks(self, m: int, n: int) -> tuple[int, int, int]:
        """Few points as a power of two; many in equal blocks of a tile at most, unless memory is
        short."""
        most, size = self.rows_at_a_time(n), self.tile_size(n)
        if m <= FEW:
            size = max(FEWEST, 1 << (m - 1).bit_length())
        elif size > TEST_ROWS:
            size = _height(m, size)
        if size > most:
            size = 1 << (most.bit_length() - 1)
        return -(-m // size) * size, size, max(1, most // size)

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

    def run(self) -> "GpuRun":
        return GpuRun(self.device, self.dtype)


def _height(m: int, most: int) -> int:
    """Rows of equal blocks of m test points: of few sizes, and with few rows to fill up."""
    fewest = -(-m // most)
    sizes = {-(-m // count // TEST_ROWS) * TEST_ROWS for count in range(fewest, fewest + 4)}
    fitting = [size for size in sizes if size <= most]
    return min(fitting, key=lambda size: (-(-m // size) * size, -size), default=most)


@program
def _log_det_and_misfit(
    K: DeviceArray, noise: DeviceArray, Y: DeviceArray
) -> tuple[DeviceArray, DeviceArray]:
    L = lax.linalg.cholesky(K + jnp.diag(noise), symmetrize_input=False)
    z = lax.linalg.triangular_solve(L, Y, left_side=True, lower=True)
    return 2.0 * jnp.log(jnp.diagonal(L)).sum(), (z * z).sum()


@donating(0)
def _placed(K: DeviceArray, tile: DeviceArray, row: DeviceArray, column: DeviceArray) -> Any:
    return lax.dynamic_update_slice(K, tile, (row, column))


class WholeOnDevice:
    """`WholeMatrix` of the lower tiles of a kernel matrix, put together on the device. The last one
    may be filled up with rows of the identity, which add nothing to a determinant."""

    def __init__(self, engine: GpuEngine, matrix: KernelMatrix, edges: Edges) -> None:
        self._engine, self._rows, parts = engine, edges[-1], spans(edges)
        with engine.run() as run:
            K = run.zeros(self._rows, self._rows)
            for i, rows in enumerate(parts):
                for columns in parts[: i + 1]:
                    place = np.int32(rows.start), np.int32(columns.start)
                    K = _placed(K, matrix.block(rows, columns), *place)
            self._K = K

    def log_det_and_misfit(self, noise: Array, Y: Array) -> tuple[float, float]:
        noise = padded_rows(np.asarray(noise), self._rows)
        with self._engine.run():
            found = _log_det_and_misfit(self._K, put(noise), put(padded_rows(Y, self._rows)))
            log_det, misfit = (float(one) for one in found)
        if not np.isfinite([log_det, misfit]).all():  # a pivot was not positive
            raise NotPositiveDefiniteError("the matrix with its noise is not positive definite")
        return log_det, misfit


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
        self._queue_with: tuple[Any, ...] = (0, True, ())
        self._diagonal: DeviceArray = None

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
        C = chain.first()
        if C.dtype != self._dtype:
            C = C.astype(self._dtype)
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
        return put_as(array, self._dtype)

    def zeros(self, rows: int, columns: int) -> Tile:
        return _zeros(rows=int(rows), columns=int(columns), dtype=self._dtype.name)

    def copy(self, handle: Handle) -> Tile:
        return _copy(self._value(handle))

    def _solve(self, L: Tile, C: Tile, transposed: bool) -> Handle:
        """Queue a solve; solves of equal tiles with one diagonal tile are done together."""
        kind = id(L), transposed, C.shape
        if self._queue and self._queue_with != kind:
            self._flush()
        handle = _Unsolved()
        self._queue_with, self._diagonal = kind, L
        self._queue.append((handle, C))
        if len(self._queue) == STACKS[0]:
            self._flush()
        return handle

    def _flush(self) -> None:
        queue, self._queue = self._queue, []
        transposed = self._queue_with[1]
        for count in STACKS:
            while len(queue) >= count:
                some, queue = queue[:count], queue[count:]
                solved = _trsm(
                    self._diagonal, tuple(tile for _, tile in some), transposed=transposed
                )
                for (handle, _), tile in zip(some, solved, strict=True):
                    handle.tile = tile

    def _value(self, handle: Handle) -> DeviceArray:
        if not isinstance(handle, _Unsolved):
            return handle
        if handle.tile is None:
            self._flush()
        return handle.tile
