"""The cause of a failed Cholesky factorisation, and its remedy."""

from functools import partial

import numpy as np

from nngp.gram import KernelMatrix
from nngp.linsolve import Engine

LOOKED_AT = 200  # rows in which the cause is sought


def no_factor(engine: Engine, matrix: KernelMatrix, noise_var: float) -> str:
    """One sentence: the largest noise tried, the likely cause, the remedy."""
    head = f"the kernel matrix is not positive definite even with noise_var {noise_var:.1g}: "
    inputs, architecture = matrix.left, matrix.network
    sample = slice(0, min(len(inputs), LOOKED_AT))
    with engine.run() as run:
        M, split = run.fetch(run.chain(partial(matrix.block, sample, sample))), matrix.split
    spread, size = float(M.max() - M.min()), float(np.abs(M).max())
    if spread <= 1e-12 * size:
        return head + (
            f"at depth {architecture.depth} the kernel has become constant (its entries differ by "
            f"{spread / size:.0e} of the variance); use "
            f"{architecture.if_deep('a smaller depth, ')}other variances, or a larger noise_var"
        )
    duplicates = inputs.duplicates()
    if duplicates:
        return head + (
            f"X holds {duplicates} duplicated row(s); drop them or pass a larger noise_var"
        )
    return head + (
        f"its variance is {split.scale * (size + split.offset):.1e}, far above the noise; pass a "
        "larger noise_var or rescale the network"
    )
