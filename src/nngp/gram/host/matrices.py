"""The kernel matrix of any network in host memory."""

from nngp.architecture import Headed, Invariant, Network
from nngp.gram.host.headed import HeadedMatrix
from nngp.gram.host.invariant import InvariantMatrix
from nngp.gram.host.matrix import HostMatrix
from nngp.gram.inputs import Inputs
from nngp.gram.plan import KernelPlan
from nngp.gram.split import TRIVIAL_SPLIT, KernelSplit

AnyHostMatrix = HostMatrix | InvariantMatrix | HeadedMatrix


def host_matrix_of(
    network: Network,
    left: Inputs,
    right: Inputs | None = None,
    *,
    plan: KernelPlan | None = None,
    split: KernelSplit | None = TRIVIAL_SPLIT,
) -> AnyHostMatrix:
    """The matrix of any network."""
    if isinstance(network, Headed):
        return HeadedMatrix(network, left, right, plan=plan, split=split)
    if isinstance(network, Invariant):
        return InvariantMatrix(network, left, right, plan=plan, split=split)
    return HostMatrix(network, left, right, plan=plan, split=split)
