"""The algorithms, written once for all engines: factor, extend, solve, invert, as chains.

A factor is a list of rows, row i holding its tiles (i, 0) .. (i, i). `edges` are the indices
where tiles begin, with n at the end; tiles need not be of equal size.

Where a factorisation fails, the noise climbs the paper's ladder (sec. 3.1): times ten, again and
again. Where rows have noise of their own, what climbs is the least that every row has.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np

from nngp._progress import Progress
from nngp.errors import NotPositiveDefiniteError
from nngp.gram import Shift
from nngp.linsolve.engines.engine import EngineRun, Handle, Tile, pivots
from nngp.linsolve.tiling import Edges, chain_flops, lower_size, spans

Rows = list[list[Handle]]
LIMIT = 0.2  # the authors' code gives up past this
START = 1e-10  # where the ladder goes from noise_var=0
Result = TypeVar("Result")


@dataclass(frozen=True)
class Factor:
    """L Lᵀ = the matrix + shift on its diagonal, in lower tiles. The last `filled` rows are of the
    identity, and not of the matrix: they make its tile as large as the others."""

    edges: Edges
    rows: Sequence[Sequence[Handle]]  # read on first use where a model was loaded
    shift: Shift
    log_det: float
    filled: int = 0

    @property
    def n(self) -> int:
        """Rows of the matrix."""
        return self.edges[-1] - self.filled

    @property
    def own_edges(self) -> Edges:
        """Where tiles begin, without the rows that were filled up."""
        return (*self.edges[:-1], self.n)

    @property
    def slices(self) -> list[slice]:
        """The index range of every tile row."""
        return spans(self.edges)

    @property
    def bytes(self) -> int:
        return 8 * lower_size(self.edges)


def _below(edges: Edges, j: int, begin: int) -> range:
    return range(max(j, begin), len(edges) - 1)


def factorise(
    run: EngineRun,
    first: Callable[[int, int], Tile],
    edges: Edges,
    progress: Progress,
    known: Sequence[Sequence[Handle]] | None = None,
    border: Callable[[int], Tile] | None = None,
) -> tuple[Rows, float, list[Tile]]:
    """Rows of the Cholesky factor L, log det L Lᵀ, and the tiles of B L⁻ᵀ for a border B.

    `first(i, j)` computes a tile of the matrix. `known` are rows already there, which are kept:
    only those below them are computed. `border(j)` are the tiles of one more block of rows,
    solved on the way.
    """
    begin = len(known or ())
    rows: Rows = [list(row) for row in known or ()] + [[] for _ in edges[begin + 1 :]]
    solved: list[Handle] = []

    def settle(j: int) -> None:
        for i in _below(edges, j, begin):
            rows[i][j] = run.wait(rows[i][j])
            progress.advance(chain_flops(edges, i, j))

    columns = range(len(edges) - 1)
    for j in columns:
        for i in _below(edges, j, begin):
            last = "potrf" if i == j else rows[j][j]
            tile = run.chain(partial(first, i, j), rows[i][:j], rows[j][:j], last, keep=True)
            rows[i].append(tile)
        if border is not None:
            solved.append(run.chain(partial(border, j), list(solved), rows[j][:j], rows[j][j]))
        if j >= run.ahead:  # wait for a column before, while this one is being worked on
            settle(j - run.ahead)
    for j in columns[-run.ahead :]:
        settle(j)
    return rows, _log_det(run, rows), [run.wait(tile) for tile in solved]


def _log_det(run: EngineRun, rows: Rows) -> float:
    diagonals = [run.apply(pivots, row[-1]) for row in rows]
    return 2.0 * sum(float(np.log(run.fetch(d)).sum()) for d in diagonals)


def merge_last(run: EngineRun, factor: Factor, size: int) -> Factor:
    """The last two tile rows as one, as long as that has at most `size` rows.

    Many small updates would otherwise leave many small tiles.
    """
    edges, rows = factor.edges, factor.rows
    while len(edges) > 2 and edges[-1] - edges[-3] <= size:
        upper, lower = rows[-2], rows[-1]
        joined = [run.apply(_stack, a, b) for a, b in zip(upper[:-1], lower[:-2], strict=True)]
        corner = run.apply(_corner, upper[-1], lower[-2], lower[-1])
        rows = [*rows[:-2], [run.wait(h) for h in (*joined, corner)]]
        edges = (*edges[:-2], edges[-1])
    return Factor(edges, rows, factor.shift, factor.log_det, factor.filled)


def _stack(upper: Any, lower: Any) -> Any:
    xp = upper.__array_namespace__()
    return xp.concat([upper, lower], axis=0)


def _corner(upper: Any, below: Any, lower: Any) -> Any:
    xp = upper.__array_namespace__()
    right = xp.zeros((upper.shape[0], lower.shape[1]), dtype=upper.dtype)
    top, bottom = xp.concat([upper, right], axis=1), xp.concat([below, lower], axis=1)
    return xp.concat([top, bottom], axis=0)


def forward(
    run: EngineRun,
    factor: Factor,
    firsts: Sequence[Callable[[int], Tile]],
    begins: Sequence[int] | None = None,
) -> Rows:
    """For each block of rows B, given by its tiles first(j), the tiles of B L⁻ᵀ.

    `begins` are the first tile columns that are not zero. Blocks are interleaved, so that an
    engine can work on several of them at a time.
    """
    starts = [0] * len(firsts) if begins is None else list(begins)
    out: Rows = [[] for _ in firsts]
    for j, row in enumerate(factor.rows):
        for solved, first, start in zip(out, firsts, starts, strict=True):
            if j >= start:
                solved.append(run.chain(partial(first, j), list(solved), row[start:j], row[j]))
    return out


def backward(run: EngineRun, factor: Factor, tiles: Sequence[Handle]) -> list[Handle]:
    """Tiles of B L⁻¹ for one block of rows B."""
    rows, out = factor.rows, list(tiles)
    for j in reversed(range(len(rows))):
        below = [rows[i][j] for i in range(j + 1, len(rows))]
        first = partial(run.copy, tiles[j])
        out[j] = run.chain(first, out[j + 1 :], below, rows[j][j], transposed=False)
    return out


def inverse_rows(run: EngineRun, factor: Factor, which: Sequence[int]) -> Rows:
    """Tile rows of L⁻ᵀ: row i has the tiles (i, i), (i, i + 1), ... Filled rows are zero."""
    widths = np.diff(factor.edges)

    def first(i: int, j: int) -> Tile:
        if i != j:
            return run.zeros(widths[i], widths[j])
        return run.put(np.diag((factor.edges[i] + np.arange(widths[i]) < factor.n) * 1.0))

    return forward(run, factor, [partial(first, i) for i in which], which)


def next_noise(noise_var: float) -> float:
    """The next noise to try: ten times as much."""
    return noise_var * 10 if noise_var > 0 else START


def climb(
    attempt: Callable[[float], Result], noise_var: float, limit: float = LIMIT
) -> tuple[Result, float, int]:
    """attempt(noise_var), with ten times the noise after each failure, up to `limit`.

    Gives the result, the noise it took, and how many attempts failed.
    """
    noise, failed = noise_var, 0
    while True:
        try:
            return attempt(noise), noise, failed
        except NotPositiveDefiniteError as error:
            failed += 1
            if not next_noise(noise) <= limit:
                error.noise_var, error.failed_attempts = noise, failed
                raise
            noise = next_noise(noise)
