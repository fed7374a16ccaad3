"""One layer at one variance, as the curve needs it: deficits to relative precision.

Takes an activation and the variance q that all points share; gives a `Layer`, which maps
1 - |c| and the sign of c to F(q,q,1) - F(q,q,c) and its derivatives. Closed forms are evaluated
directly; other activations are interpolated (`fitted_layer`).
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np

from nngp._arrays import EPS, Array, Mask
from nngp.architecture import Activation
from nngp.architecture.activation import KernelMapOnly
from nngp.covariance.closed_form import closed_form
from nngp.covariance.fitted_layer import FittedLayer, by_sign
from nngp.covariance.form import ClosedForm, Parity
from nngp.covariance.kernel_map import kernel_map_layer


class Layer(Protocol):
    """F_phi at equal variances q; c is -(1 - m) where `negative`, otherwise 1 - m."""

    @property
    def second_moment(self) -> float:
        """F(q, q, 1)."""
        ...

    @property
    def radial_moment(self) -> float:
        """E[u phi'(u) phi(u)]."""
        ...

    @property
    def error(self) -> float:
        """Largest relative error of a deficit."""
        ...

    @property
    def surplus_error(self) -> float:
        """Largest relative error of a surplus."""
        ...

    @property
    def stretch(self) -> float:
        """d log deficit / d log q, by which an error of the variance reaches the deficit."""
        ...

    @property
    def parity(self) -> Parity:
        """Symmetry of phi."""
        ...

    def deficit(self, negative: Mask, m: Array) -> Array:
        """F(q, q, 1) - F(q, q, c)."""
        ...

    def surplus(self, m: Array) -> Array:
        """F(q, q, 1) + F(q, q, m - 1), for activations without symmetry."""
        ...

    def slope(self, negative: Mask, m: Array) -> Array:
        """E[phi'(u) phi'(v)]."""
        ...

    def deficit_in_var(self, negative: Mask, m: Array) -> Array:
        """Derivative of the deficit in q at fixed c."""
        ...


@lru_cache(maxsize=512)
def layer_at(activation: Activation, var: float) -> Layer:
    """The layer of `activation` at variance `var`; the last 512 are cached."""
    if isinstance(activation.fn, KernelMapOnly):
        return kernel_map_layer(activation.fn.dual, activation.fn.slope, var)
    if activation.closed_form is not None:
        return ClosedLayer(closed_form(activation.closed_form), var)
    fitted = FittedLayer(activation, var)
    return ConstantLayer(fitted.second_moment) if fitted.is_constant else fitted


def both_sides(layer: Layer, negative: Mask, m: Array) -> tuple[Array, Array]:
    """F(1) - F(c) and F(1) + F(c), each without cancellation where the activation allows it."""
    total = 2 * layer.second_moment
    if layer.parity == "odd":  # F(-c) = -F(c): near -1 the sum is the small one
        small = layer.deficit(np.zeros_like(negative), m)
        return np.where(negative, total - small, small), np.where(negative, small, total - small)
    if layer.parity == "even":
        negative = np.zeros_like(negative)
    deficit = layer.deficit(negative, m)
    plus = total - deficit
    if layer.parity == "none" and negative.any():
        plus[negative] = layer.surplus(m[negative])
    return deficit, plus


def _signed(negative: Mask, m: Array) -> Array:
    return np.where(negative, m - 1, 1 - m)


@dataclass(frozen=True)
class ClosedLayer:
    """A closed form at one variance."""

    form: ClosedForm
    var: float

    @property
    def error(self) -> float:
        return 4 * EPS * self.form.loss(self.var)

    @property
    def surplus_error(self) -> float:
        return self.error

    @cached_property
    def stretch(self) -> float:
        """Sampled at c = 0: exact for homogeneous activations, of the right size for others."""
        m, negative = np.ones(1), np.zeros(1, bool)
        change = self.var * self.deficit_in_var(negative, m) / self.deficit(negative, m)
        return float(change[0])

    @property
    def parity(self) -> Parity:
        return self.form.parity

    @cached_property
    def second_moment(self) -> float:
        return float(self.form.value(np, self.var, self.var, np.float64(1.0)))

    @cached_property
    def radial_moment(self) -> float:
        return float(self.form.radial(np, self.var, self.var, np.float64(1.0)))

    def deficit(self, negative: Mask, m: Array) -> Array:
        return by_sign(
            negative,
            m,
            # A power of a Python float raises where that of a NumPy one is inf.
            lambda m: self.form.deficit(np.float64(self.var), m),
            lambda m: self.second_moment - self.form.value(np, self.var, self.var, m - 1, m),
        )

    def surplus(self, m: Array) -> Array:
        if self.form.surplus is not None:
            return self.form.surplus(np.float64(self.var), m)
        return self.second_moment + self.form.value(np, self.var, self.var, m - 1, m)

    def slope(self, negative: Mask, m: Array) -> Array:
        c = _signed(negative, m)
        out = self.form.slope(np, self.var, self.var, c, m)
        return np.broadcast_to(out, m.shape)

    def deficit_in_var(self, negative: Mask, m: Array) -> Array:
        def far(m: Array) -> Array:
            return self.radial_moment - self.form.radial(np, self.var, self.var, m - 1, m)

        return by_sign(
            negative,
            m,
            lambda m: self.form.deficit_in_var(self.var, m),
            lambda m: far(m) / self.var,
        )


@dataclass(frozen=True)
class ConstantLayer:
    """Layer of an activation that is constant to rounding: its output ignores its input."""

    second_moment: float
    radial_moment: float = 0.0
    error: float = EPS
    surplus_error: float = EPS
    stretch: float = 0.0
    parity: Parity = "even"

    def deficit(self, negative: Mask, m: Array) -> Array:
        return np.zeros_like(m)

    slope = deficit_in_var = deficit

    def surplus(self, m: Array) -> Array:
        return np.full_like(m, 2 * self.second_moment)
