"""The kernel as a constant and a remainder, so that depth costs no information.

With depth all inputs become alike: K = v 11ᵀ - D, where D shrinks until v - D is v in float64. The
information is in D, which the curve keeps to relative precision. So K is written as

    K = scale (M + offset 11ᵀ),    M = 1 + kept - D/scale,    offset = v/scale - 1 - kept,

with scale = D(0), the deficit of orthogonal inputs. Then M is a kernel itself: K is a power series
in the cosine with non-negative coefficients, and 1 - D/scale is what is left of it without its
first term, K(0). However small the scale and however large the offset, M has entries of order one;
`posterior/constant.py` does the rest.

Without any constant M may be singular where K is not: that of a linear network has the rank of the
inputs, one less than K. So M keeps as much of the constant as it has of the rest, kept =
min(v/scale - 1, 1), which makes its condition number at most twice that of K: with g = offset +
kept >= 1, M >= K/(g scale), whose smallest eigenvalue is that of K/(g scale) at least, and the
largest is at most 2n, where K/(g scale) has n or more. With g <= 1, M is K/scale.

The recursion for unequal norms carries no deficits; there M is K itself (`TRIVIAL_SPLIT`).
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

import numpy as np

from nngp._arrays import EPS, TINY
from nngp._records import NonNegative, Positive, Range
from nngp.curve import NEAR, AngularCurve, Profile
from nngp.errors import NoLimitError

SMALLEST = 1e-290  # scale, relative to the variance: below, its inverse would leave float64
KEPT = 1.0  # most of the constant, in units of the scale, that M holds


@dataclass(frozen=True)
class KernelSplit:
    """K = scale (M + offset); `input_var` is that of the inputs whose curve M comes from, and
    `kept` the part of the constant that M holds."""

    scale: Positive
    offset: Annotated[float, Range(0.0, infinite=True)]
    input_var: Positive | None
    kept: NonNegative = 0.0

    @classmethod
    def of(cls, curve: AngularCurve) -> "KernelSplit":
        """The split that suits a curve; none if there is nothing beside the constant."""
        if curve.scale <= SMALLEST * curve.variance:
            return TRIVIAL_SPLIT
        kept = min(curve.offset, KEPT)
        return cls(curve.scale, curve.offset - kept, curve.input_var, kept)

    @property
    def whole_offset(self) -> float:
        """The constant that all pairs share, in units of the scale."""
        return self.offset + self.kept

    @property
    def constant(self) -> float:
        """The part of K that is kept apart."""
        return self.scale * self.offset

    @property
    def prior(self) -> float:
        """K(x, x)."""
        return self.scale * (1.0 + self.whole_offset)

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
        return curve.profile if self.is_trivial else _scaled(curve, self.scale, self.kept)

    def of_whole(self, K: Any) -> Any:
        """M from K by plain subtraction, which loses `shift_error`."""
        return K / self.scale - self.offset

    def shift_error(self, depth: int) -> float:
        """Rounding of `of_whole`, for a network whose layers are rounded one by one."""
        return 8 * EPS * (depth + 1) * (1.0 + self.whole_offset)

    def check_shift(self) -> None:
        """Raise NoLimitError where there is no K: `of_whole` needs a finite offset."""
        if self.offset == np.inf:
            raise NoLimitError(
                "a network of infinite depth needs inputs of equal norm, in training and test "
                "alike; use nngp.normalize on both"
            )


@lru_cache(maxsize=64)
def _scaled(curve: AngularCurve, scale: float, kept: float) -> Profile:
    """Kept, as the look-up table that is made of it takes a while."""
    return curve.profile.scaled(scale, 1.0 + kept)


TRIVIAL_SPLIT = KernelSplit(1.0, 0.0, None)


def curve_error(curve: AngularCurve, nearest: float, split: KernelSplit = TRIVIAL_SPLIT) -> float:
    """Of the entries of a matrix whose nearest pair of inputs has 1 - |c| = nearest.

    Rounding moves a cosine by some eps, and 1 - |c| of near pairs by sqrt of it times eps;
    as the deficit D is concave, that moves K by at most D(m) times the relative change of m.
    """
    gaps = [(NEAR, 4 * EPS / NEAR), (nearest, 4 * EPS / nearest**0.5)]
    moved = [(float(curve.deficit(one_minus=m)) - curve.jump) * change for m, change in gaps]
    if split.is_trivial:
        return curve.error + max(moved) / max(curve.variance, TINY)
    return curve.deficit_error + max(moved) / split.scale
