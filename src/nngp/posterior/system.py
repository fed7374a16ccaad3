"""The linear system (K + noise) α = Y of one network on one data set: factored, then solved.

Takes kernel blocks, targets and noise; gives `System`: the factor, z = L⁻¹Y and α. It is what
`Posterior` reads and what `Sweep` computes for every network. Where the kernel is split
(`constant`), what is factored is B, and z and α are those of Y - μ.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from nngp._safe import TINY
from nngp.architecture import Architecture
from nngp.curve import curve_at
from nngp.errors import NotPositiveDefiniteError, VarianceError
from nngp.gram import KernelSplit
from nngp.linsolve import (
    Engine,
    Factor,
    Progress,
    Run,
    backward,
    climb,
    factorise,
    forward,
    merge_last,
)
from nngp.linsolve.tiling import flops, spans
from nngp.posterior.constant import Constant, dot_row, sum_of_squares
from nngp.posterior.failures import no_factor
from nngp.posterior.noise import Noise

Array = NDArray[np.float64]
UNUSABLE = 1e-3  # error of a mean, relative to the largest target
UNKNOWN = 1e-4  # error of a kernel, relative to its scale
LARGEST = 1e300  # noise in units of the kernel's scale
CHECKED_ROWS = 64  # of K, computed anew for the residual


class KernelBlocks(Protocol):
    """Blocks of K on an engine (`gram.Blocks`, `gram.DeviceBlocks`)."""

    plan: Any
    split: KernelSplit
    is_exact: bool
    diagonal: Array

    def block(self, rows: slice, columns: slice, *, shift: float = 0.0, out: Any = None) -> Any: ...

    def error(self) -> float: ...


class Solved(ABC):
    """What a mean is read off, however it was solved: α in tiles, and the constant."""

    split: KernelSplit
    constant: Constant | None
    alpha: Sequence[Any]

    @property
    @abstractmethod
    def slices(self) -> list[slice]:
        """The index range of every tile."""

    @property
    def mean(self) -> Any:
        """What is added to every prediction: μ of each output, or nothing."""
        return 0.0 if self.constant is None else self.constant.mean

    @cached_property
    def weights(self) -> Array:
        """α on the host, (n, outputs), times the split's scale."""
        return np.concatenate([np.asarray(tile) for tile in self.alpha], axis=1).T


class Explained(NamedTuple):
    """What the data say at test points: the mean, the part of M(x, x) that they explain, and that
    of the constant, mᵀb, where it is kept apart."""

    mean: Array
    variance: Array
    constant: Array | None


@dataclass(frozen=True)
class System(Solved):
    """The factor, and the targets solved with it, as tiles (outputs, rows) of the engine."""

    factor: Factor
    split: KernelSplit
    noise: Noise
    constant: Constant | None  # None where M is K itself
    z: Sequence[Any]
    alpha: Sequence[Any]
    log_evidence: float
    failed_attempts: int
    seconds: dict[str, float]  # by phase

    @property
    def slices(self) -> list[slice]:
        """The index range of every tile."""
        return self.factor.slices

    @property
    def bytes(self) -> int:
        return self.factor.bytes

    @property
    def facts(self) -> dict[str, Any]:
        """What the report says of this solver alone."""
        return {"solver": "cholesky"}

    def missed(self, engine: Engine, blocks: KernelBlocks, Y: Array) -> float:
        """The residual, as `report` has it."""
        return residual(engine, blocks, self, Y)

    def rows_at_a_time(self, engine: Engine) -> int:
        """Test points whose variance is computed in one block."""
        return engine.rows_at_a_time(self.factor.n)

    def explained(
        self, run: Run, blocks: KernelBlocks, rows: Sequence[slice]
    ) -> Iterator["Explained"]:
        """For each block of test points, given K of them and the data."""
        firsts = [partial(cross_tile, blocks, part, self.slices) for part in rows]
        for tiles in forward(run, self.factor, firsts):
            solved = [run.wait(tile) for tile in tiles]
            mean = _dots(run, _times_transposed, solved, self.z) + self.mean
            known = None
            if self.constant is not None:
                known = _dots(run, dot_row, solved, self.constant.z)
            yield Explained(mean, _dots(run, row_squares, solved), known)

    def joint(
        self,
        run: Run,
        cross: KernelBlocks,
        own: KernelBlocks,
        rows: Sequence[slice],
        told: Callable[[slice], None],
    ) -> Array:
        """What the data leave of M between test points, (m, m); holds L⁻¹M* of all of them."""
        m = len(own.diagonal)
        out = np.empty((m, m))
        firsts = [partial(cross_tile, cross, part, self.slices) for part in rows]
        solved = forward(run, self.factor, firsts)
        doubt = np.zeros(m)
        if self.constant is not None:
            doubt = np.concatenate([self._doubt(run, tiles) for tiles in solved])
        for i, part in enumerate(rows):
            tiles = [
                run.chain(partial(own.block, part, other), solved[i], solved[j])
                for j, other in enumerate(rows[: i + 1])
            ]
            for other, handle in zip(rows, tiles, strict=False):
                tile = run.fetch(handle) + np.outer(doubt[part], doubt[other])
                out[part, other], out[other, part] = tile, tile.T
            lower = np.tril(out[part, part])
            out[part, part] = lower + np.tril(lower, -1).T
            told(part)
        return out

    def _doubt(self, run: Run, solved: Sequence[Any]) -> Any:
        """The deviation that the constant leaves at each test point: √κ (1 - mᵀb)."""
        assert self.constant is not None
        known = _dots(run, dot_row, solved, self.constant.z)
        return np.sqrt(self.constant.variance) * (1.0 - known)

    @property
    def rate(self) -> float:
        """Operations a second that the factorisation had, its kernel tiles included."""
        return flops(self.factor.edges) / max(self.seconds["factor"], 1e-9)


def solve(
    engine: Engine,
    blocks: KernelBlocks,
    edges: tuple[int, ...],
    Y: Array,
    noise: Noise,
    progress: Progress | None = None,
    arena: Any = None,
) -> System:
    """Factor K + noise, up the ladder if need be, and solve for the targets.

    With `arena` the tiles go where those of an earlier factor were.
    """
    progress = progress or Progress("factor", 1.0, None)
    memory = arena or engine.arena()
    middle = middle_of(Y)
    targets = with_ones(Y, middle, blocks.split)
    check_noise(noise, blocks.split)

    def attempt(stated: float) -> tuple[Factor, list[Any]]:
        progress.begin(f"noise {stated:.0e}")
        shift = stated * noise.unit / blocks.split.scale
        with engine.run() as run:
            first = partial(_kernel_tile, blocks, spans(edges), shift, memory)
            border = partial(_target_tile, run, spans(edges), targets)
            rows, log_det, z = factorise(run, first, edges, progress, border=border)
        return Factor(edges, rows, shift, log_det), z

    start = time.perf_counter()
    try:
        (factor, z), stated, failed = climb(attempt, noise.stated)
    except NotPositiveDefiniteError as error:
        error.noise_var *= noise.unit
        error.args = (no_factor(engine, blocks, error.noise_var),)
        raise
    seconds = {"factor": time.perf_counter() - start}
    with engine.run() as run:
        used = noise.raised_to(stated)
        return _finish(run, factor, blocks.split, used, z, middle, failed, seconds)


def check_noise(noise: Noise, split: KernelSplit) -> None:
    """Refuse noise that float64 cannot hold in units of the kernel's scale."""
    if noise.variance / split.scale > LARGEST:
        raise VarianceError(
            f"noise_var {noise.variance:.0e} is out of proportion to this kernel, whose scale is "
            f"{split.scale:.0e}; use less noise or a smaller depth"
        )


def check_curve(architecture: Architecture, input_var: float | None) -> None:
    """Refuse the kernel of a network, of inputs that share a norm, if it is not known: by the
    error of its deficits, or by that of K, whichever says more of M."""
    if input_var is None:
        return
    curve = curve_at(architecture, input_var)
    error = min(curve.deficit_error, curve.error * (1 + curve.offset))
    if not error < UNKNOWN:
        raise VarianceError(
            f"at depth {architecture.depth} the kernel is known to {error:.0e} of its scale only; "
            "use a smaller depth, or a weight_var nearer to where the variance stays put"
        )


def evidence(
    split: KernelSplit, constant: Constant | None, fit: float, log_det: float, n: int, outputs: int
) -> float:
    """log p(Y) from the fit and log determinant of what was factored, of n points."""
    log_det = log_det + n * float(np.log(2 * np.pi * split.scale))
    if constant is not None:
        fit, log_det = fit + constant.fit, log_det + constant.log_det
    with np.errstate(over="ignore"):
        found = float(-0.5 * (np.float64(fit) / split.scale + outputs * log_det))
    if not np.isfinite(found):
        raise VarianceError(
            f"the targets are too large beside the scale {split.scale:.0e} of this kernel: their "
            "squares overflow; rescale Y, or use a smaller depth"
        )
    return found


def extend(
    engine: Engine,
    blocks: KernelBlocks,
    edges: tuple[int, ...],
    Y: Array,
    known: System,
    progress: Progress,
) -> System:
    """The system of more data: `known` solved the leading rows, and its tiles are kept."""
    shift, middle, start = known.factor.shift, middle_of(Y), time.perf_counter()
    with engine.run() as run:
        first = partial(_kernel_tile, blocks, spans(edges), shift, engine.arena())
        rows, log_det, _ = factorise(run, first, edges, progress, known.factor.rows)
        factor = Factor(edges, rows, shift, log_det)
        factor = merge_last(run, factor, engine.tile_size(factor.n))
        targets = with_ones(Y, middle, known.split)
        border = partial(_target_tile, run, factor.slices, targets)
        z = [run.wait(tile) for tile in forward(run, factor, [border])[0]]
        seconds = {"factor": time.perf_counter() - start}
        failed = known.failed_attempts
        return _finish(run, factor, known.split, known.noise, z, middle, failed, seconds)


def middle_of(Y: Array) -> Array:
    """A constant near the targets of each output: exactly theirs if they are all the same."""
    return np.median(Y, axis=0)


def with_ones(Y: Array, middle: Array, split: KernelSplit) -> Array:
    """The targets; where the constant function is kept apart, less their middle and with the
    constant as one more."""
    return Y if split.is_trivial else np.column_stack([Y - middle, np.ones(len(Y))])


def _finish(
    run: Run,
    factor: Factor,
    split: KernelSplit,
    noise: Noise,
    z: list[Any],
    middle: Array,
    failed: int,
    seconds: dict[str, float],
) -> System:
    """α = L⁻ᵀz, the constant, and the evidence."""
    start = time.perf_counter()
    alpha = [run.wait(tile) for tile in backward(run, factor, z)]
    constant = None
    if not split.is_trivial:
        z, alpha, constant = _kept_apart(run, factor, split, z, alpha, middle)
    squares = [run.apply(sum_of_squares, tile) for tile in z]
    fit = sum(float(run.fetch(part)) for part in squares)
    log_evidence = evidence(split, constant, fit, factor.log_det, factor.n, len(middle))
    seconds = {**seconds, "solve": time.perf_counter() - start}
    return System(factor, split, noise, constant, z, alpha, log_evidence, failed, seconds)


def _kept_apart(
    run: Run, factor: Factor, split: KernelSplit, z: list[Any], alpha: list[Any], middle: Array
) -> tuple[list[Any], list[Any], Constant]:
    """z and α of Y - μ, and the constant, from those of Y - middle with a last row for ones."""
    rows = [run.fetch(run.apply(_joined, *tiles)) for tiles in (z, alpha)]
    z_ones, z_targets = rows[0][-1], rows[0][:-1]
    constant, apart = Constant.solve(split, float(z_ones @ z_ones), z_targets @ z_ones, middle)
    z, alpha = (run.columns(row[:-1] - apart[:, None] * row[-1], factor.edges) for row in rows)
    ones_z, ones_alpha = (run.columns(row[-1:], factor.edges) for row in rows)
    return z, alpha, replace(constant, z=ones_z, alpha=ones_alpha)


def _joined(*tiles: Any) -> Any:
    return tiles[0].__array_namespace__().concat(tiles, axis=1)


def _kernel_tile(
    blocks: KernelBlocks, slices: list[slice], shift: float, memory: Any, i: int, j: int
) -> Any:
    out = None if memory is None else memory.tile(slices[i], slices[j])
    return blocks.block(slices[i], slices[j], shift=shift, out=out)


def cross_tile(blocks: KernelBlocks, rows: slice, slices: list[slice], j: int) -> Any:
    return blocks.block(rows, slices[j])


def _dots(run: Run, function: Callable[..., Any], *tiles: Sequence[Any]) -> Array:
    """The sum of function(...) over tiles, on the host."""
    parts = [run.apply(function, *some) for some in zip(*tiles, strict=True)]
    return np.sum([run.fetch(part) for part in parts], axis=0)


def row_squares(tile: Any) -> Any:
    """The sum of squares of each row."""
    return (tile * tile).sum(axis=1)


def _target_tile(run: Run, slices: list[slice], Y: Array, j: int) -> Any:
    return run.put(Y[slices[j]].T.copy())


def means(run: Run, blocks: KernelBlocks, system: Solved, rows: Sequence[slice]) -> list[Any]:
    """The posterior mean for each block of rows, as handles."""

    def mean(part: slice) -> Any:
        known = zip(system.slices, system.alpha, strict=True)
        parts = [_product(run, blocks, part, columns, alpha) for columns, alpha in known]
        return run.apply(partial(_total, system.mean), *parts)

    return [mean(part) for part in rows]


def _product(
    run: Run, blocks: KernelBlocks, rows: slice, columns: slice, alpha: Any, shift: float = 0.0
) -> Any:
    first = partial(blocks.block, rows, columns, shift=shift)
    return run.chain(first, then=_times_transposed, beside=(alpha,))


def _times_transposed(block: Any, alpha: Any) -> Any:
    return block @ alpha.T


def _total(start: Any, *parts: Any) -> Any:
    return sum(parts, start)


def check_shifted(blocks: KernelBlocks, system: Solved, Y: Array, depth: int) -> None:
    """Refuse test inputs of another norm than the training inputs where little but rounding would
    be left of what a deep network knows: it moves a mean by Σ|α| times that of an entry of M."""
    if blocks.is_exact:
        return
    moved = float(np.abs(system.weights).sum(axis=0).max()) / max(float(np.abs(Y).max()), TINY)
    if not system.split.shift_error(depth) * moved < UNUSABLE:
        raise VarianceError(
            "a network this deep tells apart inputs of one norm only, in training and test alike; "
            "use nngp.normalize on both, or a smaller depth"
        )


def residual(engine: Engine, blocks: KernelBlocks, system: System, targets: Array) -> float:
    """max |(K + noise) α - Y| over some rows of K computed anew, relative to max |Y|; and by how
    much the constant contradicts α, which those rows cannot see."""
    n, factor = len(targets), system.factor
    count = min(CHECKED_ROWS, n)
    start = int(np.random.default_rng(0).integers(0, n - count + 1))
    rows = slice(start, start + count)
    with engine.run() as run:
        handles = [
            _product(run, blocks, rows, columns, alpha, factor.shift)
            for columns, alpha in zip(system.slices, system.alpha, strict=True)
        ]
        fitted = np.sum([run.fetch(handle) for handle in handles], axis=0) + system.mean
    missed = float(np.abs(fitted - targets[rows]).max())
    if system.constant is not None:
        missed = max(missed, system.constant.contradiction(system.weights))
    largest = float(np.abs(targets).max())
    return missed / (largest if largest > 0 else 1.0)
