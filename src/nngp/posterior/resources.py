"""The resources of inference: an engine, the memory it may use, and progress reports."""

from dataclasses import dataclass, replace

from nngp._progress import Callback, Progress, progress_for
from nngp.architecture import Network
from nngp.gram import HostBackend, InputSet, KernelBackend, table_bytes
from nngp.linsolve import (
    CG,
    CpuEngine,
    Engine,
    Forecast,
    choose_engine,
    forecast_factor,
)


@dataclass(frozen=True)
class Resources:
    """An engine, the most bytes to use on it beyond the data, and the caller's `progress`."""

    engine: Engine
    memory: int | None = None
    progress: Callback | bool | None = None

    def check(self, needed: float, held: int, what: str, *, on_host: bool = False) -> None:
        """Raise MemoryError if `needed` bytes do not fit beside the `held` ones, on the engine or
        on this machine."""
        free = (CpuEngine() if on_host else self.engine).free_memory()
        allowed = None if self.memory is None else self.memory - held
        limits = [limit for limit in (free, allowed) if limit is not None]
        if limits and needed > min(limits):
            raise MemoryError(
                f"{what} needs {needed / 1e9:.2f} GB and {max(min(limits), 0) / 1e9:.2f} GB may be "
                "used; allow more memory or take fewer points"
            )

    def track(self, phase: str, operations: float) -> Progress:
        """Progress of a phase of so many operations."""
        return Progress(phase, operations, progress_for(self.progress))


def kernels_of(engine: str | Engine) -> KernelBackend:
    """The backend that keeps training inputs for an engine; by name, engines share this memory."""
    return engine.kernels if isinstance(engine, Engine) else HostBackend()


def find_engine(
    engine: str | Engine,
    inputs: InputSet,
    outputs: int,
    memory: int | None,
    network: Network | None = None,
    *,
    solver: str | CG = "cholesky",
) -> tuple[Engine, Forecast]:
    """The engine and its forecast for a factor.

    "auto" goes back to the CPU from a GPU that cannot compute the kernel itself, or whose memory
    does not hold a factor that fits the CPU's.
    """
    n, d = inputs.shape
    chosen = choose_engine(engine, n)
    each = 0 if network is None else table_bytes(network, inputs)
    sizes = n, d, outputs, memory, lambda n: each * n
    expected = forecast_factor(chosen, *sizes)
    if chosen.has_store and memory is None:  # tiles are files, and there is no limit to them
        expected = replace(expected, available=None)
    if engine == "auto" and chosen.name == "gpu":
        suits = network is None or chosen.kernels.supports(network, inputs)
        if not suits or not (expected.fits or _is_cg(solver)):
            other = CpuEngine()
            there = forecast_factor(other, *sizes)
            if not suits or there.fits or solver == "cholesky":
                chosen, expected = other, there
    if solver == "cholesky" and not chosen.spills:
        expected.check()
    return chosen, expected


def check_solver(solver: str | CG) -> None:
    """Raise ValueError unless `solver` is 'auto', 'cholesky', 'cg' or a CG instance."""
    named = isinstance(solver, str) and solver in ("auto", "cholesky", "cg")
    if not named and not isinstance(solver, CG):
        raise ValueError(f"solver must be 'auto', 'cholesky', 'cg' or nngp.CG(...), got {solver!r}")


def choose_solver(solver: str | CG, expected: Forecast) -> CG | None:
    """The options of CG, or None for Cholesky; "auto" takes CG where a factor does not fit."""
    if isinstance(solver, CG):
        return solver
    wanted = solver == "cg" or (solver == "auto" and not expected.fits)
    return CG() if wanted else None


def _is_cg(solver: str | CG) -> bool:
    return isinstance(solver, CG) or solver == "cg"
