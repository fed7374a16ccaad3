"""The recursion of eq. 5 over the layers, for inputs of equal variance.

Takes an architecture, the input variance and correlations as (sign, m = 1 - |c|); gives the state
of each layer in turn. The state holds not K but the deficit D = K(1) - K(c) and, from it, the next
m: both keep their relative precision at any depth, because nothing is subtracted from 1. Error
bounds are propagated too. For c >= 0, D is concave in e = 1 - c, so a layer never amplifies the
relative error of e; for c < 0 the same holds of 1 + c. So the error of a deep curve is about the
sum of its layers' errors.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from nngp._arrays import EPS, TINY, Array, Mask
from nngp.architecture import Activation, Architecture
from nngp.covariance import Layer, both_sides, layer_at
from nngp.errors import VarianceError

SMALLEST = 1e-290  # variance: with a smaller one deficits would underflow
LARGEST = 1e290  # with a larger one the tables would overflow


Item = TypeVar("Item")


@dataclass(frozen=True)
class LayerState:
    """K(1), the deficit K(1) - K(c), and the correlation as a sign and 1 - |c|, of one layer."""

    variance: float
    deficit: Array
    negative: Mask
    m: Array
    variance_error: float  # relative
    e_error: float  # of e = deficit / variance, relative

    @property
    def error(self) -> float:
        """Error of K relative to the variance."""
        e = np.max(self.deficit, initial=0.0) / self.variance if self.variance > 0 else 0.0
        return self.variance_error + float(e) * self.e_error


def propagate(
    architecture: Architecture, input_var: float, negative: Mask, m: Array
) -> Iterator[LayerState]:
    """Yield the states of layers 0 .. depth, for ever at infinite depth."""
    maps = architecture.affine_maps()
    weight, bias = next(maps)
    _checked(bias + weight * input_var, 0, input_var)
    deficit = weight * input_var * np.where(negative, 2 - m, m)
    total = weight * input_var * np.where(negative, m, 2 - m)
    state = _state(bias, weight * input_var, deficit, total, _START)
    yield state
    for depth, (weight, bias) in enumerate(maps, start=1):
        state = _step(architecture.activation, weight, bias, depth, state)
        yield state


def after(items: Iterator[Item], layers: int) -> Item:
    """The item that the iterator yields after `layers` others."""
    for _ in range(layers):
        next(items)
    return next(items)


def output_variance(architecture: Architecture, input_var: float) -> float:
    """K^L(x, x), without the recursion over correlations; equal to the bit to `propagate`."""
    maps = architecture.affine_maps()
    weight, bias = next(maps)
    variance = _checked(bias + weight * input_var, 0, input_var)
    for depth, (weight, bias) in enumerate(maps, start=1):
        if variance > 0:
            moment = layer_at(architecture.activation, variance).second_moment
        else:
            moment = float(architecture.activation(np.zeros(1))[0] ** 2)
        with np.errstate(over="ignore"):
            variance = _checked(bias + weight * moment, depth, variance)
    return variance


def _step(
    phi: Activation, weight: float, bias: float, depth: int, before: LayerState
) -> LayerState:
    """The state of layer `depth` from the one before it."""
    if before.variance == 0:  # every input is zero, so every unit is phi(0)
        moment = weight * float(phi(np.zeros(1))[0] ** 2)
        nothing = np.zeros_like(before.m)
        return _state(bias, moment, nothing, nothing + 2 * moment, _START)
    layer = layer_at(phi, before.variance)
    with np.errstate(over="ignore", under="ignore"):
        moment = weight * layer.second_moment
        _checked(bias + moment, depth, before.variance)
        deficit, total = both_sides(layer, before.negative, before.m)
        errors = _errors(layer, before, moment / (bias + moment) if moment > 0 else 0.0)
        return _state(bias, moment, weight * deficit, weight * total, errors)


class _Errors(NamedTuple):
    variance: float
    e: float


_START = _Errors(2 * EPS, 4 * EPS)


def _errors(layer: Layer, before: LayerState, share: float) -> _Errors:
    """Relative errors after a layer; `share` is the part of the variance that is not bias."""
    gain = layer.radial_moment / max(layer.second_moment, TINY)  # d log F / d log q
    variance = share * (abs(gain) * before.variance_error + layer.error) + EPS
    # An error of q changes deficit and variance in proportion; only the difference reaches e.
    unbalanced = abs(layer.stretch - share * gain) * before.variance_error
    own = layer.surplus_error if layer.parity == "none" else layer.error
    return _Errors(variance, before.e_error + unbalanced + own + 2 * EPS)


def _state(bias: float, moment: float, deficit: Array, total: Array, errors: _Errors) -> LayerState:
    """The state from weight_var times F(1), F(1) - F(c) and F(1) + F(c)."""
    variance = bias + moment
    if variance == 0:
        return LayerState(
            0.0, deficit, np.zeros(deficit.shape, bool), np.zeros_like(deficit), *errors
        )
    to_one, to_minus_one = deficit / variance, (2 * bias + total) / variance
    negative = to_one > 1
    m = np.minimum(np.where(negative, to_minus_one, to_one), 1.0)
    return LayerState(variance, deficit, negative, m, *errors)


def _checked(variance: float, depth: int, before: float) -> float:
    """The variance of a layer; VarianceError outside the range of float64, unless it is 0."""
    if not variance < LARGEST or (variance < SMALLEST and before > 0):
        fewer = "a smaller depth, or " if depth > 1 else ""
        raise VarianceError(
            f"the variance of layer {depth} is {variance:.3g}, past the range of float64; use "
            f"{fewer}a weight_var nearer to where the variance stays put"
        )
    return variance


@dataclass(frozen=True)
class Tangents:
    """Derivatives of one layer's K(1) and deficit, in e = 1 - c and in each parameter."""

    variance: Array  # (parameters,)
    deficit: Array  # (parameters, nodes)
    slope: Array  # (nodes,)


def propagate_tangents(
    architecture: Architecture, input_var: float, negative: Mask, m: Array, *, per_layer: bool
) -> Iterator[tuple[LayerState, Tangents]]:
    """Yield the states of `propagate` with their derivatives, by forward mode.

    Parameters are (weight_var, bias_var), or with `per_layer` the weight_var of layers
    0 .. depth followed by their bias_var. At infinite depth `per_layer` must be False.
    """
    layers = len(architecture.weight_vars) if per_layer else 1
    e = np.where(negative, 2 - m, m)
    d_variance, d_deficit = np.zeros(2 * layers), np.zeros((2 * layers, len(m)))
    d_variance[0], d_variance[layers] = input_var, 1.0
    d_deficit[0] = input_var * e
    states, maps = propagate(architecture, input_var, negative, m), architecture.affine_maps()
    slope = np.full_like(m, next(maps)[0] * input_var)
    tangents, before = Tangents(d_variance, d_deficit, slope), next(states)
    yield before, tangents
    for depth, (state, (weight, _)) in enumerate(zip(states, maps, strict=True), start=1):
        index = depth if per_layer else 0
        tangents = _step_tangents(architecture.activation, weight, before, tangents, index)
        yield state, tangents
        before = state


def _step_tangents(
    phi: Activation, weight: float, before: LayerState, tangents: Tangents, index: int
) -> Tangents:
    if before.variance == 0:
        raise VarianceError("derivatives need a positive variance in every layer")
    layer = layer_at(phi, before.variance)
    deficit, _ = both_sides(layer, before.negative, before.m)
    local = layer.slope(before.negative, before.m)  # E[phi'(u) phi'(v)]
    in_var = layer.deficit_in_var(before.negative, before.m)
    e, column = before.deficit / before.variance, tangents.variance[:, None]
    # D' = w Delta(q, e), e = D/q: dD' = dw Delta + w (q slope de + Delta_q dq)
    d_deficit = weight * (local * (tangents.deficit - e * column) + in_var * column)
    d_variance = weight * layer.radial_moment / before.variance * tangents.variance
    d_deficit[index] += deficit
    d_variance[index] += layer.second_moment
    d_variance[len(d_variance) // 2 + index] += 1.0
    with np.errstate(over="ignore"):  # infinite at c = ±1 where phi jumps: large but finite
        slope = np.minimum(weight * local * tangents.slope, np.finfo(float).max)
    return Tangents(d_variance, d_deficit, slope)
