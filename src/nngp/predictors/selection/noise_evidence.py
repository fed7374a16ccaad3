"""The evidence of a network for one noise after the other: its kernel matrix is computed once."""

from collections.abc import Callable
from functools import partial

import numpy as np

from nngp._arrays import Array
from nngp.architecture import Network
from nngp.linsolve import Engine, pick_engine
from nngp.linsolve.engines.engine import WholeMatrix
from nngp.posterior.dense_evidence import log_evidence_and_misfit
from nngp.predictors.selection.averages import kernel_on

# Log evidence and Y·(K + noise)⁻¹Y, summed over outputs, of Y and a noise for each row.
NoiseEvidence = Callable[[Array, Array], tuple[float, float]]


def noise_evidence(engine: str | Engine, network: Network, X: Array) -> NoiseEvidence:
    """That of a network, on a GPU where that pays."""
    n, d = X.shape
    chosen = pick_engine(engine, n, d * network.products(d)).engine
    return evidence_of_kernel(chosen, kernel_on(chosen, network, X))


def evidence_of_kernel(engine: Engine, K: Array) -> NoiseEvidence:
    """That of a kernel matrix, by its lower triangle."""
    whole = engine.whole_matrix(K)
    if whole is None:
        return partial(log_evidence_and_misfit, K)
    return partial(_of_whole, whole)


def _of_whole(matrix: WholeMatrix, Y: Array, noise: Array) -> tuple[float, float]:
    n, outputs = Y.shape
    log_det, misfit = matrix.log_det_and_misfit(np.ascontiguousarray(noise), Y)
    return -0.5 * (misfit + outputs * (log_det + n * np.log(2 * np.pi))), misfit
