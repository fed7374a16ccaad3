"""A posterior as plain values and arrays, and back: what a file can hold.

With the factor everything is as it was, to the bit, on any engine that holds its tiles. Without
it the file is small, and the factor is computed again.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nngp.architecture import Architecture
from nngp.gram import WHOLE, Split, kernel_blocks
from nngp.linsolve import Engine, Factor
from nngp.linsolve.cholesky import flops
from nngp.posterior.constant import Constant
from nngp.posterior.noise import Noise
from nngp.posterior.posterior import Posterior
from nngp.posterior.report import Report
from nngp.posterior.system import System, solve
from nngp.posterior.workplace import Workplace, find_engine, kept_inputs

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
        "edges": list(system.factor.edges),
        "noise_var": system.noise.variance,
        "noise": asdict(system.noise),
        "split": {**asdict(system.split), "offset": _plain(system.split.offset)},
        "log_det": system.factor.log_det,
        "beta": None if system.constant is None else system.constant.beta,
        "log_evidence": system.log_evidence,
        "failed_attempts": system.failed_attempts,
        "seconds": system.seconds,
        "report": {name: _plain(value) for name, value in posterior.report.as_dict().items()},
        "factor": factor,
    }


def arrays_of(posterior: Posterior, *, factor: bool) -> Iterator[tuple[str, Array]]:
    """The arrays by name, one at a time: a factor may be large."""
    yield "X", np.asarray(posterior._inputs)
    yield "Y", posterior._targets
    system = posterior._system
    with posterior._engine.run() as run:
        yield "z", np.concatenate([run.fetch(tile) for tile in system.z], axis=1)
        yield "alpha", np.concatenate([run.fetch(tile) for tile in system.alpha], axis=1)
        if system.constant is not None:
            for name in ("z", "alpha"):
                tiles = [run.fetch(tile) for tile in getattr(system.constant, name)]
                yield f"constant/{name}", np.concatenate(tiles, axis=1)
            yield "constant/sums", system.constant.sums
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
    inputs, targets = kept_inputs(engine, read("X")), read("Y")
    chosen, expected = find_engine(engine, inputs, targets.shape[1], memory, architecture)
    edges = tuple(header["edges"])
    place = Workplace(chosen, memory, progress, flops(edges) / max(expected.seconds, 1e-9))
    # Files of the first format have neither: K was always taken whole.
    if "split" in header:
        split = Split(**{**header["split"], "offset": float(header["split"]["offset"])})
        noise = Noise(**header["noise"])
    else:
        split, noise = WHOLE, Noise(header["noise_var"])
    if header["factor"]:
        system = _system(header, edges, read, chosen, split, noise)
    else:
        with chosen.run():
            blocks = kernel_blocks(chosen.where, architecture, inputs, split=split)
        with place.track(f"factor ({expected})", flops(edges)) as tracker:
            system = solve(chosen, blocks, edges, targets, noise, tracker)
    told = {name: np.inf if value == "inf" else value for name, value in header["report"].items()}
    report = Report(**{**FIRST_FORMAT, **told})
    return Posterior(architecture, inputs, targets, header["single"], place, system, report)


def _system(
    header: dict[str, Any],
    edges: tuple[int, ...],
    read: Callable[[str], Array],
    engine: Engine,
    split: Split,
    noise: Noise,
) -> System:
    with engine.run() as run:
        rows = [
            [run.put(read(f"factor/{i}/{j}")) for j in range(i + 1)] for i in range(len(edges) - 1)
        ]
        constant = None
        z, alpha = (run.columns(read(name), edges) for name in ("z", "alpha"))
        if not split.is_whole:
            one_z, one_alpha = (run.columns(read(f"constant/{k}"), edges) for k in ("z", "alpha"))
            constant = Constant(split, header["beta"], read("constant/sums"), one_z, one_alpha)
    factor = Factor(edges, rows, noise.variance / split.scale, header["log_det"])
    names = ("log_evidence", "failed_attempts", "seconds")
    more = (header[name] for name in names)
    return System(factor, split, noise, constant, z, alpha, *more)


def _plain(value: Any) -> Any:
    """JSON has no infinity."""
    return "inf" if isinstance(value, float) and value == np.inf else value
