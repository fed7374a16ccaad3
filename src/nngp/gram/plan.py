"""The choice of a method for a kernel matrix: by the curve or pair by pair."""

from dataclasses import dataclass

import numpy as np

from nngp.architecture import Network
from nngp.architecture.planes import PlanePlan
from nngp.curve import curve_at
from nngp.errors import NoLimitError
from nngp.gram.inputs import EQUAL, InputSet, common_var, transformed_inputs
from nngp.gram.split import TRIVIAL_SPLIT, KernelSplit, curve_error

METHODS = ("auto", "curve", "pairwise")


@dataclass(frozen=True)
class KernelPlan:
    """The method by which a kernel matrix is computed, and the reason.

    `error` is the largest error of an entry relative to the variance, rounding of the cosines
    included, for pairs with 1 - |c| > 2^-16. It is known beforehand for the curve only.

    Examples
    --------
    >>> import numpy as np, nngp
    >>> plan = nngp.plan_kernel(nngp.Architecture(3, "tanh"), nngp.normalize(np.eye(4)))
    >>> plan.method, plan.error < 1e-9
    ('curve', True)
    """

    method: str
    reason: str
    input_var: float | None
    error: float | None


def make_plan(
    network: Network, left: InputSet, right: InputSet, method: str = "auto"
) -> KernelPlan:
    """The plan for K(left, right)."""
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    planes = network.base.planes
    if planes is not None:
        return _of_images(planes, left, right, method)
    sides = {id(s): s for s in (left, right)}.values()
    shared = common_var(*(one for s in sides for one in transformed_inputs(network, s)))
    if method == "auto":
        method, reason = _automatic(shared, left, right)
    else:
        reason = "asked for"
    if method == "curve" and shared is None:
        raise ValueError(
            "method='curve' needs inputs of equal norm; use nngp.normalize first, or "
            "method='pairwise'"
        )
    if network.is_infinite and method != "curve":
        raise NoLimitError(
            "a network of infinite depth needs inputs of equal norm (in training and test alike) "
            "and method='curve'; use nngp.normalize first, or a finite depth"
        )
    error = None
    if method == "curve" and shared is not None:
        error = curve_error(curve_at(network, shared), nearest=1.0)
    return KernelPlan(method, reason, shared, error)


def _of_images(planes: PlanePlan, left: InputSet, right: InputSet, method: str) -> KernelPlan:
    if method == "curve":
        raise ValueError(
            "method='curve' is for networks that see inner products of the inputs, and this one "
            "reads images; use method='auto'"
        )
    for side in (left, right):
        planes.check_columns(side.shape[1])
    return KernelPlan("pairwise", "the network reads images", None, None)


def _automatic(shared: float | None, left: InputSet, right: InputSet) -> tuple[str, str]:
    if shared is not None:
        return "curve", "all inputs share one norm"
    both = np.concatenate([left.var, right.var])
    spread = float(np.ptp(both) / both.max())
    reason = f"the inputs' norms differ (x·x/d by {spread:.1e} of the largest)"
    if spread < 1e-5:
        reason += "; nngp.normalize in float64 would make them equal"
    return "pairwise", reason


def own_split(network: Network, plan: KernelPlan) -> KernelSplit:
    """The split that suits these inputs."""
    if plan.method != "curve" or plan.input_var is None:
        return TRIVIAL_SPLIT
    return KernelSplit.of(curve_at(network, plan.input_var))


def split_fits(split: KernelSplit, plan: KernelPlan) -> bool:
    """Whether the plan's own curve gives the M of a split: the inputs have its norm."""
    if split.input_var is None or plan.input_var is None:
        return split.is_trivial
    return abs(plan.input_var - split.input_var) <= EQUAL * split.input_var
