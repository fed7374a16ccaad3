"""Kernel matrices for engines that compute in host memory."""

import os

from numpy.typing import ArrayLike

from nngp import _npy
from nngp.architecture import Headed, average_of
from nngp.gram.host.gradient import AverageGradient
from nngp.gram.host.head_gradient import HeadGradient
from nngp.gram.host.matrix import HostMatrix
from nngp.gram.host.pair_gradient import PairwiseGradient
from nngp.gram.inputs import Inputs, InputSet
from nngp.gram.kernel_matrix import (
    GradientRequest,
    GradientSums,
    KernelBackend,
    MatrixRequest,
)
from nngp.gram.plan import KernelPlan
from nngp.gram.sensitivities import curve_sensitivities
from nngp.gram.split import TRIVIAL_SPLIT


class HostBackend(KernelBackend):
    """`KernelBackend` in host memory."""

    def inputs(self, X: ArrayLike) -> Inputs:
        """Training inputs from an array, or from the path of a .npy file, read as needed."""
        return Inputs.kept(_open_npy(X) if isinstance(X, str | os.PathLike) else X)

    def make_matrix(self, request: MatrixRequest) -> HostMatrix:
        return host_matrix(request, request.plan())

    def make_gradient(self, request: GradientRequest) -> GradientSums:
        network, rows, per_layer = request.network, in_memory(request.inputs), request.per_layer
        check_inputs_move(request)
        sensitivities = curve_sensitivities(request)
        if network is network.base and sensitivities is None:
            return PairwiseGradient(network, rows, per_layer, request.per_input, request.split)
        split = TRIVIAL_SPLIT if isinstance(network, Headed) else request.split
        average = HostMatrix(average_of(network), rows, split=split)
        sums = AverageGradient(average, sensitivities, per_layer)
        if not isinstance(network, Headed):
            return sums
        return HeadGradient(HostMatrix(network, rows, split=request.split), sums, per_layer)


def check_inputs_move(request: GradientRequest) -> None:
    """Raise ValueError where derivatives in the inputs are asked for and not known."""
    network = request.network
    if request.per_input and network is not network.base:
        raise ValueError(
            "derivatives in the inputs (per_input=True) are not available for an "
            f"nngp.{type(network).__name__}; take those of its network"
        )


def host_matrix(request: MatrixRequest, plan: KernelPlan) -> HostMatrix:
    """The matrix of a request whose plan is made."""
    left = in_memory(request.left)
    right = None if request.right is None else in_memory(request.right)
    return HostMatrix(request.network, left, right, plan=plan, split=request.split)


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
        return _npy.open_memmap(path)
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(f"X cannot be read: {path}: {error}") from None
