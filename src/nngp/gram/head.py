"""The kernel of a head on top of an average: a function of the cosines of the average."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nngp._arrays import EPS, TINY, Array
from nngp.architecture import Network
from nngp.curve import AngularCurve, Profile, curve_at
from nngp.errors import VarianceError
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

    def error(self, of_cosines: float) -> float:
        """Error of entries, relative to the diagonal, where cosines have one. The deficit is
        concave, so it moves by that of the error of a cosine at most."""
        curve, split = self.curve, self.split
        size = max(curve.variance, TINY) if split.is_trivial else split.scale
        moved = float(curve.deficit(one_minus=min(of_cosines + 8 * EPS, 1.0))) - curve.jump
        return curve_error(curve, 1.0, split) + moved / size


class AverageNorms:
    """Norms of inputs as the average has them, k_G(x, x). An average may leave little of the
    variance of the network below it, and what is left has the error of all of it."""

    def __init__(self, left: Array, right: Array, variance: float, terms: int) -> None:
        self._least = min(left.min(), right.min())
        self._variance = variance
        if not self._least > 64 * EPS * terms * variance:
            raise VarianceError(
                "averaged over its transformations the network is zero for some input, so there "
                "is nothing for the head; use a network with biases or an activation that is not "
                "odd, or other transformations"
            )
        self.left, self.right = 1.0 / np.sqrt(left), 1.0 / np.sqrt(right)

    def error_of_cosines(self, error: float) -> float:
        """From the error of the average relative to the network's variance."""
        return error * self._variance / self._least
