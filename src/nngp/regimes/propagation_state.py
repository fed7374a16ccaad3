"""Fixed point of signal propagation: its variance and correlation, slopes and depth scales.

Takes an activation and flat arrays of weight_var and bias_var; gives a `PropagationState` whose
properties are arrays. With q* the limit of the variance of a unit-variance input, the correlation
map is

    1 - c  ->  (weight_var / q*) [F(q*, 1) - F(q*, c)],

a power series in c with non-negative coefficients, hence convex on [0, 1]: c* = 1 exactly if its
slope there, chi_1 = weight_var E[phi'²], is at most 1; otherwise one root below 1 is stable. It is
computed as e = 1 - c, from deficits, so that c* near 1 is accurate.

Where q* is 0 or infinite the factor weight_var / q* is that of one layer, 1 / E[phi²]: the bias
is negligible. If phi is smooth and its variance vanishes, that map is the identity in the limit;
correlations no longer change, and c* = 1 (the limit of a small bias) is returned with an infinite
depth scale.
"""

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nngp._arrays import TINY, Array, Mask
from nngp.architecture import Activation
from nngp.errors import ToleranceWarning
from nngp.regimes.correlation import slopes, stable_correlations
from nngp.regimes.moments import HIGHEST, LOWEST, Moments, MomentValues, moments_of
from nngp.regimes.variance import limit_variance

CRITICAL = 1e-9  # |chi - 1| up to which a network counts as critical
ROUNDING = 1e-12  # of chi
AT_LIMIT = 1e-6  # of chi, at q* = 0 or infinity
ENDLESS = 1e40  # a slope beyond this is infinite in the limit
LIMITS = 1e-25, 1e25  # variances that represent 0 and infinity, whose powers stay within float64


@dataclass(frozen=True)
class PropagationState:
    """Fixed points of signal propagation for many networks with one activation."""

    moments: Moments
    weight: Array
    bias: Array

    @cached_property
    def variance(self) -> Array:
        """q*, which may be 0 or infinite."""
        return limit_variance(self.moments, self.weight, self.bias)

    @cached_property
    def is_finite(self) -> Mask:
        """Whether q* is neither 0 nor infinite."""
        return (self.variance > 0) & (self.variance < np.inf)

    @cached_property
    def chi(self) -> Array:
        """weight_var E[phi'(u)²] at q*; infinite where phi jumps."""
        return self._times_weight(self._at_fixed_point.slope)

    @cached_property
    def variance_slope(self) -> Array:
        """Slope V'(q*) of the variance map."""
        q = np.clip(self.variance, LOWEST, HIGHEST)
        return self._times_weight(self._at_fixed_point.radial / q)

    @cached_property
    def one_minus_correlation(self) -> Array:
        """1 - c*, to relative precision."""
        out = np.zeros_like(self.weight)
        out[self._is_chaotic] = self._below_one[0]
        return out

    @cached_property
    def chi_at_fixed_point(self) -> Array:
        """weight_var E[phi'(u) phi'(v)] at q* and c*."""
        out, which = self.chi.copy(), self._is_chaotic
        out[which] = self.weight[which] * self._below_one[1]
        return out

    @cached_property
    def correlation_slope(self) -> Array:
        """Slope of the correlation map at c*: chi there, where q* is finite."""
        out, which = self._slope_at_one.copy(), self._is_chaotic
        out[which] = (self._gain * self._layer_variance)[which] * self._below_one[1]
        return np.where(self._is_frozen, 1.0, out)

    @property
    def xi_q(self) -> Array:
        """Depth scale of the variance."""
        return _depth(np.abs(self.variance_slope))

    @property
    def xi_c(self) -> Array:
        """Depth scale of the correlation."""
        return _depth(self.correlation_slope)

    @property
    def phase(self) -> NDArray[np.str_]:
        """Name of the phase."""
        saturates = self.moments.growth == "sublinear"
        conditions = [
            np.abs(self.chi - 1) <= CRITICAL,
            ~self.is_finite & (not saturates),
            self.chi > 1,
        ]
        names = ["critical", "unbounded", "chaotic"]
        return np.select(conditions, names, "ordered" if saturates else "bounded")

    def slope_at(self, corr: float) -> Array:
        """weight_var E[phi'(u) phi'(v)] at q* and a given correlation."""
        if corr == 1:
            return self.chi
        return self._times_weight(slopes(self.moments.activation, self._layer_variance, corr))

    def _times_weight(self, values: Array) -> Array:
        """weight_var times a moment; 0 or infinity beyond ENDLESS."""
        out = np.multiply(self.weight, values, where=self.weight > 0, out=np.zeros_like(values))
        out[np.abs(out) < 1 / ENDLESS] = 0.0
        out[np.abs(out) > ENDLESS] = np.inf
        return out

    @cached_property
    def _at_fixed_point(self) -> MomentValues:
        return self.moments(self.variance)

    @cached_property
    def _layer_variance(self) -> Array:
        """q*, or for q* = 0 or infinity a variance at which a layer is near its limit."""
        low, high = LOWEST**0.25, self.moments.highest_layer
        return np.where(self.is_finite, self.variance, np.where(self.variance > 0, high, low))

    @cached_property
    def _gain(self) -> Array:
        """Factor from the deficit of a layer to 1 - c in the next."""
        q = self._layer_variance
        limit = 1 / np.maximum(self.moments(q).second, TINY)
        return np.where(self.is_finite, self.weight / q, limit)

    @cached_property
    def _slope_at_one(self) -> Array:
        """Slope of the correlation map at c = 1."""
        q = np.clip(self.variance, *LIMITS)
        at = self.moments(q)
        limit = at.slope * q / np.maximum(at.second, TINY)
        # Without weights chi is 0: all inputs have the same output.
        return np.where(self.is_finite | (self.weight == 0), self.chi, limit)

    @cached_property
    def _is_chaotic(self) -> Mask:
        return self._slope_at_one > 1 + np.where(self.is_finite, ROUNDING, AT_LIMIT)

    @cached_property
    def _is_frozen(self) -> Mask:
        """At q* = 0 or infinity: whether the limiting map is the identity near 1."""
        return ~self.is_finite & (np.abs(self._slope_at_one - 1) <= AT_LIMIT)

    @cached_property
    def _below_one(self) -> tuple[Array, Array]:
        """1 - c* and E[phi'(u) phi'(v)] there, of the networks with c* < 1."""
        which = self._is_chaotic
        q, gain = self._layer_variance[which], self._gain[which]
        return stable_correlations(self.moments.activation, q, gain)


def propagation_state(activation: Activation, weight: Array, bias: Array) -> PropagationState:
    """The fixed points of networks with these variances (flat arrays); warns if extrapolated."""
    state = PropagationState(moments_of(activation), weight, bias)
    largest = state.moments.valid_up_to
    if np.any(state.variance > largest):
        warnings.warn(
            f"the variance grows beyond {largest:.2g}, up to where the moments of activation "
            f"'{activation.name}' could be integrated; results there are extrapolated, and "
            "the extrapolation could not be validated",
            ToleranceWarning,
            stacklevel=4,
        )
    return state


def _depth(slope: Array) -> Array:
    """1 / |log slope|, which is inf where the slope is 1 and 0 where it is 0 or infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.abs(np.log(slope))
        return np.where(np.abs(slope - 1) <= CRITICAL, np.inf, 1 / rate)
