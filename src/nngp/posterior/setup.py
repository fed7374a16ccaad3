"""A linear system and its place: network, inputs, targets, an engine and the memory it may use."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from nngp._arrays import Array
from nngp._numbers import as_reals
from nngp._progress import Callback, Progress, progress_for
from nngp.architecture import Network
from nngp.gram import (
    HostBackend,
    Inputs,
    InputSet,
    KernelBackend,
    KernelMatrix,
    KernelSplit,
    image_bytes,
    table_bytes,
)
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
    fixed = 0 if network is None else image_bytes(network)
    sizes = n, d, outputs, memory, lambda n: each * n + fixed
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


@dataclass(frozen=True)
class Problem:
    """The left side of (K + noise) α = Y, and where it is solved."""

    network: Network
    inputs: InputSet
    resources: Resources

    @property
    def engine(self) -> Engine:
        return self.resources.engine

    def matrix(self, split: KernelSplit | None = None) -> KernelMatrix:
        """The kernel matrix of the training inputs."""
        with self.engine.run():  # device arrays made here are the engine's
            return self.engine.kernels.matrix(self.network, self.inputs, split=split)

    def to_rows(self, test: InputSet, split: KernelSplit) -> KernelMatrix:
        """The kernel matrix between other inputs and the training inputs."""
        kernels = self.engine.kernels
        return kernels.matrix(self.network, test, self.inputs, split=split)

    def among(self, test: InputSet, split: KernelSplit) -> KernelMatrix:
        """The kernel matrix of other inputs."""
        return self.engine.kernels.matrix(self.network, test, split=split)

    def upload(self, test: Inputs) -> InputSet:
        """Other inputs, where the engine computes."""
        return self.engine.kernels.test_inputs(test)

    def test_inputs(self, Xs: ArrayLike, name: str = "Xs") -> Inputs:
        """Other inputs, checked; raises ValueError if the training inputs were changed since."""
        self.inputs.check_unchanged()
        test = Inputs.of(Xs, name)
        wanted = self.inputs.shape[1]
        if test.X.shape[1] != wanted:
            hint = f"; for one point pass {name}[None]" if np.ndim(Xs) == 1 else ""
            raise ValueError(
                f"{name} has {test.X.shape[1]} features and the training inputs have {wanted}{hint}"
            )
        return test


LARGEST = 1e140
ENCODE = "encode class labels as one column a class, for example one-hot minus the mean"


def as_targets(Y: ArrayLike, n: int, name: str = "Y") -> tuple[Array, bool]:
    """Y as an array (n, outputs), and whether it was given as a plain vector."""
    out = np.array(as_reals(Y, name, ENCODE))  # a copy: Y may be changed later
    shape, single = out.shape, out.ndim == 1
    if single:
        out = out[:, None]
    if out.ndim != 2 or out.shape[1] == 0:
        raise ValueError(f"{name} must be a vector or a matrix (n, outputs), got {shape}")
    if len(out) != n:
        raise ValueError(f"{name} has {len(out)} rows and the inputs have {n}; they must agree")
    if not np.isfinite(out).all():
        row, column = np.argwhere(~np.isfinite(out))[0]
        raise ValueError(f"{name} holds {out[row, column]} (row {row}); drop such rows first")
    if np.abs(out).max() > LARGEST:
        raise ValueError(f"{name} holds numbers above {LARGEST:g}, whose squares overflow; rescale")
    return np.ascontiguousarray(out), single


def middle_of(Y: Array) -> Array:
    """A constant near the targets of each output: exactly theirs if they are all the same."""
    return np.median(Y, axis=0)


def with_ones(Y: Array, middle: Array, split: KernelSplit) -> Array:
    """The targets; where the constant function is kept apart, less their middle and with the
    constant as one more."""
    return Y if split.is_trivial else np.column_stack([Y - middle, np.ones(len(Y))])
