"""Kernel matrices for engines that compute on a JAX device."""

from numpy.typing import ArrayLike

from nngp.architecture import Headed, Network
from nngp.gram.device.gradient import DeviceGradient
from nngp.gram.device.layers import closed_form_of
from nngp.gram.device.matrix import DeviceMatrix
from nngp.gram.device.uploaded import DownloadedGradient, UploadedMatrix
from nngp.gram.host.backend import HostBackend, in_memory
from nngp.gram.host.matrix import HostMatrix
from nngp.gram.inputs import Inputs, InputSet, common_var
from nngp.gram.kernel_matrix import GradientSums, KernelBackend, KernelMatrix
from nngp.gram.orbit_inputs import transformed_inputs
from nngp.gram.plan import make_plan
from nngp.gram.sensitivities import curve_sensitivities
from nngp.gram.split import KernelSplit


class DeviceBackend(KernelBackend):
    """`KernelBackend` on a device; the host computes what the device cannot."""

    _host = HostBackend()

    def inputs(self, X: ArrayLike) -> Inputs:
        return self._host.inputs(X)

    def supports(self, network: Network, inputs: InputSet) -> bool:
        if closed_form_of(network.base) is not None:
            return True
        return common_var(*transformed_inputs(network, inputs)) is not None

    def matrix(
        self,
        network: Network,
        left: InputSet,
        right: InputSet | None = None,
        *,
        split: KernelSplit | None = None,
    ) -> KernelMatrix:
        rows, other = in_memory(left), None if right is None else in_memory(right)
        plan = make_plan(network, rows, rows if other is None else other)
        if plan.method == "curve" or closed_form_of(network.base) is not None:
            return DeviceMatrix(network, rows, other, plan=plan, split=split)
        return UploadedMatrix(HostMatrix(network, rows, other, plan=plan, split=split))

    def gradient(
        self,
        network: Network,
        inputs: InputSet,
        *,
        split: KernelSplit,
        per_layer: bool,
        per_input: bool = False,
    ) -> GradientSums:
        rows = in_memory(inputs)
        if not per_input and not isinstance(network, Headed):
            profiles = curve_sensitivities(network, rows, split, per_layer)
            if profiles is not None:
                return DeviceGradient(network, rows, profiles, split)
        host = self._host.gradient(
            network, rows, split=split, per_layer=per_layer, per_input=per_input
        )
        return DownloadedGradient(host, len(rows))
