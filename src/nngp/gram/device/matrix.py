"""Blocks of a kernel matrix on an accelerator, through JAX.

The arithmetic is that of `host/matrix.py`, on device arrays and in double precision.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from nngp._arrays import Array, DeviceArray
from nngp.architecture import Architecture
from nngp.covariance import closed_form
from nngp.gram.device.arrays import (
    count_of,
    filled_rows,
    put,
    unit_block,
)
from nngp.gram.device.curve import device_curve
from nngp.gram.device.profiles import (
    BlockOrigin,
    DeviceProfile,
    look_up,
    on_diagonal,
    origin_of,
    profile_values,
    recompute,
    shift_on_device,
    with_diagonal,
)
from nngp.gram.device.programs import program
from nngp.gram.error_bounds import FAR_ENOUGH, pairwise_error
from nngp.gram.host.backend import in_memory
from nngp.gram.host.matrices import AnyHostMatrix
from nngp.gram.inputs import Inputs
from nngp.gram.kernel_matrix import MatrixRequest, Shift
from nngp.gram.plan import KernelPlan, own_split, split_fits
from nngp.gram.split import TRIVIAL_SPLIT
from nngp.gram.triples import layer_variances, snapped_correlation


class DeviceMatrix:
    """`KernelMatrix` on a device; inputs of unequal norms need an activation with a closed form."""

    can_fill = True  # blocks may reach beyond the inputs

    def __init__(self, request: MatrixRequest, plan: KernelPlan) -> None:
        self.architecture, self.plan = request.architecture, plan
        self.left, self._symmetric = in_memory(request.left), request.right is None
        self._right = self.left if request.right is None else in_memory(request.right)
        self.split = request.split or own_split(self.architecture, plan)
        self.is_exact = split_fits(self.split, plan)
        self._noise = 0.0
        if not self.is_exact:
            self.split.check_shift()
        if plan.method == "curve" and plan.input_var is not None:
            self._prepare_curve(plan.input_var)
        else:
            self._prepare_pairwise()
        self._nearest: DeviceArray = np.float64(1.0)

    def _prepare_curve(self, input_var: float) -> None:
        split = self.split if self.is_exact else TRIVIAL_SPLIT
        curve = device_curve(self.architecture, input_var, split)
        self._noise, self._error = curve.noise, curve.error
        self.diagonal = self._shifted(np.full(len(self.left), curve.at_one))
        self._program = _curve_block
        self._fixed: dict[str, Any] = {"careful": curve.careful}
        self._arguments: Callable[[slice, slice], tuple[Any, ...]] = lambda rows, columns: (
            curve.table,
        )

    def _prepare_pairwise(self) -> None:
        net = self.architecture
        assert isinstance(net, Architecture)
        both = [np.stack(layer_variances(net, s.var)) for s in (self.left, self._right)]
        self.diagonal = self._shifted(both[0][-1])
        sides = [_Side(s, q) for s, q in zip((self.left, self._right), both, strict=True)]
        layers = put(net.weight_vars), put(net.bias_vars)
        self._program, self._fixed = _pairwise_block, {"form": net.activation.closed_form}
        self._arguments = lambda rows, columns: (
            sides[0].block(rows),
            sides[1].block(columns),
            *layers,
        )
        self._error = partial(pairwise_error, net, self.left.var)

    def block(
        self, rows: slice, columns: slice, *, shift: Shift = 0.0, out: Array | None = None
    ) -> DeviceArray:
        with jax.enable_x64(True):
            sides = unit_block(self.left, rows), unit_block(self._right, columns)
            value, self._nearest = self._program(
                *sides, *self._rest(rows, columns, shift), **self._fixed
            )
            return self._shifted(value)

    def _rest(self, rows: slice, columns: slice, shift: Shift) -> tuple[Any, ...]:
        """The arguments of the program for a block, beside its inputs."""
        shape = len(self.left), len(self._right)
        scaled = shift if self.is_exact else shift * self.split.scale
        return (
            origin_of(rows, columns, shape, self._symmetric),
            shift_on_device(scaled, count_of(rows)),
            self._nearest,
            *self._arguments(rows, columns),
        )

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


class _Side:
    """Norms, and variances in every layer, of the inputs on one side of unequal-norm blocks."""

    def __init__(self, inputs: Inputs, variances: Array) -> None:
        self._columns = np.vstack([np.sqrt(inputs.var), variances]).T
        self._blocks: dict[tuple[int, int], tuple[DeviceArray, DeviceArray]] = {}

    def block(self, rows: slice) -> tuple[DeviceArray, DeviceArray]:
        """Those of some rows, ones beyond the last."""
        key = rows.start, rows.stop
        if key not in self._blocks:
            part = filled_rows(self._columns[rows], count_of(rows), 1.0).T
            self._blocks[key] = put(part[0]), put(part[1:])
        return self._blocks[key]


class UploadedMatrix:
    """`KernelMatrix` that only the host can compute, with blocks sent to the device."""

    can_fill = True

    def __init__(self, host: AnyHostMatrix, shape: tuple[int, int]) -> None:
        self._host, self._shape = host, shape
        self.architecture, self.left, self.plan = host.architecture, host.left, host.plan
        self.split, self.is_exact = host.split, host.is_exact

    @property
    def diagonal(self) -> Array:
        return self._host.diagonal

    def block(
        self, rows: slice, columns: slice, *, shift: Shift = 0.0, out: Array | None = None
    ) -> DeviceArray:
        sides = zip((rows, columns), self._shape, strict=True)
        here = [slice(side.start, min(side.stop, n)) for side, n in sides]
        there, size = self._host.block(*here, shift=shift), (count_of(rows), count_of(columns))
        if there.shape == size:
            return put(there)
        block = np.eye(*size, k=rows.start - columns.start)
        block[: len(there)], block[:, : there.shape[1]] = 0.0, 0.0
        block[: len(there), : there.shape[1]] = there
        return put(block)

    def error(self) -> float:
        return self._host.error()


@program
def _curve_block(
    x: DeviceArray,
    y: DeviceArray,
    origin: BlockOrigin,
    shift: DeviceArray,
    nearest: DeviceArray,
    table: DeviceProfile,
    *,
    careful: bool,
) -> tuple[DeviceArray, DeviceArray]:
    c = x @ y.T
    if careful:
        value, gap = profile_values(table, c, x, y, origin, shift)
        return value, jnp.minimum(nearest, gap)
    return with_diagonal(look_up(table, c), table.at_one + shift, origin), nearest


@program
def _pairwise_block(
    x: DeviceArray,
    y: DeviceArray,
    origin: BlockOrigin,
    shift: DeviceArray,
    nearest: DeviceArray,
    left: tuple[DeviceArray, DeviceArray],
    right: tuple[DeviceArray, DeviceArray],
    weights: DeviceArray,
    biases: DeviceArray,
    *,
    form: tuple[str, float],
) -> tuple[DeviceArray, DeviceArray]:
    c = x @ y.T
    value = closed_form(form).value
    (scale1, q1s), (scale2, q2s) = left, right

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
    near = (c > 1 - FAR_ENOUGH) & ~on_diagonal(c.shape, origin)
    cov, gap = recompute(cov, near, pair)
    return with_diagonal(cov, q1s[-1][:, None] + shift, origin), jnp.minimum(nearest, gap)
