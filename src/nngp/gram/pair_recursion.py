"""Inputs of any norms: the variances of every point, and correlations of pairs."""

from typing import Any

import numpy as np

from nngp._arrays import EPS, Array
from nngp._safe import correlation
from nngp.architecture import Activation, Network
from nngp.architecture.graph import Affine
from nngp.covariance import closed_form, derivative_of, second_moment
from nngp.curve import SMALLEST, NodeVariance, node_variances
from nngp.errors import VarianceError

SNAP = 1 - 8 * EPS  # correlations beyond are those of parallel inputs


def point_variances(network: Network, input_var: Array) -> list[NodeVariance]:
    """K(x, x), and Θ(x, x) of a tangent kernel, of every point: of the input and of each node."""
    return node_variances(network, input_var, moments, slope_moments, _checked)


def layer_variances(network: Network, input_var: Array) -> list[Array]:
    """K^l(x, x) of every point behind each affine map."""
    behind = zip(network.graph, point_variances(network, input_var)[1:], strict=True)
    return [found.cov for node, found in behind if isinstance(node, Affine)]


def moments(phi: Activation, var: Array) -> Array:
    """E[phi²] at each variance."""
    if phi.closed_form is None:
        return second_moment(phi, var)
    form = closed_form(phi.closed_form)
    return np.asarray(form.value(np, var, var, np.where(var > 0, 1.0, 0.0)))


def slope_moments(phi: Activation, var: Array) -> Array:
    """E[phi'²] at each variance."""
    factor, slope = derivative_of(phi, float(var.max(initial=1e-300)))
    return factor * (np.ones_like(var) if slope is None else moments(slope, var))


def _checked(var: Array, layer: int, before: Array) -> Array:
    """The variances of a layer; VarianceError outside the range of float64."""
    lost = (var < SMALLEST) & (before > 0) | ~np.isfinite(var)
    if lost.any():
        remedy = "use a smaller depth, or a weight_var nearer to where the variance stays put"
        raise VarianceError(
            f"the variance of layer {layer} is {var[lost][0]:.3g} for input "
            f"{int(np.argmax(lost))}, past the range of float64; "
            f"{remedy if layer else 'rescale the inputs, or use another weight_var'}"
        )
    return var


def snapped_correlation(xp: Any, cov: Any, q1: Any, q2: Any) -> Any:
    """The correlation, exactly ±1 for parallel inputs: rounding alone keeps them from it, and an
    activation that jumps would see the root of that."""
    corr = correlation(xp, cov, q1, q2)
    return xp.where(xp.abs(corr) > SNAP, xp.sign(corr), corr)
