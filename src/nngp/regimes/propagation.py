"""Signal propagation for any activation: fixed points, slopes, depth scales, phases.

Takes an activation and variances that broadcast; gives numbers, or arrays for arrays. The theory
is that of Poole et al. 2016 and Schoenholz et al. 2016, which the paper takes up in sec. 3.2: how
two inputs change with depth before training decides whether the output can distinguish them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nngp.architecture import ActivationLike, as_activation
from nngp.regimes.propagation_state import PropagationState, propagation_state
from nngp.regimes.validation import (
    BroadcastVariances,
    ScalarOrArray,
    as_correlation,
    broadcast_variances,
)
from nngp.regimes.variance import variance_fixed_points


class DepthScale(NamedTuple):
    """Number of layers over which the distance to the fixed point falls by a factor e.

    Examples
    --------
    >>> from nngp import regimes
    >>> scales = regimes.depth_scale("tanh", 2.0, 0.1)
    >>> [round(scale, 1) for scale in scales], scales.xi_c == scales[1]
    ([1.2, 336.0], True)
    """

    xi_q: ScalarOrArray  # of the variance
    xi_c: ScalarOrArray  # of the correlation


def variance_fixed_point(
    activation: ActivationLike, weight_var: ArrayLike, bias_var: ArrayLike, *, all: bool = False
) -> ScalarOrArray:
    """The limit q* of the variance with depth, from an input of unit variance.

    q* = bias_var + weight_var E[phi(sqrt(q*) z)²], reached from q = bias_var + weight_var. It is 0
    where the signal vanishes and infinite where it grows without bound. A homogeneous activation
    at its critical point (relu at 2, 0) changes no variance; q* is then the initial one.

    Parameters
    ----------
    activation : str, callable or Activation
    weight_var, bias_var : array_like
        Broadcast together. At most 1e30; values below 1e-58 count as zero.
    all : bool
        Give every stable fixed point instead, ascending, with 0 and inf if they are
        stable (scalars only).

    Examples
    --------
    >>> from nngp import regimes
    >>> round(regimes.variance_fixed_point("relu", 1.5, 0.5), 12)
    2.0
    >>> regimes.variance_fixed_point("relu", [1.0, 3.0], 0.0)
    array([ 0., inf])
    """
    variances, state = _state(activation, weight_var, bias_var)
    if not all:
        return variances.restore(state.variance)
    if variances.shape:
        raise ValueError("all=True takes one weight_var and one bias_var, not arrays")
    points = variance_fixed_points(state.moments, state.weight, state.bias)
    stable = np.exp(np.sort(points.log_q[points.stable]))
    zero, infinity = [0.0] * int(points.to_zero[0]), [np.inf] * int(points.to_infinity[0])
    found = np.concatenate([zero, stable, infinity])
    return found if found.size else state.variance  # no layer changes the variance


def correlation_fixed_point(
    activation: ActivationLike, weight_var: ArrayLike, bias_var: ArrayLike
) -> ScalarOrArray:
    """The limit c* in [0, 1] of the correlation of two different inputs with depth.

    1 where chi_1 <= 1, otherwise the stable fixed point below 1. Where q* = 0 and phi is smooth
    correlations stop changing at any value; 1.0 is returned, the limit of a small bias.

    Parameters
    ----------
    activation, weight_var, bias_var
        As for `variance_fixed_point`.

    Examples
    --------
    >>> from nngp import regimes
    >>> regimes.correlation_fixed_point("tanh", 1.0, 0.5)
    1.0
    >>> round(regimes.correlation_fixed_point("tanh", 3.0, 0.1), 6)
    0.477539
    """
    variances, state = _state(activation, weight_var, bias_var)
    return variances.restore(1 - state.one_minus_correlation)


def chi(
    activation: ActivationLike,
    weight_var: ArrayLike,
    bias_var: ArrayLike,
    at: float | str = 1.0,
) -> ScalarOrArray:
    """The slope of the correlation map, weight_var E[phi'(u) phi'(v)] at variance q*.

    At correlation 1 it is chi_1: below 1 nearby inputs converge, above 1 they diverge. chi_1 is
    infinite where E[phi'²] is, as for an activation that jumps or rises like a root, and where the
    variance and with it E[phi'²] grow without bound.

    Parameters
    ----------
    activation, weight_var, bias_var
        As for `variance_fixed_point`.
    at : float or "fixed point"
        The correlation of u and v; "fixed point" means c*.

    Examples
    --------
    >>> from nngp import regimes
    >>> round(regimes.chi("relu", 1.5, 0.5), 12)
    0.75
    """
    variances, state = _state(activation, weight_var, bias_var)
    if isinstance(at, str) and at == "fixed point":
        return variances.restore(state.chi_at_fixed_point)
    return variances.restore(state.slope_at(as_correlation(at)))


def depth_scale(
    activation: ActivationLike, weight_var: ArrayLike, bias_var: ArrayLike
) -> DepthScale:
    """The numbers of layers over which variance and correlation converge to their fixed points.

    xi_q = 1/|log |V'(q*)|| and xi_c = 1/|log chi(c*)|: differences shrink like exp(-depth/xi).
    Infinite at criticality, where convergence is a power of depth; zero where one layer is
    enough.

    Parameters
    ----------
    activation, weight_var, bias_var
        As for `variance_fixed_point`.

    Examples
    --------
    >>> from nngp import regimes
    >>> scale = regimes.depth_scale("relu", 1.0, 0.1)
    >>> round(scale.xi_c, 6)
    1.442695
    """
    variances, state = _state(activation, weight_var, bias_var)
    return DepthScale(variances.restore(state.xi_q), variances.restore(state.xi_c))


def phase(activation: ActivationLike, weight_var: ArrayLike, bias_var: ArrayLike) -> ScalarOrArray:
    """The phase of a network: "ordered", "bounded", "chaotic", "unbounded" or "critical".

    For an activation that saturates (E[phi²]/q -> 0 as q grows): "ordered" (chi_1 < 1), "chaotic"
    (chi_1 > 1) or "critical". For one that does not, as relu: "bounded" (0 < q* < inf and
    chi_1 < 1), "unbounded" (q* is 0 or infinite; the paper's definition), "chaotic" (finite q*,
    chi_1 > 1) or "critical". Critical means |chi_1 - 1| <= 1e-9.

    Parameters
    ----------
    activation, weight_var, bias_var
        As for `variance_fixed_point`.

    Examples
    --------
    >>> from nngp import regimes
    >>> regimes.phase("tanh", 3.0, 0.1), regimes.phase("relu", 1.5, 0.1)
    ('chaotic', 'bounded')
    >>> regimes.phase("relu", 2.0, 0.0)
    'critical'
    """
    variances, state = _state(activation, weight_var, bias_var)
    return variances.restore(state.phase)


def _state(
    activation: ActivationLike, weight_var: ArrayLike, bias_var: ArrayLike
) -> tuple[BroadcastVariances, PropagationState]:
    variances = broadcast_variances(weight_var, bias_var)
    return variances, propagation_state(as_activation(activation), variances.weight, variances.bias)
