"""Signal propagation for any activation: fixed points, slopes, depth scales, phases.

Takes an activation and variances that broadcast; gives numbers, or arrays for arrays. The theory
is that of Poole et al. 2016 and Schoenholz et al. 2016, which the paper takes up in sec. 3.2: how
two inputs change with depth before training decides whether their difference survives.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nngp.architecture import as_activation
from nngp.covariance.select import AnyActivation
from nngp.regimes.inputs import Settings, as_correlation, settings_of
from nngp.regimes.state import State, state_of
from nngp.regimes.variance import fixed_points


class DepthScale(NamedTuple):
    """Layers over which the distance to the fixed point falls by e."""

    xi_q: Any
    xi_c: Any


def variance_fixed_point(
    activation: AnyActivation, weight_var: ArrayLike, bias_var: ArrayLike, *, all: bool = False
) -> Any:
    """The variance q* that a unit-variance input flows to with depth.

    q* = bias_var + weight_var E[phi(sqrt(q*) z)²], reached from q = bias_var + weight_var. Zero
    and infinity are answers: the signal vanishes, or grows for ever. A homogeneous activation
    on its critical point (relu at 2, 0) leaves every variance as it is; q* is then the start.

    Parameters
    ----------
    activation : str, callable or Activation
    weight_var, bias_var : array_like
        Broadcast together. Up to 1e30; what is below 1e-58 counts as zero.
    all : bool
        Give every stable fixed point instead, ascending, with 0 and inf if they attract
        (scalars only).

    Examples
    --------
    >>> from nngp import regimes
    >>> round(regimes.variance_fixed_point("relu", 1.5, 0.5), 12)
    2.0
    >>> regimes.variance_fixed_point("relu", [1.0, 3.0], 0.0)
    array([ 0., inf])
    """
    settings, state = _state(activation, weight_var, bias_var)
    if not all:
        return settings.give(state.variance)
    if settings.shape:
        raise ValueError("all=True takes one weight_var and one bias_var, not arrays")
    points = fixed_points(state.moments, state.weight, state.bias)
    stable = np.exp(np.sort(points.log_q[points.stable]))
    zero, infinity = [0.0] * int(points.to_zero[0]), [np.inf] * int(points.to_infinity[0])
    found = np.concatenate([zero, stable, infinity])
    return found if found.size else state.variance  # every variance stays where it is


def correlation_fixed_point(
    activation: AnyActivation, weight_var: ArrayLike, bias_var: ArrayLike
) -> Any:
    """The correlation c* in [0, 1] that any two different inputs flow to with depth.

    1 where chi_1 <= 1, otherwise the stable fixed point below 1. Where q* = 0 and phi is smooth
    the correlations freeze at whatever they were; 1.0 is given, the limit of a small bias.

    Examples
    --------
    >>> from nngp import regimes
    >>> regimes.correlation_fixed_point("tanh", 1.0, 0.5)
    1.0
    >>> round(regimes.correlation_fixed_point("tanh", 3.0, 0.1), 6)
    0.477539
    """
    settings, state = _state(activation, weight_var, bias_var)
    return settings.give(1 - state.one_minus_correlation)


def chi(
    activation: AnyActivation,
    weight_var: ArrayLike,
    bias_var: ArrayLike,
    at: float | str = 1.0,
) -> Any:
    """The slope of the correlation map, weight_var E[phi'(u) phi'(v)] at variance q*.

    At correlation 1 it is chi_1: below 1 nearby inputs converge, above 1 they part. Infinite
    at 1 where E[phi'²] is, as for an activation that jumps or rises like a root, and where it
    grows without end with a variance that does.

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
    settings, state = _state(activation, weight_var, bias_var)
    if isinstance(at, str) and at == "fixed point":
        return settings.give(state.chi_at_fixed_point)
    return settings.give(state.slope_at(as_correlation(at)))


def depth_scale(
    activation: AnyActivation, weight_var: ArrayLike, bias_var: ArrayLike
) -> DepthScale:
    """The number of layers over which variance and correlation forget where they came from.

    xi_q = 1/|log |V'(q*)|| and xi_c = 1/|log chi(c*)|: differences shrink like exp(-depth/xi).
    Infinite at criticality, where the approach is a power of depth; zero where one layer is
    enough.

    Examples
    --------
    >>> from nngp import regimes
    >>> scale = regimes.depth_scale("relu", 1.0, 0.1)
    >>> round(scale.xi_c, 6)
    1.442695
    """
    settings, state = _state(activation, weight_var, bias_var)
    return DepthScale(settings.give(state.xi_q), settings.give(state.xi_c))


def phase(activation: AnyActivation, weight_var: ArrayLike, bias_var: ArrayLike) -> Any:
    """The name of the phase that a network is in.

    For an activation that saturates (E[phi²]/q -> 0 as q grows): "ordered" (chi_1 < 1), "chaotic"
    (chi_1 > 1) or "critical". For one that does not, as relu: "bounded" (0 < q* < inf and
    chi_1 < 1), "unbounded" (q* is 0 or infinite; the paper's definition), "chaotic" (finite q*,
    chi_1 > 1) or "critical". Critical means |chi_1 - 1| <= 1e-9.

    Examples
    --------
    >>> from nngp import regimes
    >>> regimes.phase("tanh", 3.0, 0.1), regimes.phase("relu", 1.5, 0.1)
    ('chaotic', 'bounded')
    >>> regimes.phase("relu", 2.0, 0.0)
    'critical'
    """
    settings, state = _state(activation, weight_var, bias_var)
    return settings.give(state.phase)


def _state(
    activation: AnyActivation, weight_var: ArrayLike, bias_var: ArrayLike
) -> tuple[Settings, State]:
    settings = settings_of(weight_var, bias_var)
    return settings, state_of(as_activation(activation), settings.weight, settings.bias)
