"""The recursion of eq. 5 for inputs of any norms: variances of points, correlations of pairs."""

from typing import Any

import numpy as np

from nngp._arrays import EPS, Array
from nngp._safe import correlation
from nngp.architecture import Architecture
from nngp.covariance import closed_form, second_moment
from nngp.curve import SMALLEST
from nngp.errors import VarianceError

SNAP = 1 - 8 * EPS  # correlations beyond are those of parallel inputs


def layer_variances(architecture: Architecture, input_var: Array) -> list[Array]:
    """K^l(x, x) of every point for l = 0 .. depth."""
    phi, weights, biases = architecture.activation, architecture.weight_vars, architecture.bias_vars
    with np.errstate(over="ignore"):
        out = [_checked(biases[0] + weights[0] * input_var, 0, input_var)]
    for layer, (weight, bias) in enumerate(zip(weights[1:], biases[1:], strict=True), start=1):
        if phi.closed_form is not None:
            form = closed_form(phi.closed_form)
            moment = np.asarray(form.value(np, out[-1], out[-1], np.where(out[-1] > 0, 1.0, 0.0)))
        else:
            moment = second_moment(phi, out[-1])
        with np.errstate(over="ignore"):
            out.append(_checked(bias + weight * moment, layer, out[-1]))
    return out


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
