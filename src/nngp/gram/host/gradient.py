"""Sums Σ G_ij dK_ij/dθ over blocks of pairs, for θ the weight and bias variances and the inputs.

Takes a matrix G block by block (the evidence's, say), in units of a split: scale G, and the sum of
all entries of that apart. Gives its product with the derivatives of the kernel. With equal norms
those are look-ups, like the kernel: dK = dv 11ᵀ - dD, and what multiplies dv is the sum. With other
norms the recursion is run backwards through each block, which gives every layer's derivative in one
pass.
"""

import threading
from functools import partial

import numpy as np

from nngp._arrays import EPS, Array, Index
from nngp.architecture import Architecture
from nngp.covariance import closed_form, derivatives
from nngp.errors import VarianceError
from nngp.gram.host.equal_norm import ProfileTransform
from nngp.gram.host.fill import fill
from nngp.gram.host.matrix import Cosines, in_strips
from nngp.gram.host.pairwise import TOLERANCE, PairwiseTransform
from nngp.gram.inputs import Inputs
from nngp.gram.kernel_matrix import Gradient
from nngp.gram.sensitivities import CurveSensitivities, by_name
from nngp.gram.split import TRIVIAL_SPLIT, KernelSplit


class CurveGradient:
    """`GradientSums` of equal-norm inputs: one look-up for each variance that can move."""

    def __init__(self, sensitivities: CurveSensitivities, inputs: Inputs) -> None:
        self._sensitivities, self._cosines = sensitivities, Cosines(inputs, inputs)
        profiles = sensitivities.profiles
        self._transforms = [ProfileTransform(profile, inputs, inputs) for profile in profiles]
        self._total, self._lock = np.zeros(len(profiles)), threading.Lock()

    def contract(self, G: Array, rows: slice, columns: slice) -> None:
        block = self._cosines.block(rows, columns)
        out = np.zeros_like(self._total)
        parts = zip(in_strips(block, rows, columns), in_strips(G, rows, columns), strict=True)
        for (cosines, strip), (weights, _) in parts:
            for k, transform in enumerate(self._transforms):
                values = cosines.copy()
                transform(values, strip, columns)
                out[k] += np.vdot(weights, values)
        with self._lock:
            self._total += out

    def result(self, sum_of_all: float) -> Gradient:
        return self._sensitivities.by_parameter(self._total, sum_of_all)


class PairwiseGradient:
    """`GradientSums` of inputs of any norms: the recursion of eq. 5 backwards, block by block, then
    along the variances."""

    def __init__(
        self,
        architecture: Architecture,
        inputs: Inputs,
        per_layer: bool,
        per_input: bool = False,
        split: KernelSplit = TRIVIAL_SPLIT,
    ) -> None:
        self.architecture, self.inputs, self.split = architecture, inputs, split
        self.per_layer, self.per_input = per_layer, per_input
        self.cosines = Cosines(inputs, inputs)
        self.forward = PairwiseTransform(architecture, inputs, inputs)
        layers = architecture.depth + 1
        if any((q[0] == 0).any() for q in self.forward.variances[:-1]):
            raise VarianceError("derivatives need a positive variance in every layer; add bias_var")
        self._weights, self._biases = np.zeros(layers), np.zeros(layers)
        self._in_var = np.zeros((layers, len(inputs)))  # by layer and point
        self._in_product = np.zeros(inputs.X.shape[1])  # Σ G x_ij x_kj of every input j
        self._lock = threading.Lock()

    def contract(self, G: Array, rows: slice, columns: slice) -> None:
        block, G = self.cosines.block(rows, columns), np.array(G)  # from a device too
        parts = zip(in_strips(block, rows, columns), in_strips(G, rows, columns), strict=True)
        for (cosines, strip), (weights, _) in parts:
            self._strip(weights, cosines, strip, columns)

    def _strip(self, G: Array, cosines: Array, rows: slice, columns: slice) -> None:
        weights = self.architecture.weight_vars
        depth = self.architecture.depth
        in_var = np.zeros_like(self._in_var)
        # Duplicates, the diagonal among them, are variances: they go down another way.
        i, j = self._coincident(cosines, rows, columns)
        np.add.at(in_var[-1], i + rows.start, G[i, j])
        G[i, j] = 0.0
        steps = list(self.forward.steps(cosines, rows, columns))
        to_weights, to_biases = np.zeros(depth + 1), np.zeros(depth + 1)
        for layer in range(depth, 0, -1):
            q1, q2 = self.forward.entering(layer, rows, columns)
            corr = steps[layer].corr
            to_biases[layer], to_weights[layer] = G.sum(), np.vdot(G, steps[layer].value)
            slope, first, second = self._derivatives(layer - 1, q1, q2, corr, rows, columns)
            G *= weights[layer]
            # F as a function of (q1, q2, cov): the correlation moves with the variances too.
            turned = corr * slope
            by_row, by_column = (
                np.einsum(sums, G, radial - turned)
                for sums, radial in (("ij,ij->i", first), ("ij,ij->j", second))
            )
            in_var[layer - 1, rows] += by_row / (2 * q1[:, 0])
            in_var[layer - 1, columns] += by_column / (2 * q2[0])
            G *= slope
            G /= np.sqrt(q1)
            G /= np.sqrt(q2)
        to_biases[0], to_weights[0] = G.sum(), np.vdot(G, steps[0].value)
        X = self.inputs.X
        in_product = np.einsum("ij,ij->j", X[rows], G @ X[columns]) if self.per_input else 0.0
        with self._lock:
            self._in_product += in_product
            self._weights += to_weights
            self._biases += to_biases
            self._in_var += in_var

    def _coincident(self, cosines: Array, rows: slice, columns: slice) -> tuple[Index, Index]:
        i, j = np.nonzero(cosines > 1 - 1e-6)
        X = self.inputs.X
        same = np.all(X[i + rows.start] == X[j + columns.start], axis=1)
        return i[same], j[same]

    def _derivatives(
        self, layer: int, q1: Array, q2: Array, corr: Array, rows: slice, columns: slice
    ) -> tuple[Array, Array, Array]:
        """dF/dc, 2 q1 dF/dq1 and 2 q2 dF/dq2 at fixed c."""
        phi = self.architecture.activation
        if phi.closed_form is not None:
            form, size = closed_form(phi.closed_form), np.sqrt(q1) * np.sqrt(q2)
            c = corr.clip(EPS - 1, 1 - EPS)  # where phi jumps the slope at ±1 is infinite
            slope, first, second = form.rates(np, q1, q2, c)
            return size * slope, first, second
        table, index = self.forward.expansions[layer]
        i, j = index[: self.forward.size][rows], index[self.forward.size :][columns]
        out = table.tile_derivatives(i, j, corr)
        poor = np.nonzero(table.tile_error(i, j, corr) > TOLERANCE)
        if len(poor[0]):
            pairs = q1[poor[0], 0], q2[0, poor[1]], corr[poor]
            slope, first, second, _ = derivatives(phi, *pairs, TOLERANCE)
            parts = np.sqrt(pairs[0]) * np.sqrt(pairs[1]) * slope, first, second
            for tile, part in zip(out, parts, strict=True):
                tile[poor] = part
        return out

    def _radial_moment(self, layer: int, q: Array) -> Array:
        """q d E[phi²]/dq of every point."""
        phi = self.architecture.activation
        if phi.closed_form is not None:
            return np.asarray(closed_form(phi.closed_form).radial(np, q, q, np.ones_like(q)))
        table, index = self.forward.expansions[layer]
        return table.radial_moment()[index[: self.forward.size]]

    def moved(self, weight: bool, rows: slice, columns: slice) -> Array:
        """dK/d(weight_var), or dK/d(bias_var), of one block, for all layers together: the
        recursion forwards."""
        block, own = self.cosines.block(rows, columns), self._moved_variances(weight)
        for cosines, strip in in_strips(block, rows, columns):
            i, j = self._coincident(cosines, strip, columns)
            steps = list(self.forward.steps(cosines, strip, columns))
            out = steps[0].value if weight else np.ones_like(cosines)
            for layer in range(1, self.architecture.depth + 1):
                q1, q2 = self.forward.entering(layer, strip, columns)
                dq1, dq2 = own[layer - 1][strip][:, None], own[layer - 1][columns]
                corr = steps[layer].corr
                slope, first, second = self._derivatives(layer - 1, q1, q2, corr, strip, columns)
                turned = out / (np.sqrt(q1) * np.sqrt(q2)) - 0.5 * corr * (dq1 / q1 + dq2 / q2)
                inner = slope * turned + first * dq1 / (2 * q1) + second * dq2 / (2 * q2)
                direct = steps[layer].value if weight else 1.0
                out = direct + self.architecture.weight_vars[layer] * inner
            out[i, j] = own[-1][i + strip.start]
            cosines[...] = out
        return block

    def _moved_variances(self, weight: bool) -> list[Array]:
        """dK^l(x, x)/d(weight_var or bias_var) of every point and layer."""
        architecture = self.architecture
        variances = [q for q, _ in self.forward.variances]
        out = [self.inputs.var if weight else np.ones(len(self.inputs))]
        for layer in range(1, architecture.depth + 1):
            scale, bias = architecture.weight_vars[layer], architecture.bias_vars[layer]
            direct = (variances[layer] - bias) / scale if weight else 1.0
            below = variances[layer - 1]
            out.append(direct + scale * self._radial_moment(layer - 1, below) / below * out[-1])
        return out

    def result(self, sum_of_all: float = 0.0) -> Gradient:
        """The sums; `sum_of_all` has no part in them, as the recursion meets all entries of G."""
        architecture, in_var = self.architecture, self._in_var.copy()
        to_weights, to_biases = self._weights.copy(), self._biases.copy()
        variances = [q for q, _ in self.forward.variances]
        for layer in range(architecture.depth, 0, -1):
            weight, bias = architecture.weight_vars[layer], architecture.bias_vars[layer]
            down, q = in_var[layer], variances[layer - 1]
            to_biases[layer] += down.sum()
            to_weights[layer] += down @ ((variances[layer] - bias) / weight)
            in_var[layer - 1] += down * weight * self._radial_moment(layer - 1, q) / q
        to_biases[0] += in_var[0].sum()
        to_weights[0] += in_var[0] @ self.inputs.var
        per_layer = np.concatenate([to_weights, to_biases])
        summed = np.array([to_weights.sum(), to_biases.sum()])
        out = by_name(per_layer, True) if self.per_layer else by_name(summed, False)
        if self.per_input:
            X, d = self.inputs.X, self.inputs.X.shape[1]
            moved = self._in_product + in_var[0] @ (X * X)
            out["relevance"] = architecture.weight_vars[0] / d * moved
        return {name: value / self.split.scale for name, value in out.items()}


def kernel_derivatives(architecture: Architecture, inputs: Inputs) -> dict[str, Array]:
    """dK/d(weight_var) and dK/d(bias_var) as matrices, the variances of all layers together."""
    source, n = PairwiseGradient(architecture, inputs, per_layer=False), len(inputs)
    return {
        name: fill(n, n, partial(source.moved, name == "weight_var"), symmetric=True)
        for name in ("weight_var", "bias_var")
    }
