"""Kernel matrices for engines that compute on a JAX device."""

from numpy.typing import ArrayLike

from nngp.architecture import Architecture, Headed, Invariant, Network
from nngp.gram.device.gradient import DeviceGradient, HostGradient
from nngp.gram.device.headed import DeviceHeadedMatrix
from nngp.gram.device.invariant import DeviceInvariantGradient, DeviceInvariantMatrix
from nngp.gram.device.matrix import DeviceMatrix, UploadedMatrix
from nngp.gram.host.backend import (
    HostBackend,
    check_has_gradient,
    curve_sensitivities,
    host_matrix,
    in_memory,
)
from nngp.gram.inputs import Inputs, InputSet, common_var
from nngp.gram.kernel_matrix import (
    GradientRequest,
    GradientSums,
    KernelBackend,
    KernelMatrix,
    MatrixRequest,
)
from nngp.gram.orbit_inputs import transformed_inputs


class DeviceBackend(KernelBackend):
    """`KernelBackend` on a device; the host computes what the device cannot."""

    _host = HostBackend()

    def inputs(self, X: ArrayLike) -> Inputs:
        return self._host.inputs(X)

    def supports(self, architecture: Network, inputs: InputSet) -> bool:
        sides = transformed_inputs(architecture, inputs)
        return _has_closed_form(architecture) or common_var(*sides) is not None

    def make_matrix(self, request: MatrixRequest) -> KernelMatrix:
        plan = request.plan()
        if isinstance(request.architecture, Headed) and plan.method == "curve":
            return DeviceHeadedMatrix(request, plan)
        if isinstance(request.architecture, Invariant) and plan.method == "curve":
            return DeviceInvariantMatrix(request, plan)
        if plan.method == "curve" or _has_closed_form(request.architecture):
            return DeviceMatrix(request, plan)
        shape = len(request.left), len(request.left if request.right is None else request.right)
        return UploadedMatrix(host_matrix(request, plan), shape)

    def make_gradient(self, request: GradientRequest) -> GradientSums:
        check_has_gradient(request.architecture)
        sensitivities = curve_sensitivities(request)
        if sensitivities is None:
            return HostGradient(self._host.make_gradient(request), len(request.inputs))
        rows = in_memory(request.inputs)
        if isinstance(request.architecture, Invariant):
            return DeviceInvariantGradient(request, rows, sensitivities)
        return DeviceGradient(sensitivities, rows)


def _has_closed_form(architecture: Network) -> bool:
    """Whether a device can compute pairs of different norms; pairs of one norm it always can."""
    return (
        isinstance(architecture, Architecture) and architecture.activation.closed_form is not None
    )
