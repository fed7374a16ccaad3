"""A network of finite width as pure functions of its weights.

Weights of layer l are drawn with variance weight_var / fan-in and biases with bias_var (paper,
sec. 2.1). The variances may be traced: networks that differ in them are drawn by one program.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp

from nngp.architecture import Activation
from nngp.errors import ActivationError

DeviceArray = Any  # a JAX array, or its tracer; a NumPy array where JAX takes one
ArrayTree = Any  # arrays in lists, tuples and dicts: a JAX pytree
Layer = dict[str, DeviceArray]  # "w" (fan-in, fan-out), "b" (fan-out,)


def count_weights(sizes: Sequence[int]) -> int:
    """Number of weights and biases of a network; `sizes` runs from inputs to outputs."""
    return sum((fan_in + 1) * fan_out for fan_in, fan_out in pairwise(sizes))


def layers_from(
    sizes: Sequence[int], normals: DeviceArray, weight_vars: DeviceArray, bias_vars: DeviceArray
) -> list[Layer]:
    """Cut a row of standard normal numbers into the layers of one network, and scale them.

    The variances have one entry for each affine map. All numbers come in one row because each call
    for random numbers takes JAX long to compile.
    """
    layers, at = [], 0
    for i, (fan_in, fan_out) in enumerate(pairwise(sizes)):
        middle, end = at + fan_in * fan_out, at + (fan_in + 1) * fan_out
        w = normals[at:middle].reshape(fan_in, fan_out) * jnp.sqrt(weight_vars[i] / fan_in)
        layers.append({"w": w, "b": normals[middle:end] * jnp.sqrt(bias_vars[i])})
        at = end
    return layers


def preactivations(
    layers: Sequence[Layer], activation: Activation, X: DeviceArray
) -> list[DeviceArray]:
    """Compute z^0 .. z^L for inputs in rows; the last is the network's output."""
    z = [X @ layers[0]["w"] + layers[0]["b"]]
    for layer in layers[1:]:
        z.append(activation.fn(z[-1]) @ layer["w"] + layer["b"])
    return z


def forward(layers: Sequence[Layer], activation: Activation, X: DeviceArray) -> DeviceArray:
    """Compute the network's outputs for inputs in rows."""
    return preactivations(layers, activation, X)[-1]


def check_traceable(activation: Activation) -> None:
    """Raise ActivationError unless JAX can trace the activation."""
    try:
        jax.eval_shape(activation.fn, jax.ShapeDtypeStruct((2, 3), jnp.float32))
    except Exception as cause:  # a user's function may do anything with a tracer
        raise ActivationError(
            f"activation '{activation.name}' does not work on JAX arrays, which finite networks "
            "need; write it with jax.numpy, or use one of nngp.activation_names()"
        ) from cause
