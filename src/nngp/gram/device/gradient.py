"""Sums of kernel derivatives on a device."""

import jax.numpy as jnp
import numpy as np

from nngp._arrays import DeviceArray
from nngp.gram.device.arrays import put, unit_block
from nngp.gram.device.profiles import (
    BlockOrigin,
    DeviceProfile,
    device_profile,
    origin_of,
    profile_values,
)
from nngp.gram.device.programs import program
from nngp.gram.inputs import Inputs
from nngp.gram.kernel_matrix import Gradient, GradientSums
from nngp.gram.sensitivities import CurveSensitivities


class DeviceGradient:
    """`GradientSums` of equal-norm inputs on a device."""

    def __init__(self, sensitivities: CurveSensitivities, inputs: Inputs) -> None:
        self._sensitivities, self._inputs = sensitivities, inputs
        self._tables = [device_profile(profile) for profile in sensitivities.profiles]
        self._total = put(np.zeros(len(self._tables)))

    def contract(self, G: DeviceArray, rows: slice, columns: slice) -> None:
        n, (x, y) = len(self._inputs), (unit_block(self._inputs, s) for s in (rows, columns))
        origin = origin_of(rows, columns, (n, n), True)
        self._total = _contract_block(self._total, G, x, y, origin, self._tables)

    def result(self, sum_of_all: float) -> Gradient:
        return self._sensitivities.by_parameter(np.asarray(self._total), sum_of_all)


class HostGradient:
    """`GradientSums` that only the host can compute, of blocks that may reach beyond the inputs."""

    def __init__(self, host: GradientSums, n: int) -> None:
        self._host, self._n = host, n

    def contract(self, G: DeviceArray, rows: slice, columns: slice) -> None:
        rows, columns = (slice(s.start, min(s.stop, self._n)) for s in (rows, columns))
        there = np.asarray(G)[: rows.stop - rows.start, : columns.stop - columns.start]
        self._host.contract(np.ascontiguousarray(there), rows, columns)

    def result(self, sum_of_all: float) -> Gradient:
        return self._host.result(sum_of_all)


@program
def _contract_block(
    total: DeviceArray,
    G: DeviceArray,
    x: DeviceArray,
    y: DeviceArray,
    origin: BlockOrigin,
    tables: list[DeviceProfile],
) -> DeviceArray:
    c = x @ y.T
    parts = [(G * profile_values(table, c, x, y, origin, 0.0)[0]).sum() for table in tables]
    return total + jnp.stack(parts)
