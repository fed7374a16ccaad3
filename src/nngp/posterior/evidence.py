"""The gradient of the evidence: ½ tr((α αᵀ - outputs K⁻¹) dK/dθ), tile by tile.

The inverse exists only as its square root W = L⁻ᵀ, as large as the factor; each tile of K⁻¹ = W Wᵀ
is made when its turn comes, contracted with the derivatives of the kernel, and dropped.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from nngp.architecture import Architecture
from nngp.gram import Inputs, kernel_gradient
from nngp.linsolve import Engine, Factor, Progress, Run, inverse_rows
from nngp.posterior.system import System


def evidence_gradient(
    engine: Engine,
    architecture: Architecture,
    inputs: Inputs,
    system: System,
    progress: Progress,
    *,
    per_layer: bool,
    per_input: bool,
) -> dict[str, Any]:
    """d log_evidence / d(weight_var, bias_var, noise_var)."""
    factor = system.factor
    slices, count = factor.slices, len(factor.rows)
    outputs = system.z[0].shape[0]

    def contract(i: int, j: int, minus_inverse: Any) -> Any:
        G = system.alpha[i].T @ system.alpha[j] + outputs * minus_inverse
        if i == j:  # tiles off the diagonal stand for their mirror images too
            G = 0.5 * G
        gradient.contract(G, slices[i], slices[j])
        return G.trace() if i == j else 0.0

    with engine.run() as run:
        gradient = kernel_gradient(
            engine.where, architecture, inputs, per_layer=per_layer, per_input=per_input
        )
        W = inverse_rows(run, factor, range(count))
        noise = over_lower_tiles(
            run, factor, lambda i, j: (W[i], W[j][i - j :]), contract, progress, progress.total
        )
    return {**gradient.result(), "noise_var": noise}


def over_lower_tiles(
    run: Run,
    factor: Factor,
    sides: Callable[[int, int], tuple[Sequence[Any], Sequence[Any]]],
    contract: Callable[[int, int, Any], Any],
    progress: Progress,
    work: float,
) -> float:
    """The sum of contract(i, j, -A Bᵀ) over the lower tiles, with A and B given by their tiles."""
    count, widths = len(factor.rows), np.diff(factor.edges)
    parts = [
        run.chain(
            partial(run.zeros, widths[i], widths[j]), *sides(i, j), then=partial(contract, i, j)
        )
        for i in range(count)
        for j in range(i + 1)
    ]
    total = 0.0
    for part in parts:
        total += float(run.wait(part))
        progress.advance(work / len(parts))
    return total
