"""What an engine is: it runs chains of tile operations, somewhere.

The interface is small on purpose. Tiles are opaque to the algorithms; they are arrays of the
engine's own kind, or handles of arrays that are still being computed. Arithmetic on a finished
tile (`then=`, `apply`) uses array methods only, so that it is written once for all engines.

Three methods an engine may do without: `product_size(n)`, the rows of a tile that is multiplied by
and not factored (`tile_size` stands in for it), `single()`, the same engine with float32 tiles,
which serve as preconditioners, and `task_room()`, the bytes that one task may take where that is
less than all there are.
"""

import os
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Tile = Any  # the engine's array
Handle = Any  # a Tile, or the promise of one
GPU_FROM = 1500  # points from which engine="auto" looks for a GPU
Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Marks a function of tiles alone, which an engine may compile into one program."""
    function.compiled = True  # type: ignore[attr-defined]
    return function


def product_size(engine: "Engine", n: int) -> int:
    """Rows of a tile that vectors are multiplied by."""
    return int(getattr(engine, "product_size", engine.tile_size)(n))


class Run(Protocol):
    """One job on an engine: a context manager that leaves nothing running behind."""

    width: int  # chains worked on side by side
    ahead: int  # columns of chains begun before one is waited for

    def __enter__(self) -> "Run": ...

    def __exit__(self, *error: Any) -> None: ...

    def chain(
        self,
        first: Callable[[], Tile],
        left: Sequence[Handle] = (),
        right: Sequence[Handle] = (),
        last: Handle | Literal["potrf"] | None = None,
        *,
        transposed: bool = True,
        then: Callable[..., Any] | None = None,
        beside: Sequence[Handle] = (),
        keep: bool = False,
    ) -> Handle:
        """C = first(); C -= Σ left_k right_kᵀ; potrf or C last⁻ᵀ; then(C, *beside).

        `first` hands over an array that the chain may overwrite. With transposed=False neither
        the right factors nor `last` are transposed. Chains may only depend on earlier ones. With
        `keep` an engine that has a store puts the tile there.
        """

    def apply(self, function: Callable[..., Any], *handles: Handle) -> Handle:
        """function(*tiles), when they are there."""

    def wait(self, handle: Handle) -> Handle:
        """The same tile, finished, where it is; raises what its chain raised."""

    def fetch(self, handle: Handle) -> NDArray[np.float64]:
        """The finished tile on the host."""

    def put(self, array: NDArray[np.float64]) -> Tile:
        """A host array as a tile."""

    def columns(self, array: NDArray[np.float64], edges: Sequence[int]) -> list[Tile]:
        """A host array as tiles, cut between its columns."""

    def zeros(self, rows: int, columns: int) -> Tile:
        """A tile of zeros."""

    def copy(self, handle: Handle) -> Tile:
        """A tile that a chain may begin with and overwrite."""


class Engine(Protocol):
    """Where tiles live."""

    name: str
    where: Literal["host", "device", "cluster"]  # of the kernel blocks it wants

    spills: bool  # to disk what its memory cannot hold
    dtype: Any  # of the tiles

    @property
    def has_store(self) -> bool:
        """Whether tiles can be kept as files."""

    @property
    def width(self) -> int:
        """Chains worked on side by side."""

    def tile_size(self, n: int) -> int:
        """Rows of a tile for an n x n matrix."""

    @property
    def whole_size(self) -> int:
        """The most rows of a matrix that is better not cut into tiles; 0 if tiles serve all."""

    def rows_at_a_time(self, n: int) -> int:
        """Test points in one streamed block, with the memory that is free now."""

    def free_memory(self) -> int | None:
        """Bytes that tiles can take, where known."""

    def rate(self) -> float:
        """Multiply-adds a second, measured now, times two."""

    def arena(self) -> Any:
        """Memory for a factor, with a method tile(rows, columns); None where that has no use."""

    def facts(self) -> dict[str, int]:
        """What there is to tell of what it has done so far."""

    def run(self) -> Run:
        """Begin a job."""


def choose_engine(engine: "str | Engine", n: int) -> Engine:
    """The engine of that name; "auto" takes a GPU if there is one and n is worth it."""
    from nngp.linsolve.engines.cpu import CpuEngine

    if not isinstance(engine, str):
        if not hasattr(engine, "tile_size"):
            raise TypeError(
                "engine must be 'auto', 'cpu', 'gpu' or an engine, such as "
                f"nngp.DaskEngine(client), got {type(engine).__name__}"
            )
        return engine
    if engine not in ("auto", "cpu", "gpu"):
        raise ValueError(
            f"engine must be 'auto', 'cpu' or 'gpu', got {engine!r}; a cluster is "
            "nngp.DaskEngine(address)"
        )
    if engine == "gpu" or (engine == "auto" and n >= GPU_FROM and _gpu_in_sight()):
        try:
            from nngp.linsolve.engines.gpu import GpuEngine, gpu_device
        except ImportError:
            if engine == "auto":
                return CpuEngine()
            raise ImportError(
                "engine='gpu' needs JAX; install it with: pip install 'nngp[jax]'"
            ) from None
        device = gpu_device()
        if device is not None:
            return GpuEngine(device)
        if engine == "gpu":
            raise RuntimeError(
                "engine='gpu' needs JAX with a GPU, and JAX sees none; install the JAX build for "
                "your GPU, or use engine='cpu'"
            )
    return CpuEngine()


def _gpu_in_sight() -> bool:
    """Cheap signs of a GPU, so that JAX is not imported in vain."""
    if find_spec("jax") is None:
        return False
    nodes = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
    return "jax" in sys.modules or any(os.path.exists(node) for node in nodes)
