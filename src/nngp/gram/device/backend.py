"""Kernel matrices for engines that compute on a JAX device."""

from numpy.typing import ArrayLike

from nngp.architecture import Architecture
from nngp.gram.device.gradient import DeviceGradient
from nngp.gram.device.lookup import DeviceLookupMatrix
from nngp.gram.device.matrix import DeviceCosines, DeviceMatrix, UploadedMatrix
from nngp.gram.host.backend import HostBackend, curve_sensitivities, host_matrix, in_memory
from nngp.gram.inputs import Inputs, InputSet
from nngp.gram.kernel_matrix import (
    GradientRequest,
    GradientSums,
    KernelBackend,
    KernelMatrix,
    MatrixRequest,
)
from nngp.gram.plan import KernelPlan, make_plan


class DeviceBackend(KernelBackend):
    """`KernelBackend` on a device; the host computes what the device cannot."""

    _host = HostBackend()

    def inputs(self, X: ArrayLike) -> Inputs:
        return self._host.inputs(X)

    def supports(self, architecture: Architecture, inputs: InputSet) -> bool:
        return _can_compute(architecture, make_plan(architecture, inputs, inputs))

    def make_matrix(self, request: MatrixRequest) -> KernelMatrix:
        plan = request.plan()
        if request.table is not None:
            return DeviceLookupMatrix(request, plan)
        if _can_compute(request.architecture, plan):
            return DeviceMatrix(request, plan)
        return UploadedMatrix(host_matrix(request, plan))

    def cosines(self, left: InputSet, right: InputSet) -> DeviceCosines:
        return DeviceCosines(in_memory(left), in_memory(right))

    def make_gradient(self, request: GradientRequest) -> GradientSums:
        sensitivities = curve_sensitivities(request)
        if sensitivities is None:
            return self._host.make_gradient(request)
        return DeviceGradient(sensitivities, in_memory(request.inputs))


def _can_compute(architecture: Architecture, plan: KernelPlan) -> bool:
    """Whether a device computes these blocks itself: not if norms differ and the activation has no
    closed form."""
    return plan.method == "curve" or architecture.activation.closed_form is not None
