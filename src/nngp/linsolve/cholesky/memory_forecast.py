"""Forecast of the memory of a factorisation."""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

from nngp._numbers import whole_number
from nngp.linsolve.engines.engine import Engine
from nngp.linsolve.tiling import cut, lower_size

TEST_ROWS_IN_FLIGHT = (
    384  # test points that predictions have in flight on each thread: solved, and not
)
MOST_POINTS = 10**9  # beyond, the list of tiles alone would fill the memory
OVERHEAD = 64 * 2**20  # bytes of tables, buffers and the like


@dataclass(frozen=True)
class Forecast:
    """Bytes beyond the data; `largest` is the n that would just fit. `engine` and `reason` say
    where it would be computed and why there."""

    n: int
    bytes: int
    available: int | None
    largest: int | None
    solver: str = "cholesky"
    engine: str = ""
    reason: str = ""
    planes: int = 0  # of a network of images
    kernel_seconds: float | None = None  # for such a network

    @property
    def fits(self) -> bool:
        return self.available is None or self.bytes <= self.available

    def check(self) -> None:
        """Raise MemoryError if it does not fit."""
        if not self.fits and self.available is not None:
            raise MemoryError(
                f"{self.n} points need {self.bytes / 1e9:.2f} GB and {self.available / 1e9:.2f} GB "
                f"may be used (free, or the memory= asked for); {self.advice}"
            )

    @property
    def advice(self) -> str:
        if not self.largest:
            return "that is too little for any number of points; allow more"
        return f"at most {self.largest} points would fit"

    def __str__(self) -> str:
        return f"{self.bytes / 1e9:.1f} GB"


def forecast_factor(
    engine: Engine,
    n: int,
    d: int,
    outputs: int,
    memory: int | None = None,
    beside: Callable[[int], int] = lambda n: 0,
) -> Forecast:
    """For the factor of an n x n kernel matrix of d features, and predictions with it.

    `memory` is the most bytes that may be used; `beside` what else will be held for n points.
    """
    available = available_memory(engine, n, d, outputs, memory)

    def needed(n: int) -> int:
        return factor_bytes(engine, n, d, outputs) + beside(n)

    largest = None
    if available is not None:
        largest = largest_fitting(needed, available, int((available / 4) ** 0.5) + 1)
    return Forecast(n, needed(n), available, largest)


def factor_bytes(engine: Engine, n: int, d: int, outputs: int) -> int:
    """The lower tiles, what is in flight, and on a device the data too."""
    tile = engine.tile_size(n)
    in_flight = (2 + 2 * engine.width) * tile * tile + engine.width * TEST_ROWS_IN_FLIGHT * n
    in_flight += 4 * n * (outputs + 1)
    data = n * d if engine.copies_inputs else 0
    return 8 * (lower_size(cut(engine.filled(n), tile)) + in_flight + data) + OVERHEAD


def available_memory(
    engine: Engine, n: int, d: int, outputs: int, memory: int | None
) -> int | None:
    """Bytes that may be used: free memory, or the `memory` argument if that is less; None if not
    known. Raises ValueError for sizes that make no sense."""
    if whole_number("n", n) > MOST_POINTS:
        raise ValueError(f"n must be at most {MOST_POINTS:.0e}, got {n}")
    for name, value in (("d", d), ("outputs", outputs)):
        whole_number(name, value)
    if memory is not None and (not isinstance(memory, Real) or not memory > 0):
        raise ValueError(f"memory must be a positive number of bytes, got {memory!r}")
    free = engine.free_memory()
    return free if memory is None else memory if free is None else min(memory, free)


def largest_fitting(needed: Callable[[int], float], available: float, high: int) -> int:
    """The largest n up to `high` that needs no more than is available."""
    low = 0
    while low < high:
        middle = (low + high + 1) // 2
        fits = needed(middle) <= available
        low, high = (middle, high) if fits else (low, middle - 1)
    return low
