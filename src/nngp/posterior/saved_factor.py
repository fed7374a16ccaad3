"""A Cholesky solution from a saved model, tile by tile, and the check that its parts fit together.

A factor L and the weights α = L⁻ᵀL⁻¹(Y - μ) say the same thing twice. So, while the tiles pass by
column after column, z = Lᵀα is computed, and Lz is compared with the targets: tiles that are
exchanged, or that belong to another model, are noticed. Where the constant is kept apart, its α
solves for ones, and its z is in the file.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nngp._arrays import Array
from nngp._fields import Fields
from nngp.gram import KernelMatrix, Tile
from nngp.linsolve import Engine, EngineRun, Factor
from nngp.linsolve.tiling import Edges, spans
from nngp.posterior.by_cholesky import CholeskySolution
from nngp.posterior.constant import Constant
from nngp.posterior.noise import Noise
from nngp.posterior.solution import ArrayReader, read_edges

ROUNDING = 100  # errors of a product with α, in units of its entries' rounding


@dataclass(frozen=True)
class SolvedRows:
    """Right-hand sides in rows, and their α. Where a constant is kept apart, the last row is its
    own, `z` is its L⁻¹1, and `shared` is the size of what it took from each of the others."""

    right: Array
    alpha: Array
    shared: Array
    z: Array | None = None


def read_cholesky(
    header: Fields, read: ArrayReader, engine: Engine, matrix: KernelMatrix, noise: Noise, Y: Array
) -> CholeskySolution:
    """The solution from a saved model that holds the factor of `matrix` and noise."""
    split, own_edges = matrix.split, read_edges(header, len(Y))
    n, outputs = Y.shape
    edges = _filled_edges(engine, matrix, own_edges)
    alpha, constant = read("alpha", (outputs, n)), None
    solved = SolvedRows(Y.T, alpha, np.zeros(outputs))
    with engine.run() as run:
        if not split.is_trivial:
            ones = read("constant/z", (1, n)), read("constant/alpha", (1, n))
            z, b = (run.columns(rows, edges) for rows in ones)
            beta = header.number("beta", 0, above=True)
            constant = Constant(split, beta, read("constant/sums", (outputs,)), z, b, n)
            solved = SolvedRows(
                np.vstack([Y.T - constant.mean[:, None], np.ones(n)]),
                np.vstack([alpha, ones[1]]),
                np.append(np.abs(Y).max(axis=0) + np.abs(constant.mean), 0.0),
                ones[0][0],
            )
        shift = noise.shift(split)
        check = _FactorCheck(header, solved, np.asarray(matrix.diagonal) + shift)
        rows = _read_rows(run, header, read, own_edges, check, edges[-1] - n)
        check.finish()
        factor = Factor(edges, rows, shift, header.number("log_det"), edges[-1] - n)
        alpha_tiles = run.columns(alpha, edges)
    seconds = header.fields("seconds")
    return CholeskySolution(
        factor,
        split,
        noise,
        constant,
        alpha_tiles,
        header.number("log_evidence"),
        header.whole("failed_attempts"),
        {name: seconds.number(name, 0) for name in ("factor", "solve")},
    )


def _filled_edges(engine: Engine, matrix: KernelMatrix, own: Edges) -> Edges:
    """Where tiles begin, with the last one filled up if the engine would cut the matrix like that:
    so predictions have the same sizes, and the same bits, as before they were saved."""
    wanted = engine.edges(matrix)
    return wanted if tuple(wanted[:-1]) == tuple(own[:-1]) else own


def _read_rows(
    run: EngineRun,
    header: Fields,
    read: ArrayReader,
    edges: Edges,
    check: "_FactorCheck",
    filled: int,
) -> list[list[Tile]]:
    """The tiles of the factor in rows, read column by column; `filled` rows of the identity below
    the last."""
    kind = header.text("tile_type", ("float64", "float32"))
    slices = spans(edges)
    out: list[list[Tile]] = [[] for _ in slices]
    for j, columns in enumerate(slices):
        width, below = columns.stop - columns.start, slices[j:]
        tiles = [
            read(f"factor/{i}/{j}", (rows.stop - rows.start, width), kind)
            for i, rows in enumerate(below, j)
        ]
        check.add(tiles, below)
        for i in range(j, len(slices)):
            more = filled if i == len(slices) - 1 else 0
            out[i].append(run.put(_filled_tile(tiles[i - j], more, more if i == j else 0)))
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
    """Sums over the tiles of a factor, and what they must be: the squares of a row are the
    `diagonal` of what was factored, L times z = Lᵀα the right-hand sides."""

    def __init__(self, header: Fields, solved: SolvedRows, diagonal: Array) -> None:
        self._header, self._solved, self._diagonal = header, solved, diagonal
        self._fitted, self._z = np.zeros_like(solved.right), np.zeros_like(solved.right)
        self._squares, self._log_det, self._eps = np.zeros_like(diagonal), 0.0, 0.0

    def add(self, tiles: Sequence[Array], rows: Sequence[slice]) -> None:
        """Add a column of tiles, from the diagonal downwards."""
        first, columns = tiles[0], rows[0]
        pivots = first.diagonal().astype(np.float64)
        if not (pivots > 0).all() or np.triu(first, 1).any():
            raise self._header.fail("its factor is not lower triangular with positive pivots")
        self._log_det += 2.0 * float(np.log(pivots).sum())
        self._eps = float(np.finfo(first.dtype).eps)
        with np.errstate(over="ignore", invalid="ignore"):
            for tile, part in zip(tiles, rows, strict=True):
                self._z[:, columns] += self._solved.alpha[:, part] @ tile
                self._squares[part] += np.einsum("ij,ij->i", tile, tile)
            for tile, part in zip(tiles, rows, strict=True):
                self._fitted[:, part] += self._z[:, columns] @ tile.T

    def finish(self) -> None:
        """Raise the header's error if the sums are not what they must be, up to rounding."""
        solved, diagonal, tolerance = self._solved, self._diagonal, float(np.sqrt(self._eps))
        with np.errstate(over="ignore", invalid="ignore"):
            is_factor = _within(self._squares - diagonal, tolerance * diagonal)
            sizes, shared = np.sqrt(diagonal), solved.shared  # lengths of the rows of L
            z, sums = (_lengths(rows) for rows in (self._z, solved.alpha * sizes))
            z, sums = z + shared * z[-1], sums + shared * sums[-1]
            rounded = ROUNDING * self._eps * np.sqrt(len(diagonal)) * sums  # of z
            allowed = tolerance * (_largest(solved.right) + shared)[:, None]
            allowed = allowed + (tolerance * z + rounded)[:, None] * sizes
            fits = _within(self._fitted - solved.right, allowed)
            if solved.z is not None:
                missed = np.abs(self._z[-1] - solved.z).max()
                fits &= _within(missed, tolerance * z[-1] + rounded[-1])
        stated = self._header.number("log_det")
        same = abs(stated - self._log_det) <= tolerance * (len(diagonal) + abs(stated))
        if not (is_factor and fits and same):
            raise self._header.fail("its factor is not that of its kernel, data and weights")


def _within(difference: Array, allowed: Array) -> bool:
    return bool((np.abs(difference) <= allowed).all() and np.isfinite(allowed).all())


def _lengths(rows: Array) -> Array:
    """The length of each row, without overflow."""
    largest = np.maximum(_largest(rows), np.finfo(float).tiny)
    out: Array = largest * np.linalg.norm(rows / largest[:, None], axis=1)
    return out


def _largest(rows: Array) -> Array:
    out: Array = np.abs(rows).max(axis=1)
    return out
