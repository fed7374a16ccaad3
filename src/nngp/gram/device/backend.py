"""Kernel matrices, and sums of kernel derivatives, for engines that compute on a JAX device."""

import numpy as np
from numpy.typing import ArrayLike

from nngp._arrays import DeviceArray
from nngp.architecture import Headed, Network
from nngp.curve.octaves import SHALLOW
from nngp.gram.device.arrays import put, unit_block
from nngp.gram.device.blocks import (
    contracted,
    device_orders,
    function_pairs,
    has_device_walk,
    used_orders,
)
from nngp.gram.device.images import DeviceImageTerm, has_closed_forms
from nngp.gram.device.matrix import DeviceMatrix, DownloadedGradient, UploadedMatrix, curve_table
from nngp.gram.device.profiles import device_profile, origin_of
from nngp.gram.host.backend import HostBackend, in_memory
from nngp.gram.host.matrix import HostMatrix
from nngp.gram.inputs import Inputs, InputSet, common_var, transformed_inputs
from nngp.gram.kernel_matrix import Gradient, GradientSums, KernelBackend, KernelMatrix
from nngp.gram.plan import make_plan
from nngp.gram.sensitivities import CurveSensitivities, curve_sensitivities, with_families
from nngp.gram.split import KernelSplit
from nngp.gram.steps import orbit_of_network


class DeviceGradient:
    """`GradientSums` of a network or an average on a device; inputs share one norm."""

    def __init__(
        self,
        network: Network,
        inputs: Inputs,
        sensitivities: CurveSensitivities,
        split: KernelSplit,
    ) -> None:
        self._sensitivities = sensitivities
        self._orbit = orbit_of_network(network, inputs.shape[1])
        used = self._orbit if self._orbit.slopes else used_orders(self._orbit)
        self._orders, self._pairs = device_orders(used), function_pairs(used)
        self._weights = used.order_weights
        self._sides = transformed_inputs(network, inputs)
        self._tables = [device_profile(profile) for profile in sensitivities.profiles]
        if self._orbit.slopes:  # a parameter of a family moves weights alone: it needs K
            var = split.input_var or float(np.median(self._sides[0].var))
            self._tables.append(curve_table(network.base, var, split, SHALLOW))
        self._total = put(np.zeros((len(self._tables), len(used.orders))))

    def contract(self, G: DeviceArray, rows: slice, columns: slice) -> None:
        n = len(self._sides[0])
        for pair in self._pairs:
            self._total = contracted(
                self._total,
                np.float64(pair.share),
                G,
                unit_block(self._sides[pair.left], rows),
                unit_block(self._sides[pair.right], columns),
                origin_of(rows, columns, (n, n), pair.left == pair.right),
                self._orders,
                self._tables,
            )

    def result(self, sum_of_all: float) -> Gradient:
        by_table = np.asarray(self._total)
        profiles = by_table[: len(self._sensitivities.profiles)]
        found = self._sensitivities.by_parameter(profiles @ self._weights, sum_of_all)
        return with_families(found, self._orbit, by_table[-1])


def _has_tangent_head(network: Network) -> bool:
    """Whether a tangent kernel goes through a head: from two averages, which the host computes."""
    return isinstance(network, Headed) and network.is_tangent


class DeviceBackend(KernelBackend):
    """`KernelBackend` on a device; the host computes what the device cannot."""

    _host = HostBackend()

    def inputs(self, X: ArrayLike) -> Inputs:
        return self._host.inputs(X)

    def supports(self, network: Network, inputs: InputSet) -> bool:
        if network.base.planes is not None:
            return has_closed_forms(network)
        if _has_tangent_head(network):
            return False
        if has_device_walk(network.base):
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
        if network.base.planes is not None and has_closed_forms(network):
            host = HostMatrix(network, rows, other, plan=plan, split=split, images=DeviceImageTerm)
            return UploadedMatrix(host)
        here = plan.method == "curve" or has_device_walk(network.base)
        if here and not _has_tangent_head(network):
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
