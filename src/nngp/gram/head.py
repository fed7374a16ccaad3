"""The kernel of a head on top of an average: a function of the cosines of the average."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nngp._arrays import EPS, TINY, Array
from nngp.architecture import Network
from nngp.curve import AngularCurve, Profile, curve_at
from nngp.gram.error_bounds import curve_error
from nngp.gram.split import KernelSplit


@dataclass(frozen=True)
class HeadCurve:
    """The curve of a head for inputs of norm one, and the split of its kernel; its own if None."""

    head: Network
    given: KernelSplit | None

    @cached_property
    def curve(self) -> AngularCurve:
        return curve_at(self.head, 1.0)

    @cached_property
    def split(self) -> KernelSplit:
        return KernelSplit.of(self.curve) if self.given is None else self.given

    @property
    def profile(self) -> Profile:
        """M as a function of the cosine."""
        return self.split.profile(self.curve)

    def error(self, of_average: float) -> float:
        """Error of entries, relative to the diagonal, where those of the average have one; its own
        diagonal is exact. The deficit is concave, so it moves by that of the error of a cosine at
        most."""
        curve, split = self.curve, self.split
        size = max(curve.variance, TINY) if split.is_trivial else split.scale
        moved = float(curve.deficit(one_minus=min(of_average + 8 * EPS, 1.0))) - curve.jump
        return curve_error(curve, 1.0, split) + moved / size


def inverse_root(diagonal: Array) -> Array:
    """One over the norm of each input as the average has it; zero for a norm of zero."""
    return np.divide(1.0, np.sqrt(diagonal), out=np.zeros_like(diagonal), where=diagonal > 0)
