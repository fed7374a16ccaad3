"""A Cholesky solution from a saved model, tile by tile, and the check that its parts fit together.

A factor L, z = L⁻¹(Y - μ) and α = L⁻ᵀz say the same thing thrice. So, while the tiles pass by, Lz
is compared with the targets and Lᵀα with z: tiles that are exchanged, or that belong to another
model, are noticed. Where the constant is kept apart, its z and α solve for ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nngp._arrays import Array
from nngp._fields import Fields
from nngp.gram import KernelMatrix
from nngp.linsolve import Engine, Factor
from nngp.linsolve.tiling import Edges, spans
from nngp.posterior.by_cholesky import CholeskySolution
from nngp.posterior.constant import Constant
from nngp.posterior.noise import Noise
from nngp.posterior.solution import ArrayReader, read_edges


@dataclass(frozen=True)
class SolvedRows:
    """Right-hand sides in rows, and their z and α. Where a constant is kept apart, the last row is
    its own, and `shared` is the size of what it took from each of the others."""

    right: Array
    z: Array
    alpha: Array
    shared: Array


def read_cholesky(
    header: Fields, read: ArrayReader, engine: Engine, matrix: KernelMatrix, noise: Noise, Y: Array
) -> CholeskySolution:
    """The solution from a saved model that holds the factor of `matrix` and noise."""
    split, edges = matrix.split, read_edges(header, len(Y))
    n, outputs = Y.shape
    z, alpha, constant = read("z", (outputs, n)), read("alpha", (outputs, n)), None
    solved = SolvedRows(Y.T, z, alpha, np.zeros(outputs))
    with engine.run() as run:
        if not split.is_trivial:
            ones = read("constant/z", (1, n)), read("constant/alpha", (1, n))
            tiles = (run.columns(rows, edges) for rows in ones)
            beta = header.number("beta", 0, above=True)
            constant = Constant(split, beta, read("constant/sums", (outputs,)), *tiles)
            solved = SolvedRows(
                np.vstack([Y.T - constant.mean[:, None], np.ones(n)]),
                np.vstack([z, ones[0]]),
                np.vstack([alpha, ones[1]]),
                np.append(np.abs(Y).max(axis=0) + np.abs(constant.mean), 0.0),
            )
        shift = noise.variance / split.scale
        check = _FactorCheck(header, solved, np.asarray(matrix.diagonal) + shift)
        tiles_of = _read_tiles(header, read, edges, check)
        rows = [[run.put(next(tiles_of)) for _ in range(i + 1)] for i in range(len(edges) - 1)]
        check.finish()
        factor = Factor(edges, rows, shift, header.number("log_det"))
        z_tiles, alpha_tiles = run.columns(z, edges), run.columns(alpha, edges)
    seconds = header.fields("seconds")
    return CholeskySolution(
        factor,
        split,
        noise,
        constant,
        z_tiles,
        alpha_tiles,
        header.number("log_evidence"),
        header.whole("failed_attempts"),
        {name: seconds.number(name, 0) for name in ("factor", "solve")},
    )


def _read_tiles(
    header: Fields, read: ArrayReader, edges: Edges, check: "_FactorCheck"
) -> Iterator[Array]:
    kind = header.text("tile_type", ("float64", "float32"))
    slices = spans(edges)
    for i, rows in enumerate(slices):
        for j, columns in enumerate(slices[: i + 1]):
            shape = rows.stop - rows.start, columns.stop - columns.start
            tile = read(f"factor/{i}/{j}", shape, kind)
            check.add(tile, rows, columns)
            yield tile


class _FactorCheck:
    """Sums over the tiles of a factor, and what they must be: the squares of a row are the
    `diagonal` of what was factored, L times z the right-hand sides, Lᵀ times α is z."""

    def __init__(self, header: Fields, solved: SolvedRows, diagonal: Array) -> None:
        self._header, self._solved, self._diagonal = header, solved, diagonal
        self._forward, self._back = np.zeros_like(solved.right), np.zeros_like(solved.right)
        self._squares, self._log_det, self._eps = np.zeros_like(diagonal), 0.0, 0.0

    def add(self, tile: Array, rows: slice, columns: slice) -> None:
        """Add the part of one tile."""
        if rows == columns:
            pivots = tile.diagonal().astype(np.float64)
            if not (pivots > 0).all() or np.triu(tile, 1).any():
                raise self._header.fail("its factor is not lower triangular with positive pivots")
            self._log_det += 2.0 * float(np.log(pivots).sum())
        self._eps = float(np.finfo(tile.dtype).eps)
        with np.errstate(over="ignore", invalid="ignore"):
            self._forward[:, rows] += self._solved.z[:, columns] @ tile.T
            self._back[:, columns] += self._solved.alpha[:, rows] @ tile
            self._squares[rows] += np.einsum("ij,ij->i", tile, tile)

    def finish(self) -> None:
        """Raise the header's error if the sums are not what they must be, up to rounding."""
        solved, diagonal, tolerance = self._solved, self._diagonal, float(np.sqrt(self._eps))
        with np.errstate(over="ignore", invalid="ignore"):
            is_factor = _within(self._squares - diagonal, tolerance * diagonal)
            size, shared = np.sqrt(diagonal.max()), solved.shared
            z, alpha = (_lengths(rows) for rows in (solved.z, solved.alpha))
            z, alpha = z + shared * z[-1], alpha + shared * alpha[-1]
            missed = _largest(self._forward - solved.right)
            fits = _within(missed, tolerance * (_largest(solved.right) + shared + size * z))
            missed = _largest(self._back - solved.z)
            solves = _within(missed, tolerance * (z + size * np.sqrt(len(diagonal)) * alpha))
        stated = self._header.number("log_det")
        same = abs(stated - self._log_det) <= tolerance * (len(diagonal) + abs(stated))
        if not (is_factor and fits and solves and same):
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
