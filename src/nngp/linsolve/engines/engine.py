"""The interface of an engine: it stores tiles somewhere and runs chains of tile operations.

Tiles are opaque to the algorithms; they are arrays of the engine's own kind, or handles of arrays
that are still being computed. Arithmetic on a finished tile (`then=`, `apply`) uses array methods
only, so that it is written once for all engines.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Protocol, Self, TypeVar

import numpy as np

from nngp._arrays import Array
from nngp.gram import KernelBackend, KernelMatrix, Tile
from nngp.linsolve.tiling import Edges, cut, even_size

Handle = Any  # a Tile, or the promise of one
TileType = np.dtype[Any]  # float64, or float32 for a preconditioner
TileFunction = Callable[..., Any]  # of tiles, by array methods; gives a tile or a tuple of tiles
Function = TypeVar("Function", bound=TileFunction)


def compiled(function: Function) -> Function:
    """Mark a function of tiles alone, which an engine may compile into one program."""
    function.compiled = True  # type: ignore[attr-defined]
    return function


@compiled
def pivots(tile: Any) -> Any:
    """The diagonal of a tile of a factor."""
    return tile.diagonal().astype("float64")


@dataclass(frozen=True)
class TileChain:
    """C = first(); C -= Σ left_k right_kᵀ; potrf or C last⁻ᵀ; then(C, *beside).

    `first` gives an array that the chain may overwrite. With transposed=False neither the right
    factors nor `last` are transposed. With `keep` an engine that has a store puts the tile there.
    """

    first: Callable[[], Tile]
    pairs: Sequence[tuple[Handle, Handle]]
    last: Handle | Literal["potrf"] | None
    transposed: bool
    then: TileFunction | None
    beside: Sequence[Handle]
    keep: bool

    @property
    def ends_in_potrf(self) -> bool:
        return isinstance(self.last, str)


class EngineRun(ABC):
    """One job on an engine: a context manager that leaves nothing running behind."""

    width: int  # chains computed side by side
    ahead: int  # columns of chains begun before one is waited for

    @abstractmethod
    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close(error)

    @abstractmethod
    def close(self, error: BaseException | None) -> None:
        """End the job; `error` is what ended it, if anything did."""

    def chain(
        self,
        first: Callable[[], Tile],
        left: Sequence[Handle] = (),
        right: Sequence[Handle] = (),
        last: Handle | Literal["potrf"] | None = None,
        *,
        transposed: bool = True,
        then: TileFunction | None = None,
        beside: Sequence[Handle] = (),
        keep: bool = False,
    ) -> Handle:
        """Begin a `TileChain`. Chains may only depend on earlier ones."""
        pairs = list(zip(left, right, strict=True))
        return self.begin(TileChain(first, pairs, last, transposed, then, beside, keep))

    @abstractmethod
    def begin(self, chain: TileChain) -> Handle:
        """Compute a chain now, or queue it."""

    @abstractmethod
    def apply(self, function: TileFunction, *handles: Handle) -> Handle:
        """function(*tiles), once they are computed."""

    @abstractmethod
    def wait(self, handle: Handle) -> Handle:
        """The same tile, finished, where it is; raises what its chain raised."""

    @abstractmethod
    def fetch(self, handle: Handle) -> Array:
        """The finished tile on the host."""

    @abstractmethod
    def put(self, array: Array) -> Tile:
        """A host array as a tile."""

    @abstractmethod
    def zeros(self, rows: int, columns: int) -> Tile:
        """A tile of zeros."""

    @abstractmethod
    def copy(self, handle: Handle) -> Tile:
        """A tile that a chain may begin with and overwrite."""

    def columns(self, array: Array, edges: Sequence[int]) -> list[Tile]:
        """A host array as tiles, cut between its columns; zeros beyond the last of them."""
        missing = edges[-1] - array.shape[1]
        filled = np.pad(array, ((0, 0), (0, missing))) if missing else array
        return [self.put(part) for part in np.split(filled, edges[1:-1], axis=1)]


class WholeMatrix(Protocol):
    """A symmetric matrix in one piece, to be factored with one noise after the other."""

    def log_det_and_misfit(self, noise: Array, Y: Array) -> tuple[float, float]:
        """log det(K + noise) and Y·(K + noise)⁻¹Y, summed over the columns of Y; raises
        NotPositiveDefiniteError."""


class FactorMemory(Protocol):
    """Memory for the tiles of one factor; an attempt with more noise uses it again."""

    def tile(self, rows: slice, columns: slice) -> Array:
        """The memory of tile (rows, columns)."""


class Engine(ABC):
    """Storage and computation of tiles."""

    name: str
    spills = False  # to disk what its memory cannot hold
    has_store = False  # tiles can be kept as files
    copies_inputs = False  # the data take memory beside the tiles
    largest_rank = 2048  # of a Nyström preconditioner
    single_cost = 0.5  # of an operation in float32, relative to float64

    dtype: TileType

    @property
    @abstractmethod
    def kernels(self) -> KernelBackend:
        """Makes the kernel matrices whose blocks this engine takes as tiles."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Chains computed side by side."""

    @property
    def product_tiles_in_flight(self) -> int:
        """Tiles held at a time while a matrix is multiplied by vectors."""
        return 3 + 2 * self.width

    @abstractmethod
    def tile_size(self, n: int) -> int:
        """Rows of a tile for an n x n matrix."""

    def product_size(self, n: int) -> int:
        """Rows of a tile that vectors are multiplied by."""
        return self.tile_size(n)

    def edges(self, matrix: KernelMatrix, start: int = 0, like: Edges | None = None) -> Edges:
        """Where the tiles of a factor begin, from `start` on. Where each new size is compiled
        anew, the last one reaches beyond the matrix and is filled up with rows of the identity, and
        tiles are those of an earlier factor, `like`."""
        n = len(matrix.left)
        return cut(n, self.tile_size(n), start)

    def filled(self, n: int) -> int:
        """Rows of a factor of n points, with those that it is filled up with."""
        return n

    def whole_matrix(self, matrix: KernelMatrix) -> WholeMatrix | None:
        """A kernel matrix in one piece; None where LAPACK does as well, or it does not fit."""
        return None

    def test_blocks(self, m: int, n: int) -> tuple[int, int, int]:
        """Rows to fill up m test points to, rows of one block of them, and blocks at a time, for a
        factor of n points."""
        most = min(self.rows_at_a_time(n), -(-m // self.width))
        return m, even_size(m, most), self.width

    @abstractmethod
    def rows_at_a_time(self, n: int) -> int:
        """Test points in one streamed block, with the memory that is free now."""

    @abstractmethod
    def free_memory(self) -> int | None:
        """Bytes that tiles can take, where known."""

    def task_room(self) -> float:
        """Bytes that one task may take, where that is less than all there are."""
        return np.inf

    @abstractmethod
    def single(self) -> "Engine":
        """The same engine with float32 tiles."""

    def factor_memory(self) -> FactorMemory | None:
        """Memory for a factor; None where the engine manages its own."""
        return None

    def facts(self) -> Mapping[str, int]:
        """Counts of the work done so far, for the report."""
        return {}

    @abstractmethod
    def run(self) -> EngineRun:
        """Begin a job."""
