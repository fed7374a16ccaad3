"""A posterior as a record for a model file, and back.

With the factor, predictions are the same to the bit after loading, on any engine that holds its
tiles. The factor is mapped into memory, and checked when it is first needed: its digests, and that
it belongs to kernel, data and weights. Without it the file is small, and the factor is computed
again. A solution by conjugate gradients has no factor: its weights are kept.
"""

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import numpy as np

from nngp._arrays import Array
from nngp._progress import Callback
from nngp._records import NonNegative, Positive, Shaped, read_checked, reading, register
from nngp._tensors import StoredArray
from nngp.architecture import Network, network_from_dict
from nngp.errors import ActivationError, ModelFileError, NotPositiveDefiniteError, VarianceError
from nngp.gram import TRIVIAL_SPLIT, Inputs, KernelMatrix, KernelSplit, Tile
from nngp.linsolve import CG, Engine, Factor, Forecast
from nngp.linsolve.tiling import flops, spans
from nngp.posterior.by_cg import CGConvergence, CGProblem, CGSolution
from nngp.posterior.by_cholesky import CholeskySolution, solve_by_cholesky
from nngp.posterior.constant import Constant
from nngp.posterior.noise import Noise
from nngp.posterior.posterior import Posterior
from nngp.posterior.report import Report
from nngp.posterior.setup import Problem, Resources, as_targets, find_engine, kernels_of
from nngp.posterior.solution import Solution, residual, tiles_on_host

DEEPEST = 100_000  # layers of a network in a file: more take minutes to compute, or for ever
COMPARED = 4  # rows of K, computed again
TOLERANCE = 1e-6  # of the split, and of their residual relative to the targets
MAX_PRODUCT_SUM = 1e300  # sum of weights times entries of K, beyond which products overflow
EVIDENCE = 1e-5  # relative difference of log evidences that rounding explains
ROUNDING = 1e-11  # of an entry of K from one machine to another
PRODUCT = 100  # errors of a product with α, in units of its entries' rounding

register(Network, lambda network: network.as_dict(), network_from_dict)


@dataclass(frozen=True)
class SavedConstant:
    """The constant where it is kept apart; `z` is there with a factor."""

    beta: Positive
    sums: Annotated[Array, Shaped("outputs")]
    alpha: Annotated[Array, Shaped("n")]
    z: Annotated[Array, Shaped("n")] | None = None


@dataclass(frozen=True)
class SavedSolution:
    """Values that all solutions have: where their tiles begin, weights unless they are to be solved
    for again, and how they were found."""

    edges: tuple[int, ...]
    failed_attempts: int
    seconds: dict[str, NonNegative]
    alpha: Annotated[Array, Shaped("outputs", "n")] | None
    constant: SavedConstant | None

    def check_saved(self) -> None:
        if self.edges[:1] != (0,) or len(self.edges) < 2 or min(np.diff(self.edges)) <= 0:
            raise ValueError("its tiles do not begin at increasing numbers from 0")


@dataclass(frozen=True)
class SavedCholesky(SavedSolution):
    """A solution by Cholesky. `factor` has the lower tiles, column after column; without it the
    file has no weights either, and everything is computed again."""

    log_det: float
    log_evidence: float
    factor: tuple[StoredArray, ...]

    def check_saved(self) -> None:
        super().check_saved()
        pairs = [
            (rows, columns)
            for j, columns in enumerate(spans(self.edges))
            for rows in spans(self.edges)[j:]
        ]
        shapes = [(r.stop - r.start, c.stop - c.start) for r, c in pairs]
        kinds = {tile.dtype.name for tile in self.factor}
        if self.factor and [tile.shape for tile in self.factor] != shapes:
            raise ValueError("the tiles of its factor have other sizes")
        if not kinds <= {"float64"} and kinds != {"float32"}:
            raise ValueError(f"its factor holds {', '.join(sorted(kinds))}")
        if bool(self.factor) != (self.alpha is not None):
            raise ValueError("it has a factor without weights, or weights without a factor")


@dataclass(frozen=True)
class SavedWeights(SavedSolution):
    """A solution by conjugate gradients."""

    options: CG
    reached: CGConvergence

    def check_saved(self) -> None:
        super().check_saved()
        if self.alpha is None or self.reached.iterations > self.options.max_iterations:
            raise ValueError("it took more iterations than its options allow, or has no weights")


@dataclass(frozen=True)
class SavedPosterior:
    """A posterior."""

    network: Network
    single: bool
    X: Annotated[Array, Shaped("n", "features")]
    Y: Annotated[Array, Shaped("n", "outputs")]
    noise: Noise
    split: KernelSplit
    solution: SavedCholesky | SavedWeights
    report: Report

    @classmethod
    def of(cls, posterior: Posterior, *, factor: bool) -> "SavedPosterior":
        """The record of a posterior, with its factor or without."""
        network, solution = posterior.network, posterior.solution
        if not network.is_infinite and network.depth > DEEPEST:
            raise ValueError(
                f"a network of more than {DEEPEST} layers cannot be saved; use math.inf"
            )
        X = np.asarray(posterior.inputs, dtype=np.float64)
        saved = _saved_solution(posterior.problem.engine, solution, factor)
        return cls(
            network,
            posterior.single,
            X,
            posterior.targets,
            solution.noise,
            solution.split,
            saved,
            posterior.report,
        )

    @property
    def has_factor(self) -> bool:
        """Whether the factor is in the file."""
        return isinstance(self.solution, SavedCholesky) and bool(self.solution.factor)

    def check_saved(self) -> None:
        """Raise ValueError for values that contradict each other, as far as they can tell without
        any computing."""
        (n, d), solution, split = self.X.shape, self.solution, self.split
        Inputs.of(self.X)
        as_targets(self.Y, n)
        depth = self.network.depth
        if not self.network.is_infinite and depth > DEEPEST:
            raise ValueError(f"its network has {depth} layers")
        self.network.products(d)  # raises for transformations of other inputs
        if solution.edges[-1] != n or (self.single and self.Y.shape[1] > 1):
            raise ValueError("its tiles or outputs are not those of its data")
        if split.is_trivial and split != TRIVIAL_SPLIT:
            raise ValueError("scale and offset of its kernel contradict each other")
        if solution.alpha is not None and (solution.constant is None) != split.is_trivial:
            raise ValueError("it has a constant without a split, or a split without a constant")
        if (
            isinstance(solution, SavedWeights)
            and solution.options.tolerance != self.report.tolerance
        ):
            raise ValueError("its options have another tolerance than its report")
        own = self._own_report()
        if own != self.report:
            wrong = [k for k, v in vars(own).items() if v != getattr(self.report, k)]
            raise ValueError(f"its report has other values than the model ({', '.join(wrong)})")

    def _own_report(self) -> Report:
        """The report with the values that follow from the others."""
        (n, d), noise = self.X.shape, self.noise
        return replace(
            self.report,
            n=n,
            d=d,
            outputs=self.Y.shape[1],
            solver="cg" if isinstance(self.solution, SavedWeights) else "cholesky",
            scale=self.split.scale,
            offset=self.split.whole_offset,
            noise_unit=noise.unit,
            noise_var=noise.least,
            noise_var_largest=noise.largest,
            noise_var_asked=float(np.min(noise.stated)),
            rows_raised=noise.rows_raised(n),
            failed_attempts=self.solution.failed_attempts,
        )

    def restore(
        self,
        *,
        engine: str | Engine = "auto",
        memory: int | None = None,
        progress: Callback | bool | None = None,
    ) -> Posterior:
        """The posterior again, on that engine. Values that contradict each other are a
        ModelFileError; errors of computing are left as they are."""
        network, noise, split, saved = self.network, self.noise, self.split, self.solution
        inputs, solver = kernels_of(engine).inputs(self.X), self.report.solver
        with _impossible():
            chosen, expected = find_engine(
                engine, inputs, self.Y.shape[1], memory, network, solver=solver
            )
        problem = Problem(network, inputs, Resources(chosen, memory, progress))
        with _impossible():
            own = problem.matrix().split
        if not _same_split(split, own):
            raise ModelFileError(f"its split is {split}, and that of its network and inputs {own}")
        with _impossible():
            noise.check(split)
            matrix = problem.matrix(split)
        solution: Solution
        if isinstance(saved, SavedWeights):
            solution = _cg_solution(saved, problem, split, noise)
        elif saved.factor:
            solution = _cholesky_solution(saved, chosen, matrix, noise, self.Y)
        else:
            solution = _solved_again(saved, problem, matrix, noise, self.Y, expected)
        with _impossible():
            found, allowed = _residual(problem, matrix, solution, self.Y, self.report)
        if not found <= allowed < np.inf:
            raise ModelFileError("its network, data, noise and weights are not those of one model")
        return Posterior(problem, self.Y, self.single, solution, self.report)


def _saved_solution(
    engine: Engine, solution: Solution, factor: bool
) -> SavedCholesky | SavedWeights:
    """The record of a solution."""
    n, seconds = solution.n, dict(solution.seconds)
    with engine.run() as run:

        def on_host(tiles: Sequence[Tile]) -> Array:
            return tiles_on_host(run, tiles)[:, :n].astype(np.float64)

        alpha, constant, known = on_host(solution.alpha), None, solution.constant
        if known is not None:
            z = on_host(known.z)[0] if len(known.z) else None
            constant = SavedConstant(known.beta, known.sums, on_host(known.alpha)[0], z)
    if isinstance(solution, CGSolution):
        options, failed = solution.problem.options, solution.failed_attempts
        edges = tuple(map(int, solution.edges))
        return SavedWeights(edges, failed, seconds, alpha, constant, options, solution.reached)
    assert isinstance(solution, CholeskySolution)
    kept = solution.factor
    return SavedCholesky(
        tuple(map(int, kept.own_edges)),
        solution.failed_attempts,
        seconds,
        alpha if factor else None,
        constant if factor else None,
        kept.log_det,
        solution.log_evidence,
        tuple(_stored_tiles(engine, kept)) if factor else (),
    )


def _stored_tiles(engine: Engine, factor: Factor) -> Iterator[StoredArray]:
    """The tiles of a factor, fetched one at a time when they are written: it may be large."""
    sizes, count = np.diff(factor.own_edges).tolist(), len(factor.edges) - 1

    def fetch(i: int, j: int) -> Array:
        with engine.run() as run:
            return run.fetch(factor.rows[i][j])[: sizes[i], : sizes[j]]

    for j in range(count):
        for i in range(j, count):
            yield StoredArray((sizes[i], sizes[j]), engine.dtype, partial(fetch, i, j))


def _cg_solution(
    saved: SavedWeights, problem: Problem, split: KernelSplit, noise: Noise
) -> CGSolution:
    """The solution again; nothing is computed until a variance is asked for."""
    own = CGProblem(problem.network, problem.inputs, problem.resources, saved.options)
    known, constant, edges = saved.constant, None, saved.edges
    assert saved.alpha is not None
    with problem.engine.run() as run:
        alpha = run.columns(saved.alpha, edges)
        if known is not None:
            ones = run.columns(known.alpha[None], edges)
            constant = Constant(split, known.beta, known.sums, (), ones)
    failed, spent = saved.failed_attempts, saved.seconds
    return CGSolution(own, edges, split, noise, constant, alpha, saved.reached, failed, spent)


def _cholesky_solution(
    saved: SavedCholesky, engine: Engine, matrix: KernelMatrix, noise: Noise, Y: Array
) -> CholeskySolution:
    """The solution with a factor that is read on first use."""
    n, split, known, constant = len(Y), matrix.split, saved.constant, None
    wanted = engine.edges(matrix)
    # The last tile is filled up if the engine would cut the matrix like that: so predictions
    # have the same sizes, and the same bits, as before they were saved.
    edges = wanted if tuple(wanted[:-1]) == saved.edges[:-1] else saved.edges
    assert saved.alpha is not None
    with engine.run() as run:
        alpha = run.columns(saved.alpha, edges)
        if known is not None:
            assert known.z is not None
            z, b = (run.columns(row[None], edges) for row in (known.z, known.alpha))
            constant = Constant(split, known.beta, known.sums, z, b, n)
    shift = noise.shift(split)
    check = partial(_FactorCheck, saved, Y, constant, np.asarray(matrix.diagonal) + shift)
    rows = LazyRows(len(edges) - 1, partial(_read_rows, engine, saved, check, edges[-1] - n))
    factor = Factor(edges, rows, shift, saved.log_det, edges[-1] - n)
    failed, spent = saved.failed_attempts, saved.seconds
    return CholeskySolution(
        factor, split, noise, constant, alpha, saved.log_evidence, failed, spent
    )


class LazyRows(Sequence[Any]):
    """The tiles of a factor in rows, read from the file on first use."""

    def __init__(self, count: int, read: Callable[[], list[list[Tile]]]) -> None:
        self._count, self._read, self._lock = count, read, threading.Lock()
        self._rows: list[list[Tile]] | None = None

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        return self.read()[index]

    def read(self) -> list[list[Tile]]:
        """All rows; raises ModelFileError if they are damaged."""
        with self._lock:
            if self._rows is None:
                self._rows = self._read()
            return self._rows

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (self.read(),)


def _read_rows(
    engine: Engine, saved: SavedCholesky, check: Callable[[], "_FactorCheck"], filled: int
) -> list[list[Tile]]:
    """The tiles, read column by column and checked; `filled` rows of the identity below them."""
    slices, sums, tiles = spans(saved.edges), check(), iter(saved.factor)
    out: list[list[Tile]] = [[] for _ in slices]
    with reading(saved.factor[0].source), engine.run() as run:
        for j in range(len(slices)):
            column = [read_checked(next(tiles)) for _ in slices[j:]]
            sums.add(column, slices[j:])
            for i, tile in enumerate(column, j):
                more = filled if i == len(slices) - 1 else 0
                out[i].append(run.put(_filled_tile(tile, more, more if i == j else 0)))
        sums.finish()
    return out


def _filled_tile(tile: Array, rows: int, columns: int) -> Array:
    """A tile of a factor with some rows and columns more, as the identity has them."""
    if rows == 0:
        return tile
    out = np.pad(tile, ((0, rows), (0, columns)))
    if columns:
        index = np.arange(len(tile), len(out))
        out[index, index] = 1.0
    return out


class _FactorCheck:
    """Whether a factor L is that of kernel and weights, by sums over its tiles: the squares of a
    row are the `diagonal` of what was factored, and L Lᵀα are the right-hand sides, scaled to size
    one. Where a constant is kept apart, ones are one more of these."""

    def __init__(
        self, saved: SavedCholesky, Y: Array, constant: Constant | None, diagonal: Array
    ) -> None:
        assert saved.alpha is not None
        right, alpha, sizes = Y.T, saved.alpha, np.abs(Y).max(axis=0)
        if constant is not None and saved.constant is not None:
            right = np.vstack([right - constant.mean[:, None], np.ones(len(Y))])
            alpha = np.vstack([alpha, saved.constant.alpha])
            sizes = np.append(sizes + np.abs(constant.mean), 1.0)
        sizes = np.where(sizes > 0, sizes, 1.0)[:, None]
        self._right, self._alpha, self._saved = right / sizes, alpha / sizes, saved
        self._diagonal, self._squares = diagonal, np.zeros_like(diagonal)
        self._fitted, self._z = np.zeros_like(right), np.zeros_like(right)
        self._log_det, self._eps = 0.0, 0.0

    def add(self, tiles: Sequence[Array], rows: Sequence[slice]) -> None:
        """Add a column of tiles, from the diagonal downwards."""
        first, columns = tiles[0], rows[0]
        pivots = first.diagonal().astype(np.float64)
        if not (pivots > 0).all() or np.triu(first, 1).any():
            raise ModelFileError("its factor is not lower triangular with positive pivots")
        self._log_det += 2.0 * float(np.log(pivots).sum())
        self._eps = float(np.finfo(first.dtype).eps)
        with np.errstate(over="ignore", invalid="ignore"):
            for tile, part in zip(tiles, rows, strict=True):
                self._z[:, columns] += self._alpha[:, part] @ tile
                self._squares[part] += np.einsum("ij,ij->i", tile, tile)
            for tile, part in zip(tiles, rows, strict=True):
                self._fitted[:, part] += self._z[:, columns] @ tile.T

    def finish(self) -> None:
        """Raise ModelFileError if the sums are not what they must be, up to rounding."""
        tolerance, n, constant = (
            float(np.sqrt(self._eps)),
            len(self._diagonal),
            self._saved.constant,
        )
        with np.errstate(over="ignore", invalid="ignore"):
            lengths = np.sqrt(self._diagonal)  # of the rows of L
            # Rounding of z; what the constant took from the targets is at most of their size.
            z, sums = (_lengths(part) for part in (self._z, self._alpha * lengths))
            moved = tolerance * z + PRODUCT * self._eps * np.sqrt(n) * sums
            allowed = tolerance + np.outer(moved + (moved[-1] if constant else 0.0), lengths)
            fits = _within(self._fitted - self._right, allowed)
            fits &= _within(self._squares - self._diagonal, tolerance * self._diagonal)
            stated = self._saved.log_det
            fits &= abs(stated - self._log_det) <= tolerance * (n + abs(stated))
            if constant is not None and constant.z is not None:
                fits &= _within(self._z[-1] - constant.z, moved[-1:])
        if not fits:
            raise ModelFileError("its factor is not that of its kernel, data and weights")


def _within(difference: Array, allowed: Array) -> bool:
    return bool((np.abs(difference) <= allowed).all() and np.isfinite(allowed).all())


def _lengths(rows: Array) -> Array:
    """The length of each row, without overflow."""
    largest = np.maximum(np.abs(rows).max(axis=1), np.finfo(float).tiny)
    out: Array = largest * np.linalg.norm(rows / largest[:, None], axis=1)
    return out


def _solved_again(
    saved: SavedCholesky,
    problem: Problem,
    matrix: KernelMatrix,
    noise: Noise,
    Y: Array,
    expected: Forecast,
) -> Solution:
    """The solution of a file without the factor, which must have the evidence that it had."""
    tracked = problem.resources.track(f"factor ({expected})", flops(saved.edges))
    with _impossible(), tracked as progress:
        found = solve_by_cholesky(problem.engine, matrix, saved.edges, Y, noise, progress)
    stated = saved.log_evidence
    if not abs(found.log_evidence - stated) <= EVIDENCE * (Y.size + abs(stated)):
        raise ModelFileError(f"its log evidence is not that of its data, {found.log_evidence}")
    return found


@contextmanager
def _impossible() -> Iterator[None]:
    """Report errors of a network that cannot be computed: one that was fitted can."""
    try:
        yield
    except (ArithmeticError, NotPositiveDefiniteError, VarianceError, ActivationError) as cause:
        raise ModelFileError(f"its network cannot be computed: {cause}") from None


def _same_split(one: KernelSplit, other: KernelSplit) -> bool:
    """Whether two splits are equal up to rounding."""
    if one.is_trivial or other.is_trivial:
        return one == other
    pairs = [(s.scale, s.whole_offset, s.input_var) for s in (one, other)]
    return all(math.isclose(a, b, rel_tol=TOLERANCE) for a, b in zip(*pairs, strict=True))


def _residual(
    problem: Problem, matrix: KernelMatrix, solution: Solution, Y: Array, report: Report
) -> tuple[float, float]:
    """The residual of the weights by some rows of K, and what rounding and the solver allow."""
    with np.errstate(all="ignore"):
        shift = np.broadcast_to(solution.noise.shift(solution.split), len(Y))
        diagonal = np.max(np.asarray(matrix.diagonal)) + shift
        moved = (diagonal @ np.abs(solution.weights)).max()
        if not moved < MAX_PRODUCT_SUM:
            return np.inf, 0.0
        found = residual(problem.engine, matrix, solution, Y, COMPARED)
        largest = float(np.abs(Y).max()) or 1.0
        allowed = TOLERANCE + 1e3 * report.residual
        allowed += 10 * (ROUNDING + matrix.error()) * moved / largest
        if solution.solver == "cg":  # its residual is that of all rows together
            allowed += report.tolerance * float(np.linalg.norm(Y, axis=0).max()) / largest
    return found, allowed
