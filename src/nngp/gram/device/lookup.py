"""The paper's look-up table on a device: the arithmetic of `host/lookup.py`, on device arrays."""

import jax
import jax.numpy as jnp
from jax import lax

from nngp._arrays import Array, DeviceArray
from nngp.gram.device.arrays import count_of
from nngp.gram.device.matrix import DeviceCosines, both_sides
from nngp.gram.device.profiles import BlockOrigin, on_diagonal, origin_of, shift_on_device
from nngp.gram.host.lookup import LookupTransform
from nngp.gram.kernel_matrix import MatrixRequest, Shift, stored_block
from nngp.gram.plan import KernelPlan
from nngp.gram.split import TRIVIAL_SPLIT


class DeviceLookupMatrix:
    """`KernelMatrix` through the paper's table, on a device; inputs share one norm."""

    split, is_exact = TRIVIAL_SPLIT, True

    def __init__(self, request: MatrixRequest, plan: KernelPlan) -> None:
        if plan.input_var is None or request.table is None:
            raise ValueError("the paper's table needs inputs of equal norm")
        self.architecture, self.plan = request.architecture, plan
        self.left, right = both_sides(request)
        self._symmetric, self._stored = request.right is None, request.stored
        self._cosines = DeviceCosines(self.left, right)
        self._host = LookupTransform(
            self.architecture, plan.input_var, request.table, len(self.left)
        )
        self._compiled = jax.jit(self._values)  # the table is part of it: not one to keep
        self._shape = len(self.left), len(right)

    @property
    def diagonal(self) -> Array:
        return self._host.diagonal

    def block(
        self, rows: slice, columns: slice, *, shift: Shift = 0.0, out: Array | None = None
    ) -> DeviceArray:
        with jax.enable_x64(True):
            if self._stored is None:
                cosines = self._cosines.block(rows, columns)
            else:
                cosines = stored_block(self._stored, rows, columns)
            origin = origin_of(rows, columns, self._shape, self._symmetric)
            return self._compiled(cosines, origin, shift_on_device(shift, count_of(rows)))

    def _values(self, c: DeviceArray, origin: BlockOrigin, shift: DeviceArray) -> DeviceArray:
        host, variances = self._host, jnp.asarray(self._host.variances)
        table, weights, biases = (jnp.asarray(a) for a in (host.rows, host.weights, host.biases))

        def layer(k: DeviceArray, cov: DeviceArray) -> DeviceArray:
            return host.layer(jnp, cov, variances[k], table[k], weights[k + 1], biases[k + 1])

        cov = biases[0] + weights[0] * host.input_var * c
        if len(table):
            cov = lax.fori_loop(0, len(table), layer, cov)
        return jnp.where(on_diagonal(c.shape, origin), variances[-1] + shift, cov)

    def error(self) -> float:
        return self._host.error()
