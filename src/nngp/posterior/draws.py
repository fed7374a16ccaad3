"""Draws from Gaussians: functions from the prior (paper, appendix A) and from the posterior."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nngp._arrays import EPS, Array
from nngp._machine import single_threaded_blas
from nngp._numbers import whole_number
from nngp.architecture import Network
from nngp.gram import kernel
from nngp.linsolve import CpuEngine, Progress, climb, factorise
from nngp.linsolve.tiling import cut, spans
from nngp.posterior.noise import as_noise


@single_threaded_blas()
def sample_prior(
    network: Network,
    X: ArrayLike,
    n: int = 1,
    seed: Any = None,
    *,
    noise_var: float = 0.0,
) -> Array:
    """`n` functions drawn from the prior, at the inputs X: (n, points).

    Parameters
    ----------
    network : Network
    X : array_like, (points, d)
    n : int
        Number of draws; none gives an empty array.
    seed : int, Generator, optional
        Anything that `numpy.random.default_rng` takes.
    noise_var : float
        Added to the variance of each point, for draws of noisy observations.

    Notes
    -----
    At infinite depth the draws are those of `nngp.kernel`: without the constant.

    Examples
    --------
    >>> import nngp
    >>> nngp.sample_prior(nngp.Architecture(3), [[1.0], [2.0]], n=5, seed=0).shape
    (5, 2)
    """
    count = whole_number("n", n, least=0)
    covariance = kernel(network, X)
    scale = float(np.diagonal(covariance).max())
    covariance[np.diag_indices_from(covariance)] += as_noise(noise_var)
    return gaussian(covariance, count, seed, scale)


def draws_around(
    mean: Array, covariance: Array, n: int, seed: Any, scale: float, *, single: bool
) -> Array:
    """`n` draws of all outputs, (n, m, outputs), or (n, m) where the targets were a vector; `mean`
    is (m,) or (m, outputs), and `scale` that of `gaussian`."""
    m = len(covariance)
    columns = mean[:, None] if mean.ndim == 1 else mean
    outputs = columns.shape[1]
    draws = gaussian(covariance, n * outputs, seed, scale)
    out: Array = columns + draws.reshape(n, outputs, m).transpose(0, 2, 1)
    return out[:, :, 0] if single else out


def gaussian(covariance: Array, n: int, seed: Any, scale: float) -> Array:
    """`n` draws from N(0, covariance), which may be singular: (n, points).

    `scale` is the variance that rounding errors of the covariance are relative to. A little of it,
    4 eps for each point and more if that does not do, is added on the diagonal.
    """
    size, engine = len(covariance), CpuEngine()
    noise = np.random.default_rng(seed).standard_normal((n, size))
    if scale <= 0:
        return np.zeros((n, size))
    edges = cut(size, engine.tile_size(size))
    slices = spans(edges)

    def attempt(jitter: float) -> list[list[Array]]:
        def first(i: int, j: int) -> Array:
            tile = covariance[slices[i], slices[j]].copy()
            if i == j:
                tile[np.diag_indices_from(tile)] += jitter
            return tile

        with engine.run() as run:
            return factorise(run, first, edges, Progress("draws", 1.0, None))[0]

    rows, _, _ = climb(attempt, 4 * EPS * size * scale, limit=1e-6 * scale)
    return np.concatenate(
        [
            sum((noise[:, part] @ tile.T for part, tile in zip(slices, row, strict=False)))
            for row in rows
        ],
        axis=1,
    )
