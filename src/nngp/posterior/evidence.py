"""The gradient of the evidence: ½ tr((α αᵀ - outputs K⁻¹) dK/dθ), tile by tile.

The inverse exists only as its square root W = L⁻ᵀ, as large as the factor; each tile of B⁻¹ = W Wᵀ
is made when its turn comes, contracted with the derivatives of the kernel, and dropped. Where the
kernel is split, tiles are in units of its scale, and the constant's part is added (`constant`).
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from nngp._arrays import Array
from nngp._progress import Progress
from nngp.architecture import Network
from nngp.errors import VarianceError
from nngp.gram import WARN_ABOVE, Gradient, GradientSums, Shift, Tile, scale_derivatives
from nngp.linsolve import EngineRun, Factor, inverse_rows
from nngp.linsolve.engines.engine import Handle
from nngp.posterior.problem import Problem
from nngp.posterior.solution import Factored


def evidence_gradient(
    problem: Problem,
    system: Factored,
    progress: Progress,
    *,
    per_layer: bool,
    per_input: bool,
) -> Gradient:
    """d log_evidence / d(weight_var, bias_var, noise_var)."""
    factor, scale = system.factor, system.split.scale
    slices, count = factor.slices, len(factor.rows)
    outputs, by_row = system.weights.shape[1], system.noise.is_by_row

    def contract(i: int, j: int, minus_inverse: Tile) -> Tile:
        own = minus_inverse.diagonal().copy() if by_row and i == j else 0.0  # with the constant
        minus_inverse = without_constant(system, i, j, minus_inverse)
        G = system.alpha[i].T @ (system.alpha[j] / scale) + outputs * minus_inverse
        if i == j:  # tiles off the diagonal stand for their mirror images too
            G = 0.5 * G
        gradient.contract(G, slices[i], slices[j])
        return own if by_row or i != j else G.trace()

    with problem.engine.run() as run:
        gradient = begin_gradient(problem, system, per_layer=per_layer, per_input=per_input)
        W = inverse_rows(run, factor, range(count))
        found = over_lower_tiles(
            run, factor, lambda i, j: (W[i], W[j][i - j :]), contract, progress, progress.total
        )
    by_name = gradient.result(_sum_of_all(system, outputs))
    in_noise: Shift = added(found) if not by_row else 0.0
    if by_row:
        in_noise = _in_noise_of_rows(system, -np.concatenate(found)[: factor.n])
    return with_noise(problem.architecture, system, by_name, in_noise, per_layer=per_layer)


def _in_noise_of_rows(system: Factored, inverse_diagonal: Array) -> Array:
    """The diagonal of ½(α αᵀ - outputs K⁻¹) times the scale, from that of B⁻¹."""
    scale, outputs = system.split.scale, system.weights.shape[1]
    if system.constant is not None:
        inverse_diagonal = system.constant.precision(inverse_diagonal)
    return 0.5 * (
        (system.weights * (system.weights / scale)).sum(axis=1) - outputs * inverse_diagonal
    )


def _sum_of_all(system: Factored, outputs: int) -> float:
    """½ 1ᵀ(α αᵀ - outputs K⁻¹)1, times the scale."""
    constant = system.constant
    if constant is None:
        return 0.0
    share = system.split.scale / constant.weight
    of_targets = float(np.sum(constant.sums / constant.weight * (constant.sums * share)))
    return 0.5 * (of_targets - outputs * constant.beta * share)


def without_constant(system: Factored, i: int, j: int, minus_inverse: Tile) -> Tile:
    """A tile of κ bbᵀ - B⁻¹, from that of -B⁻¹."""
    constant = system.constant
    if constant is None:
        return minus_inverse
    if system.factor.n == 1:  # where the sum would be rounding: B⁻¹ / (1 + gβ)
        return minus_inverse * (system.split.scale / constant.weight)
    return minus_inverse + (constant.variance * constant.alpha[i].T) @ constant.alpha[j]


def added(parts: list[Array]) -> float:
    """The sum of traces of tiles."""
    return sum((float(part) for part in parts), 0.0)


def with_noise(
    architecture: Network,
    system: Factored,
    by_name: Gradient,
    in_noise: Shift,
    *,
    per_layer: bool,
) -> Gradient:
    """The derivatives with that in the noise, in the units in which it was stated. If these are the
    kernel's scale, the noise moves with the network. `in_noise` is the trace of what derivatives of
    K are contracted with, times the scale; where rows have noise of their own, its diagonal."""
    noise, scale = system.noise, system.split.scale
    out = {**by_name, "noise_var": noise.unit / scale * in_noise}
    if noise.input_var is not None:
        moved = scale_derivatives(architecture, noise.input_var, per_layer=per_layer)
        for name, derivative in moved.items():
            if isinstance(in_noise, np.ndarray):
                out[name] = out[name] + derivative / scale * float(np.dot(noise.used, in_noise))
            else:
                out[name] = out[name] + noise.used * (derivative / scale) * in_noise
    return out


def begin_gradient(
    problem: Problem, system: Factored, *, per_layer: bool, per_input: bool
) -> GradientSums:
    """The sums Σ G dK/dθ of this system, all zero as yet."""
    if per_input:
        _check_relevances(problem.architecture, system)
    return problem.engine.kernels.gradient(
        problem.architecture,
        problem.inputs,
        split=system.split,
        per_layer=per_layer,
        per_input=per_input,
    )


def _check_relevances(architecture: Network, system: Factored) -> None:
    """Raise an error for derivatives in the inputs where they would be wrong."""
    if system.noise.input_var is not None:
        raise ValueError(
            "derivatives in the inputs (per_input=True) need absolute noise: its unit would move "
            "with the inputs; use relative_noise=False"
        )
    if not system.split.is_trivial and system.split.shift_error(architecture.depth) > WARN_ABOVE:
        raise VarianceError(
            "derivatives in the inputs (per_input=True) are lost to rounding: the kernel hardly "
            "depends on them; use "
            + (architecture.if_deep("a smaller depth or ") + "a larger weight_var")
        )


def over_lower_tiles(
    run: EngineRun,
    factor: Factor,
    sides: Callable[[int, int], tuple[Sequence[Handle], Sequence[Handle]]],
    contract: Callable[[int, int, Tile], Tile],
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
