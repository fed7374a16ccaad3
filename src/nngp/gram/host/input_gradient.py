"""Derivatives of the kernel in an input: what gradients of predictions are made of.

A kernel is a function of q = x·x/d, of q' and of s = x·x'/d. An input moves across its sphere,
which changes the cosine, or along its own direction, which changes q at a fixed cosine:

    ∂k(x, x')/∂x = V (x' - (s/q) x) / d + 2 U x / d,    V = ∂k/∂s,    U = ∂k/∂q at a fixed cosine.

Where all inputs share one norm, k is a curve F(q, c) of which both are known: V = F_c / q, and
U = F_q / 2, as the other input has the other half. Otherwise the walk gives them, in forward mode.

For two inputs in one direction the first part is zero. At x = x' itself the limit from either side
may differ (tangent kernels of relu: their slope jumps there); the result is then the mean of both.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from nngp._arrays import Array
from nngp._threads import in_threads
from nngp.architecture import Invariant, Network, WithHead
from nngp.architecture.walk import output, walk
from nngp.curve import NEAR, curve_at
from nngp.gram.host.derivatives import Moved, TileRates, VarianceRates
from nngp.gram.host.pair_gradient import PairwiseGradient
from nngp.gram.host.tiles import Cosines, strips
from nngp.gram.inputs import Inputs
from nngp.gram.plan import make_plan
from nngp.gram.split import KernelSplit

COLUMNS = 2048  # of a block
OWN_ROWS = 64  # of an average, whose own values are differentiated at a time
PARALLEL = 1e-14  # 1 - |c|, below which inputs have one direction


class _Rates(Protocol):
    """The derivatives U and V of a kernel between two sets of inputs."""

    own: Array  # dk(x, x)/dq of the left inputs

    def block(self, rows: slice, columns: slice) -> tuple[Array, Array, Array]:
        """The cosines of a block, with U and V."""


class _CurveRates:
    """Of inputs that share one norm. At infinite depth they stay on their sphere."""

    def __init__(self, network: Network, left: Inputs, right: Inputs, input_var: float) -> None:
        self._left, self._right, self._q = left, right, input_var
        self._curve, self._cosines = curve_at(network, input_var), Cosines(left, right)
        self._radial = None if network.is_infinite else self._curve.in_input_var
        self.own = np.full(len(left), 0.0 if self._radial is None else self._radial.at_one)

    def block(self, rows: slice, columns: slice) -> tuple[Array, Array, Array]:
        c = np.clip(self._cosines.block(rows, columns), -1.0, 1.0)
        negative, m = c < 0, 1.0 - np.abs(c)
        i, j = np.nonzero(m < NEAR)
        if len(i):  # where inner products have lost what matters
            x, y = self._left.unit(i + rows.start), self._right.unit(j + columns.start)
            gap = np.where(negative[i, j][:, None], x + y, x - y)
            m[i, j] = 0.5 * np.einsum("ij,ij->i", gap, gap)
        across = self._curve.derivative(one_minus=np.where(negative, 2.0 - m, m)) / self._q
        across[m < PARALLEL] = 0.0
        if self._radial is None:
            return c, np.zeros_like(c), across
        return c, 0.5 * self._radial.at_signed(negative, m), across


class _PairRates:
    """Of inputs of any norms."""

    def __init__(self, network: Network, left: Inputs, right: Inputs) -> None:
        self._network, self._m = network, len(left)
        self._source = source = PairwiseGradient(network, left.joined(right), per_layer=False)
        zero, moves = np.zeros(len(source.inputs)), np.zeros(len(source.inputs))
        moves[: self._m] = 1.0
        still, along = (VarianceRates("", source.forward.crossings) for _ in range(2))
        output(walk(network, still, Moved(source.inputs.var, zero)))
        own = output(walk(network, along, Moved(source.inputs.var, moves))).rate
        self._still, self._along, self.own = still.entering, along.entering, own[: self._m]

    def block(self, rows: slice, columns: slice) -> tuple[Array, Array, Array]:
        columns = slice(self._m + columns.start, self._m + columns.stop)
        c = self._source.cosines.block(rows, columns)
        tile, q = self._source.forward.input_tile(c, rows, columns), self._source.inputs.var[rows]
        half = np.divide(0.5, q, out=np.zeros_like(q), where=q > 0)[:, None]
        along = self._rate(self._along, Moved(tile, tile * half), rows, columns)
        across = self._rate(self._still, Moved(tile, np.ones_like(tile)), rows, columns)
        i, j = self._source.coincident(c, rows, columns)
        along[i, j], across[i, j] = 0.5 * self.own[rows][i], 0.0
        across[1.0 - np.abs(c) < PARALLEL] = 0.0
        return c, along, across

    def _rate(self, entering: Sequence[Array], inputs: Moved, rows: slice, columns: slice) -> Array:
        crossings = self._source.forward.crossings
        operations = TileRates("", crossings, entering, rows, columns)
        rate = output(walk(self._network, operations, inputs)).rate
        return np.broadcast_to(rate, inputs.value.shape).copy()


class InputGradient:
    """Gradients in the left inputs of sums over the right ones, Σ_j G_ij M(x_i, x_j), and of
    M(x_i, x_i), for the M of a split."""

    def __init__(self, network: Network, left: Inputs, right: Inputs, split: KernelSplit) -> None:
        check_differentiable(network, left.shape[1])
        self._network, self._left, self._right, self._split = network, left, right, split

    def contract(self, weights: Sequence[Array]) -> list[Array]:
        """The gradient of the sum, (m, d), for each G: (m, n), or (1, n) if all rows share it."""
        base, out = self._network.base, [np.zeros_like(self._left.X) for _ in weights]
        for weight, right in self._terms():
            for total, part in zip(
                out, _contract(_rates(base, self._left, right), self._left, right, weights),
                strict=True,
            ):  # fmt: skip
                total += weight / self._split.scale * part
        return out

    def own(self) -> Array:
        """The gradient of M(x, x), (m, d)."""
        base, d = self._network.base, self._left.shape[1]
        if self._network is base:
            rate = _rates(base, self._left, self._left.take(np.arange(1))).own
            return 2 / d / self._split.scale * rate[:, None] * self._left.X
        out = np.zeros_like(self._left.X)  # an average: both of its arguments move alike
        for start in range(0, len(out), OWN_ROWS):
            rows = np.arange(start, min(start + OWN_ROWS, len(out)))
            same = self._left.take(rows)
            part = InputGradient(self._network, same, same, self._split)
            out[rows] = 2 * part.contract([np.eye(len(rows))])[0]
        return out

    def _terms(self) -> list[tuple[float, Inputs]]:
        """The right inputs as each kernel of an average has them, and its weight."""
        if not isinstance(self._network, Invariant):
            return [(1.0, self._right)]
        return [
            (one.weight, Inputs(np.ascontiguousarray(one.order(self._right.X)), self._right.var))
            for one in self._network.orbit(self._left.shape[1]).terms()
        ]


def check_differentiable(network: Network, columns: int) -> None:
    """Raise TypeError for networks whose derivatives in the inputs are not known."""
    if network.base.planes is not None:
        raise TypeError(
            "gradients in the inputs are not available for networks of images; differentiate "
            "nngp.jax_kernel"
        )
    moved = isinstance(network, Invariant) and network.orbit(columns).has_functions
    if moved or isinstance(network, WithHead):
        what = "an average over functions of rows" if moved else "an nngp.WithHead network"
        raise TypeError(
            f"gradients in the inputs of {what} are not known; take those of its network"
        )


def _rates(network: Network, left: Inputs, right: Inputs) -> _Rates:
    plan = make_plan(network, left, right)
    if plan.method == "curve" and plan.input_var and not network.has_masks:
        return _CurveRates(network, left, right, plan.input_var)
    return _PairRates(network, left, right)


def _contract(rates: _Rates, left: Inputs, right: Inputs, weights: Sequence[Array]) -> list[Array]:
    """∂/∂x_i of Σ_j G_ij k(x_i, x_j) for each G, some rows a thread."""
    d, size = left.shape[1], min(COLUMNS, len(right))
    out = [np.zeros_like(left.X) for _ in weights]

    def job(rows: slice) -> None:
        q, X = left.var[rows], left.X[rows]
        root = np.sqrt(q)
        inverse = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
        for start in range(0, len(right), size):
            columns = slice(start, min(start + size, len(right)))
            c, along, across = rates.block(rows, columns)
            turned = across * c
            turned *= inverse[:, None]
            turned *= np.sqrt(right.var[columns])  # V s / q
            for total, G in zip(out, weights, strict=True):
                part = G[:, columns] if len(G) == 1 else G[rows, columns]
                total[rows] += (part * across) @ right.X[columns]
                total[rows] += np.sum(part * (2 * along - turned), axis=1)[:, None] * X

    in_threads(job, strips(slice(0, len(left)), slice(0, size)))
    return [total / d for total in out]
