"""A kernel matrix as a list of steps on a block, stated once for all backends.

    inner products    of the inputs; for an average over transformations those of every term
    a profile         from cosines to kernel values: look-up in a curve, or the walk pair by pair
    a sum             of the terms, with their weights; a network that is no average has one term
    a head            the average scaled to norm one, and looked up in the curve of the head
    a shift           K / scale - offset, where the split is that of inputs of another norm

`KernelSteps` knows the mathematics of these: which terms there are, the profile, the diagonal, the
error. A backend decides where arrays live and who computes a block (`BlockMatrix` is what their
matrices share).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from nngp._arrays import EPS, TINY, Array
from nngp.architecture import Invariant, Network, WithHead, average_of
from nngp.architecture.invariances import Orbit, covariance_of, orbit_of
from nngp.curve import AngularCurve, Profile, curve_at
from nngp.errors import VarianceError
from nngp.gram.error_bounds import pairwise_error
from nngp.gram.inputs import InputSet
from nngp.gram.plan import KernelPlan, make_plan, own_split, split_fits
from nngp.gram.split import TRIVIAL_SPLIT, KernelSplit, curve_error
from nngp.gram.triples import own_variances


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

    @cached_property
    def covariance(self) -> AngularCurve:
        """The curve of the covariance: its slope is what the head multiplies a tangent kernel below
        it by."""
        return curve_at(covariance_of(self.head), 1.0)

    def slope(self, cosines: Array) -> Array:
        """The slope of the covariance, in units of the split."""
        return self.covariance.derivative(cosines) / self.split.scale

    def error_of_slope(self, of_cosines: float, nearest: float) -> float:
        """Largest error of the slope where cosines have one, relative to that at equal inputs: that
        of the nearest pair, as the slope is steepest there."""
        places = 0.0, nearest, min(nearest + of_cosines + 8 * EPS, 1.0)
        largest, before, moved = self.covariance.derivative(one_minus=places)
        return float((before - moved) / largest)

    def error(self, of_cosines: float, nearest: float = 0.0) -> float:
        """Error of entries, relative to the diagonal, where cosines have one and the nearest pair
        has 1 - |c| = nearest. The deficit is concave, so it moves most there."""
        curve, split = self.curve, self.split
        size = max(curve.variance, TINY) if split.is_trivial else split.scale
        start = float(curve.deficit(one_minus=nearest)) if nearest > 0 else curve.jump
        further = min(nearest + of_cosines + 8 * EPS, 1.0)
        moved = float(curve.deficit(one_minus=further)) - start
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


def orbit_of_network(network: Network, columns: int) -> Orbit:
    """The kernels that a network is the average of; a single one unless it is an `Invariant`."""
    average = average_of(network)
    return average.orbit(columns) if isinstance(average, Invariant) else orbit_of((), columns)


@dataclass(frozen=True)
class KernelSteps:
    """The steps from inputs to blocks of M, for a network, a plan and a split."""

    network: Network
    plan: KernelPlan
    split: KernelSplit
    columns: int  # of the inputs

    @classmethod
    def of(
        cls,
        network: Network,
        left: InputSet,
        right: InputSet,
        plan: KernelPlan | None,
        split: KernelSplit | None,
    ) -> "KernelSteps":
        """Those of K(left, right), with the plan and the split that suit these inputs if None."""
        plan = make_plan(network, left, right) if plan is None else plan
        if isinstance(network, WithHead):
            split = HeadCurve(network.head, split).split
        elif split is None:
            split = own_split(network, plan)
        steps = cls(network, plan, split, left.shape[1])
        if not steps.is_exact:
            split.check_shift()
        return steps

    @property
    def base(self) -> Network:
        """The network whose kernel is a function of norms and cosines."""
        return self.network.base

    @cached_property
    def orbit(self) -> Orbit:
        """The terms of the sum."""
        return orbit_of_network(self.network, self.columns)

    @cached_property
    def head(self) -> HeadCurve | None:
        """The curve of the layers on top of the average, if there are any."""
        return (
            HeadCurve(self.network.head, self.split) if isinstance(self.network, WithHead) else None
        )

    @cached_property
    def is_exact(self) -> bool:
        """Whether the split is that of these inputs. With a head it is: the average is brought to
        norm one, whatever the inputs are."""
        return isinstance(self.network, WithHead) or split_fits(self.split, self.plan)

    @cached_property
    def curve(self) -> AngularCurve | None:
        """The curve of the terms, where all inputs share one norm."""
        if self.plan.method != "curve" or self.plan.input_var is None:
            return None
        return curve_at(self.base, self.plan.input_var)

    @property
    def split_of_terms(self) -> KernelSplit:
        """The split in which terms are looked up: a head and a shift need K itself."""
        return TRIVIAL_SPLIT if self.head is not None or not self.is_exact else self.split

    @cached_property
    def profile(self) -> Profile | None:
        """A term as a function of the cosine, where all inputs share one norm."""
        return None if self.curve is None else self.split_of_terms.profile(self.curve)

    def own_values(self, inputs: InputSet) -> Array:
        """Values of a term for each input paired with itself."""
        if self.profile is not None:
            return np.full(len(inputs), self.profile.at_one)
        return own_variances(self.base, inputs)

    def diagonal(self, average: Array) -> Array:
        """M(x, x), from that of the average."""
        if self.head is not None:
            return np.full(len(average), self.head.profile.at_one)
        return average if self.is_exact else np.asarray(self.split.of_whole(average))

    def norms(self, left: InputSet, right: InputSet, averages: Sequence[Array]) -> AverageNorms:
        """The norms by which a head scales, from the diagonals of the average on either side."""
        variance = max(float(self.own_values(side).max()) for side in (left, right))
        return AverageNorms(averages[0], averages[-1], variance, self.orbit.products)

    def error(
        self, gap: float, input_var: Array, norms: AverageNorms | None = None, more: float = 0.0
    ) -> float:
        """Largest error of entries relative to the diagonal, given the smallest 1 - |c| of pairs;
        `more` is an error that the backend's own way to evaluate a term has."""
        below = self.error_of_terms(gap, input_var, more)
        if self.head is not None and norms is not None:
            return self.head.error(norms.error_of_cosines(below))
        if self.is_exact:
            return below
        noise = more if self.curve is None else self.curve.error
        return below + noise * self.split.offset + self.split.shift_error(self.network.depth)

    def error_of_terms(self, gap: float, input_var: Array, more: float) -> float:
        """The same of the sum of the terms, before a head or a shift."""
        if self.curve is not None:
            return curve_error(self.curve, gap, self.split_of_terms) + more
        return pairwise_error(self.base, input_var, gap) + more


Side = TypeVar("Side", bound=InputSet)


class BlockMatrix(ABC, Generic[Side]):
    """The part of `KernelMatrix` that follows from the steps, wherever blocks are computed."""

    supports_padding = False

    def __init__(self, steps: KernelSteps, left: Side, right: Side | None) -> None:
        self.steps, self.symmetric = steps, right is None
        self.left, self.right = left, left if right is None else right
        self.network, self.plan, self.split = steps.network, steps.plan, steps.split
        self.is_exact = steps.is_exact
        self.shape = len(self.left), len(self.right)
        self.covariance: BlockMatrix[Side] | None = None
        if self.network.is_tangent and steps.head is not None:
            self.covariance = self._of_same_inputs(covariance_of(average_of(self.network)))

    @abstractmethod
    def _of_same_inputs(self, network: Network) -> "BlockMatrix[Side]":
        """The kernel matrix of another network. Below a head, the covariance says how the average's
        tangent kernel is scaled."""

    @cached_property
    def diagonal(self) -> Array:
        """M(x, x) of the left inputs."""
        head = self.steps.head
        if head is None:
            return self.steps.diagonal(self.average_diagonal)
        out = self.steps.diagonal(np.empty(len(self.left)))
        if self.covariance is not None and self.norms is not None:
            tangent = self.average_diagonal * self.norms.left**2
            out += tangent * head.slope(np.ones(1))
        return out

    @property
    def average_diagonal(self) -> Array:
        """The sum of the terms for every left input and itself."""
        return self._average_of(self.left)

    def _average_of(self, inputs: Side) -> Array:
        is_plain = len(self.steps.orbit.orders) == 1 and not self.steps.orbit.has_functions
        if is_plain and self.network.planes is None:
            return self.steps.own_values(inputs)
        return self._diagonal_of_terms(inputs)

    @abstractmethod
    def _diagonal_of_terms(self, inputs: Side) -> Array:
        """The sum of the terms for inputs and their own transformations."""

    @cached_property
    def norms(self) -> AverageNorms | None:
        """The norms by which a head scales the average; None where there is no head."""
        if self.steps.head is None:
            return None
        return (self.covariance or self).average_norms()

    def average_norms(self) -> AverageNorms:
        """The norms of the average, k_G(x, x), on either side."""
        sides = [self.left] if self.symmetric else [self.left, self.right]
        averages = [self._average_of(side) for side in sides]
        return self.steps.norms(self.left, self.right, averages)

    @property
    @abstractmethod
    def smallest_gap(self) -> float:
        """The smallest 1 - |c| recorded so far, if it is so small that it matters."""

    @property
    def nearest_cosine(self) -> float:
        """The smallest 1 - |c| that went through a head, 0 if it was not looked for."""
        return 0.0

    @property
    def _error_of_terms(self) -> float:
        """The error that the evaluation of terms adds."""
        return 0.0

    def error(self) -> float:
        """Largest error of the entries computed so far, relative to the diagonal."""
        both = np.concatenate([self.left.var, self.right.var])
        found = self.smallest_gap, both
        if self.covariance is None or self.norms is None or self.steps.head is None:
            return self.steps.error(*found, self.norms, self._error_of_terms)
        head, below = self.steps.head, self.covariance
        cosines, tangent = (
            self.norms.error_of_cosines(one.steps.error_of_terms(*found, one._error_of_terms))
            for one in (below, self)
        )
        near = self.nearest_cosine
        return head.error(cosines, near) + head.error_of_slope(cosines, near) + tangent
