"""E[phi'(u) phi'(v)] as a layer of its own, that of the activation phi'.

The tangent kernel multiplies by it in every layer (`architecture/walk.py`), so its deficits must be
as exact as those of phi: near correlation 1 they are what tells inputs apart. As it is the
covariance of phi' instead of phi, all that is known of layers holds for it: closed forms, fits,
errors and derivatives. Derivatives of named activations are written down; that of a user's function
is the derivative of its piecewise polynomial (`resolve`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from nngp._arrays import Array, Mask
from nngp.architecture import Activation, as_activation, spec_of
from nngp.architecture.activation import SELU_ALPHA, SELU_SCALE, leaky_step
from nngp.covariance.form import Parity
from nngp.covariance.layer import ConstantLayer, Layer, layer_at
from nngp.covariance.resolve import SlopeFunction, infinite_slope, resolve


@lru_cache(maxsize=512)
def derivative_layer(activation: Activation, var: float) -> Layer:
    """E[phi'(u) phi'(v)] at variance `var`; ActivationError if phi jumps: it is infinite then."""
    factor, phi = derivative_of(activation, var)
    if phi is None:
        return ConstantLayer(factor)
    return ScaledLayer(layer_at(phi, var), factor)


def derivative_at_zero(activation: Activation) -> float:
    """phi'(0)²."""
    factor, phi = derivative_of(activation, 1.0)
    return factor if phi is None else factor * float(phi(np.zeros(1))[0] ** 2)


def derivative_of(activation: Activation, var: float) -> tuple[float, Activation | None]:
    """A factor and an activation: phi'² is the factor times the square of the activation. The
    activation is None where phi' is constant. ActivationError if phi jumps up to `var`."""
    try:
        spec = spec_of(activation)
    except ValueError:
        return 1.0, _numeric(activation, var)
    if isinstance(spec, list):
        return 1.0, leaky_step(spec[1])
    if spec in ("sign", "step"):
        raise infinite_slope(activation)
    return _NAMED[spec]


def _numeric(activation: Activation, var: float) -> Activation:
    """phi' of a user's function, if it has no jumps up to a variance.

    By itself it is that of variances up to 1; `resolve` has the one for another variance. So it
    never depends on the largest variance of a batch.
    """
    if any(resolve(activation, var).jumps):
        raise infinite_slope(activation)
    slope = SlopeFunction(activation, 1.0)
    return Activation(slope, f"{activation.name}'", activation.kinks, activation.features)


@dataclass(frozen=True)
class ScaledLayer:
    """A layer times a number."""

    layer: Layer
    factor: float

    @property
    def second_moment(self) -> float:
        return self.factor * self.layer.second_moment

    @property
    def radial_moment(self) -> float:
        return self.factor * self.layer.radial_moment

    @property
    def error(self) -> float:
        return self.layer.error

    @property
    def surplus_error(self) -> float:
        return self.layer.surplus_error

    @property
    def stretch(self) -> float:
        return self.layer.stretch

    @property
    def parity(self) -> Parity:
        return self.layer.parity

    def deficit(self, negative: Mask, m: Array) -> Array:
        return self.factor * self.layer.deficit(negative, m)

    def surplus(self, m: Array) -> Array:
        return self.factor * self.layer.surplus(m)

    def slope(self, negative: Mask, m: Array) -> Array:
        return self.factor * self.layer.slope(negative, m)

    def deficit_in_var(self, negative: Mask, m: Array) -> Array:
        return self.factor * self.layer.deficit_in_var(negative, m)


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


_NAMED: dict[str, tuple[float, Activation | None]] = {
    "identity": (1.0, None),
    "square": (4.0, as_activation("identity")),
    "cube": (9.0, as_activation("square")),
    "relu": (1.0, as_activation("step")),
    "relu2": (4.0, as_activation("relu")),
    "relu3": (9.0, as_activation("relu2")),
    "abs": (1.0, as_activation("sign")),
    "erf": (4 / np.pi, as_activation("gaussian")),
    "gelu": (1.0, _own(_gelu)),
    "sin": (1.0, as_activation("cos")),
    "cos": (1.0, as_activation("sin")),
    "gaussian": (4.0, _own(_gaussian)),
    "tanh": (1.0, _own(_tanh)),
    "sigmoid": (1.0, _own(_sigmoid)),
    "silu": (1.0, _own(_silu)),
    "softplus": (1.0, as_activation("sigmoid")),
    "elu": (1.0, _own(_elu, (0.0,))),
    "selu": (1.0, _own(_selu, (0.0,))),
    "hard_tanh": (1.0, _own(_hard_tanh, (-1.0, 1.0))),
    "relu6": (1.0, _own(_relu6, (0.0, 6.0))),
}
