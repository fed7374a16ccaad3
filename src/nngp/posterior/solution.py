"""The interface of a solved system (K + noise) α = Y, by Cholesky or by conjugate gradients.

`Posterior` reads everything from a `Solution` and does not know how it was computed. Where the
kernel is split (`constant.py`), B = M + noise / scale stands for the matrix, and α is that of
Y - μ.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from nngp._arrays import TINY, Array
from nngp.errors import VarianceError
from nngp.gram import InputSet, KernelMatrix, KernelSplit, Shift, Tile, shift_of
from nngp.linsolve import Engine, EngineRun, Factor, Forecast
from nngp.linsolve.engines.engine import Handle, compiled
from nngp.posterior.constant import Constant
from nngp.posterior.noise import Noise
from nngp.posterior.setup import Resources

Rows = Sequence[slice]  # blocks of test points
Advance = Callable[[slice], None]  # called when a block is done
CHECKED_ROWS = 64  # of K, recomputed for the residual
LOOKED_AT = 200  # rows in which the cause is sought
GIVEN = "given"  # the method of a matrix that was passed by a user
UNUSABLE = 1e-3  # error of a mean, relative to the largest target


class JointMatrices(NamedTuple):
    """M between test points and the data, and of the test points themselves."""

    cross: KernelMatrix
    own: KernelMatrix


class Explained(NamedTuple):
    """Predictions at test points: the mean, the part of M(x, x) that the data explain, and mᵀb,
    that part of the constant, where it is kept apart."""

    mean: Array
    variance: Array
    constant: Array | None


class Solution(ABC):
    """The weights α as tiles (outputs, rows) of the engine, and what can be computed from them."""

    solver: str
    covariance_on_host = False  # whether `joint` holds its arrays on this machine

    split: KernelSplit
    noise: Noise
    constant: Constant | None  # None where M is K itself
    alpha: Sequence[Tile]
    failed_attempts: int
    seconds: dict[str, float]  # by phase

    @property
    @abstractmethod
    def n(self) -> int:
        """Training points."""

    @property
    @abstractmethod
    def slices(self) -> list[slice]:
        """The index range of every tile; the last may reach beyond the training points."""

    @property
    @abstractmethod
    def bytes(self) -> int:
        """Memory held on the engine."""

    @property
    @abstractmethod
    def facts(self) -> Mapping[str, Any]:
        """Fields of the report that this solver fills."""

    @property
    @abstractmethod
    def summary(self) -> str:
        """The part of the posterior's repr that depends on the solver."""

    @abstractmethod
    def residual(self, engine: Engine, matrix: KernelMatrix, Y: Array) -> float:
        """The residual of the solution, relative to the targets, as the report has it."""

    @abstractmethod
    def rows_at_a_time(self, engine: Engine) -> int:
        """Test points whose covariance with others is computed in one block."""

    @abstractmethod
    def explained(self, run: EngineRun, cross: KernelMatrix, rows: Rows) -> Iterator[Explained]:
        """Predictions for each block of test points, given M between them and the data. The mean
        is that of `means`, to the bit: where α is large, rounding is, too."""

    @abstractmethod
    def joint(self, run: EngineRun, test: JointMatrices, rows: Rows, advance: Advance) -> Array:
        """The posterior covariance between test points over the scale, (m, m)."""

    @abstractmethod
    def joint_bytes(self, m: int) -> float:
        """Memory that `joint` takes for m test points."""

    @abstractmethod
    def factored(self, purpose: str) -> "Factored":
        """The solution with its Cholesky factor; raises NoFactorError if there is none."""

    @abstractmethod
    def update_bytes(self, new: int) -> float:
        """Memory that `updated` takes for so many new points."""

    @abstractmethod
    def updated(
        self, matrix: KernelMatrix, inputs: InputSet, Y: Array, noise: Noise, resources: Resources
    ) -> tuple["Solution", Forecast]:
        """The solution of more data, of which these were the first rows, with the noise that they
        had."""

    @property
    def mean(self) -> Array | float:
        """The constant part of every prediction: μ of each output, or nothing."""
        return 0.0 if self.constant is None else self.constant.mean

    @cached_property
    def weights(self) -> Array:
        """α on the host, (n, outputs), times the split's scale."""
        return np.concatenate([np.asarray(tile) for tile in self.alpha], axis=1)[:, : self.n].T


class Factored(Solution):
    """A solution with a Cholesky factor, for all that needs the inverse of the matrix."""

    factor: Factor
    log_evidence: float


def means(
    run: EngineRun, cross: KernelMatrix, solution: Solution, rows: Sequence[slice]
) -> list[Handle]:
    """The posterior mean for each block of rows, as handles."""
    blocks = [[partial(cross.block, part, columns) for columns in solution.slices] for part in rows]
    return [mean_from(run, solution, tiles) for tiles in blocks]


def mean_from(run: EngineRun, solution: Solution, tiles: Sequence[Callable[[], Tile]]) -> Handle:
    """The posterior mean of a block of rows, from functions that give its tiles of M."""
    known = zip(tiles, solution.alpha, strict=True)
    parts = [run.chain(tile, then=times_transposed, beside=(alpha,)) for tile, alpha in known]
    return run.apply(partial(total, solution.mean), *parts)


def tiles_on_host(run: EngineRun, tiles: Sequence[Handle]) -> Array:
    """Tiles side by side, as one host array."""
    return np.concatenate([run.fetch(tile) for tile in tiles], axis=1)


def tile_of_rows(matrix: KernelMatrix, rows: slice, slices: Sequence[slice], j: int) -> Tile:
    """Tile j of some rows of a kernel matrix."""
    return matrix.block(rows, slices[j])


def rows_on_host(
    run: EngineRun, matrix: KernelMatrix, rows: slice, columns: Sequence[slice]
) -> Array:
    """Some rows of a kernel matrix, as one host array."""
    return tiles_on_host(run, [run.chain(partial(matrix.block, rows, part)) for part in columns])


def times_weights(
    run: EngineRun,
    matrix: KernelMatrix,
    rows: slice,
    columns: slice,
    alpha: Tile,
    shift: Shift = 0.0,
) -> Handle:
    """A block of the matrix times a tile of α, as a handle."""
    first = partial(matrix.block, rows, columns, shift=shift_of(shift, rows))
    return run.chain(first, then=times_transposed, beside=(alpha,))


def residual(
    engine: Engine,
    matrix: KernelMatrix,
    solution: Solution,
    targets: Array,
    count: int = CHECKED_ROWS,
) -> float:
    """max |(K + noise) α - Y| over some rows of K recomputed, relative to max |Y|; and by how
    much the constant contradicts α, which those rows cannot see."""
    n, shift = len(targets), solution.noise.shift(solution.split)
    start = int(np.random.default_rng(0).integers(0, n - min(CHECKED_ROWS, n) + 1))
    rows = slice(start, start + min(count, n))
    with engine.run() as run:
        handles = [
            times_weights(run, matrix, rows, columns, alpha, shift)
            for columns, alpha in zip(solution.slices, solution.alpha, strict=True)
        ]
        fitted = np.sum([run.fetch(handle) for handle in handles], axis=0) + solution.mean
    missed = float(np.abs(fitted - targets[rows]).max())
    if solution.constant is not None:
        missed = max(missed, solution.constant.contradiction(solution.weights))
    largest = float(np.abs(targets).max())
    return missed / (largest if largest > 0 else 1.0)


@compiled
def times_transposed(block: Tile, alpha: Tile) -> Tile:
    return block @ alpha.T


@compiled
def total(start: Array | float, *parts: Tile) -> Tile:
    return sum(parts, start)


def check_shifted(cross: KernelMatrix, solution: Solution, Y: Array) -> None:
    """Raise VarianceError for test inputs of another norm than the training inputs, where little
    but rounding would be left of the mean."""
    check_shifted_mean(cross, solution.split, solution.weights, Y)


def check_shifted_mean(cross: KernelMatrix, split: KernelSplit, weights: Array, Y: Array) -> None:
    """The same for a mean that is M(x, X) times `weights` (n, outputs): rounding moves it by their
    sum times the error of an entry of M."""
    largest = float(np.abs(weights).sum(axis=0).max()) / max(float(np.abs(Y).max()), TINY)
    _check_shift(cross, split, largest, "predictions", "the targets")


def check_shifted_variance(cross: KernelMatrix, split: KernelSplit, weights: Array) -> None:
    """The same for variances of M(x, x) less products with `weights` (m, n)."""
    largest = 1.0 + 2.0 * float(np.abs(weights).sum(axis=1).max())
    _check_shift(cross, split, largest, "variances", "the kernel's scale")


def _check_shift(
    cross: KernelMatrix, split: KernelSplit, factor: float, what: str, unit: str
) -> None:
    if cross.is_exact:
        return
    net, moved = cross.network, split.shift_error(cross.network.depth) * factor
    if not moved < UNUSABLE:
        raise VarianceError(
            "test inputs have another norm than the training inputs, and rounding would move "
            f"{what} by {moved:.0e} of {unit}; use nngp.normalize on both, "
            f"{net.if_deep('a smaller depth, ')}or a larger noise_var"
        )


def no_factor(engine: Engine, matrix: KernelMatrix, noise_var: float) -> str:
    """One sentence: the largest noise tried, the likely cause, the remedy."""
    head = f"the kernel matrix is not positive definite even with noise_var {noise_var:.1g}: "
    inputs, network = matrix.left, matrix.network
    sample = slice(0, min(len(inputs), LOOKED_AT))
    with engine.run() as run:
        M, split = run.fetch(run.chain(partial(matrix.block, sample, sample))), matrix.split
    spread, size = float(M.max() - M.min()), float(np.abs(M).max())
    if matrix.plan.method == GIVEN:
        return head + "drop rows that repeat each other, or pass a larger noise_var"
    if spread <= 1e-12 * size:
        return head + (
            f"at depth {network.depth} the kernel has become constant (its entries differ by "
            f"{spread / size:.0e} of the variance); use "
            f"{network.if_deep('a smaller depth, ')}other variances, or a larger noise_var"
        )
    duplicates = inputs.duplicates()
    if duplicates:
        return head + (
            f"X holds {duplicates} duplicated row(s); drop them or pass a larger noise_var"
        )
    return head + (
        f"its variance is {split.scale * (size + split.offset):.1e}, far above the noise; pass a "
        "larger noise_var or rescale the network"
    )
