"""A posterior as plain values and arrays, and back: the content of a saved model.

With the factor, predictions are the same to the bit after loading, on any engine that holds its
tiles. Without it the file is small, and the factor is computed again. A solution by conjugate
gradients has no factor: its weights are kept.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from nngp._arrays import Array
from nngp._progress import Callback
from nngp.architecture import Architecture
from nngp.gram import KernelSplit
from nngp.linsolve import Engine, Forecast
from nngp.linsolve.tiling import flops
from nngp.posterior.by_cg import read_cg
from nngp.posterior.by_cholesky import read_cholesky, solve_by_cholesky
from nngp.posterior.noise import Noise
from nngp.posterior.posterior import Posterior
from nngp.posterior.problem import Problem
from nngp.posterior.report import Report
from nngp.posterior.resources import Resources, find_engine, kernels_of
from nngp.posterior.solution import ArrayReader, Solution


def header_of(posterior: Posterior, *, factor: bool) -> dict[str, Any]:
    """The plain values."""
    solution = posterior._solution
    return {
        "architecture": posterior.architecture.as_dict(),
        "single": posterior._single,
        "noise_var": solution.noise.variance,
        "noise": asdict(solution.noise),
        "split": {**asdict(solution.split), "offset": _plain(solution.split.offset)},
        "beta": None if solution.constant is None else solution.constant.beta,
        "failed_attempts": solution.failed_attempts,
        "seconds": solution.seconds,
        "report": {name: _plain(value) for name, value in posterior.report.as_dict().items()},
        **solution.header(factor=factor),
    }


def arrays_of(posterior: Posterior, *, factor: bool) -> Iterator[tuple[str, Array]]:
    """The arrays by name, one at a time: a factor may be large."""
    yield "X", np.asarray(posterior._inputs)
    yield "Y", posterior._targets
    with posterior._engine.run() as run:
        yield from posterior._solution.arrays(run, factor=factor)


def restore(
    header: Mapping[str, Any],
    read: ArrayReader,
    *,
    engine: str | Engine = "auto",
    memory: int | None = None,
    progress: Callback | bool | None = None,
) -> Posterior:
    """The posterior again, on that engine; `read` gives an array by its name."""
    architecture = Architecture.from_dict(header["architecture"])
    inputs, targets = kernels_of(engine).inputs(read("X")), read("Y")
    chosen, expected = find_engine(
        engine, inputs, targets.shape[1], memory, architecture, solver=header["solver"]
    )
    rate = flops(tuple(header["edges"])) / max(expected.seconds, 1e-9)
    problem = Problem(architecture, inputs, Resources(chosen, memory, progress, rate))
    solution = _solution(header, read, problem, targets, expected)
    if header["solver"] == "cg":
        problem = replace(problem, resources=replace(problem.resources, rate=0.0))
    report = Report(**{name: _number(value) for name, value in header["report"].items()})
    return Posterior(problem, targets, header["single"], solution, report)


def _solution(
    header: Mapping[str, Any],
    read: ArrayReader,
    problem: Problem,
    targets: Array,
    expected: Forecast,
) -> Solution:
    split = KernelSplit(**{**header["split"], "offset": float(header["split"]["offset"])})
    noise = Noise(**header["noise"])
    if header["solver"] == "cg":
        return read_cg(header, read, problem, split, noise)
    if header["factor"]:
        return read_cholesky(header, read, problem.engine, split, noise)
    edges, matrix = tuple(header["edges"]), problem.matrix(split)
    with problem.resources.track(f"factor ({expected})", flops(edges)) as progress:
        return solve_by_cholesky(problem.engine, matrix, edges, targets, noise, progress)


def _plain(value: Any) -> Any:
    """JSON has no infinity."""
    return "inf" if isinstance(value, float) and value == np.inf else value


def _number(value: Any) -> Any:
    return np.inf if value == "inf" else value
