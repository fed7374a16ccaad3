"""The tangent kernel of networks of finite width.

Weights are √(weight_var / fan-in) and biases √bias_var times variables of unit variance, and the
kernel is Θ(x, x') = Σ ∂f(x) ∂f(x') over these variables, averaged over outputs. A variable of an
affine map z = h W + b moves the outputs through z only, and rows do not see each other. So with
g = ∂f/∂z a map adds

    (bias_var + weight_var h(x)·h(x') / fan-in)  g(x)·g(x')

in which the first factor is the covariance of the map given its inputs (`empirical_kernels`). No
gradient in the weights is ever made: an output costs one backward pass, and memory is that of the
units and of the kernels of all maps. Of a convolution every position of an image is a row, as its
weights meet them all.
"""

from math import prod

import jax
import jax.numpy as jnp

from nngp._arrays import DeviceArray
from nngp.finite.batched_networks import DrawnNetwork, map_kernels, stacked
from nngp.finite.layout import UnitLayout
from nngp.finite.weights import map_inputs, node_values

PASSES = 4  # how often the units of all nodes are held: forward, backward, and both at work


def numbers_held(layout: UnitLayout, rows: int) -> int:
    """Numbers that are held for one network: units, and the kernels of all affine maps."""
    kernels = sum((rows * prod(layout.positions[i])) ** 2 for i in layout.affine)
    return PASSES * rows * layout.row + kernels + 2 * rows**2


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

    shapes = [(len(X), *layout.positions[i], layout.units[i]) for i in layout.affine]
    zeros = [jnp.zeros(shape, X.dtype) for shape in shapes]
    outputs, backward, inputs = jax.vjp(shifted, zeros, has_aux=True)
    kernels = map_kernels(net, inputs)

    def added(total: DeviceArray, one_hot: DeviceArray) -> tuple[DeviceArray, None]:
        (gradients,) = backward(jnp.broadcast_to(one_hot, outputs.shape))
        return total + sum(map(product, kernels, gradients)), None

    def product(K: DeviceArray, g: DeviceArray) -> DeviceArray:
        """Of kernels and gradients, summed over the positions of an image."""
        g = g.reshape(len(K), -1)
        n, positions = len(X), len(K) // len(X)
        return (K * (g @ g.T)).reshape(n, positions, n, positions).sum(axis=(1, 3))

    start = jnp.zeros((len(X), len(X)), X.dtype)
    total, _ = jax.lax.scan(added, start, jnp.eye(layout.n_out, dtype=X.dtype))
    return outputs, stacked(layout, kernels, len(X)), total / layout.n_out
