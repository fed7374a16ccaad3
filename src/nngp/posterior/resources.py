"""Where inference is done and what it may use: the engine, the memory, and who is told."""

import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nngp.architecture import Architecture
from nngp.gram import Inputs, device_can
from nngp.linsolve import (
    CG,
    CpuEngine,
    Engine,
    Forecast,
    Progress,
    choose_engine,
    forecast_factor,
    progress_for,
)


@dataclass(frozen=True)
class Workplace:
    """An engine, the most bytes to use on it beyond the data, and the progress asked for."""

    engine: Engine
    memory: int | None = None
    progress: Any = None
    rate: float = 0.0  # operations a second, as the factorisation had them; 0 if unknown

    def check(self, needed: float, held: int, what: str, *, on_host: bool = False) -> None:
        """Refuse what does not fit beside the `held` bytes, on the engine or on this machine."""
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
        expected = operations / self.rate if self.rate > 0 else 0.0
        return Progress(phase, operations, progress_for(self.progress, expected), expected)


def kept_inputs(engine: str | Engine, X: Any) -> Any:
    """The data to condition on, where the engine wants them: in memory, or with the workers of a
    cluster. The path of a .npy file is read as it is needed."""
    if _is_cluster(engine):
        from nngp.gram.cluster.blocks import RemoteInputs

        return RemoteInputs.of(engine, X)
    return Inputs.kept(_opened(X) if isinstance(X, str | os.PathLike) else X)


def _opened(path: str | os.PathLike[str]) -> Any:
    if os.path.splitext(path)[1] != ".npy":
        raise ValueError(
            f"X must be an array or the path of a .npy file, got {path}; zarr needs a DaskEngine"
        )
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(f"X cannot be read: {path}: {error}") from None


def placed(engine: Engine, inputs: Inputs) -> Any:
    """Other inputs, where the engine wants them."""
    if not _is_cluster(engine):
        return inputs
    from nngp.gram.cluster.blocks import remote_test

    return remote_test(engine, inputs)


def _is_cluster(engine: str | Engine) -> bool:
    return getattr(engine, "where", None) == "cluster"


def find_engine(
    engine: str | Engine,
    inputs: Inputs,
    outputs: int,
    memory: int | None,
    architecture: Architecture | None = None,
    *,
    solver: "str | CG" = "cholesky",
    **forecast: Any,
) -> tuple[Engine, Forecast]:
    """The engine and its forecast for a factor; "auto" goes back to the CPU from a GPU that does
    not suit, or that a factor does not fit while it fits the CPU."""
    n, d = inputs.shape
    chosen = choose_engine(engine, n)
    expected = forecast_factor(chosen, n, d, outputs, memory, **forecast)
    if chosen.has_store and memory is None:  # tiles are files, and there is no limit to them
        expected = replace(expected, available=None)
    if engine == "auto" and chosen.where == "device":
        suits = architecture is None or device_can(architecture, inputs)
        if not suits or not (expected.fits or _is_cg(solver)):
            other = CpuEngine()
            there = forecast_factor(other, n, d, outputs, memory, **forecast)
            if not suits or there.fits or solver == "cholesky":
                chosen, expected = other, there
    if solver == "cholesky" and not chosen.spills:
        expected.check()
    return chosen, expected


def check_solver(solver: "str | CG") -> None:
    """Refuse what is none."""
    named = isinstance(solver, str) and solver in ("auto", "cholesky", "cg")
    if not named and not isinstance(solver, CG):
        raise ValueError(f"solver must be 'auto', 'cholesky', 'cg' or nngp.CG(...), got {solver!r}")


def choose_solver(solver: "str | CG", expected: Forecast) -> CG | None:
    """The options of CG, or None for Cholesky; "auto" takes CG where a factor does not fit."""
    if isinstance(solver, CG):
        return solver
    wanted = solver == "cg" or (solver == "auto" and not expected.fits)
    return CG() if wanted else None


def _is_cg(solver: "str | CG") -> bool:
    return isinstance(solver, CG) or solver == "cg"
