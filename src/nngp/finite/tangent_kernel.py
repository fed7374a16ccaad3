"""The tangent kernel of networks of finite width.

Weights are √(weight_var / fan-in) and biases √bias_var times variables of unit variance, and the
kernel is Θ(x, x') = Σ ∂f(x) ∂f(x') over these variables, averaged over outputs. A variable of an
affine map z = h W + b moves the outputs through z only, and rows do not see each other. So with
g = ∂f/∂z a map adds

    (bias_var + weight_var h(x)·h(x') / fan-in)  g(x)·g(x')

in which the first factor is the covariance of the map given its inputs (`empirical_kernels`). No
gradient in the weights is ever made: an output costs one backward pass, and memory is that of the
units and of the kernels of all maps.
"""

import jax
import jax.numpy as jnp

from nngp._arrays import DeviceArray
from nngp.finite.batched_networks import DrawnNetwork, map_kernels, output_last
from nngp.finite.layout import UnitLayout
from nngp.finite.weights import map_inputs, node_values

PASSES = 4  # how often the units of all nodes are held: forward, backward, and both at work


def numbers_held(layout: UnitLayout, rows: int) -> int:
    """Numbers that are held for one network: units, and the kernels of all affine maps."""
    return PASSES * rows * layout.row + (len(layout.affine) + 2) * rows**2


def tangent_kernel(net: DrawnNetwork, X: DeviceArray) -> DeviceArray:
    """The tangent kernel, (n, n)."""
    return outputs_and_tangents(net, X)[2]


def outputs_and_tangents(
    net: DrawnNetwork, X: DeviceArray
) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    """Outputs (n, n_out), kernels of affine maps and outputs, and the tangent kernel (n, n)."""
    layout, masks = net.layout, net.masks(len(X))

    def shifted(shifts: list[DeviceArray]) -> tuple[DeviceArray, list[DeviceArray]]:
        values = node_values(layout, net.layers, X, masks, shifts)
        return values[-1][:, : layout.n_out], map_inputs(layout, values)

    zeros = [jnp.zeros((len(X), fan_out), X.dtype) for _, fan_out in layout.shapes]
    outputs, backward, inputs = jax.vjp(shifted, zeros, has_aux=True)
    kernels = map_kernels(net, inputs)

    def added(total: DeviceArray, one_hot: DeviceArray) -> tuple[DeviceArray, None]:
        (gradients,) = backward(jnp.broadcast_to(one_hot, outputs.shape))
        products = [K * (g @ g.T) for K, g in zip(kernels, gradients, strict=True)]
        return total + sum(products), None

    start = jnp.zeros((len(X), len(X)), X.dtype)
    total, _ = jax.lax.scan(added, start, jnp.eye(layout.n_out, dtype=X.dtype))
    return outputs, jnp.stack(output_last(layout, kernels)), total / layout.n_out
