"""A posterior as plain values and arrays, and back: what a file can hold.

With the factor everything is as it was, to the bit, on any engine that holds its tiles. Without
it the file is small, and the factor is computed again. What conjugate gradients solved has no
factor: its weights are kept, and nothing is computed until a variance is asked for.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nngp.architecture import Architecture
from nngp.gram import TRIVIAL_SPLIT, KernelSplit, kernel_blocks
from nngp.linsolve import CG, Engine, Factor
from nngp.linsolve.tiling import flops
from nngp.posterior.constant import Constant
from nngp.posterior.iterative import Iterative, Problem, Reached
from nngp.posterior.noise import Noise
from nngp.posterior.posterior import Posterior
from nngp.posterior.report import Report
from nngp.posterior.resources import Workplace, find_engine, kept_inputs
from nngp.posterior.system import System, solve

Array = NDArray[np.float64]
# What reports of the first format do not say: K was taken whole
FIRST_FORMAT: dict[str, Any] = {
    "scale": 1.0,
    "offset": 0.0,
    "variance": 0.0,
    "spread": 0.0,
    "noise_unit": 1.0,
}


def header_of(posterior: Posterior, *, factor: bool) -> dict[str, Any]:
    """The plain values."""
    system = posterior._system
    return {
        "architecture": posterior.architecture.as_dict(),
        "single": posterior._single,
        "noise_var": system.noise.variance,
        "noise": asdict(system.noise),
        "split": {**asdict(system.split), "offset": _plain(system.split.offset)},
        "beta": None if system.constant is None else system.constant.beta,
        "failed_attempts": system.failed_attempts,
        "seconds": system.seconds,
        "report": {name: _plain(value) for name, value in posterior.report.as_dict().items()},
        **(_iterated(system) if isinstance(system, Iterative) else _factored(system, factor)),
    }


def _factored(system: System, factor: bool) -> dict[str, Any]:
    return {
        "solver": "cholesky",
        "edges": list(system.factor.edges),
        "log_det": system.factor.log_det,
        "log_evidence": system.log_evidence,
        "factor": factor,
    }


def _iterated(system: Iterative) -> dict[str, Any]:
    """There is no factor to keep, whatever was asked for; checkpoints stay where they were."""
    return {
        "solver": "cg",
        "edges": list(system.edges),
        "options": asdict(replace(system.problem.options, checkpoint=None)),
        "reached": asdict(system.reached),
        "factor": False,
    }


def arrays_of(posterior: Posterior, *, factor: bool) -> Iterator[tuple[str, Array]]:
    """The arrays by name, one at a time: a factor may be large."""
    yield "X", np.asarray(posterior._inputs)
    yield "Y", posterior._targets
    system = posterior._system
    names = ("alpha",) if isinstance(system, Iterative) else ("z", "alpha")
    with posterior._engine.run() as run:
        for name in names:
            tiles = [run.fetch(tile) for tile in getattr(system, name)]
            yield name, np.concatenate(tiles, axis=1)
        if system.constant is not None:
            for name in names:
                tiles = [run.fetch(tile) for tile in getattr(system.constant, name)]
                yield f"constant/{name}", np.concatenate(tiles, axis=1)
            yield "constant/sums", system.constant.sums
        rows = system.factor.rows if factor and not isinstance(system, Iterative) else []
        for i, row in enumerate(rows):
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
    inputs, targets = kept_inputs(engine, read("X")), read("Y")
    solver = header.get("solver", "cholesky")
    chosen, expected = find_engine(
        engine, inputs, targets.shape[1], memory, architecture, solver=solver
    )
    edges = tuple(header["edges"])
    place = Workplace(chosen, memory, progress, flops(edges) / max(expected.seconds, 1e-9))
    # Files of the first format have neither: K was always taken whole.
    if "split" in header:
        split = KernelSplit(**{**header["split"], "offset": float(header["split"]["offset"])})
        noise = Noise(**header["noise"])
    else:
        split, noise = TRIVIAL_SPLIT, Noise(header["noise_var"])
    system: System | Iterative
    if solver == "cg":
        place = replace(place, rate=0.0)
        problem = Problem(architecture, inputs, place, CG(**header["options"]))
        system = _iterative(header, edges, read, problem, split, noise)
    elif header["factor"]:
        system = _system(header, edges, read, chosen, split, noise)
    else:
        with chosen.run():
            blocks = kernel_blocks(chosen.where, architecture, inputs, split=split)
        with place.track(f"factor ({expected})", flops(edges)) as tracker:
            system = solve(chosen, blocks, edges, targets, noise, tracker)
    told = {name: np.inf if value == "inf" else value for name, value in header["report"].items()}
    report = Report(**{**FIRST_FORMAT, **told})
    return Posterior(architecture, inputs, targets, header["single"], place, system, report)


def _iterative(
    header: dict[str, Any],
    edges: tuple[int, ...],
    read: Callable[[str], Array],
    problem: Problem,
    split: KernelSplit,
    noise: Noise,
) -> Iterative:
    with problem.engine.run() as run:
        alpha, constant = run.columns(read("alpha"), edges), None
        if not split.is_trivial:
            ones = run.columns(read("constant/alpha"), edges)
            constant = Constant(split, header["beta"], read("constant/sums"), (), ones)
    reached, failed = Reached(**header["reached"]), header["failed_attempts"]
    seconds = header["seconds"]
    return Iterative(problem, edges, split, noise, constant, alpha, reached, failed, seconds)


def _system(
    header: dict[str, Any],
    edges: tuple[int, ...],
    read: Callable[[str], Array],
    engine: Engine,
    split: KernelSplit,
    noise: Noise,
) -> System:
    with engine.run() as run:
        rows = [
            [run.put(read(f"factor/{i}/{j}")) for j in range(i + 1)] for i in range(len(edges) - 1)
        ]
        constant = None
        z, alpha = (run.columns(read(name), edges) for name in ("z", "alpha"))
        if not split.is_trivial:
            one_z, one_alpha = (run.columns(read(f"constant/{k}"), edges) for k in ("z", "alpha"))
            constant = Constant(split, header["beta"], read("constant/sums"), one_z, one_alpha)
    factor = Factor(edges, rows, noise.variance / split.scale, header["log_det"])
    names = ("log_evidence", "failed_attempts", "seconds")
    more = (header[name] for name in names)
    return System(factor, split, noise, constant, z, alpha, *more)


def _plain(value: Any) -> Any:
    """JSON has no infinity."""
    return "inf" if isinstance(value, float) and value == np.inf else value
