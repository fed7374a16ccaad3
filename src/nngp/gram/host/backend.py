"""Kernel matrices for engines that compute in host memory."""

import os

from numpy.typing import ArrayLike

from nngp import _npy
from nngp.architecture import Headed, Invariant, Network
from nngp.gram.host.gradient import CurveGradient
from nngp.gram.host.invariant_gradient import InvariantGradient
from nngp.gram.host.matrices import AnyHostMatrix, host_matrix_of
from nngp.gram.host.pair_gradient import PairwiseGradient
from nngp.gram.inputs import Inputs, InputSet
from nngp.gram.kernel_matrix import (
    GradientRequest,
    GradientSums,
    KernelBackend,
    KernelMatrix,
    MatrixRequest,
)
from nngp.gram.plan import KernelPlan, make_plan, split_fits
from nngp.gram.sensitivities import CurveSensitivities


class HostBackend(KernelBackend):
    """`KernelBackend` in host memory."""

    def inputs(self, X: ArrayLike) -> Inputs:
        """Training inputs from an array, or from the path of a .npy file, read as needed."""
        return Inputs.kept(_open_npy(X) if isinstance(X, str | os.PathLike) else X)

    def make_matrix(self, request: MatrixRequest) -> KernelMatrix:
        return host_matrix(request, request.plan())

    def make_gradient(self, request: GradientRequest) -> GradientSums:
        check_has_gradient(request.architecture)
        rows, sensitivities = in_memory(request.inputs), curve_sensitivities(request)
        if isinstance(request.architecture, Invariant):
            return InvariantGradient(request, rows, sensitivities)
        if sensitivities is not None:
            return CurveGradient(sensitivities, rows)
        return PairwiseGradient(
            request.architecture, rows, request.per_layer, request.per_input, request.split
        )


def check_has_gradient(network: Network) -> None:
    """Raise ValueError for a network whose derivatives are not known."""
    if isinstance(network, Headed):
        raise ValueError(
            "derivatives are not available for an nngp.Headed; take those of its average"
        )


def host_matrix(request: MatrixRequest, plan: KernelPlan) -> AnyHostMatrix:
    """The matrix of a request whose plan is made."""
    return host_matrix_of(
        request.architecture,
        in_memory(request.left),
        None if request.right is None else in_memory(request.right),
        plan=plan,
        split=request.split,
    )


def curve_sensitivities(request: GradientRequest) -> CurveSensitivities | None:
    """The derivatives as functions of the cosine, where the curve of the split has them."""
    plan = make_plan(request.architecture, request.inputs, request.inputs)
    on_curve = plan.method == "curve" and split_fits(request.split, plan)
    if request.per_input or not on_curve or plan.input_var is None:
        return None
    return CurveSensitivities.of(
        request.architecture, plan.input_var, request.per_layer, request.split
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
        return _npy.open_memmap(path)
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(f"X cannot be read: {path}: {error}") from None
