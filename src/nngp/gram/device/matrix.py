"""Blocks of a kernel matrix on an accelerator, through JAX.

The arithmetic is that of `host/matrix.py`, on device arrays and in double precision.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nngp._arrays import Array, DeviceArray
from nngp.architecture import Architecture
from nngp.covariance import closed_form
from nngp.gram.device.arrays import put, unit_rows
from nngp.gram.device.curve import device_curve
from nngp.gram.device.profiles import (
    BlockOrigin,
    DeviceProfile,
    cut_rows,
    look_up,
    on_diagonal,
    origin_of,
    profile_values,
    recompute,
    shift_on_device,
    size_of,
)
from nngp.gram.error_bounds import FAR_ENOUGH, pairwise_error
from nngp.gram.host.backend import in_memory
from nngp.gram.host.invariant import InvariantMatrix
from nngp.gram.host.matrix import HostMatrix
from nngp.gram.inputs import Inputs
from nngp.gram.kernel_matrix import MatrixRequest, Shift, stored_block
from nngp.gram.pair_recursion import layer_variances, snapped_correlation
from nngp.gram.plan import KernelPlan, own_split, split_fits
from nngp.gram.split import TRIVIAL_SPLIT


class DeviceCosines:
    """`CosineMatrix` on a device."""

    def __init__(self, left: Inputs, right: Inputs) -> None:
        self._left, self._right = left, right

    def block(self, rows: slice, columns: slice) -> DeviceArray:
        return _cosine_block(
            unit_rows(self._left),
            unit_rows(self._right),
            origin_of(rows, columns),
            **size_of(rows, columns),
        )


def both_sides(request: MatrixRequest) -> tuple[Inputs, Inputs]:
    """The rows of both sides of a request, in this machine's memory."""
    left = in_memory(request.left)
    return left, left if request.right is None else in_memory(request.right)


class DeviceMatrix:
    """`KernelMatrix` on a device; inputs of unequal norms need an activation with a closed form."""

    def __init__(self, request: MatrixRequest, plan: KernelPlan) -> None:
        self.architecture, self.plan = request.architecture, plan
        self.left, self._right = both_sides(request)
        self._symmetric, self._stored = request.right is None, request.stored
        self.split = request.split or own_split(self.architecture, plan)
        self.is_exact = split_fits(self.split, plan)
        self._noise = 0.0
        if not self.is_exact:
            self.split.check_shift()
        if plan.method == "curve" and plan.input_var is not None:
            self._prepare_curve(plan.input_var)
        else:
            self._prepare_pairwise()
        self._nearest: DeviceArray = 1.0

    def _prepare_curve(self, input_var: float) -> None:
        split = self.split if self.is_exact else TRIVIAL_SPLIT
        curve = device_curve(self.architecture, input_var, split)
        self._noise, self._error = curve.noise, curve.error
        self.diagonal = self._shifted(np.full(len(self.left), curve.at_one))
        self._compute = partial(_curve_block, table=curve.table, careful=curve.careful)

    def _prepare_pairwise(self) -> None:
        net = self.architecture
        assert isinstance(net, Architecture)
        form = net.activation.closed_form
        both = [np.stack(layer_variances(net, s.var)) for s in (self.left, self._right)]
        self.diagonal = self._shifted(both[0][-1])
        self._compute = partial(
            _pairwise_block,
            norms=tuple(put(np.sqrt(s.var)) for s in (self.left, self._right)),
            variances=tuple(put(q) for q in both),
            weights=put(net.weight_vars),
            biases=put(net.bias_vars),
            form=form,
        )
        self._error = partial(pairwise_error, net, self.left.var)

    def block(
        self, rows: slice, columns: slice, *, shift: Shift = 0.0, out: Array | None = None
    ) -> DeviceArray:
        cosines = None if self._stored is None else stored_block(self._stored, rows, columns)
        with jax.enable_x64(True):
            value, nearest = self._compute(
                cosines,
                unit_rows(self.left),
                unit_rows(self._right),
                origin_of(rows, columns, self._symmetric),
                shift=shift_on_device(shift if self.is_exact else shift * self.split.scale),
                **size_of(rows, columns),
            )
            self._nearest = jnp.minimum(self._nearest, nearest)
            return self._shifted(value)

    def _shifted(self, values: DeviceArray) -> DeviceArray:
        return values if self.is_exact else self.split.of_whole(values)

    def error(self) -> float:
        error = self._error(float(self._nearest))
        if self.is_exact:
            return error
        return (
            error
            + self._noise * self.split.offset
            + self.split.shift_error(self.architecture.depth)
        )


class UploadedMatrix:
    """`KernelMatrix` that only the host can compute, with blocks sent to the device."""

    def __init__(self, host: HostMatrix | InvariantMatrix) -> None:
        self._host = host
        self.architecture, self.left, self.plan = host.architecture, host.left, host.plan
        self.split, self.is_exact = host.split, host.is_exact

    @property
    def diagonal(self) -> Array:
        return self._host.diagonal

    def block(
        self, rows: slice, columns: slice, *, shift: Shift = 0.0, out: Array | None = None
    ) -> DeviceArray:
        return put(self._host.block(rows, columns, shift=shift))

    def error(self) -> float:
        return self._host.error()


@partial(jax.jit, static_argnames=("height", "width"))
def _cosine_block(
    left: DeviceArray, right: DeviceArray, origin: BlockOrigin, *, height: int, width: int
) -> DeviceArray:
    x, y = cut_rows(left, right, origin, height, width)
    return x @ y.T


@partial(jax.jit, static_argnames=("height", "width", "careful"))
def _curve_block(
    c: DeviceArray,
    left: DeviceArray,
    right: DeviceArray,
    origin: BlockOrigin,
    table: DeviceProfile,
    shift: DeviceArray,
    *,
    height: int,
    width: int,
    careful: bool,
) -> DeviceArray:
    x, y = cut_rows(left, right, origin, height, width)
    c = x @ y.T if c is None else c
    if careful:
        return profile_values(table, c, x, y, origin, shift)
    diagonal = on_diagonal(c.shape, origin)
    return jnp.where(diagonal, table.at_one + shift, look_up(table, c)), jnp.ones(())


@partial(jax.jit, static_argnames=("form", "height", "width"))
def _pairwise_block(
    c: DeviceArray,
    left: DeviceArray,
    right: DeviceArray,
    origin: BlockOrigin,
    norms: tuple[DeviceArray, DeviceArray],
    variances: tuple[DeviceArray, DeviceArray],
    weights: DeviceArray,
    biases: DeviceArray,
    shift: DeviceArray,
    *,
    form: tuple[str, float],
    height: int,
    width: int,
) -> DeviceArray:
    x, y = cut_rows(left, right, origin, height, width)
    c = x @ y.T if c is None else c
    value = closed_form(form).value
    q1s = lax.dynamic_slice_in_dim(variances[0], origin.row, height, axis=1)
    q2s = lax.dynamic_slice_in_dim(variances[1], origin.column, width, axis=1)
    scale1 = lax.dynamic_slice_in_dim(norms[0], origin.row, height)
    scale2 = lax.dynamic_slice_in_dim(norms[1], origin.column, width)

    def layer(k: DeviceArray, cov: DeviceArray) -> DeviceArray:
        q1, q2 = q1s[k][:, None], q2s[k][None, :]
        corr = snapped_correlation(jnp, cov, q1, q2)
        return biases[k + 1] + weights[k + 1] * value(jnp, q1, q2, corr)

    def pair(i: DeviceArray, j: DeviceArray, old: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
        # Unit vectors alone would take parallel inputs for duplicates.
        same = (x[i] == y[j]).all(axis=1) & (scale1[i] == scale2[j])
        gap = jnp.where(same, 1.0, jnp.maximum(1 - c[i, j], jnp.finfo(c.dtype).eps))
        return jnp.where(same, q1s[-1][i], old), gap

    cov = biases[0] + weights[0] * scale1[:, None] * scale2 * c
    cov = lax.fori_loop(0, len(weights) - 1, layer, cov)
    diagonal = on_diagonal(c.shape, origin)
    cov, nearest = recompute(cov, (c > 1 - FAR_ENOUGH) & ~diagonal, pair)
    return jnp.where(diagonal, q1s[-1][:, None] + shift, cov), nearest
