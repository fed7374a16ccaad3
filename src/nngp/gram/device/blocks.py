"""Blocks of K on an accelerator, through JAX: the same arithmetic as `blocks`, on device arrays.

Rows and columns of a block are cut on the device, so that one compiled program serves every block
of one shape. Near pairs (1 - |c| below 2^-16) are redone from the difference of their unit vectors
in a loop inside that program: the host is not asked. All of it is in double precision, whatever
the global setting is.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from nngp._safe import TINY
from nngp.architecture import Architecture
from nngp.covariance import closed_form
from nngp.curve import NEAR, Profile, curve_at
from nngp.curve.octaves import BITS, SHALLOW, evaluate
from nngp.gram.host.blocks import Blocks, fits, own_split
from nngp.gram.host.equal_norm import curve_error
from nngp.gram.host.gradient import by_name, split_sensitivities, total_of
from nngp.gram.host.pairwise import (
    FAR_ENOUGH,
    layer_variances,
    pairwise_error,
    snapped_correlation,
)
from nngp.gram.inputs import Inputs
from nngp.gram.plan import make_plan
from nngp.gram.split import TRIVIAL_SPLIT, KernelSplit

Array = NDArray[np.float64]
PAIRS = 4096  # near pairs handled at a time
SHIFT = 52 - BITS
DEEP = 54  # octaves of 1 - |c|: all that float64 cosines can have
CARELESS = 1e-13  # error, relative to the diagonal, for which near pairs are not done again
EPS = float(np.finfo(np.float64).eps)


class Table(NamedTuple):
    """A `Profile` on the device."""

    cubics: Any  # (2, cells, 4): c >= 0, then c < 0
    first: Any  # what the leading bits begin with
    coefs: Any
    ends: Any
    exponents: Any
    at_one: Any


class Where(NamedTuple):
    """A block: where it begins, and whether it can meet the diagonal."""

    row: Any
    column: Any
    symmetric: Any


def device_table(profile: Profile, octaves: int = SHALLOW) -> Table:
    fast, deficit = profile.table(octaves), profile.deficit
    cubics = fast.columns.T.reshape(2, fast.cells, 4)
    arrays = deficit.coefs, deficit.ends, deficit.exponent, profile.at_one
    return Table(_put(cubics), fast.first, *(_put(a) for a in arrays))


@lru_cache(maxsize=4)
def _curve_table(
    architecture: Architecture, input_var: float, split: KernelSplit, octaves: int, device: Any
) -> Table:
    """On the device that is JAX's default now; it is part of the key."""
    return device_table(split.profile(curve_at(architecture, input_var)), octaves)


@partial(jax.jit, donate_argnums=0)
def _scale_rows(X: Any, factor: Any) -> Any:
    return X * factor[:, None]


def unit_rows(X: Array, inverse_norm: Array) -> Any:
    """The rows as unit vectors on the device, where they are scaled in place."""
    with jax.enable_x64(True):
        return _scale_rows(jnp.array(X), _put(inverse_norm))  # a copy, which may be overwritten


def _default_device() -> Any:
    (device,) = jnp.zeros(()).devices()
    return device


def _put(array: Any) -> Any:
    with jax.enable_x64(True):
        return jnp.asarray(np.asarray(array, dtype=np.float64))


def _fast(table: Table, c: Any) -> Any:
    """`FastTable.apply`: the cell is in the leading bits of m = 1 - |c|, the rest is the offset."""
    return cell_values(table.cubics, table.first, c < 0, 1.0 - jnp.abs(c))


def cell_values(cubics: Any, first: Any, negative: Any, m: Any) -> Any:
    """Of tables (2, cells, 4). Twice as fast with one index that is known to be inside."""
    raw, cells = lax.bitcast_convert_type(m, jnp.int64), cubics.shape[1]
    cell = jnp.clip((raw >> SHIFT) - first, 0, cells - 1) + jnp.where(negative, cells, 0)
    offset_bits = (raw & ((1 << SHIFT) - 1)) | (1023 << 52)
    x = lax.bitcast_convert_type(offset_bits, jnp.float64) - 1.0
    rows = cubics.reshape(-1, 4).at[cell.astype(jnp.int32)]
    cubic = rows.get(mode="promise_in_bounds")
    return ((cubic[..., 3] * x + cubic[..., 2]) * x + cubic[..., 1]) * x + cubic[..., 0]


def on_diagonal(shape: tuple[int, int], where: Where) -> Any:
    i = lax.broadcasted_iota(jnp.int32, shape, 0) + where.row
    j = lax.broadcasted_iota(jnp.int32, shape, 1) + where.column
    return (i == j) & where.symmetric


def redo(
    value: Any, marked: Any, pair: Callable[[Any, Any, Any], tuple[Any, Any]]
) -> tuple[Any, Any]:
    """Replace marked entries by pair(i, j, old), some thousand at a time; the smallest gap too."""
    width = value.shape[1]

    def body(state: Any) -> Any:
        value, marked, nearest = state
        index = jnp.flatnonzero(marked, size=PAIRS, fill_value=marked.size)
        i, j = index // width, index % width
        new, gap = pair(i, j, value[i, j])
        there = index < marked.size
        nearest = jnp.minimum(nearest, jnp.where(there & (gap > 0), gap, 1.0).min())
        return value.at[i, j].set(new, mode="drop"), marked.at[i, j].set(False), nearest

    start = value, marked, jnp.ones(())
    value, _, nearest = lax.while_loop(lambda state: state[1].any(), body, start)
    return value, nearest


def near_gap(x: Any, y: Any) -> tuple[Any, Any]:
    """1 - |c| of pairs of unit vectors from their difference, and whether c is negative."""
    negative = (x * y).sum(axis=1) < 0
    gap = jnp.where(negative[:, None], x + y, x - y)
    return 0.5 * (gap * gap).sum(axis=1), negative


def _profile_values(table: Table, c: Any, x: Any, y: Any, where: Where, shift: Any) -> Any:
    """Cosines to values of a profile, with the value at 1 plus `shift` on the diagonal."""

    def pair(i: Any, j: Any, old: Any) -> tuple[Any, Any]:
        m, negative = near_gap(x[i], y[j])
        deficit = evaluate(jnp, table.coefs, table.ends, table.exponents, negative, m)
        return table.at_one - deficit, m

    diagonal = on_diagonal(c.shape, where)
    near = (jnp.abs(c) > 1 - NEAR) & ~diagonal
    value, nearest = redo(_fast(table, c), near, pair)
    return jnp.where(diagonal, table.at_one + shift, value), nearest


def _cut(left: Any, right: Any, where: Where, height: int, width: int) -> tuple[Any, Any]:
    rows = lax.dynamic_slice_in_dim(left, where.row, height)
    return rows, lax.dynamic_slice_in_dim(right, where.column, width)


@partial(jax.jit, static_argnames=("height", "width"))
def _cosine_block(left: Any, right: Any, where: Where, *, height: int, width: int) -> Any:
    x, y = _cut(left, right, where, height, width)
    return x @ y.T


@partial(jax.jit, static_argnames=("height", "width", "careful"))
def _curve_block(
    c: Any,
    left: Any,
    right: Any,
    where: Where,
    table: Table,
    shift: Any,
    *,
    height: int,
    width: int,
    careful: bool,
) -> Any:
    x, y = _cut(left, right, where, height, width)
    c = x @ y.T if c is None else c
    if careful:
        return _profile_values(table, c, x, y, where, shift)
    diagonal = on_diagonal(c.shape, where)
    return jnp.where(diagonal, table.at_one + shift, _fast(table, c)), jnp.ones(())


@partial(jax.jit, static_argnames=("height", "width"))
def _contract_block(
    G: Any, left: Any, right: Any, where: Where, tables: list[Table], *, height: int, width: int
) -> Any:
    x, y = _cut(left, right, where, height, width)
    c = x @ y.T
    return jnp.stack(
        [(G * _profile_values(table, c, x, y, where, 0.0)[0]).sum() for table in tables]
    )


@partial(jax.jit, static_argnames=("form", "height", "width"))
def _pairwise_block(
    c: Any,
    left: Any,
    right: Any,
    where: Where,
    norms: tuple[Any, Any],
    variances: tuple[Any, Any],
    weights: Any,
    biases: Any,
    shift: Any,
    *,
    form: tuple[str, float],
    height: int,
    width: int,
) -> Any:
    x, y = _cut(left, right, where, height, width)
    c = x @ y.T if c is None else c
    value = closed_form(form).value
    q1s = lax.dynamic_slice_in_dim(variances[0], where.row, height, axis=1)
    q2s = lax.dynamic_slice_in_dim(variances[1], where.column, width, axis=1)
    scale1 = lax.dynamic_slice_in_dim(norms[0], where.row, height)
    scale2 = lax.dynamic_slice_in_dim(norms[1], where.column, width)

    def layer(k: Any, cov: Any) -> Any:
        q1, q2 = q1s[k][:, None], q2s[k][None, :]
        corr = snapped_correlation(jnp, cov, q1, q2)
        return biases[k + 1] + weights[k + 1] * value(jnp, q1, q2, corr)

    def pair(i: Any, j: Any, old: Any) -> tuple[Any, Any]:
        # Unit vectors alone would take parallel inputs for duplicates.
        same = (x[i] == y[j]).all(axis=1) & (scale1[i] == scale2[j])
        gap = jnp.where(same, 1.0, jnp.maximum(1 - c[i, j], jnp.finfo(c.dtype).eps))
        return jnp.where(same, q1s[-1][i], old), gap

    cov = biases[0] + weights[0] * scale1[:, None] * scale2 * c
    cov = lax.fori_loop(0, len(weights) - 1, layer, cov)
    diagonal = on_diagonal(c.shape, where)
    cov, nearest = redo(cov, (c > 1 - FAR_ENOUGH) & ~diagonal, pair)
    return jnp.where(diagonal, q1s[-1][:, None] + shift, cov), nearest


class DeviceCosines:
    """Cosines between two sets of inputs, any block of them, on the device."""

    def __init__(self, left: Inputs, right: Inputs) -> None:
        self.left, self.right = left, right

    def block(self, rows: slice, columns: slice) -> Any:
        """The cosines of these rows with these columns."""
        return _cosine_block(
            self.left.on_device,
            self.right.on_device,
            where_of(rows, columns),
            **_size(rows, columns),
        )


class DeviceBlocks:
    """`gram.Blocks` on the device; `stored` maps (row, column) to blocks of cosines."""

    def __init__(
        self,
        architecture: Architecture,
        left: Inputs,
        right: Inputs | None = None,
        *,
        stored: dict[tuple[int, int], Any] | None = None,
        split: KernelSplit | None = TRIVIAL_SPLIT,
    ) -> None:
        self.symmetric, self.left = right is None, left
        self.right = left if right is None else right
        self.architecture, self._stored = architecture, stored
        self.plan = make_plan(architecture, self.left, self.right)
        self.split = own_split(architecture, self.plan) if split is None else split
        self.is_exact = fits(self.split, self.plan)
        self._depth, self._noise = architecture.depth, 0.0
        if not self.is_exact:
            self.split.check_shift()
        if self.plan.method == "curve" and self.plan.input_var is not None:
            self._prepare_curve(self.plan.input_var)
        else:
            self._prepare_pairwise()
        self._nearest: Any = 1.0

    def _prepare_curve(self, input_var: float) -> None:
        split = self.split if self.is_exact else TRIVIAL_SPLIT
        curve = curve_at(self.architecture, input_var)
        self._noise = curve.error
        self.diagonal = self._shifted(np.full(len(self.left), split.profile(curve).at_one))
        # As the deficit is concave, an error of eps in c moves K by D(eps) at most.
        size = max(curve.variance, TINY) if split.is_trivial else split.scale
        careless = 4 * float(curve.deficit(one_minus=EPS)) / size
        careful = careless > CARELESS
        table = _curve_table(
            self.architecture, input_var, split, SHALLOW if careful else DEEP, _default_device()
        )
        self._compute = partial(_curve_block, table=table, careful=careful)
        self._error = lambda nearest: curve_error(curve, nearest, split) + careless * (not careful)

    def _prepare_pairwise(self) -> None:
        net = self.architecture
        form = net.activation.closed_form
        both = [np.stack(layer_variances(net, s.var)) for s in (self.left, self.right)]
        self.diagonal = self._shifted(both[0][-1])
        self._compute = partial(
            _pairwise_block,
            norms=tuple(_put(np.sqrt(s.var)) for s in (self.left, self.right)),
            variances=tuple(_put(q) for q in both),
            weights=_put(net.weight_vars),
            biases=_put(net.bias_vars),
            form=form,
        )
        self._error = partial(pairwise_error, net, self.left.var)

    def block(self, rows: slice, columns: slice, *, shift: float = 0.0, out: Any = None) -> Any:
        """K of these rows and columns, with `shift` on its diagonal; `out` is of no use here."""
        cosines = None if self._stored is None else self._stored[rows.start, columns.start]
        with jax.enable_x64(True):
            value, nearest = self._compute(
                cosines,
                self.left.on_device,
                self.right.on_device,
                where_of(rows, columns, self.symmetric),
                shift=np.float64(shift if self.is_exact else shift * self.split.scale),
                **_size(rows, columns),
            )
            self._nearest = jnp.minimum(self._nearest, nearest)
            return self._shifted(value)

    def _shifted(self, values: Any) -> Any:
        return values if self.is_exact else self.split.of_whole(values)

    def error(self) -> float:
        """Largest error of the entries computed so far, relative to the diagonal."""
        error = self._error(float(self._nearest))
        if self.is_exact:
            return error
        return error + self._noise * self.split.offset + self.split.shift_error(self._depth)


class UploadedBlocks(Blocks):
    """Blocks that only the host can compute, sent to the device."""

    def block(self, rows: slice, columns: slice, *, shift: float = 0.0, out: Any = None) -> Any:
        """K of these rows and columns, with `shift` on its diagonal; `out` is of no use here."""
        return _put(super().block(rows, columns, shift=shift))


class DeviceGradient:
    """`gram.CurveGradient` on the device."""

    def __init__(
        self,
        architecture: Architecture,
        inputs: Inputs,
        input_var: float,
        per_layer: bool,
        split: KernelSplit,
    ) -> None:
        self._at_one, moved = split_sensitivities(architecture, input_var, per_layer, split)
        self._tables = [device_table(profile) for profile in moved]
        self.inputs, self.per_layer = inputs, per_layer
        self._total = _put(np.zeros(len(self._tables)))

    def contract(self, G: Any, rows: slice, columns: slice) -> None:
        """Add Σ G dK/dθ over one block."""
        self._total = self._total + _contract_block(
            G,
            self.inputs.on_device,
            self.inputs.on_device,
            where_of(rows, columns, True),
            self._tables,
            **_size(rows, columns),
        )

    def result(self, sum_of_all: float) -> dict[str, Any]:
        """The sums, by the name of the variance, given that of all entries of scale G."""
        total = total_of(np.asarray(self._total), self._at_one, sum_of_all)
        return by_name(total, self.per_layer)


def where_of(rows: slice, columns: slice, symmetric: bool = False) -> Where:
    return Where(np.int32(rows.start), np.int32(columns.start), np.bool_(symmetric))


def _size(rows: slice, columns: slice) -> dict[str, int]:
    return {"height": rows.stop - rows.start, "width": columns.stop - columns.start}
