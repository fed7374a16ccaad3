"""E[phi'(u) phi'(v)] as a layer of its own, that of the activation phi'.

The tangent kernel multiplies by it in every layer (`architecture/walk.py`), so its deficits must be
as exact as those of phi: near correlation 1 they are what tells inputs apart. As it is the
covariance of phi' instead of phi, all that is known of layers holds for it: closed forms, fits,
errors and derivatives. Derivatives of named activations are written down; that of a user's function
is the derivative of its piecewise polynomial (`resolve`).
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy import special

from nngp._arrays import Array
from nngp.architecture import Activation, as_activation
from nngp.architecture.activation import (
    SELU_ALPHA,
    SELU_SCALE,
    KernelMapOnly,
    Scaled,
    leaky_step,
)
from nngp.covariance.closed_form import closed_form
from nngp.covariance.kernel_map import without_slope
from nngp.covariance.layer import Layer, layer_at
from nngp.covariance.resolve import SlopeFunction, infinite_slope, resolve


@lru_cache(maxsize=512)
def derivative_layer(activation: Activation, var: float) -> Layer:
    """E[phi'(u) phi'(v)] at variance `var`; ActivationError if phi jumps: it is infinite then."""
    return layer_at(derivative_of(activation, var), var)


def at_zero(activation: Activation) -> float:
    """phi(0)², the covariance of units without variance."""
    if isinstance(activation.fn, KernelMapOnly):
        zero = np.zeros(())
        return float(closed_form(activation.closed_form).value(np, zero, zero, zero))
    return float(activation(np.zeros(1))[0] ** 2)


def derivative_of(activation: Activation, var: float) -> Activation:
    """phi', or its negative; ActivationError if phi jumps up to `var`."""
    phi = activation
    if isinstance(phi.fn, KernelMapOnly):
        if phi.fn.slope is None:
            raise without_slope(phi.name)
        return Activation.from_dual(phi.fn.slope, name=f"{phi.name}'")
    if phi.spec is None:
        return _numeric(phi, var)
    if phi.closed_form is not None and phi.closed_form[0] == "polynomial":
        slope = np.polynomial.Polynomial(phi.closed_form[1]).deriv()
        return Activation.polynomial(slope.coef.tolist())
    if phi.closed_form is not None and phi.closed_form[0] == "leaky_relu":
        return leaky_step(*phi.closed_form[1:])
    if isinstance(phi.fn, Scaled):
        own = phi.fn
        inner = derivative_of(own.activation, var)
        return Activation.scaled(inner, own.a * own.b, own.b, own.c)
    if phi.name in ("sign", "step"):
        raise infinite_slope(phi)
    return _NAMED[phi.name]


def _numeric(activation: Activation, var: float) -> Activation:
    """phi' of a user's function, if it has no jumps up to a variance.

    By itself it is that of variances up to 1; `resolve` has the one for another variance. So it
    never depends on the largest variance of a batch.
    """
    if any(resolve(activation, var).jumps):
        raise infinite_slope(activation)
    slope = SlopeFunction(activation, 1.0)
    return Activation(slope, f"{activation.name}'", activation.kinks, activation.features)


def _density(x: Array) -> Array:
    return np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi)


def _gelu(x: Array) -> Array:
    return np.asarray(special.ndtr(x) + x * _density(x))


def _gaussian(x: Array) -> Array:
    return x * np.exp(-(x**2))


def _tanh(x: Array) -> Array:
    return 1.0 / np.cosh(np.clip(x, -350.0, 350.0)) ** 2


def _sigmoid(x: Array) -> Array:
    return np.asarray(special.expit(x) * special.expit(-x))


def _silu(x: Array) -> Array:
    return np.asarray(special.expit(x) * (1 + x * special.expit(-x)))


def _elu(x: Array) -> Array:
    return np.exp(np.minimum(x, 0.0))


def _selu(x: Array) -> Array:
    return SELU_SCALE * np.where(x > 0, 1.0, SELU_ALPHA * np.exp(np.minimum(x, 0.0)))


def _hard_tanh(x: Array) -> Array:
    return np.where(np.abs(x) < 1, 1.0, 0.0)


def _relu6(x: Array) -> Array:
    return np.where((x > 0) & (x < 6), 1.0, 0.0)


def _own(fn: Callable[[Array], Array], kinks: tuple[float, ...] = ()) -> Activation:
    return Activation(fn, f"{fn.__name__[1:]}'", kinks)


_scaled = Activation.scaled

_NAMED: dict[str, Activation] = {
    "relu2": _scaled("relu", 2.0),
    "relu3": _scaled("relu2", 3.0),
    "erf": _scaled("gaussian", 2 / np.sqrt(np.pi)),
    "gelu": _own(_gelu),
    "sin": as_activation("cos"),
    "cos": as_activation("sin"),
    "exp": as_activation("exp"),
    "gaussian": _scaled(_own(_gaussian), 2.0),
    "tanh": _own(_tanh),
    "sigmoid": _own(_sigmoid),
    "silu": _own(_silu),
    "softplus": as_activation("sigmoid"),
    "elu": _own(_elu, (0.0,)),
    "selu": _own(_selu, (0.0,)),
    "hard_tanh": _own(_hard_tanh, (-1.0, 1.0)),
    "relu6": _own(_relu6, (0.0, 6.0)),
}
