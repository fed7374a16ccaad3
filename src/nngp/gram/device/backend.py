"""Kernel matrices, and sums of kernel derivatives, for engines that compute on a JAX device."""

import jax
import numpy as np
from numpy.typing import ArrayLike

from nngp._arrays import DeviceArray
from nngp.architecture import Network, WithHead, average_of
from nngp.curve import Profile
from nngp.curve.octaves import SHALLOW
from nngp.gram.device.arrays import count_of, padded_rows, put, unit_block
from nngp.gram.device.blocks import (
    HeadParts,
    contracted,
    device_orders,
    function_pairs,
    has_device_walk,
    through_head,
    used_orders,
)
from nngp.gram.device.images import DeviceImageTerm, has_closed_forms
from nngp.gram.device.matrix import DeviceMatrix, DownloadedGradient, UploadedMatrix, curve_table
from nngp.gram.device.profiles import DEEP, device_profile, origin_of
from nngp.gram.host.backend import HostBackend, in_memory
from nngp.gram.host.gradient import OWN_ROWS
from nngp.gram.host.matrix import HostMatrix
from nngp.gram.inputs import Inputs, InputSet, common_var, transformed_inputs
from nngp.gram.kernel_matrix import Gradient, GradientSums, KernelBackend, KernelMatrix
from nngp.gram.plan import make_plan
from nngp.gram.sensitivities import (
    HEAD_PREFIX,
    CurveSensitivities,
    curve_sensitivities,
    with_families,
)
from nngp.gram.split import TRIVIAL_SPLIT, KernelSplit
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


class DeviceHeadGradient:
    """`GradientSums` of layers on top of an average on a device (`host.gradient.HeadGradient`)."""

    def __init__(self, matrix: DeviceMatrix, average: DeviceGradient, per_layer: bool) -> None:
        head, norms = matrix.steps.head, matrix.norms
        assert head is not None
        assert norms is not None
        self._matrix, self._average, self._norms = matrix, average, norms
        self._of_head = CurveSensitivities.of(head.head, 1.0, per_layer, matrix.split)
        self._tables = [device_profile(profile, DEEP) for profile in self._of_head.profiles]
        slope = head.curve.slope.times(-1.0 / matrix.split.scale)
        self._slope = device_profile(Profile(0.0, slope), DEEP)
        self._parts: list[tuple[slice, slice, HeadParts]] = []

    def contract(self, G: DeviceArray, rows: slice, columns: slice) -> None:
        norms = tuple(
            padded_rows(side[some], count_of(some))
            for side, some in ((self._norms.left, rows), (self._norms.right, columns))
        )
        with jax.enable_x64(True):
            average = self._matrix.average_block(rows, columns)
            origin = origin_of(rows, columns, self._matrix.shape, self._matrix.symmetric)
            found = through_head(G, average, norms, origin, self._tables, self._slope)
            self._average.contract(found.below, rows, columns)
        self._parts.append((rows, columns, found._replace(below=None)))

    def result(self, sum_of_all: float) -> Gradient:
        in_head, n = np.zeros(len(self._tables)), len(self._matrix.left)
        in_diagonal = np.zeros(n)
        for rows, columns, found in self._parts:
            in_head += np.asarray(found.in_head)
            in_diagonal[rows] += np.asarray(found.in_rows)[: n - rows.start]
            in_diagonal[columns] += np.asarray(found.in_columns)[: n - columns.start]
        with jax.enable_x64(True):
            for start in range(0, n, OWN_ROWS):
                rows = slice(start, min(start + OWN_ROWS, n))
                self._average.contract(put(np.diag(in_diagonal[rows])), rows, rows)
        head = self._of_head.by_parameter(in_head, sum_of_all)
        of_head = {HEAD_PREFIX + name: value for name, value in head.items()}
        return {**self._average.result(0.0), **of_head}


def _has_tangent_head(network: Network) -> bool:
    """Whether a tangent kernel goes through a head: from two averages, which the host computes."""
    return isinstance(network, WithHead) and network.is_tangent


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
        matrix = None if per_input else self.matrix(network, rows, split=split)
        profiles = None
        if isinstance(matrix, DeviceMatrix):
            profiles = curve_sensitivities(network, rows, split, per_layer)
        if isinstance(matrix, DeviceMatrix) and profiles is not None:
            below = split if matrix.steps.head is None else TRIVIAL_SPLIT
            average = DeviceGradient(average_of(network), rows, profiles, below)
            if matrix.steps.head is None:
                return average
            return DeviceHeadGradient(matrix, average, per_layer)
        host = self._host.gradient(
            network, rows, split=split, per_layer=per_layer, per_input=per_input
        )
        return DownloadedGradient(host, len(rows))
