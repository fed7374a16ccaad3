"""Derivatives of the kernel of equal-norm inputs in the variances, as functions of the cosine."""

from dataclasses import dataclass

import numpy as np

from nngp._arrays import Array
from nngp.architecture import Network, WithHead
from nngp.architecture.invariances import Orbit
from nngp.curve import Profile, curve_at
from nngp.gram.inputs import InputSet
from nngp.gram.kernel_matrix import Gradient
from nngp.gram.plan import make_plan, split_fits
from nngp.gram.split import TRIVIAL_SPLIT, KernelSplit

HEAD_PREFIX = "head."  # of the parameters of layers on top of an average


def flat_sensitivities(network: Network, input_var: float, per_layer: bool) -> list[Profile]:
    """dK/dθ as functions of the cosine: the weight variances, then the bias variances."""
    profiles = curve_at(network, input_var).sensitivities(per_layer=per_layer)
    return [*profiles["weight_var"], *profiles["bias_var"]]


def scale_derivatives(network: Network, input_var: float, *, per_layer: bool) -> Gradient:
    """Derivatives of the kernel's scale, the deficit of orthogonal inputs."""
    if isinstance(network, WithHead):  # its scale is that of the head, for inputs of norm one
        of_head = scale_derivatives(network.head, 1.0, per_layer=per_layer)
        return {HEAD_PREFIX + name: value for name, value in of_head.items()}
    right_angle = np.array(False), np.array(1.0)
    flat = flat_sensitivities(network, input_var, per_layer)
    return by_name(np.array([float(p.deficit(*right_angle)) for p in flat]), per_layer)


def by_name(total: Array, per_layer: bool) -> Gradient:
    """Sums for the weight variances, then the bias variances, as a dictionary."""
    weights, biases = np.split(total, 2)
    if per_layer:
        return {"weight_var": weights, "bias_var": biases}
    return {"weight_var": float(weights[0]), "bias_var": float(biases[0])}


@dataclass(frozen=True)
class CurveSensitivities:
    """dK/dθ / scale: constants, which a split keeps apart, and functions of the cosine."""

    at_one: Array
    profiles: list[Profile]
    per_layer: bool

    @classmethod
    def of(
        cls, network: Network, input_var: float, per_layer: bool, split: KernelSplit
    ) -> "CurveSensitivities":
        flat = flat_sensitivities(network, input_var, per_layer)
        at_one, moved = zip(*(split.derivative(profile) for profile in flat), strict=True)
        return cls(np.array(at_one), list(moved), per_layer)

    def by_parameter(self, deficits: Array, sum_of_all: float) -> Gradient:
        """Σ G dK from the sums over the profiles, given the sum of all entries of scale G.

        Infinite where the two parts leave float64.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            total = deficits + sum_of_all * self.at_one
        return by_name(np.where(np.isnan(total), np.inf, total), self.per_layer)


def curve_sensitivities(
    network: Network, inputs: InputSet, split: KernelSplit, per_layer: bool
) -> CurveSensitivities | None:
    """The derivatives of the terms as functions of the cosine, where all inputs share one norm and
    the split is that of their curve; below a head terms are not split."""
    plan = make_plan(network, inputs, inputs)
    if plan.method != "curve" or plan.input_var is None:
        return None
    if isinstance(network, WithHead):
        split = TRIVIAL_SPLIT
    elif not split_fits(split, plan):
        return None
    return CurveSensitivities.of(network.base, plan.input_var, per_layer, split)


def with_families(found: Gradient, orbit: Orbit, by_order: Array) -> Gradient:
    """The sums for the variances of a network, then for the parameters of its families: from those
    of each order of an average."""
    in_families = {name: float(slope @ by_order) for name, slope in orbit.slopes.items()}
    return {**found, **in_families}
