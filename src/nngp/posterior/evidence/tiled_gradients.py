"""Gradients of the evidence and of the leave-one-out density from a factor, tile by tile.

Either is Σ_ij dE/dK_ij dK_ij/dθ (`criteria`). The inverse exists only as its square root W = L⁻ᵀ,
as large as the factor: each tile of dE/dK is made when its turn comes, from a product of tiles,
contracted with the derivatives of the kernel, and dropped. The evidence needs tiles of
B⁻¹ = W Wᵀ; the density those of P C P, for which all of P is held, both triangles. Where the kernel
is split, tiles are in units of its scale, and what is computed is scale P = B⁻¹ - κ bbᵀ and
scale α (`constant`).
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from nngp._arrays import Array
from nngp._progress import Progress
from nngp.architecture import Network
from nngp.errors import VarianceError
from nngp.gram import (
    WARN_ABOVE,
    Gradient,
    GradientSums,
    Shift,
    Tile,
    scale_derivatives,
    scale_in_parameters,
    with_parameters,
)
from nngp.linsolve import EngineRun, Factor, inverse_rows
from nngp.linsolve.engines.engine import Handle
from nngp.posterior.evidence.criteria import (
    evidence_slope,
    evidence_slope_diagonal,
    held_out_density,
    held_out_rates,
    held_out_slope,
)
from nngp.posterior.setup import Problem
from nngp.posterior.solution import Factored

Sides = Callable[[int, int], tuple[Sequence[Handle], Sequence[Handle]]]
TileSlope = Callable[[int, int, Tile], Tile]


def evidence_gradient(
    problem: Problem, system: Factored, progress: Progress, *, per_layer: bool, per_input: bool
) -> Gradient:
    """The derivatives of the log evidence in weight_var, bias_var, noise_var and the relevances."""
    factor, scale = system.factor, system.split.scale
    outputs, by_row = system.weights.shape[1], system.noise.is_by_row

    def slope(i: int, j: int, minus_inverse: Tile) -> Tile:
        weighted = outputs * without_constant(system, i, j, minus_inverse)
        return evidence_slope(system.alpha[i].T, system.alpha[j] / scale, weighted)

    def in_noise_of(minus_inverse: Tile, G: Tile) -> Tile:
        return minus_inverse.diagonal().copy() if by_row else G.trace()

    with problem.engine.run() as run:
        gradient = _begin(problem, system, per_layer=per_layer, per_input=per_input)
        W = inverse_rows(run, factor, range(len(factor.rows)))
        contract = _contraction(factor, gradient, slope, in_noise_of)
        found = _over_lower_tiles(
            run, factor, lambda i, j: (W[i], W[j][i - j :]), contract, progress, progress.total
        )
    by_name = gradient.result(_sum_of_evidence(system, outputs))
    if not by_row:
        return _with_noise(problem.network, system, by_name, _added(found), per_layer=per_layer)
    inverse_diagonal = -np.concatenate(found)[: factor.n]
    if system.constant is not None:
        inverse_diagonal = system.constant.precision(inverse_diagonal)
    in_noise = evidence_slope_diagonal(system.weights, inverse_diagonal, outputs, scale)
    return _with_noise(problem.network, system, by_name, in_noise, per_layer=per_layer)


def density_gradient(
    problem: Problem, system: Factored, progress: Progress, *, per_layer: bool, per_input: bool
) -> tuple[float, Gradient]:
    """The leave-one-out density, and its derivatives, named as those of the evidence."""
    factor, slices, n = system.factor, system.factor.slices, system.factor.n
    alpha, scale, by_row = system.weights, system.split.scale, system.noise.is_by_row
    filled = (0, factor.filled), (0, 0)
    with problem.engine.run() as run:
        gradient = _begin(problem, system, per_layer=per_layer, per_input=per_input)
        minus_P = _minus_inverse(run, system)
        progress.advance(progress.total / 2)
        precision = _precision(run, system, minus_P)
        value = held_out_density(alpha, precision, scale=scale)
        C, d = held_out_rates(alpha, precision, scale=scale)
        parts_of_d, entries_of_C = np.pad(d, filled), np.pad(C, filled[0])
        u = -_product(run, minus_P, [run.put(parts_of_d[s]) for s in slices])
        put_C = [run.put(entries_of_C[s]) for s in slices]
        weighted = [
            [run.apply(_times_row, tile, part) for tile, part in zip(row, put_C, strict=True)]
            for row in minus_P
        ]
        weights = np.pad(alpha / scale, filled)

        def slope(i: int, j: int, minus_PCP: Tile) -> Tile:
            return held_out_slope(np.array(minus_PCP), u, weights, slices[i], slices[j])

        def in_noise_of(minus_PCP: Tile, G: Tile) -> Tile:
            return G.diagonal().copy() if by_row else G.trace()

        found = _over_lower_tiles(
            run,
            factor,
            lambda i, j: (weighted[i], minus_P[j]),
            _contraction(factor, gradient, slope, in_noise_of),
            progress,
            progress.total / 2,
        )
    by_name = gradient.result(_sum_of_density(system, C, d))
    in_noise = np.concatenate(found)[:n] if by_row else _added(found)
    return value, _with_noise(problem.network, system, by_name, in_noise, per_layer=per_layer)


def without_constant(system: Factored, i: int, j: int, minus_inverse: Tile) -> Tile:
    """A tile of κ bbᵀ - B⁻¹, from that of -B⁻¹."""
    constant = system.constant
    if constant is None:
        return minus_inverse
    if system.factor.n == 1:  # where the sum would be rounding: B⁻¹ / (1 + gβ)
        return minus_inverse * (system.split.scale / constant.weight)
    return minus_inverse + (constant.variance * constant.alpha[i].T) @ constant.alpha[j]


def _begin(problem: Problem, system: Factored, *, per_layer: bool, per_input: bool) -> GradientSums:
    """The sums Σ G dK/dθ of this system, all zero as yet."""
    if per_input:
        _check_relevances(problem.network, system)
    kernels, network, inputs = problem.engine.kernels, problem.network, problem.inputs
    sums = kernels.gradient(
        network, inputs, split=system.split, per_layer=per_layer, per_input=per_input
    )
    return with_parameters(sums, kernels, network, inputs, system.split)


def _check_relevances(network: Network, system: Factored) -> None:
    """Raise an error for derivatives in the inputs where they would be wrong."""
    if system.noise.input_var is not None:
        raise ValueError(
            "derivatives in the inputs (per_input=True) need absolute noise: its unit would move "
            "with the inputs; use relative_noise=False"
        )
    if not system.split.is_trivial and system.split.shift_error(network.depth) > WARN_ABOVE:
        raise VarianceError(
            "derivatives in the inputs (per_input=True) are lost to rounding: the kernel hardly "
            f"depends on them; use {network.if_deep('a smaller depth or ')}a larger weight_var"
        )


def _contraction(
    factor: Factor, gradient: GradientSums, slope: TileSlope, in_noise_of: Callable[..., Tile]
) -> TileSlope:
    """A function that contracts 2 dE/dK of a tile, which `slope` gives, with the derivatives of the
    kernel; from a diagonal tile it returns what `in_noise_of` makes of it."""

    def contract(i: int, j: int, product: Tile) -> Tile:
        G = slope(i, j, product)
        if i == j:  # the others stand for their mirror images too
            G = 0.5 * G
        gradient.contract(G, factor.slices[i], factor.slices[j])
        return in_noise_of(product, G) if i == j else 0.0

    return contract


def _over_lower_tiles(
    run: EngineRun,
    factor: Factor,
    sides: Sides,
    contract: TileSlope,
    progress: Progress,
    work: float,
) -> list[Array]:
    """contract(i, j, -A Bᵀ) of all lower tiles, with A and B given by their tiles; what it gave for
    those on the diagonal."""
    count, widths = len(factor.rows), np.diff(factor.edges)
    tiles = [(i, j) for i in range(count) for j in range(i + 1)]
    parts = [
        run.chain(
            partial(run.zeros, widths[i], widths[j]), *sides(i, j), then=partial(contract, i, j)
        )
        for i, j in tiles
    ]
    out: list[Array] = []
    for (i, j), part in zip(tiles, parts, strict=True):
        done = run.wait(part)
        if i == j:
            out.append(np.asarray(done))
        progress.advance(work / len(parts))
    return out


def _precision(run: EngineRun, system: Factored, minus_P: list[list[Handle]]) -> Array:
    """The diagonal of the inverse, with more care than its tiles have it: from that of B⁻¹."""
    tiles = [run.fetch(row[i]) for i, row in enumerate(minus_P)]
    precision = -np.concatenate([tile.diagonal() for tile in tiles])[: system.factor.n]
    constant = system.constant
    if constant is None:
        return precision
    constant.check_held_out()
    if len(precision) == 1:  # `without_constant` has taken care of a single point
        return precision
    precision += (np.sqrt(constant.variance) * constant.vector) ** 2
    return constant.precision(precision)


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


def _sum_of_evidence(system: Factored, outputs: int) -> float:
    """½ 1ᵀ(α αᵀ - outputs P)1, times the scale."""
    constant = system.constant
    if constant is None:
        return 0.0
    share = system.split.scale / constant.weight
    of_targets = float(np.sum(constant.sums / constant.weight * (constant.sums * share)))
    return 0.5 * (of_targets - outputs * constant.beta * share)


def _sum_of_density(system: Factored, C: Array, d: Array) -> float:
    """½ 1ᵀ(-P C P - (u αᵀ + α uᵀ))1 times the scale, from P1 = b/weight; C is that over the
    scale."""
    constant = system.constant
    if constant is None:
        return 0.0
    b, share = constant.vector, system.split.scale / constant.weight
    of_targets = float((d.T @ b) @ (constant.sums / constant.weight))
    return -share * (0.5 * share * float((C * b) @ b) + of_targets)


def _added(parts: list[Array]) -> float:
    """The sum of traces of tiles."""
    return sum((float(part) for part in parts), 0.0)


def _with_noise(
    network: Network, system: Factored, by_name: Gradient, in_noise: Shift, *, per_layer: bool
) -> Gradient:
    """The derivatives with that in the noise, in the units in which it was stated. If these are the
    kernel's scale, the noise moves with the network. `in_noise` is the trace of dE/dK times the
    scale; where rows have noise of their own, its diagonal."""
    noise, scale = system.noise, system.split.scale
    out = {**by_name, "noise_var": noise.unit / scale * in_noise}
    if noise.input_var is not None:
        moved = scale_derivatives(network, noise.input_var, per_layer=per_layer)
        moved = {**moved, **scale_in_parameters(network, noise.input_var)}
        for name, derivative in moved.items():
            if isinstance(in_noise, np.ndarray):
                out[name] = out[name] + derivative / scale * float(np.dot(noise.used, in_noise))
            else:
                out[name] = out[name] + noise.used * (derivative / scale) * in_noise
    return out


def _transposed(tile: Tile) -> Tile:
    return tile.T.copy()


def _times(tile: Tile, other: Tile) -> Tile:
    return tile @ other


def _times_row(tile: Tile, row: Tile) -> Tile:
    return tile * row
