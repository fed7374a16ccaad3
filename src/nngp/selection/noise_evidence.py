"""The evidence of a network for one noise after the other: its kernel matrix is computed once."""

from collections.abc import Callable
from functools import partial

from nngp._arrays import Array
from nngp.architecture import Network
from nngp.gram import kernel
from nngp.linsolve import Engine
from nngp.linsolve.engines.engine import WholeMatrix
from nngp.posterior.criteria import log_evidence
from nngp.posterior.dense_evidence import DenseEvidence
from nngp.selection.averages import matrix_on_gpu

# Log evidence and Y·(K + noise)⁻¹Y, summed over outputs, of Y and a noise for each row.
NoiseEvidence = Callable[[Array, Array], tuple[float, float]]


def noise_evidence(
    engine: str | Engine, dense: DenseEvidence, network: Network, X: Array
) -> NoiseEvidence:
    """That of a network, on a GPU where that pays."""
    found = matrix_on_gpu(engine, network, X)
    whole = None if found is None else found[0].whole_matrix(found[1])
    if whole is not None:
        return partial(_of_whole, whole)
    return partial(dense.log_evidence_and_misfit, kernel(network, X))


def _of_whole(matrix: WholeMatrix, Y: Array, noise: Array) -> tuple[float, float]:
    log_det, misfit = matrix.log_det_and_misfit(noise, Y)
    return log_evidence(misfit, log_det, *Y.shape), misfit
