"""A posterior as plain values and arrays, and back: what a file can hold.

With the factor everything is as it was, to the bit, on any engine that holds its tiles. Without
it the file is small, and the factor is computed again.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nngp.architecture import Architecture
from nngp.gram import Inputs, kernel_blocks
from nngp.linsolve import Engine, Factor
from nngp.linsolve.cholesky import flops, spans
from nngp.posterior.posterior import Posterior
from nngp.posterior.report import Report
from nngp.posterior.system import System, solve
from nngp.posterior.workplace import Workplace, find_engine

Array = NDArray[np.float64]


def header_of(posterior: Posterior, *, factor: bool) -> dict[str, Any]:
    """The plain values."""
    system = posterior._system
    return {
        "architecture": posterior.architecture.as_dict(),
        "single": posterior._single,
        "edges": list(system.factor.edges),
        "noise_var": system.factor.noise_var,
        "log_det": system.factor.log_det,
        "log_evidence": system.log_evidence,
        "failed_attempts": system.failed_attempts,
        "seconds": system.seconds,
        "report": posterior.report.as_dict(),
        "factor": factor,
    }


def arrays_of(posterior: Posterior, *, factor: bool) -> Iterator[tuple[str, Array]]:
    """The arrays by name, one at a time: a factor may be large."""
    yield "X", posterior._inputs.X
    yield "Y", posterior._targets
    system = posterior._system
    with posterior._engine.run() as run:
        yield "z", np.concatenate([run.fetch(tile) for tile in system.z], axis=1)
        yield "alpha", np.concatenate([run.fetch(tile) for tile in system.alpha], axis=1)
        for i, row in enumerate(system.factor.rows if factor else ()):
            for j, tile in enumerate(row):
                yield f"factor/{i}/{j}", run.fetch(tile)


def restore(
    header: dict[str, Any],
    read: Callable[[str], Array],
    *,
    engine: str | Engine = "auto",
    memory: int | None = None,
    progress: Any = None,
) -> Posterior:
    """The posterior again, on that engine; `read` gives an array by its name."""
    architecture = Architecture.from_dict(header["architecture"])
    inputs, targets = Inputs.kept(read("X")), read("Y")
    chosen, expected = find_engine(engine, inputs, targets.shape[1], memory, architecture)
    edges = tuple(header["edges"])
    place = Workplace(chosen, memory, progress, flops(edges) / max(expected.seconds, 1e-9))
    if header["factor"]:
        system = _system(header, edges, read, chosen)
    else:
        with chosen.run():
            blocks = kernel_blocks(chosen.where, architecture, inputs)
        with place.track(f"factor ({expected})", flops(edges)) as tracker:
            system = solve(chosen, blocks, edges, targets, header["noise_var"], tracker)
    report = Report(**header["report"])
    return Posterior(architecture, inputs, targets, header["single"], place, system, report)


def _system(
    header: dict[str, Any], edges: tuple[int, ...], read: Callable[[str], Array], engine: Engine
) -> System:
    with engine.run() as run:
        rows = [
            [run.put(read(f"factor/{i}/{j}")) for j in range(i + 1)] for i in range(len(edges) - 1)
        ]
        z, alpha = (
            [run.put(np.ascontiguousarray(whole[:, part])) for part in spans(edges)]
            for whole in (read("z"), read("alpha"))
        )
    factor = Factor(edges, rows, header["noise_var"], header["log_det"])
    names = ("log_evidence", "failed_attempts", "seconds")
    return System(factor, z, alpha, *(header[name] for name in names))
