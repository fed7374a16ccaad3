"""Options of conjugate gradients, and the plan: preconditioner, rank, how many tiles are kept.

Decided from operations. An iteration computes the tiles that are not kept, n²d operations for all
of them, and reads the others; reading a number costs as much as some dozen operations. How many
iterations there will be is a guess from counts on images: 25 for 3000 points, rank 500 and six
digits; they grow like n^0.55, fall like rank^-0.6, and double at noise below a hundredth of the
diagonal.
"""

import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real

import numpy as np

from nngp._numbers import whole_number
from nngp._records import UNSAVED
from nngp.linsolve.cg.nystrom import TERMS
from nngp.linsolve.cholesky.memory_forecast import (
    OVERHEAD,
    Forecast,
    available_memory,
    largest_fitting,
)
from nngp.linsolve.engines.engine import Engine
from nngp.linsolve.tiling import Edges, cut, lower_size

READ = 64.0  # operations in the time that one number is read from memory, and used twice
TRANSFORM = 50.0  # operations for the kernel of one pair, beside its inner product
LEAST_RANK = 16
SINGLE_ITERATIONS = 12.0
TILE_MEMORY_SHARE = (
    0.85  # of what is left is filled with tiles: variances need room too, and pools have gaps
)
USUAL_NOISE = 1e-2  # relative to the diagonal, for a forecast
VECTORS = 10  # host arrays as large as the targets
PRECONDITIONERS = ("auto", "nystrom", "single")


@dataclass(frozen=True)
class CG:
    """Conjugate gradients in place of a Cholesky factor: `nngp.condition(..., solver=nngp.CG())`.

    Parameters
    ----------
    tolerance : float
        Of the residual of each right-hand side, relative to it; recomputed at the end, and an
        error if it is missed.
    preconditioner : {"auto", "nystrom", "single"}
        Some points stand for all (`rank` of them), or a Cholesky factor in float32, which takes
        half of the memory of the real one. "auto" takes what is likely to be faster, and points if
        `rank` says how many.
    rank : int, optional
        Points of the "nystrom" preconditioner; by default from a balance of the work they cost and
        save, and the memory there is. Less is taken if memory allows no more.
    max_iterations : int
    checkpoint : path, optional
        A folder where the state is kept, so that the same call goes on after an interruption. The
        file is removed when the solve is done.
    checkpoint_seconds : float
        How often it is written.
    seed : int
        Of the choice of points.

    Examples
    --------
    >>> import numpy as np, nngp
    >>> X = np.linspace(-1, 1, 50)[:, None]
    >>> net = nngp.Architecture(2, "erf", 4.0, 0.5)
    >>> found = nngp.condition(net, X, np.sin(3 * X[:, 0]), noise_var=1e-4, solver=nngp.CG(rank=20))
    >>> found.report.solver, found.report.residual <= 1e-8
    ('cg', True)
    """

    tolerance: float = 1e-8
    preconditioner: str = "auto"
    rank: int | None = None
    max_iterations: int = 1000
    checkpoint: str | os.PathLike[str] | None = field(default=None, metadata=UNSAVED)
    checkpoint_seconds: float = 60.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.tolerance, Real) or not 0 < self.tolerance < 1:
            raise ValueError(f"tolerance must lie between 0 and 1, got {self.tolerance!r}")
        if self.preconditioner not in PRECONDITIONERS:
            raise ValueError(
                f"preconditioner must be one of {', '.join(PRECONDITIONERS)}, "
                f"got {self.preconditioner!r}"
            )
        if self.preconditioner == "single" and self.rank is not None:
            raise ValueError("a rank is that of preconditioner='nystrom'; 'single' has none")
        for name, value in (("rank", self.rank), ("max_iterations", self.max_iterations)):
            if value is None and name == "rank":
                continue
            whole_number(name, value)
        if not isinstance(self.checkpoint_seconds, Real) or not self.checkpoint_seconds >= 0:
            raise ValueError(
                f"checkpoint_seconds must be a number of seconds, got {self.checkpoint_seconds!r}"
            )
        if not isinstance(self.checkpoint, str | os.PathLike | None) or self.checkpoint == "":
            raise ValueError(f"checkpoint must be the path of a folder, got {self.checkpoint!r}")
        whole_number("seed", self.seed, least=0)
        for name, kind in (("tolerance", float), ("checkpoint_seconds", float), ("rank", int),
                           ("max_iterations", int), ("seed", int)):  # fmt: skip
            if getattr(self, name) is not None:  # Python's own numbers, whatever was passed
                object.__setattr__(self, name, kind(getattr(self, name)))


@dataclass(frozen=True)
class CgPlan:
    """`room` is the memory for kept tiles; `held` that of the preconditioner."""

    preconditioner: str
    rank: int
    single_rows: bool  # F held in float32
    held: float
    room: float
    operations: float  # of the preconditioner
    iteration: float  # operations of one iteration
    iterations: float  # a guess
    forecast: Forecast
    edges: Edges

    @property
    def work(self) -> float:
        """Operations in all."""
        return self.operations + self.iterations * self.iteration


def plan_cg(
    engine: Engine,
    n: int,
    d: int,
    outputs: int,
    options: CG,
    noise: float,
    memory: int | None = None,
    products: int = 1,
) -> CgPlan:
    """For n points of d features; `noise` is relative to the kernel's diagonal, and `products` how
    many matrices of inner products a kernel takes.

    Raises MemoryError if not even vectors, some tiles in flight and a small preconditioner fit.
    """
    if engine.dtype != np.float64:
        raise ValueError(
            "conjugate gradients need an engine with float64 tiles; float32 ones can only "
            "precondition (preconditioner='single')"
        )
    available = available_memory(engine, n, d, outputs, memory)
    job = _Job(engine, n, d, outputs + 1, options, noise, products)
    room = np.inf if available is None else available - job.least
    found = [job.nystrom(rank, room) for rank in job.ranks(room)]
    landmarks = options.preconditioner == "nystrom" or options.rank is not None
    if not landmarks and job.can_single(room):
        single = job.single(room)
        found = [single] if options.preconditioner == "single" else [*found, single]
    if not found or (options.preconditioner == "single" and found[0].preconditioner != "single"):
        _raise_too_large(job, job.forecast(available))
    best = min(found, key=lambda plan: plan.work)
    kept = min(best.room, 8.0 * lower_size(job.edges))
    needed = int(job.least + best.held + kept)
    return replace(best, forecast=Forecast(n, needed, available, None))


def forecast_cg(
    engine: Engine,
    n: int,
    d: int,
    outputs: int,
    options: CG,
    memory: int | None = None,
    products: int = 1,
) -> Forecast:
    """The forecast for noise of a hundredth of the diagonal; `largest` is the n for which the
    least that would do just fits."""
    available = available_memory(engine, n, d, outputs, memory)
    least = _Job(engine, n, d, outputs + 1, options, USUAL_NOISE).forecast(available)
    if not least.fits:
        return least
    planned = plan_cg(engine, n, d, outputs, options, USUAL_NOISE, memory, products).forecast
    return replace(planned, largest=least.largest)


def _raise_too_large(job: "_Job", least: Forecast) -> None:
    raise MemoryError(
        f"conjugate gradients for {job.n} points need {least.bytes / 1e9:.2f} GB and "
        f"{(least.available or 0) / 1e9:.2f} GB may be used (free, or the memory= asked for); "
        f"{least.advice}"
    )


class _Job:
    def __init__(
        self,
        engine: Engine,
        n: int,
        d: int,
        vectors: int,
        options: CG,
        noise: float,
        products: int = 1,
    ) -> None:
        self.engine, self.n, self.d, self.vectors = engine, n, d, vectors
        self.options, self.noise, self.products = options, noise, products
        self.edges, self.width = cut(n, engine.product_size(n)), engine.width
        tile = self.edges[1] - self.edges[0]
        in_flight = engine.product_tiles_in_flight * tile * tile
        data = n * d if engine.copies_inputs else 0
        self.least = 8.0 * (VECTORS * n * vectors + in_flight + data) + OVERHEAD

    @cached_property
    def task_room(self) -> float:
        """Bytes that one task may take."""
        return self.engine.task_room()

    def forecast(self, available: int | None) -> Forecast:
        """The least that would do, and for how many points it would."""

        def needed(n: int) -> float:
            return _Job(self.engine, n, self.d, self.vectors, self.options, self.noise).smallest

        largest = None
        if available is not None:
            most = int(available / (8 * VECTORS * self.vectors)) + 1
            largest = largest_fitting(needed, available, most)
        return Forecast(self.n, int(self.smallest), available, largest)

    @property
    def smallest(self) -> float:
        """The least that would do."""
        if self.options.preconditioner == "single":
            return self.least + self._single_bytes
        return self.least + self._nystrom_bytes(min(LEAST_RANK, self.n), 4)

    @property
    def _single_bytes(self) -> float:
        filled = self.engine.filled(self.n)
        return 4.0 * lower_size(cut(filled, self.engine.tile_size(self.n)))

    def _nystrom_bytes(self, rank: int, size: int) -> float:
        in_flight = 2 * self.width * rank * (self.edges[1] - self.edges[0])
        squares = max(2, self.width) + 3  # terms that are summed, and factors
        return float(size) * self.n * rank + 8.0 * (squares * rank * rank + in_flight)

    def can_single(self, room: float) -> bool:
        return self._single_bytes <= room

    def ranks(self, room: float) -> list[int]:
        """Candidates that fit in memory."""
        most = min(self.n, self.engine.largest_rank)
        if self.options.rank is not None:
            smaller = [min(self.options.rank, self.n)]
            while smaller[-1] > LEAST_RANK:
                smaller.append(smaller[-1] * 3 // 4)
            return [rank for rank in smaller if self._can_have(rank, room)][:1]
        steps = np.geomspace(min(LEAST_RANK, most), most, 24)
        ranks = sorted({int(step) for step in steps})
        return [rank for rank in ranks if self._can_have(rank, room)]

    def _can_have(self, rank: int, room: float) -> bool:
        """Whether it fits, and the sum of a few squares fits where one task is done."""
        squares = 8.0 * (TERMS + 2) * rank * rank
        return self._nystrom_bytes(rank, 4) <= room and squares <= self.task_room

    def nystrom(self, rank: int, room: float) -> CgPlan:
        single_rows = self._nystrom_bytes(rank, 8) > room / 2
        held = self._nystrom_bytes(rank, 4 if single_rows else 8)
        small = 2.0 if self.noise < 1e-2 else 1.0
        digits = -np.log10(self.options.tolerance) / 6
        count = 25 * digits * small * (self.n / 3000) ** 0.55 * (rank / 500) ** -0.6
        build = 3.0 * self.n * rank**2 + 2.0 * self.n * rank * self.d * self.products
        each = 2 * READ * self.n * rank
        return self._plan("nystrom", rank, single_rows, held, room, build, each, max(count, 3.0))

    def single(self, room: float) -> CgPlan:
        build = self.n**3 / (3.0 / self.engine.single_cost) + self._kernel
        held, each = self._single_bytes, READ / 2 * self.n**2
        return self._plan("single", 0, False, held, room, build, each, SINGLE_ITERATIONS)

    @property
    def _kernel(self) -> float:
        return float(self.n) ** 2 * (self.d + TRANSFORM) * self.products

    def _plan(
        self,
        name: str,
        rank: int,
        single_rows: bool,
        held: float,
        room: float,
        build: float,
        each: float,
        count: float,
    ) -> CgPlan:
        left = TILE_MEMORY_SHARE * max(room - held, 0.0)
        kept = min(left / (8.0 * lower_size(self.edges)), 1.0)
        iteration = each + READ * kept * self.n**2 + (1 - kept) * self._kernel
        build += kept * self._kernel
        nothing = Forecast(self.n, 0, None, None)
        return CgPlan(
            name, rank, single_rows, held, left, build, iteration, count, nothing, self.edges
        )
