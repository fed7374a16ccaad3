"""The kernel as a constant and a remainder, so that depth costs no information.

With depth all inputs become alike: K = v 11ᵀ - D, where D shrinks until v - D is v in float64. The
information is in D, which the curve keeps to relative precision. So K is written as

    K = scale (M + offset 11ᵀ),    M = 1 - D/scale,    offset = v/scale - 1,

with scale = D(0), the deficit of orthogonal inputs. Then M is a kernel itself: K is a power series
in the cosine with non-negative coefficients, and scale M is what is left of it without its first
term, K(0). It has ones on its diagonal and is as well conditioned as the data allow, however small
the scale and however large the offset; `posterior/constant.py` does the rest.

The recursion for unequal norms carries no deficits; there M is K itself (`TRIVIAL_SPLIT`).
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from nngp._arrays import EPS
from nngp.curve import AngularCurve, Profile
from nngp.errors import NoLimitError

SMALLEST = 1e-290  # scale, relative to the variance: below, its inverse would leave float64


@dataclass(frozen=True)
class KernelSplit:
    """K = scale (M + offset); `input_var` is that of the inputs whose curve M comes from."""

    scale: float
    offset: float
    input_var: float | None

    @classmethod
    def of(cls, curve: AngularCurve) -> "KernelSplit":
        """The split that suits a curve; none if there is nothing beside the constant."""
        if curve.scale <= SMALLEST * curve.variance:
            return TRIVIAL_SPLIT
        return cls(curve.scale, curve.offset, curve.input_var)

    @property
    def constant(self) -> float:
        """The part of K that all pairs share."""
        return self.scale * self.offset

    @property
    def prior(self) -> float:
        """K(x, x)."""
        return self.scale + self.constant

    @property
    def is_trivial(self) -> bool:
        """Whether M is K itself."""
        return self.input_var is None

    def derivative(self, profile: Profile) -> tuple[float, Profile]:
        """dK/dθ / scale as a constant, which a split keeps apart, and a profile."""
        if self.is_trivial:
            return 0.0, profile
        return profile.at_one / self.scale, profile.scaled(self.scale, 0.0)

    def profile(self, curve: AngularCurve) -> Profile:
        """M as a function of the cosine."""
        return curve.profile if self.is_trivial else _scaled(curve, self.scale)

    def of_whole(self, K: Any) -> Any:
        """M from K by plain subtraction, which loses `shift_error`."""
        return K / self.scale - self.offset

    def shift_error(self, depth: int) -> float:
        """Rounding of `of_whole`, for a network whose layers are rounded one by one."""
        return 8 * EPS * (depth + 1) * (1.0 + self.offset)

    def check_shift(self) -> None:
        """Raise NoLimitError where there is no K: `of_whole` needs a finite offset."""
        if self.offset == np.inf:
            raise NoLimitError(
                "a network of infinite depth needs inputs of one norm, in training and test "
                "alike; use nngp.normalize on both"
            )


@lru_cache(maxsize=64)
def _scaled(curve: AngularCurve, scale: float) -> Profile:
    """Kept, as the look-up table that is made of it takes a while."""
    return curve.profile.scaled(scale, 1.0)


TRIVIAL_SPLIT = KernelSplit(1.0, 0.0, None)
