"""Kernel matrices for a search, on the host. Averages over transformations take many products, so a
GPU that the fit will use is worth it for them already."""

import numpy as np

from nngp._arrays import Array
from nngp.architecture import Network
from nngp.gram import TRIVIAL_SPLIT, KernelMatrix, kernel
from nngp.linsolve import Engine, choose_engine
from nngp.linsolve.tiling import spans


def kernel_on(engine: str | Engine, network: Network, X: Array) -> Array:
    """The kernel matrix, computed on a GPU where that pays, and nothing else."""
    found = matrix_on_gpu(engine, network, X)
    return kernel(network, X) if found is None else _fetched(*found)


def matrix_on_gpu(
    engine: str | Engine, network: Network, X: Array
) -> tuple[Engine, KernelMatrix] | None:
    """A GPU and the kernel matrix that it would compute; None where it does not pay, or cannot."""
    chosen = choose_engine(engine, len(X))
    if chosen.name != "gpu":
        return None
    inputs = chosen.kernels.inputs(X)
    if not chosen.kernels.supports(network, inputs):
        return None
    return chosen, chosen.kernels.matrix(network, inputs, split=TRIVIAL_SPLIT)


def _fetched(engine: Engine, matrix: KernelMatrix) -> Array:
    n = len(matrix.left)
    out = np.empty((n, n))
    parts = spans(engine.edges(matrix))
    with engine.run() as run:
        for i, rows in enumerate(parts):
            for columns in parts[: i + 1]:
                tile = run.fetch(matrix.block(rows, columns))
                place = out[rows, columns]  # without the rows that fill up the last tile
                place[:] = tile[: place.shape[0], : place.shape[1]]
                if rows == columns:
                    place[:] = np.tril(place) + np.tril(place, -1).T
                else:
                    out[columns, rows] = place.T
    return out
