"""Variance and correlation through a repeated part of a network.

Takes a part; gives a `BlockPropagation`: variance and 1 - correlation after every repetition, and
the laws by which they approach their limits. A layer has depth scales; with a skip connection they
become powers (Yang and Schoenholz, "Mean Field Residual Networks: On the Edge of Chaos", 2017).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from nngp._arrays import Array
from nngp._numbers import as_real, whole_number
from nngp.architecture import Architecture, Chain, Dense, Network, NetworkPart, Repeat
from nngp.curve import node_states
from nngp.errors import VarianceError
from nngp.regimes.depth_laws import DepthLaw, depth_law

CORRELATIONS = (0.0, 0.5, 0.9)


@dataclass(frozen=True)
class BlockPropagation:
    """Variance and correlation behind every repetition of a part; `print` it for a summary.

    Attributes
    ----------
    block : Network
    correlations : array of shape (k,)
        Of pairs of units before the first repetition.
    variance : array of shape (depth + 1,)
        After 0, 1, ... repetitions.
    one_minus : array of shape (depth + 1, k)
        1 - correlation of each pair, to relative precision.
    variance_law : DepthLaw
    one_minus_laws : tuple of DepthLaw
        One for each pair.
    complete : bool
        Whether all repetitions that were asked for are there. The others have a variance outside
        the range of float64.

    Examples
    --------
    >>> import nngp
    >>> block = nngp.Chain(nngp.Residual(nngp.Act("relu"), nngp.Dense(2.0)), nngp.LayerNorm())
    >>> print(nngp.regimes.propagate(block, correlations=[0.5]))
    after 1000 repetitions: variance 1, 1 - correlation 0.000169
    variance stays at 1
    1 - correlation from 0.5 tends to 0 like l^-1.99
    """

    block: Network
    correlations: Array
    variance: Array
    one_minus: Array
    variance_law: DepthLaw
    one_minus_laws: tuple[DepthLaw, ...]
    complete: bool

    @property
    def depth(self) -> int:
        """The number of repetitions."""
        return len(self.variance) - 1

    def __str__(self) -> str:
        ends = ", ".join(f"{value:.3g}" for value in self.one_minus[-1])
        return "\n".join(
            [
                f"after {self.depth} repetitions: variance {self.variance[-1]:.4g}, "
                f"1 - correlation {ends}"
                + ("" if self.complete else "; then the variance leaves float64"),
                f"variance {self.variance_law}",
                *(
                    f"1 - correlation from {1 - start:.3g} {law}"
                    for start, law in zip(self.correlations, self.one_minus_laws, strict=True)
                ),
            ]
        )


def propagate(
    block: Network,
    depth: int = 1000,
    *,
    correlations: ArrayLike = CORRELATIONS,
    input_var: float = 1.0,
) -> BlockPropagation:
    """Follow variance and correlation through copies of a part, and find the laws of depth.

    Parameters
    ----------
    block : Network
        What is repeated: a residual block, a layer such as Chain(Act("tanh"), Dense(1.5, 0.1)), or
        any part that can stand behind itself. It begins at Gaussian units.
    depth : int
        The number of repetitions.
    correlations : array_like of shape (k,)
        Of pairs of units before the first repetition.
    input_var : float
        Their variance.

    Returns
    -------
    BlockPropagation

    Notes
    -----
    Exact: every repetition is computed by the recursion of `nngp.kernel`. It costs about half a
    millisecond for an activation with a closed form. For others each new variance needs integrals,
    which take seconds where the variance is above some hundreds.

    Examples
    --------
    A skip connection turns exponential laws into powers:

    >>> import nngp
    >>> plain = nngp.Chain(nngp.Act("erf"), nngp.Dense(1.0, 0.1))
    >>> print(nngp.regimes.propagate(plain, 200, correlations=[0.5]).one_minus_laws[0])
    tends to 0 like exp(-l / 4.41)
    >>> found = nngp.regimes.propagate(nngp.Residual(nngp.Act("relu"), nngp.Dense(1.0)))
    >>> print(found.variance_law, found.one_minus_laws[0], sep="; ")
    grows like exp(l / 2.47); tends to 0 like l^-1.99
    """
    depth = whole_number("depth", depth)
    one = _as_network(block)
    starts, e = _one_minus(correlations)
    variances, apart, complete = [_as_variance(input_var)], [e], True
    negative, m = e > 1, np.where(e > 1, 2 - e, e)
    for _ in range(depth):
        try:
            *_, (_, state) = node_states(one, variances[-1], negative, m)
        except VarianceError:
            complete = False
            break
        negative, m = state.cov.negative, state.cov.m
        variances.append(state.cov.variance)
        apart.append(state.cov.e)
    if len(variances) == 1:
        raise VarianceError("one repetition of this part leaves the range of float64")
    variance, one_minus = np.array(variances), np.array(apart)
    laws = tuple(depth_law(column, most=2.0) for column in one_minus.T)
    return BlockPropagation(block, starts, variance, one_minus, depth_law(variance), laws, complete)


def _as_network(block: Network) -> Network:
    """One copy of a part between affine maps that change no covariance."""
    if isinstance(block, Architecture) and not block.is_infinite:
        block = block.chain
    if not isinstance(block, NetworkPart):
        raise TypeError(
            "propagate takes a part of a network such as nngp.Residual(...), got "
            f"{type(block).__name__}"
        )
    same = Dense(1.0, 0.0)
    _ = Chain(same, Repeat(block, 2), same).graph  # ValueError unless it can stand behind itself
    return Chain(same, block, same)


def _one_minus(correlations: ArrayLike) -> tuple[Array, Array]:
    starts = np.atleast_1d(np.asarray(correlations, dtype=np.float64))
    if starts.ndim != 1 or not starts.size or not np.all(np.abs(starts) <= 1):
        raise ValueError(f"correlations must be numbers in [-1, 1], got {correlations!r}")
    return starts, 1 - starts


def _as_variance(input_var: float) -> float:
    value = as_real(input_var, "input_var")
    if not 0 < value < np.inf:
        raise ValueError(f"input_var must be finite and positive, got {value!r}")
    return value
