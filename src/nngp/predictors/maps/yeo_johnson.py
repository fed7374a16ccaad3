"""The transformation of Yeo and Johnson (2000), its slope in the power, and the likeliest power.

With L = log(1 + |t|) and κ = λ where t >= 0, 2 - λ where t < 0, it is sign(t) (e^(κL) - 1) / κ.

`transforms` has it for targets: there one λ in [0, 2], so that every value has an inverse, and no
derivative. Here λ is learned, one for each column, with a form that has a derivative at κ = 0.
"""

import numpy as np
from scipy.optimize import minimize_scalar

from nngp._arrays import Array, Mask

POWERS = (-2.0, 4.0)  # bounds of λ
MOST = 700.0  # of an exponent: exp of it is 1e304


def transformed(t: Array, power: Array) -> tuple[Array, Array]:
    """The transformed values, and their derivatives in the power; `power` broadcasts with t."""
    size = np.log1p(np.abs(t))
    return from_logs(size, t < 0, power)


def from_logs(size: Array, negative: Mask, power: Array) -> tuple[Array, Array]:
    """The same from L and the sign, which a search computes once."""
    exponent = np.where(negative, 2.0 - power, power)
    y = np.minimum(exponent * size, MOST)
    grown = np.expm1(y)
    small = np.abs(y) < 1e-4
    safe = np.where(small, 1.0, y)
    value = size * np.where(small, 1.0 + y / 2 + y * y / 6, grown / safe)
    moved = np.where(small, 0.5 + y / 3 + y * y / 8, (y * (grown + 1.0) - grown) / (safe * safe))
    return np.where(negative, -value, value), size * size * moved


def likeliest_power(t: Array) -> float:
    """The power that makes t most like a normal sample (profile likelihood)."""
    size, negative = np.log1p(np.abs(t)), t < 0
    signed = float(np.where(negative, -size, size).sum())

    def loss(power: float) -> float:
        value, _ = from_logs(size, negative, np.full_like(t, power))
        spread = float(value.var())
        if not spread > 0:
            return np.inf
        return 0.5 * len(t) * float(np.log(spread)) - (power - 1.0) * signed

    return float(minimize_scalar(loss, bounds=POWERS, method="bounded").x)
