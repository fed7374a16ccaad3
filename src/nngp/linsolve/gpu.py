"""The GPU engine: the same chains as jitted JAX programs, queued one after the other.

JAX returns before the device has computed, so the queue is always full; a chain donates its tile
from link to link, and memory is the lower tiles and a few in flight. Runs on JAX's CPU as well,
which is how it is tested without a GPU.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from nngp.linsolve.engine import Handle, NotPositiveDefiniteError, Tile

Array = NDArray[np.float64]
TILE, SMALL_TILE, SMALL_N = 4096, 2048, 20_000
ROW_BYTES = 2 * 10**9  # of solved rows in one streamed block


@partial(jax.jit, donate_argnums=0, static_argnames="transposed")
def _update(C: Any, A: Any, B: Any, *, transposed: bool) -> Any:
    return C - A @ (B.T if transposed else B)


@partial(jax.jit, donate_argnums=0)
def _potrf(C: Any) -> tuple[Any, Any]:
    L = lax.linalg.cholesky(C, symmetrize_input=False)
    return L, jnp.isfinite(jnp.diagonal(L)).all()


@partial(jax.jit, donate_argnums=1, static_argnames="transposed")
def _trsm(L: Any, C: Any, *, transposed: bool) -> Any:
    return lax.linalg.triangular_solve(L, C, left_side=False, lower=True, transpose_a=transposed)


def gpu_device() -> Any | None:
    """The first GPU that JAX sees, or None."""
    try:
        return jax.devices("gpu")[0]
    except RuntimeError:
        return None


class GpuEngine:
    """Tiles on one JAX device."""

    name = "gpu"
    where: Literal["host", "device"] = "device"

    def __init__(self, device: Any = None, tile: int | None = None) -> None:
        self.device: Any = device or gpu_device()
        self._tile = tile

    def tile_size(self, n: int) -> int:
        """Even tiles of at most 4096 rows, or 2048 for a small matrix."""
        wanted = self._tile or (SMALL_TILE if n <= SMALL_N else TILE)
        return -(-n // -(-n // wanted))

    def rows_at_a_time(self, n: int) -> int:
        return int(min(TILE, max(256, ROW_BYTES // (8 * n))))

    def free_memory(self) -> int | None:
        """What JAX's pool has left; XLA_PYTHON_CLIENT_MEM_FRACTION makes the pool larger."""
        stats: dict[str, Any] = self.device.memory_stats() or {}
        if "bytes_limit" not in stats:
            return None
        return int(stats["bytes_limit"] - stats["bytes_in_use"])

    def rate(self) -> float:
        """From a few products of tiles, once compiled."""
        size = SMALL_TILE
        with self.run() as run:
            A, C = run.put(np.ones((size, size))), run.put(np.zeros((size, size)))
            C = run.wait(_update(C, A, A, transposed=True))
            start = time.perf_counter()
            for _ in range(8):
                C = _update(C, A, A, transposed=True)
            run.wait(C)
            return 8 * 2.0 * size**3 / (time.perf_counter() - start)

    def run(self) -> "GpuRun":
        return GpuRun(self.device)


class GpuRun:
    """Double precision and the device, for the length of one job."""

    width = 1

    def __init__(self, device: Any) -> None:
        self._device, self._stack = device, ExitStack()
        self._pivots: dict[int, Any] = {}

    def __enter__(self) -> "GpuRun":
        self._stack.enter_context(jax.enable_x64(True))
        self._stack.enter_context(jax.default_device(self._device))
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.close()

    def chain(
        self,
        first: Callable[[], Tile],
        left: Sequence[Handle] = (),
        right: Sequence[Handle] = (),
        last: Handle | Literal["potrf"] | None = None,
        *,
        transposed: bool = True,
        then: Callable[[Tile], Any] | None = None,
    ) -> Handle:
        C = first()
        for a, b in zip(left, right, strict=True):
            C = _update(C, a, b, transposed=transposed)
        if isinstance(last, str):
            C, positive = _potrf(C)
            self._pivots[id(C)] = positive
        elif last is not None:
            C = _trsm(last, C, transposed=transposed)
        return C if then is None else then(C)

    def apply(self, function: Callable[..., Any], *handles: Handle) -> Handle:
        return function(*handles)

    def wait(self, handle: Handle) -> Any:
        positive = self._pivots.pop(id(handle), None)
        if positive is not None and not bool(positive):
            raise NotPositiveDefiniteError("a pivot of the Cholesky factorisation is not positive")
        return handle.block_until_ready() if isinstance(handle, jax.Array) else handle

    def put(self, array: Array) -> Tile:
        return jnp.asarray(array)
