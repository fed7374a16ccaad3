"""Sums of kernel derivatives on a device."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from nngp._arrays import DeviceArray
from nngp.gram.device.arrays import put, unit_rows
from nngp.gram.device.profiles import (
    BlockOrigin,
    DeviceProfile,
    cut_rows,
    device_profile,
    origin_of,
    profile_values,
    size_of,
)
from nngp.gram.inputs import Inputs
from nngp.gram.kernel_matrix import Gradient
from nngp.gram.sensitivities import CurveSensitivities


class DeviceGradient:
    """`GradientSums` of equal-norm inputs on a device."""

    def __init__(self, sensitivities: CurveSensitivities, inputs: Inputs) -> None:
        self._sensitivities, self._rows = sensitivities, unit_rows(inputs)
        self._tables = [device_profile(profile) for profile in sensitivities.profiles]
        self._total = put(np.zeros(len(self._tables)))

    def contract(self, G: DeviceArray, rows: slice, columns: slice) -> None:
        origin, size = origin_of(rows, columns, True), size_of(rows, columns)
        block = _contract_block(G, self._rows, self._rows, origin, self._tables, **size)
        self._total = self._total + block

    def result(self, sum_of_all: float) -> Gradient:
        return self._sensitivities.by_parameter(np.asarray(self._total), sum_of_all)


@partial(jax.jit, static_argnames=("height", "width"))
def _contract_block(
    G: DeviceArray,
    left: DeviceArray,
    right: DeviceArray,
    origin: BlockOrigin,
    tables: list[DeviceProfile],
    *,
    height: int,
    width: int,
) -> DeviceArray:
    x, y = cut_rows(left, right, origin, height, width)
    c = x @ y.T
    return jnp.stack(
        [(G * profile_values(table, c, x, y, origin, 0.0)[0]).sum() for table in tables]
    )
