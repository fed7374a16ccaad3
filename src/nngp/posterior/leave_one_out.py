"""The leave-one-out log density and its gradient (Rasmussen and Williams, sec. 5.4.2).

With P = K⁻¹ and α = P Y, the point i left out is predicted with variance 1/P_ii and misses by
α_i/P_ii. So the density is a function of α and of the diagonal of P, and its derivative in K is
-P C P - ½(u αᵀ + α uᵀ), with C diagonal and u = P d. It needs P itself, both triangles. Where the
kernel is split (`constant`), what is computed is scale P = B⁻¹ - κ bbᵀ, and scale α.
"""

from functools import partial

import numpy as np

from nngp._arrays import Array
from nngp._progress import Progress
from nngp.gram import Gradient, Tile
from nngp.linsolve import EngineRun, inverse_rows
from nngp.linsolve.engines.engine import Handle
from nngp.posterior.evidence import (
    added,
    begin_gradient,
    over_lower_tiles,
    with_noise,
    without_constant,
)
from nngp.posterior.problem import Problem
from nngp.posterior.solution import Factored


def log_density(alpha: Array, precision: Array) -> float:
    """Σ log N(y_i; what the others say of it), over points and outputs."""
    outputs = alpha.shape[1]
    fit = float((alpha**2 / precision[:, None]).sum())
    return 0.5 * (outputs * float(np.log(precision / (2 * np.pi)).sum()) - fit)


def density_gradient(
    problem: Problem,
    system: Factored,
    progress: Progress,
    *,
    per_layer: bool,
    per_input: bool,
) -> tuple[float, Gradient]:
    """The density and its derivatives in weight_var, bias_var, noise_var and the relevances."""
    slices, count = system.factor.slices, len(system.factor.rows)
    alpha, outputs, scale = system.weights, system.weights.shape[1], system.split.scale
    with problem.engine.run() as run:
        gradient = begin_gradient(problem, system, per_layer=per_layer, per_input=per_input)
        minus_P = _minus_inverse(run, system)
        progress.advance(progress.total / 2)
        n, filled = system.factor.n, ((0, system.factor.filled), (0, 0))
        precision = -np.concatenate([run.fetch(minus_P[i][i]).diagonal() for i in range(count)])
        precision = precision[:n]
        if system.constant is not None:  # from the diagonal of B⁻¹, with more care
            constant = system.constant
            constant.check_left_out()
            if len(alpha) > 1:  # a single point has been taken care of
                precision += (np.sqrt(constant.variance) * constant.vector) ** 2
                precision = constant.precision(precision)
        value = log_density(alpha / np.sqrt(scale), precision)
        value -= 0.5 * outputs * len(alpha) * float(np.log(scale))
        d = -alpha / precision[:, None]
        c = 0.5 * (outputs / precision + (d**2).sum(axis=1) / scale)
        rows_of_d, entries_of_c = np.pad(d, filled), np.pad(c, filled[0])
        u = -_product(run, minus_P, [run.put(rows_of_d[s]) for s in slices])
        weighted = [
            [
                run.apply(_times_row, tile, run.put(entries_of_c[s]))
                for tile, s in zip(row, slices, strict=True)
            ]
            for row in minus_P
        ]

        weights, by_row = np.pad(alpha / scale, filled), system.noise.is_by_row

        def contract(i: int, j: int, minus_PCP: Tile) -> Tile:
            rows, columns = slices[i], slices[j]
            G = np.array(minus_PCP)
            G -= 0.5 * (u[rows] @ weights[columns].T + weights[rows] @ u[columns].T)
            if i != j:  # tiles off the diagonal stand for their mirror images too
                G *= 2.0
            gradient.contract(G, rows, columns)
            if i != j:
                return 0.0
            return G.diagonal().copy() if by_row else G.trace()

        found = over_lower_tiles(
            run,
            system.factor,
            lambda i, j: (weighted[i], minus_P[j]),
            contract,
            progress,
            progress.total / 2,
        )
    by_name = gradient.result(_sum_of_all(system, c, d))
    in_noise = np.concatenate(found)[:n] if by_row else added(found)
    return value, with_noise(problem.architecture, system, by_name, in_noise, per_layer=per_layer)


def _sum_of_all(system: Factored, c: Array, d: Array) -> float:
    """1ᵀ(-P C P - ½(u αᵀ + α uᵀ))1 times the scale, from P1 = b/weight; `c` is C over the scale."""
    constant = system.constant
    if constant is None:
        return 0.0
    b, share = constant.vector, system.split.scale / constant.weight
    of_targets = float((d.T @ b) @ (constant.sums / constant.weight))
    return -share * (share * float((c * b) @ b) + of_targets)


def _minus_inverse(run: EngineRun, system: Factored) -> list[list[Handle]]:
    """All tiles of -K⁻¹ (times the scale), both triangles."""
    factor = system.factor
    count, widths = len(factor.rows), np.diff(factor.edges)
    W = inverse_rows(run, factor, range(count))
    lower = [
        [
            run.chain(
                partial(run.zeros, widths[i], widths[j]),
                W[i],
                W[j][i - j :],
                then=partial(without_constant, system, i, j),
            )
            for j in range(i + 1)
        ]
        for i in range(count)
    ]
    return [
        [*lower[i], *(run.apply(_transposed, lower[k][i]) for k in range(i + 1, count))]
        for i in range(count)
    ]


def _product(run: EngineRun, tiles: list[list[Handle]], parts: list[Tile]) -> Array:
    """The matrix of tiles times the rows in `parts`, on the host."""
    products = [
        [run.apply(_times, tile, part) for tile, part in zip(row, parts, strict=True)]
        for row in tiles
    ]
    return np.concatenate([np.sum([run.fetch(part) for part in row], axis=0) for row in products])


def _transposed(tile: Tile) -> Tile:
    return tile.T.copy()


def _times(tile: Tile, other: Tile) -> Tile:
    return tile @ other


def _times_row(tile: Tile, row: Tile) -> Tile:
    return tile * row
