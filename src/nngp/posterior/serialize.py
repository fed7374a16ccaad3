"""A posterior as plain values and arrays, and back: the content of a saved model.

With the factor, predictions are the same to the bit after loading, on any engine that holds its
tiles. Without it the file is small, and the factor is computed again. A solution by conjugate
gradients has no factor: its weights are kept.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import numpy as np

from nngp._arrays import Array
from nngp._fields import Fields
from nngp._progress import Callback
from nngp.architecture import Network, network_from_dict
from nngp.errors import ActivationError, NotPositiveDefiniteError, VarianceError
from nngp.gram import TRIVIAL_SPLIT, Inputs, KernelMatrix, KernelSplit
from nngp.linsolve import Engine, Forecast
from nngp.linsolve.tiling import flops
from nngp.posterior.by_cg import read_cg
from nngp.posterior.by_cholesky import solve_by_cholesky
from nngp.posterior.noise import Noise, as_variances
from nngp.posterior.posterior import Posterior
from nngp.posterior.report import Report
from nngp.posterior.saved_factor import read_cholesky
from nngp.posterior.setup import Problem, Resources, as_targets, find_engine, kernels_of
from nngp.posterior.solution import ArrayReader, Solution, read_edges, residual

DEEPEST = 100_000  # layers of a network in a file: more take minutes to compute, or for ever
SOLVERS = ("cholesky", "cg")
COMPARED = 4  # rows of K, computed anew
TOLERANCE = 1e-6  # of the split, and of their residual relative to the targets
LARGEST = 1e300  # sum of weights times entries of K, beyond which products overflow
EVIDENCE = 1e-5  # relative difference of log evidences that rounding explains
ROUNDING = 1e-11  # of an entry of K from one machine to another


def header_of(posterior: Posterior, *, factor: bool) -> dict[str, Any]:
    """The plain values."""
    solution = posterior.solution
    (n, d), outputs = posterior.inputs.shape, posterior.targets.shape[1]
    if not posterior.network.is_infinite and posterior.network.depth > DEEPEST:
        raise ValueError(f"a network of more than {DEEPEST} layers cannot be saved; use math.inf")
    return {
        "n": n,
        "d": d,
        "outputs": outputs,
        "architecture": posterior.network.as_dict(),
        "single": posterior.single,
        "noise_var": solution.noise.least,
        "noise": _noise_values(solution.noise),
        "split": {**asdict(solution.split), "offset": _plain(solution.split.offset)},
        "beta": None if solution.constant is None else solution.constant.beta,
        "failed_attempts": solution.failed_attempts,
        "seconds": solution.seconds,
        "report": {name: _plain(value) for name, value in posterior.report.as_dict().items()},
        "tile_type": posterior.problem.engine.dtype.name,
        **solution.header(factor=factor),
    }


def arrays_of(posterior: Posterior, *, factor: bool) -> Iterator[tuple[str, Array]]:
    """The arrays by name, one at a time: a factor may be large. Its tiles have the engine's type,
    all else is float64."""
    yield "X", np.asarray(posterior.inputs, dtype=np.float64)
    yield "Y", posterior.targets
    if isinstance(posterior.solution.noise.stated, np.ndarray):
        yield "noise", posterior.solution.noise.stated
    with posterior.problem.engine.run() as run:
        for name, array in posterior.solution.arrays(run, factor=factor):
            yield name, array if name.startswith("factor/") else array.astype(np.float64)


def restore(
    header: Fields,
    read: ArrayReader,
    *,
    engine: str | Engine = "auto",
    memory: int | None = None,
    progress: Callback | bool | None = None,
) -> Posterior:
    """The posterior again, on that engine.

    `read` gives an array by its name. What is wrong with a value, or with values that contradict
    each other, is raised as the header's error; errors of computing are left as they are.
    """
    network = _architecture(header.fields("architecture"), header.whole("d", 1))
    X, targets = _data(header, read)
    solver, split, noise = header.text("solver", SOLVERS), _split(header), _noise(header, read)
    report = _report(header, split, noise)
    inputs = kernels_of(engine).inputs(X)
    with _impossible(header):
        chosen, expected = find_engine(
            engine, inputs, targets.shape[1], memory, network, solver=solver
        )
    problem = Problem(network, inputs, Resources(chosen, memory, progress))
    with _impossible(header):
        own = problem.matrix().split
    if not _same_split(split, own):
        raise header.wrong("split", f"that of its network and inputs, {own}")
    with _impossible(header):
        noise.check(split)
        matrix = problem.matrix(split)
    solution: Solution
    if solver == "cg":
        solution = read_cg(header, read, problem, split, noise, targets)
    elif header.flag("factor"):
        solution = read_cholesky(header, read, chosen, matrix, noise, targets)
    else:
        solution = _solved_again(header, problem, matrix, noise, targets, expected)
    with _impossible(header):
        found, allowed = _residual(problem, matrix, solution, targets, report)
    if not found <= allowed < np.inf:
        raise header.fail("its network, data, noise and weights are not those of one model")
    single = header.flag("single")
    if single and targets.shape[1] > 1:
        raise header.wrong("single", "false, as there are several outputs")
    return Posterior(problem, targets, single, solution, report)


def _architecture(values: Fields, d: int) -> Network:
    if "depth" in values.values and values["depth"] != "inf":
        values.whole("depth", 0, DEEPEST)
    try:
        network = network_from_dict(values.values)
        network.products(d)  # raises for transformations of other inputs
        return network
    except (TypeError, ValueError, ArithmeticError, KeyError) as cause:
        raise values.fail(f"its network cannot be used: {cause}") from None


def _data(header: Fields, read: ArrayReader) -> tuple[Array, Array]:
    """Inputs and targets, within the ranges that `condition` accepts."""
    n, d, outputs = (header.whole(name, 1) for name in ("n", "d", "outputs"))
    X, Y = read("X", (n, d)), read("Y", (n, outputs))
    try:
        return Inputs.of(X).X, as_targets(Y, n)[0]
    except ValueError as cause:
        raise header.fail(f"its data cannot be used: {cause}") from None


def _split(header: Fields) -> KernelSplit:
    values = header.fields("split")
    split = values.record(KernelSplit)
    values.number("scale", 0, above=True)
    if split.is_trivial:
        whole = split == TRIVIAL_SPLIT and header["beta"] is None
    else:
        whole = min(split.offset, split.kept) >= 0 and values.number("input_var", 0, above=True) > 0
    if not whole:
        raise header.wrong("split", "scale and offset of the kernel")
    return split


def _same_split(one: KernelSplit, other: KernelSplit) -> bool:
    """Whether two splits are equal up to rounding."""
    if one.is_trivial or other.is_trivial:
        return one == other
    pairs = [(s.scale, s.whole_offset, s.input_var) for s in (one, other)]
    return all(math.isclose(a, b, rel_tol=TOLERANCE) for a, b in zip(*pairs, strict=True))


def _noise_values(noise: Noise) -> dict[str, Any]:
    """The plain values of the noise; what was stated by row is an array."""
    stated = None if noise.is_by_row else noise.stated
    return {
        "stated": stated,
        "unit": noise.unit,
        "input_var": noise.input_var,
        "floor": noise.floor,
    }


def _noise(header: Fields, read: ArrayReader) -> Noise:
    values = header.fields("noise")
    unit, floor = values.number("unit", 0, above=True), values.number("floor", 0)
    input_var = None if values["input_var"] is None else values.number("input_var", 0)
    by_row = values["stated"] is None
    stated = _noise_of_rows(header, read) if by_row else values.number("stated", 0)
    noise = Noise(stated, unit, input_var, floor)
    if header.number("noise_var", 0) != noise.least:
        raise header.wrong("noise_var", f"{noise.least}, as noise has it")
    return noise


def _noise_of_rows(header: Fields, read: ArrayReader) -> Array:
    n = header.whole("n", 1)
    try:
        return as_variances(read("noise", (n,)), n, "noise", f"{n} rows")
    except ValueError as cause:
        raise header.fail(f"its noise cannot be used: {cause}") from None


def _report(header: Fields, split: KernelSplit, noise: Noise) -> Report:
    """The report, which must speak of this posterior: it decides which residual is allowed."""
    values = header.fields("report")
    report = values.record(Report)
    numbers = {name: part for name, part in vars(report).items() if isinstance(part, float)}
    for name, number in numbers.items():
        if number < 0:
            raise values.wrong(name, "a number from 0")
    for name in ("residual", "tolerance"):  # of the largest target, or of all targets together
        if (getattr(report, name) or 0.0) > 1:
            raise values.wrong(name, "at most 1")
    stated = {name: header[name] for name in ("n", "d", "outputs", "solver")}
    stated |= {"scale": split.scale, "offset": split.whole_offset}
    stated |= {"noise_unit": noise.unit, "noise_var": noise.least}
    stated |= {"noise_var_largest": noise.largest, "rows_raised": noise.rows_raised(header["n"])}
    stated |= {"noise_var_asked": float(np.min(noise.stated))}
    for name, value in stated.items():
        if getattr(report, name) != value:
            raise values.wrong(name, f"{value}, as the model has it")
    return report


def _solved_again(
    header: Fields,
    problem: Problem,
    matrix: KernelMatrix,
    noise: Noise,
    targets: Array,
    expected: Forecast,
) -> Solution:
    """The solution of a file without the factor, which must have the evidence that it had."""
    edges = read_edges(header, len(targets))
    tracked = problem.resources.track(f"factor ({expected})", flops(edges))
    with _impossible(header), tracked as progress:
        found = solve_by_cholesky(problem.engine, matrix, edges, targets, noise, progress)
    stated = header.number("log_evidence")
    if not abs(found.log_evidence - stated) <= EVIDENCE * (targets.size + abs(stated)):
        raise header.wrong("log_evidence", f"that of its network and data, {found.log_evidence}")
    return found


@contextmanager
def _impossible(header: Fields) -> Iterator[None]:
    """Report errors of a network that cannot be computed: one that was fitted can."""
    try:
        yield
    except (ArithmeticError, NotPositiveDefiniteError, VarianceError, ActivationError) as cause:
        raise header.fail(f"its network cannot be computed: {cause}") from None


def _residual(
    problem: Problem, matrix: KernelMatrix, solution: Solution, targets: Array, report: Report
) -> tuple[float, float]:
    """The residual of the weights by some rows of K, and what rounding and the solver allow."""
    with np.errstate(all="ignore"):
        shift = np.broadcast_to(solution.noise.shift(solution.split), len(targets))
        diagonal = np.max(np.asarray(matrix.diagonal)) + shift
        moved = (diagonal @ np.abs(solution.weights)).max()
        if not moved < LARGEST:
            return np.inf, 0.0
        found = residual(problem.engine, matrix, solution, targets, COMPARED)
        largest = float(np.abs(targets).max()) or 1.0
        allowed = TOLERANCE + 1e3 * report.residual
        allowed += 10 * (ROUNDING + matrix.error()) * moved / largest
        if solution.solver == "cg":  # its residual is that of all rows together
            allowed += report.tolerance * float(np.linalg.norm(targets, axis=0).max()) / largest
    return found, allowed


def _plain(value: Any) -> Any:
    """JSON has no infinity."""
    return "inf" if isinstance(value, float) and value == np.inf else value
