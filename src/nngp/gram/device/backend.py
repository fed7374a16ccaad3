"""Kernel matrices for engines that compute on a JAX device."""

from numpy.typing import ArrayLike

from nngp.architecture import Headed, Network
from nngp.gram.device.gradient import DeviceGradient
from nngp.gram.device.layers import closed_form_of
from nngp.gram.device.matrix import DeviceMatrix
from nngp.gram.device.uploaded import DownloadedGradient, UploadedMatrix
from nngp.gram.host.backend import HostBackend, check_inputs_move, host_matrix, in_memory
from nngp.gram.inputs import Inputs, InputSet, common_var
from nngp.gram.kernel_matrix import (
    GradientRequest,
    GradientSums,
    KernelBackend,
    KernelMatrix,
    MatrixRequest,
)
from nngp.gram.orbit_inputs import transformed_inputs
from nngp.gram.sensitivities import curve_sensitivities


class DeviceBackend(KernelBackend):
    """`KernelBackend` on a device; the host computes what the device cannot."""

    _host = HostBackend()

    def inputs(self, X: ArrayLike) -> Inputs:
        return self._host.inputs(X)

    def supports(self, network: Network, inputs: InputSet) -> bool:
        if closed_form_of(network.base) is not None:
            return True
        return common_var(*transformed_inputs(network, inputs)) is not None

    def make_matrix(self, request: MatrixRequest) -> KernelMatrix:
        plan = request.plan()
        if plan.method == "curve" or closed_form_of(request.network.base) is not None:
            return DeviceMatrix(request, plan)
        return UploadedMatrix(host_matrix(request, plan))

    def make_gradient(self, request: GradientRequest) -> GradientSums:
        check_inputs_move(request)
        sensitivities = curve_sensitivities(request)
        if sensitivities is None or isinstance(request.network, Headed):
            return DownloadedGradient(self._host.make_gradient(request), len(request.inputs))
        return DeviceGradient(request, in_memory(request.inputs), sensitivities)
