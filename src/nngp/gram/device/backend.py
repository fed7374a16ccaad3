"""Kernel matrices for engines that compute on a JAX device."""

from typing import cast

from numpy.typing import ArrayLike

from nngp.architecture import Architecture
from nngp.covariance import LookupTable
from nngp.gram.device.gradient import DeviceGradient
from nngp.gram.device.lookup import DeviceLookupMatrix
from nngp.gram.device.matrix import DeviceCosines, DeviceMatrix, UploadedMatrix
from nngp.gram.host.backend import HostBackend, in_memory, reads_curve
from nngp.gram.host.matrix import HostMatrix
from nngp.gram.inputs import Inputs, InputSet
from nngp.gram.kernel_matrix import GradientSums, KernelBackend, KernelMatrix, StoredBlocks
from nngp.gram.plan import KernelPlan, make_plan
from nngp.gram.sensitivities import CurveSensitivities
from nngp.gram.split import KernelSplit


class DeviceBackend(KernelBackend):
    """`KernelBackend` on a device; the host computes what the device cannot."""

    _host = HostBackend()

    def inputs(self, X: ArrayLike) -> Inputs:
        return self._host.inputs(X)

    def supports(self, architecture: Architecture, inputs: InputSet) -> bool:
        return _can_compute(architecture, make_plan(architecture, inputs, inputs))

    def matrix(
        self,
        architecture: Architecture,
        left: InputSet,
        right: InputSet | None = None,
        *,
        split: KernelSplit | None = None,
        stored: StoredBlocks | None = None,
        table: LookupTable | None = None,
    ) -> KernelMatrix:
        first, second = in_memory(left), None if right is None else in_memory(right)
        method = "auto" if table is None else "lookup"
        plan = make_plan(architecture, first, first if second is None else second, method)
        if table is not None:
            return DeviceLookupMatrix(architecture, first, second, plan, table, stored)
        if _can_compute(architecture, plan):
            return DeviceMatrix(architecture, first, second, plan, stored=stored, split=split)
        return UploadedMatrix(HostMatrix(architecture, first, second, plan=plan, split=split))

    def cosines(self, left: InputSet, right: InputSet) -> DeviceCosines:
        return DeviceCosines(in_memory(left), in_memory(right))

    def gradient(
        self,
        architecture: Architecture,
        inputs: InputSet,
        *,
        split: KernelSplit,
        per_layer: bool,
        per_input: bool = False,
    ) -> GradientSums:
        rows = in_memory(inputs)
        plan = make_plan(architecture, rows, rows)
        if per_input or not reads_curve(plan, split):
            return self._host.gradient(
                architecture, rows, split=split, per_layer=per_layer, per_input=per_input
            )
        var = cast(float, plan.input_var)
        return DeviceGradient(CurveSensitivities.of(architecture, var, per_layer, split), rows)


def _can_compute(architecture: Architecture, plan: KernelPlan) -> bool:
    """Whether a device computes these blocks itself: not if norms differ and the activation has no
    closed form."""
    return plan.method == "curve" or architecture.activation.closed_form is not None
