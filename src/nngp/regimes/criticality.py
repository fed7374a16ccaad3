"""The critical line: the weight_var up to which nearby inputs converge with depth.

Takes an activation and one of the two variances; gives the other. For a given bias_var, small
weights make inputs converge (chi_1 < 1) at a finite variance. The line is the first weight_var at
which that ends, which can happen in four ways:

    chi_1 = 1            weight_var = 1/S(q),    bias_var = q - m2(q)/S(q)
    q* ceases to exist   weight_var = 1/m2'(q),  bias_var = q - m2(q)/m2'(q)
    q* is not reached    m2(weight_var + bias_var) = 1: the unit input starts on an unstable q
    q* -> infinity       weight_var = lim q/m2(q), for activations like relu

with m2 = E[phi²], S = E[phi'²]. All solutions are found, each a root in one variable, and between
them the limit of the variance tells on which side of the line a network is. The first applies to
tanh, erf, sin and elu; the last to relu and softplus (2, for every bias_var). For gelu and silu it
is the third at small biases, where the variance stays finite even beyond 2 because m2/q rises from
1/4 to 1/2; at larger biases the first, just below 2, as E[phi'²] exceeds 1/2: a narrow chaotic
strip.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nngp._arrays import TINY, Array, Mask
from nngp._roots import find_roots
from nngp.architecture import ActivationLike, as_activation
from nngp.regimes.moments import Moments, moments_of
from nngp.regimes.propagation_state import PropagationState
from nngp.regimes.validation import MAX_VARIANCE, ScalarOrArray, as_grid, as_variances
from nngp.regimes.variance import FLAT, GRID, limit_variance, sign_changes

Rate = Callable[[Moments, Array], Array]
Point = tuple[float, float]  # on the line: the unknown variance, and q*


class EdgeOfChaos(NamedTuple):
    """The critical line as three arrays: weight_var, bias_var and the variance q* on it.

    Examples
    --------
    >>> from nngp import regimes
    >>> line = regimes.edge_of_chaos("tanh", [0.05, 0.1])
    >>> line.weight_var.round(2).tolist(), line.variance.round(2).tolist()
    ([1.76, 1.99], [0.57, 0.81])
    """

    weight_var: Array
    bias_var: Array
    variance: Array


def critical_line(
    activation: ActivationLike,
    bias_var: ArrayLike | None = None,
    *,
    weight_var: ArrayLike | None = None,
) -> ScalarOrArray:
    """The critical weight_var for a given bias_var, or the critical bias_var for a weight_var.

    As weight_var grows from zero the network is ordered at first; the line is where that ends:
    chi_1 reaches 1 (tanh) or the variance becomes infinite (relu). Given weight_var, it is the
    first change as bias_var grows from zero.

    Parameters
    ----------
    activation : str, callable or Activation
    bias_var, weight_var : array_like
        One of the two; the other is returned.

    Raises
    ------
    ValueError
        If there is no such value up to 1e30, as for an activation that jumps, whose chi_1 is
        always infinite.

    Notes
    -----
    The relative error is 1e-10 for bias_var = 0 and for bias_var above 1e-15; between these, where
    the line rises from zero like a cube root, about 1e-9.

    Examples
    --------
    >>> from nngp import regimes
    >>> round(regimes.critical_line("tanh", 0.0), 10), round(regimes.critical_line("relu", 0.7), 10)
    (1.0, 2.0)
    >>> round(regimes.critical_line("tanh", weight_var=1.76), 6)
    0.049831
    """
    phi = as_activation(activation)
    if (bias_var is None) == (weight_var is None):
        raise ValueError("give either bias_var or weight_var=, and the other will be found")
    name, wanted = ("bias_var", "weight_var") if weight_var is None else ("weight_var", "bias_var")
    given = as_variances(name, bias_var if weight_var is None else weight_var)  # type: ignore[arg-type]
    find = _weight_on_line if weight_var is None else _bias_on_line
    out = np.array([find(moments_of(phi), float(v))[0] for v in given.ravel()])
    _check_found(phi.name, name, wanted, given.ravel(), out)
    return out.reshape(given.shape) if given.shape else float(out[0])


def edge_of_chaos(activation: ActivationLike, bias_vars: ArrayLike | None = None) -> EdgeOfChaos:
    """The whole critical line, with the variance along it.

    Parameters
    ----------
    activation : str, callable or Activation
    bias_vars : array_like of shape (n,), optional
        Bias variances of the points; by default 50 values from 0 to 2, closer to each other
        near 0, where the line of tanh and its like is steep.

    Returns
    -------
    EdgeOfChaos
        weight_var, bias_var and variance, each of shape (n,). The variance is infinite where q*
        grows to infinity at the line (relu with a bias); where it jumps there, it is that of the
        last fixed point, or of the start if that sits on an unstable one (gelu, small bias).

    Examples
    --------
    >>> from nngp import regimes
    >>> edge = regimes.edge_of_chaos("erf", [0.0, 0.5])
    >>> edge.weight_var.round(4), edge.variance.round(4)
    (array([0.7854, 2.2337]), array([0.    , 1.7721]))
    """
    phi = as_activation(activation)
    bias = as_grid("bias_vars", spaced_for_line(0.0, 2.0, 50) if bias_vars is None else bias_vars)
    points = np.array([_weight_on_line(moments_of(phi), float(b)) for b in bias])
    _check_found(phi.name, "bias_var", "weight_var", bias, points[:, 0])
    return EdgeOfChaos(points[:, 0], bias, points[:, 1])


def spaced_for_line(first: float, last: float, count: int) -> Array:
    """Bias variances whose points of the critical line can be joined by straight lines.

    The line may leave bias_var = 0 like a cube root, so they are close to each other there.
    """
    return first + (last - first) * np.linspace(0.0, 1.0, count) ** 2


def critical_weight_vars(moments: Moments, bias: Array) -> Array:
    """The critical line; 0 where every network is above it, inf where none is."""
    return np.array([_weight_on_line(moments, float(b))[0] for b in bias])


def _check_found(activation: str, name: str, wanted: str, given: Array, found: Array) -> None:
    """Raise ValueError where the line has no point."""
    none = ~(found <= MAX_VARIANCE) | ((found == 0) & (wanted == "weight_var"))
    if none.any():
        raise ValueError(
            f"activation '{activation}' has no critical {wanted} at {name}={given[none][0]:g}: "
            f"the network stays on one side for every {wanted} up to {MAX_VARIANCE:g}; see "
            "nngp.regimes.phase"
        )


def _weight_on_line(moments: Moments, bias: float) -> Point:
    """The line at one bias_var, with its variance."""
    points = [(q - bias, q) for q in _fixed_starts(moments)]
    for rate in RATES:
        x = _roots(lambda x, rate=rate: _bias_share(moments, rate, x) - bias / np.exp(x))
        points += _points(1 / np.maximum(rate(moments, x), TINY), np.exp(x))
    limits = _limits(moments, bias)
    points += _points(limits, limit_variance(moments, limits, np.full_like(limits, bias)))

    def is_below(weight: Array) -> Mask:
        return _is_below(moments, weight, np.full_like(weight, bias))

    return _first_end(points, is_below)


def _bias_on_line(moments: Moments, weight: float) -> Point:
    """The line at one weight_var, with its variance; inf if there is none."""
    points = [(q - weight, q) for q in _fixed_starts(moments)]
    for rate in RATES:
        x = _roots(lambda x, rate=rate: weight * rate(moments, x) - 1)
        points += _points(np.exp(x) * _bias_share(moments, rate, x), np.exp(x))
    points = sorted(point for point in points if point[0] > 0)
    tests = _between(np.array([b for b, _ in points]))
    below = _is_below(moments, np.full_like(tests, weight), tests)
    changes = np.flatnonzero(below[1:] != below[:-1])
    return points[changes[0]] if changes.size else (np.inf, np.inf)


def _limits(moments: Moments, bias: float) -> Array:
    """weight_var at which q* becomes infinite and, without bias, at which it becomes zero."""
    out = []
    if moments.growth == "linear":
        out.append(float(_rise(moments, GRID[-1:])[0]))
    if bias == 0:
        out.append(float(moments(np.zeros(1)).slope[0]))
    return np.array([1 / rate for rate in out if 0 < rate < np.inf])


def _slope(moments: Moments, log_q: Array) -> Array:
    """E[phi'²], whose inverse is the weight_var with chi_1 = 1."""
    return moments(np.exp(log_q)).slope


def _rise(moments: Moments, log_q: Array) -> Array:
    """d E[phi²]/dq, whose inverse is the weight_var at which V touches the diagonal."""
    q = np.exp(log_q)
    return moments(q).radial / q


RATES = (_slope, _rise)


def _bias_share(moments: Moments, rate: Rate, log_q: Array) -> Array:
    """bias_var / q where q is a fixed point and weight_var = 1/rate."""
    q = np.exp(log_q)
    with np.errstate(over="ignore"):  # without a rate there is no such fixed point: minus infinity
        return 1 - moments(q).second / q / np.maximum(rate(moments, log_q), TINY)


def _points(unknown: Array, q: Array) -> list[Point]:
    return list(zip(unknown.tolist(), q.tolist(), strict=True))


def _fixed_starts(moments: Moments) -> list[float]:
    """Initial variances weight_var + bias_var that the first layer does not change."""
    return [float(np.exp(x)) for x in _roots(lambda x: moments(np.exp(x)).second - 1)]


def _roots(function: Callable[..., Array]) -> Array:
    """All roots on the grid of log q."""
    values = function(GRID)
    sign = np.where(np.abs(values) > FLAT, np.sign(values), 0.0)
    _, low, high = sign_changes(sign[None])
    return find_roots(function, GRID[low], GRID[high])


def _is_below(moments: Moments, weight: Array, bias: Array) -> Mask:
    """Whether networks lie below the line: finite variance, nearby inputs converge."""
    state = PropagationState(moments, weight, bias)
    return (state.variance < np.inf) & (state.chi < 1)


def _first_end(points: list[Point], is_below: Callable[[Array], Mask]) -> Point:
    """The first point that separates networks below the line from networks above it."""
    points = sorted(point for point in points if 0 < point[0] <= MAX_VARIANCE)
    below = is_below(_between(np.array([w for w, _ in points])))
    ends = np.flatnonzero(below[:-1] & ~below[1:])
    if ends.size:
        return points[ends[0]]
    return (np.inf, np.inf) if below[0] else (0.0, 0.0)


def _between(values: Array) -> Array:
    """One value below, between and above each of these."""
    if not values.size:
        return np.ones(1)
    inner = np.sqrt(values[1:] * values[:-1])
    return np.concatenate([[values[0] / 2], inner, [values[-1] * 2]])
