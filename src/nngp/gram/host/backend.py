"""Kernel matrices for engines that compute in host memory."""

import os

from numpy.typing import ArrayLike

from nngp._files import open_npy
from nngp.architecture import Network, WithHead, average_of
from nngp.gram.host.gradient import AverageGradient, HeadGradient
from nngp.gram.host.matrix import HostMatrix
from nngp.gram.host.pair_gradient import PairwiseGradient
from nngp.gram.inputs import Inputs, InputSet
from nngp.gram.kernel_matrix import GradientSums, KernelBackend
from nngp.gram.sensitivities import curve_sensitivities
from nngp.gram.split import TRIVIAL_SPLIT, KernelSplit


class HostBackend(KernelBackend):
    """`KernelBackend` in host memory."""

    def inputs(self, X: ArrayLike) -> Inputs:
        """Training inputs from an array, or from the path of a .npy file, read as needed."""
        return Inputs.kept(_open_npy(X) if isinstance(X, str | os.PathLike) else X)

    def matrix(
        self,
        network: Network,
        left: InputSet,
        right: InputSet | None = None,
        *,
        split: KernelSplit | None = None,
    ) -> HostMatrix:
        other = None if right is None else in_memory(right)
        return HostMatrix(network, in_memory(left), other, split=split)

    def gradient(
        self,
        network: Network,
        inputs: InputSet,
        *,
        split: KernelSplit,
        per_layer: bool,
        per_input: bool = False,
    ) -> GradientSums:
        check_differentiable(network)
        check_inputs_move(network, per_input)
        rows = in_memory(inputs)
        profiles = None if per_input else curve_sensitivities(network, rows, split, per_layer)
        if network is network.base and profiles is None:
            return PairwiseGradient(network, rows, per_layer, per_input, split)
        below = TRIVIAL_SPLIT if isinstance(network, WithHead) else split
        average = HostMatrix(average_of(network), rows, split=below)
        sums = AverageGradient(average, profiles, per_layer)
        if not isinstance(network, WithHead):
            return sums
        return HeadGradient(HostMatrix(network, rows, split=split), sums, per_layer)


def check_differentiable(network: Network) -> None:
    """Raise ValueError where derivatives of kernel matrices are not known."""
    if network.base.planes is not None:
        raise ValueError(
            "derivatives of kernel matrices are not available for networks of images; compare a "
            "few networks by log_evidence or leave-one-out, or differentiate nngp.jax_kernel"
        )
    if isinstance(network, WithHead) and network.is_tangent:
        raise ValueError(
            "derivatives of the tangent kernel of layers on top of an average are not available; "
            "take those of its covariance"
        )


def check_inputs_move(network: Network, per_input: bool) -> None:
    """Raise ValueError where derivatives in the inputs are asked for and not known."""
    if per_input and network is not network.base:
        raise ValueError(
            "derivatives in the inputs (per_input=True) are not available for an "
            f"nngp.{type(network).__name__}; take those of its network"
        )


def in_memory(inputs: InputSet) -> Inputs:
    """Check that inputs are rows in this machine's memory."""
    if not isinstance(inputs, Inputs):
        raise TypeError("inputs on a cluster cannot be used by an engine of this machine")
    return inputs


def _open_npy(path: str | os.PathLike[str]) -> ArrayLike:
    if os.path.splitext(path)[1] != ".npy":
        raise ValueError(
            f"X must be an array or the path of a .npy file, got {path}; zarr needs a DaskEngine"
        )
    try:
        return open_npy(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"X cannot be read: {path}: {error}") from None
