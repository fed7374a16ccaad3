"""The evidence of a network for one noise after the other: its kernel matrix is computed once."""

from collections.abc import Callable
from functools import partial

import numpy as np

from nngp._arrays import Array
from nngp.architecture import Network
from nngp.gram import TRIVIAL_SPLIT, kernel
from nngp.linsolve import Engine, pick_engine
from nngp.linsolve.engines.engine import WholeMatrix
from nngp.posterior.dense_evidence import log_evidence_and_misfit

# Log evidence and Y·(K + noise)⁻¹Y, summed over outputs, of Y and a noise for each row.
NoiseEvidence = Callable[[Array, Array], tuple[float, float]]


def noise_evidence(engine: str | Engine, network: Network, X: Array) -> NoiseEvidence:
    """That of a network, on a GPU where that pays."""
    n, d = X.shape
    chosen = pick_engine(engine, n, d * network.products(d)).engine
    whole = _whole(chosen, network, X) if chosen.name == "gpu" else None
    if whole is not None:
        return partial(_of_whole, whole)
    return partial(log_evidence_and_misfit, kernel(network, X))


def _whole(engine: Engine, network: Network, X: Array) -> WholeMatrix | None:
    inputs = engine.kernels.inputs(X)
    if not engine.kernels.supports(network, inputs):
        return None
    return engine.whole_matrix(engine.kernels.matrix(network, inputs, split=TRIVIAL_SPLIT))


def _of_whole(matrix: WholeMatrix, Y: Array, noise: Array) -> tuple[float, float]:
    n, outputs = Y.shape
    log_det, misfit = matrix.log_det_and_misfit(noise, Y)
    return -0.5 * (misfit + outputs * (log_det + n * np.log(2 * np.pi))), misfit
