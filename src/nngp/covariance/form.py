"""The expectations of one activation in closed form, as one record.

For u, v of variances q1, q2 and correlation c a form has

    value    E[phi(u) phi(v)]                   (eq. 5's F_phi)
    slope    E[phi'(u) phi'(v)]                 (dF / d covariance, the NTK's dual)
    radial   E[u phi'(u) phi(v)]                (2 q1 dF/dq1 at fixed c)
    deficit  F(q, q, 1) - F(q, q, 1 - m)        for 0 <= m <= 1, to relative precision
    deficit_in_var, its derivative in q         likewise

The first three are written once over the array namespace `xp`, for NumPy and JAX, and use
m = 1 - |c| where the caller knows it better than c. The curve composes deficits; they are computed
without subtracting large numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from nngp._arrays import Array, Floats, Namespace

TWO_OVER_PI = 2.0 / np.pi
Parity = Literal["odd", "even", "none"]
Deficit = Callable[[float, Array], Array]  # of a variance, and m = 1 - c
Rates = tuple[Floats, Floats, Floats]  # the slope, the radial in q1, the radial in q2


class Expectation(Protocol):
    """An expectation over u and v of variances q1, q2 and correlation c, with m = 1 - |c|."""

    def __call__(
        self, xp: Namespace, q1: Floats, q2: Floats, c: Floats, m: Floats = None, /
    ) -> Floats:
        """Evaluate it elementwise."""
        ...


@dataclass(frozen=True)
class ClosedForm:
    """The expectations of one activation, and its symmetry under x -> -x."""

    value: Expectation
    slope: Expectation
    radial: Expectation
    deficit: Deficit
    deficit_in_var: Deficit
    parity: Parity = "none"
    loss: Callable[[float], float] = lambda var: 1.0  # factor by which rounding grows
    # F(q, q, 1) + F(q, q, m - 1) where plain addition would cancel (phi nearly odd)
    surplus: Deficit | None = None
    # slope and both radials at once, where they share work
    together: Callable[[Namespace, Floats, Floats, Floats], Rates] | None = None

    @property
    def is_steep(self) -> bool:
        """Whether phi jumps, so that its slope is infinite where inputs coincide."""
        near, further = self.deficit(1.0, np.array([1e-200, 4e-200]))
        return bool(further < 3 * near)  # the deficit starts like sqrt(m) there, otherwise like m

    def rates(self, xp: Namespace, q1: Floats, q2: Floats, c: Floats) -> Rates:
        """The slope, the radial in q1, and the radial in q2."""
        if self.together is not None:
            return self.together(xp, q1, q2, c)
        return self.slope(xp, q1, q2, c), self.radial(xp, q1, q2, c), self.radial(xp, q2, q1, c)


def scale(xp: Namespace, q1: Floats, q2: Floats) -> Floats:
    """sqrt(q1 q2), without overflow of the product."""
    return xp.sqrt(q1) * xp.sqrt(q2)
