"""dK/d(weight_var) and dK/d(bias_var) as matrices, for scikit-learn's kernel: the recursion of
eq. 5 of a chain, forwards."""

from functools import partial

import numpy as np

from nngp._arrays import Array
from nngp.architecture import Architecture
from nngp.architecture.graph import Affine, Nonlinearity
from nngp.gram.host.cosines import in_strips
from nngp.gram.host.fill import fill
from nngp.gram.host.pair_gradient import PairwiseGradient
from nngp.gram.inputs import Inputs


def kernel_derivatives(architecture: Architecture, inputs: Inputs) -> dict[str, Array]:
    """dK/d(weight_var) and dK/d(bias_var), the variances of all layers together."""
    source, n = PairwiseGradient(architecture, inputs, per_layer=False), len(inputs)
    return {
        name: fill(n, n, partial(_moved, source, name == "weight_var"), symmetric=True)
        for name in ("weight_var", "bias_var")
    }


def _moved(source: PairwiseGradient, weight: bool, rows: slice, columns: slice) -> Array:
    """The derivative of one block."""
    block, own = source.cosines.block(rows, columns), _moved_variances(source, weight)
    for cosines, strip in in_strips(block, rows, columns):
        i, j = source.coincident(cosines, strip, columns)
        out = _moved_strip(source, weight, own, cosines, strip, columns)
        out[i, j] = own[-1][i + strip.start]
        cosines[...] = out
    return block


def _moved_strip(
    source: PairwiseGradient,
    weight: bool,
    own: list[Array],
    cosines: Array,
    rows: slice,
    columns: slice,
) -> Array:
    forward = source.forward
    value, out = forward.input_tile(cosines, rows, columns).cov, np.zeros_like(cosines)
    for index, step in enumerate(forward.steps(cosines, rows, columns), start=1):
        node = step.node
        if isinstance(node, Affine):
            out = (value if weight else 1.0) + node.weight_var * out
        elif isinstance(node, Nonlinearity):
            assert step.corr is not None
            q, moved = forward.variances[node.source][0], own[node.source]
            row, column = (moved / q)[rows][:, None], (moved / q)[columns]
            rates = forward.layers[index].value.rates(rows, columns, step.corr)
            turned = out * forward.inverse_deviations(node.source, rows, columns)
            turned -= 0.5 * step.corr * (row + column)
            out = rates.corr * turned + 0.5 * (rates.row * row + rates.column * column)
        value = step.tile.cov
    return np.asarray(out)


def _moved_variances(source: PairwiseGradient, weight: bool) -> list[Array]:
    """dK(x, x)/d(weight_var or bias_var) of every point, for the input and every node."""
    forward = source.forward
    out = [np.zeros(len(source.inputs))]
    for index, node in enumerate(source.graph, start=1):
        below = forward.variances[index - 1][0]
        if isinstance(node, Affine):
            out.append((below if weight else 1.0) + node.weight_var * out[-1])
        else:
            out.append(forward.layers[index].value.radial_moment() / below * out[-1])
    return out
