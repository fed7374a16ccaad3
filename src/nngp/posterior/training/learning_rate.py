"""The largest learning rate at which gradient descent in steps is stable.

A step of gradient descent on the loss |f - Y|² / (2 N), N = rows times outputs, multiplies the
error along an eigenvector of the tangent kernel by 1 - η (λ + noise) / N. So it shrinks if
η < 2 N / (λ_max + noise). Lanczos' method finds λ_max, from products with tiles of the matrix.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from nngp._arrays import Array
from nngp._numbers import whole_number
from nngp.architecture import Network, tangent_of
from nngp.errors import NotConvergedError
from nngp.gram import KernelMatrix, check_network
from nngp.linsolve import CpuEngine
from nngp.linsolve.cg.product import KernelProduct
from nngp.linsolve.tiling import cut
from nngp.posterior.noise import as_noise
from nngp.posterior.setup import kernels_of

TOLERANCE = 1e-10  # of λ_max, relative
SMALL = 32  # points up to which all eigenvalues are computed
KEPT = 0.25  # of the free memory, for tiles that all products use


def max_learning_rate(
    network: Network, X: ArrayLike, *, outputs: int = 1, noise_var: float = 0.0
) -> float:
    """The largest learning rate at which gradient descent in steps is stable.

    It is 2 N / (λ_max + noise_var), with λ_max the largest eigenvalue of the tangent kernel of the
    inputs, and N = n `outputs` as in the loss of `nngp.training.train_ensemble`.

    Parameters
    ----------
    network : Network
        Without dropout.
    X : array_like, (n, d)
    outputs : int
        Columns of the targets: the loss is a mean over rows and outputs.
    noise_var : float
        As in `nngp.training.train_ensemble`.

    Returns
    -------
    float
        To 1e-8, relative, and not above the true value by more than rounding. Infinity if nothing
        moves the outputs: all inputs are zero, and no unit has a bias.

    Notes
    -----
    Networks of finite width have another tangent kernel, which moves in training; in practice they
    are stable at somewhat larger or smaller rates.

    Examples
    --------
    >>> import numpy as np, nngp
    >>> net = nngp.Architecture(1, "relu", weight_var=2.0, bias_var=0.0)
    >>> round(nngp.training.max_learning_rate(net, [[1.0, 1.0]]), 6)  # the tangent kernel is 4
    0.5
    """
    check_network(network)
    check_trainable(network)
    count, noise = whole_number("outputs", outputs), as_noise(noise_var)
    engine = CpuEngine()
    inputs = kernels_of("cpu").inputs(X)
    with engine.run():
        matrix = engine.kernels.matrix(tangent_of(network), inputs)
    steepest = largest_eigenvalue(engine, matrix) + noise
    return 2.0 * len(inputs) * count / steepest if steepest else math.inf


def check_trainable(network: Network) -> None:
    """Raise ValueError for networks with dropout, TypeError for a tangent kernel."""
    if network.is_tangent:
        raise TypeError(
            "a tangent kernel is no network that can be trained; pass the network itself "
            "(nngp.NTK(...).network)"
        )
    if network.has_masks:
        raise ValueError(
            "gradient descent of networks with dropout is not described by their tangent kernel; "
            "leave nngp.Dropout out of the network"
        )


def largest_eigenvalue(engine: CpuEngine, matrix: KernelMatrix) -> float:
    """The largest eigenvalue of K, plus its residual: a bound, to 1e-8."""
    n, split = len(matrix.left), matrix.split
    free = engine.free_memory()
    room = KEPT * free if free is not None else 0.0
    product = KernelProduct(matrix, cut(n, engine.product_size(n)), room)
    ones, whole = 1.0 / (1.0 + split.offset), split.offset / (1.0 + split.offset)

    with engine.run() as run:
        product.keep(run)

        def times(v: Array) -> Array:
            """(M + g 11ᵀ) v / (1 + g), so that no g is too large."""
            return ones * product(run, v.reshape(1, n))[0] + whole * v.sum()

        return split.scale * (1.0 + split.offset) * _largest(times, n)


def _largest(times: Callable[[Array], Array], n: int) -> float:
    if n <= SMALL:
        whole = np.stack([times(row) for row in np.eye(n)])
        return float(np.linalg.eigvalsh(whole)[-1])
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh  # slow to import

    start = np.random.default_rng(0).standard_normal(n) + 1.0
    operator = LinearOperator((n, n), matvec=times, dtype=np.float64)
    try:
        values, vectors = eigsh(operator, k=1, which="LA", v0=start, tol=TOLERANCE)
    except ArpackNoConvergence as error:
        found = NotConvergedError(
            "the largest eigenvalue of the tangent kernel was not found to 1e-10; drop rows that "
            "repeat each other"
        )
        raise found from error
    vector = vectors[:, 0]
    return float(values[0] + np.linalg.norm(times(vector) - values[0] * vector))
