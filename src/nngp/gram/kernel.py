"""From data to the covariance matrix of eq. 7: one place decides how, and says so.

Takes a network and inputs; gives K as a dense float64 array.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike

from nngp._arrays import Array
from nngp._machine import single_threaded_blas
from nngp.architecture import NTK, Network, WithHead
from nngp.curve import curve_at, output_variance
from nngp.errors import ToleranceWarning, VarianceError
from nngp.gram.host.backend import in_memory
from nngp.gram.host.matrix import HostMatrix, SharedProductBlocks
from nngp.gram.host.tiles import fill, fill_several
from nngp.gram.inputs import Inputs, InputSet, common_var
from nngp.gram.plan import KernelPlan, make_plan
from nngp.gram.split import SMALLEST
from nngp.gram.triples import own_variances

WARN_ABOVE = 1e-9  # error of an entry, relative to the variance, or to a split's scale


def plan_kernel(
    network: Network, X1: ArrayLike, X2: ArrayLike | None = None, *, method: str = "auto"
) -> KernelPlan:
    """The method that `kernel` would use for these inputs, and the reason.

    Examples
    --------
    >>> import nngp
    >>> nngp.plan_kernel(nngp.Architecture(3), [[1.0, 2.0], [2.0, 2.0]]).method
    'pairwise'
    """
    check_network(network)
    first, second = _inputs(X1, X2)
    return make_plan(network, first, second or first, method)


@single_threaded_blas()
def kernel(
    network: Network, X1: ArrayLike, X2: ArrayLike | None = None, *, method: str = "auto"
) -> Array:
    """The kernel matrix of a network: K^L(x, x') of eq. 5, or the tangent kernel of an `NTK`.

    At infinite depth it is the limit of K^L in units of its scale, the difference K^L(1) - K^L(0)
    of cosines 1 and 0, without the constant K^L(0) where that is infinitely larger: ones on the
    diagonal, zero for orthogonal inputs.

    Parameters
    ----------
    network : Architecture or another Network
        The paper's chain, a network of parts (`Chain`, `Residual`, ...), or an `NTK` of either.
    X1 : array_like, (n, d)
    X2 : array_like, (m, d), optional
        X1 against itself by default: exactly symmetric, with the exact diagonal.
    method : {"auto", "curve", "pairwise"}
        "auto" reads the compiled curve when all inputs share one norm (up to rounding), and
        runs the recursion pair by pair otherwise. (`LookupTable.kernel` is the paper's method.)

    Warns
    -----
    ToleranceWarning
        If an entry may be off by more than 1e-9 of the variance.

    Returns
    -------
    ndarray of float64, (n, n) or (n, m)

    Examples
    --------
    >>> import nngp
    >>> net = nngp.Architecture(2, "relu", weight_var=2.0, bias_var=0.0)
    >>> nngp.kernel(net, [[1.0, 1.0], [1.0, -1.0]]).round(4).tolist()
    [[2.0, 0.9875], [0.9875, 2.0]]
    """
    check_network(network)
    first, second = _inputs(X1, X2)
    plan = make_plan(network, first, second or first, method)
    blocks = HostMatrix(network, first, second, plan=plan)
    out = fill(*blocks.shape, blocks.block, symmetric=blocks.symmetric)
    warn_if_inexact(blocks.error(), stacklevel=4)
    return out


@single_threaded_blas()
def kernels(
    networks: Sequence[Network], X1: ArrayLike, X2: ArrayLike | None = None
) -> tuple[Array, ...]:
    """Kernel matrices of several networks from one product of the inputs.

    The product is what a matrix costs where norms are equal, so that a second network, such as the
    tangent kernel beside the kernel, costs much less than the first. The numbers are those of
    `nngp.kernel`.

    Parameters
    ----------
    networks : sequence of Network
        All of finite or infinite depth, of any shape; at least one.
    X1 : array_like, (n, d)
    X2 : array_like, (m, d), optional
        X1 against itself by default: exactly symmetric, with the exact diagonal.

    Warns
    -----
    ToleranceWarning
        If an entry may be off by more than 1e-9 of the variance.

    Returns
    -------
    tuple of ndarray of float64, (n, n) or (n, m)
        One for each network.

    Examples
    --------
    >>> import nngp
    >>> net = nngp.Architecture(2, "relu", weight_var=2.0, bias_var=0.0)
    >>> K, theta = nngp.kernels([net, nngp.NTK(net)], [[1.0, 1.0], [1.0, -1.0]])
    >>> K.round(4).tolist(), theta.round(4).tolist()
    ([[2.0, 0.9875], [0.9875, 2.0]], [[6.0, 1.3714], [1.3714, 6.0]])
    """
    if not isinstance(networks, Sequence) or not networks:
        raise TypeError("kernels takes a list of networks; use nngp.kernel for one")
    for network in networks:
        check_network(network)
    first, second = _inputs(X1, X2)
    matrices = [HostMatrix(network, first, second) for network in networks]
    out = fill_several(
        *matrices[0].shape,
        _blocks_of(matrices),
        len(matrices),
        symmetric=second is None,
    )
    warn_if_inexact(max(matrix.error() for matrix in matrices), stacklevel=4)
    return tuple(out)


class KernelPair(NamedTuple):
    """K and Θ of one network, as `nngp.kernel_and_tangent` returns them.

    Examples
    --------
    >>> import nngp
    >>> both = nngp.kernel_and_tangent(nngp.Architecture(1, "erf", 2.0, 0.0), [[1.0, 1.0]])
    >>> type(both).__name__, both._fields
    ('KernelPair', ('nngp', 'ntk'))
    """

    nngp: Array
    ntk: Array


def kernel_and_tangent(network: Network, X1: ArrayLike, X2: ArrayLike | None = None) -> KernelPair:
    """The kernel and the tangent kernel of a network from one product of the inputs.

    Parameters
    ----------
    network : Network
        The network itself, not its `NTK`.
    X1 : array_like, (n, d)
    X2 : array_like, (m, d), optional
        X1 against itself by default: exactly symmetric, with the exact diagonal.

    Returns
    -------
    KernelPair
        A named tuple of two arrays (n, n) or (n, m), `nngp` and `ntk`.

    Examples
    --------
    >>> import nngp
    >>> both = nngp.kernel_and_tangent(nngp.Architecture(2, "relu", 2.0, 0.0), [[1.0, 1.0]])
    >>> both.nngp.round(4).tolist(), both.ntk.round(4).tolist()
    ([[2.0]], [[6.0]])
    """
    check_network(network)
    if network.is_tangent:
        raise TypeError("kernel_and_tangent takes the network itself, not its nngp.NTK")
    return KernelPair(*kernels([network, NTK(network)], X1, X2))


def _blocks_of(matrices: Sequence[HostMatrix]) -> Callable[[slice, slice], list[Array]]:
    """A function that computes a block of each matrix: from one product, if none is an average
    over transformations, which needs products of its own."""
    if all(matrix.is_plain for matrix in matrices):
        return SharedProductBlocks(matrices)
    return lambda rows, columns: [one.block(rows, columns) for one in matrices]


def warn_if_inexact(error: float, stacklevel: int, of: str = "the variance") -> None:
    """Say it where entries may be off by more than 1e-9 of their unit."""
    if error > WARN_ABOVE:
        warnings.warn(
            f"entries of this kernel may be off by {error:.1e} of {of}: "
            "inputs nearly coincide and the network tears them apart, or the activation is not "
            "computed to float64 precision",
            ToleranceWarning,
            stacklevel=stacklevel,
        )


@single_threaded_blas()
def kernel_diag(network: Network, X: ArrayLike) -> Array:
    """K^L(x, x) of every input, without the matrix.

    Examples
    --------
    >>> import nngp
    >>> nngp.kernel_diag(nngp.Architecture(1, "relu", 2.0, 0.5), [[1.0, 1.0]]).round(6).tolist()
    [3.0]
    """
    check_network(network)
    return inputs_diag(network, Inputs.of(X))


def inputs_diag(network: Network, inputs: InputSet) -> Array:
    """K^L(x, x) of inputs that are checked already."""
    if network is not network.base:
        return HostMatrix(network, in_memory(inputs)).diagonal
    if network.is_infinite:
        var = cast(float, make_plan(network, inputs, inputs).input_var)
        return np.full(len(inputs), curve_at(network, var).profile.at_one)
    shared = None if network.planes is not None else common_var(inputs)
    if shared is not None:
        return np.full(len(inputs), output_variance(network, shared))
    return own_variances(network, inputs)


def kernel_scale(network: Network, inputs: InputSet) -> tuple[float, float]:
    """The deficit of orthogonal inputs, K(1) - K(0), at the norm that all inputs share or the
    middle one; and that norm, as x·x/d."""
    if network.base.planes is not None and not isinstance(network, WithHead):
        raise ValueError(
            "a network of images has no scale between equal and orthogonal inputs, so noise cannot "
            "be relative to it; use relative_noise=False"
        )
    shared = common_var(inputs)
    var = float(np.median(inputs.var)) if shared is None else shared
    curve = curve_at(network, var)
    if isinstance(network, WithHead):
        curve = curve_at(network.head, 1.0)
    if curve.scale <= SMALLEST * curve.variance:
        raise VarianceError(
            "the kernel is constant to below 1e-290 of its variance, so noise cannot be relative "
            "to its scale; use relative_noise=False"
            + network.if_deep(
                ", a smaller depth, or math.inf, which is the same kernel to rounding (if inputs "
                "and activation vary at all)"
            )
        )
    return curve.scale, var


def check_network(network: Network) -> None:
    """Raise TypeError unless it is a network, and ValueError unless it can be one."""
    if not isinstance(network, Network):
        raise TypeError(
            "the first argument must be an nngp.Architecture or another network, got "
            f"{type(network).__name__}"
        )
    if not network.is_infinite:
        _ = network.graph


def _inputs(X1: ArrayLike, X2: ArrayLike | None) -> tuple[Inputs, Inputs | None]:
    first = Inputs.of(X1, "X1")
    if X2 is None:
        return first, None
    second = Inputs.of(X2, "X2")
    if first.X.shape[1] != second.X.shape[1]:
        raise ValueError(
            f"X1 has {first.X.shape[1]} features and X2 has {second.X.shape[1]}; they must agree"
        )
    return first, second
