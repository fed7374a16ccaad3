"""Composition of all layers into one function of the cosine, for inputs of equal norm.

Takes a network, the input variance x·x/d and a tolerance; gives an `AngularCurve`. The
recursion runs once, at the nodes of the octaves and at test points between them. The test points
measure the error of the interpolation; the recursion propagates a bound on its rounding.
"""

import warnings
from dataclasses import replace
from functools import lru_cache

import numpy as np

from nngp._arrays import TINY, Array, Mask
from nngp.architecture import Architecture, Network
from nngp.architecture.flow import coarsened
from nngp.curve import octaves
from nngp.curve.angular_curve import AngularCurve
from nngp.curve.deficits import SMALLEST, LayerState, after, output_state, propagate
from nngp.curve.limit import find_limit, in_units_of_scale
from nngp.errors import ToleranceWarning

OCTAVES = (56, 112, 224, 448, octaves.DEEPEST)  # tried in turn
FAST_ERROR = 2.3e-13  # of the cubics in FastTable: 4 rho^-4 with rho = 2^11, a bound


def compile_curve(network: Network, input_var: float = 1.0, *, tol: float = 1e-12) -> AngularCurve:
    """Compose all layers into one function of the cosine.

    Parameters
    ----------
    network : Network
        An `Architecture`, a network of parts, or an `NTK`.
    input_var : float
        x·x/d of every input; 1 after `nngp.normalize`.
    tol : float
        Error, relative to the variance, above which a `ToleranceWarning` is given. The error
        itself is in `.error`; it does not depend on `tol`.

    Returns
    -------
    AngularCurve

    Notes
    -----
    Cost: one recursion at a few thousand nodes, for any number of data points.

    Examples
    --------
    >>> import nngp
    >>> curve = nngp.curves.compile_curve(nngp.Architecture(2, "relu", 2.0, 0.0))
    >>> round(curve.variance, 12), round(float(curve(0.0)), 6)
    (2.0, 0.987462)
    """
    if network.base is not network:
        raise TypeError(
            f"the kernel of an nngp.{type(network).__name__} is no function of the cosine; "
            "compile the curve of its network"
        )
    curve = curve_at(network, input_var)
    _report(curve, tol)
    return curve


def compile_curves(
    network: Architecture, input_var: float = 1.0, *, tol: float = 1e-12
) -> tuple[AngularCurve, ...]:
    """Compile the curves of depth 0, 1, ..., depth in one pass over the layers.

    Parameters
    ----------
    network : Architecture
        Of finite depth.
    input_var, tol : float
        As for `compile_curve`.

    Returns
    -------
    tuple of AngularCurve
        depth + 1 curves.

    Examples
    --------
    >>> import nngp
    >>> curves = nngp.curves.compile_curves(nngp.Architecture(3, "relu", 2.0, 0.0))
    >>> [curve.network.depth for curve in curves]
    [0, 1, 2, 3]
    """
    if not isinstance(network, Architecture):
        raise TypeError(
            "compile_curves takes an nngp.Architecture, whose layers are alike; use "
            "nngp.curves.compile_curve for a network of another shape"
        )
    _ = network.weight_vars  # raises ValueError at infinite depth
    curves = _compile(network, _check_input_var(input_var), every=True)
    _report(max(curves, key=lambda curve: curve.error), tol)
    return curves


def curve_at(network: Network, input_var: float) -> AngularCurve:
    """`compile_curve` without its warning; of an average over transformations the curve of its
    network."""
    if network.base.planes is not None:
        raise TypeError(
            "the kernel of a network of images is no function of the cosine of two inputs, so it "
            "has no curve; compute it by nngp.kernel"
        )
    return _compile(network.base, _check_input_var(input_var), every=False)[-1]


def _check_input_var(input_var: float) -> float:
    input_var = float(input_var)
    if not np.isfinite(input_var) or input_var < 0:
        raise ValueError(f"input_var must be finite and not negative, got {input_var}")
    return input_var


def _report(curve: AngularCurve, tol: float) -> None:
    if not curve.error <= tol:
        warnings.warn(
            f"{curve.network!r} reached an error of {curve.error:.1e} of the variance, not "
            f"{tol:.1e}",
            ToleranceWarning,
            stacklevel=3,
        )


@lru_cache(maxsize=64)
def _compile(network: Network, input_var: float, every: bool) -> tuple[AngularCurve, ...]:
    """The curve of the whole depth or, with `every`, of each depth up to it."""
    found = find_limit(network, input_var) if network.is_infinite else None
    for count in OCTAVES:
        tests = _test_points(count)
        negative, m = _with_tests(count, tests)
        if found is not None:
            state = after(propagate(network, input_var, negative, m), found.layers)
            state = in_units_of_scale(state, found)
            more = found.offset, found.layers
            results = [_curve_at(network, input_var, state, tests, *more)]
        elif every and isinstance(network, Architecture):
            states = enumerate(propagate(network, input_var, negative, m))
            results = [
                _curve_at(network.truncated(depth), input_var, state, tests)
                for depth, state in states
            ]
        else:
            state = output_state(network, input_var, negative, m)
            if (coarse := coarsened(network)) is not None:
                state = _with_step_error(state, output_state(coarse, input_var, negative, m))
            results = [_curve_at(network, input_var, state, tests)]
        if max(shortfall for _, shortfall in results) <= 1e-12:
            break
    return tuple(curve for curve, _ in results)


def _with_step_error(state: LayerState, coarse: LayerState) -> LayerState:
    """A state with the error of its `ContinuousResidual`s, from that of half their steps."""
    variance = abs(coarse.variance / state.variance - 1) / 15 if state.variance > 0 else 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.where(state.e > SMALLEST, np.abs(coarse.e / state.e - 1), 0.0)
    return replace(
        state,
        variance_error=state.variance_error + variance,
        e_error=state.e_error + float(moved.max(initial=0.0)) / 15,
    )


def _test_points(count: int) -> tuple[Mask, Array, Mask]:
    """Signs and m of points between the nodes and below the last octave, and a mask of the latter.

    The last point has c = 0.
    """
    rng = np.random.default_rng(0)
    inside = np.exp2(-np.arange(count) - rng.uniform(0.05, 0.95, (2, count)))
    below = np.exp2(-count - np.array([0.5, 1.5, 4.0, 15.0, 60.0, 250.0]))
    below = np.maximum(below, 4 * TINY)
    m = np.concatenate([inside.ravel(), below, below, [1.0]])
    negative = np.repeat([False, True, False, True, False], [count, count, *[len(below)] * 2, 1])
    index = np.arange(len(m))
    return negative, m, (index >= 2 * count) & (index < len(m) - 1)


def _with_tests(count: int, tests: tuple[Mask, Array, Mask]) -> tuple[Mask, Array]:
    negative, m = octaves.nodes(count)
    return np.concatenate([negative, tests[0]]), np.concatenate([m, tests[1]])


def _curve_at(
    network: Network,
    input_var: float,
    state: LayerState,
    tests: tuple[Mask, Array, Mask],
    offset: float | None = None,
    layers: int | None = None,
) -> tuple[AngularCurve, float]:
    """The curve of one depth, and the relative error of its power law below the last octave."""
    negative, m, is_below = tests
    at_nodes, exact = np.split(state.deficit, [-len(m)])
    deficits = octaves.from_values(at_nodes)
    difference = np.abs(deficits(negative, m) - exact)
    scale = state.variance if state.variance > 0 else 1.0
    measured = float(difference.max()) / scale
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(exact > SMALLEST, difference / exact, 0.0)
    error = measured + state.error + FAST_ERROR
    deficit_error = float(relative.max()) + state.e_error + state.variance_error + FAST_ERROR
    curve = AngularCurve(
        network, input_var, state.variance, deficits, error, deficit_error, offset, layers
    )
    return curve, float(relative[is_below].max())
