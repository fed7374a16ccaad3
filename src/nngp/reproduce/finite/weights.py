"""A network of finite width as pure functions of its weights.

Weights of layer l are drawn with variance weight_var / fan-in and biases with bias_var (paper,
sec. 2.1). The variances may be traced: networks that differ in them are drawn by one program.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp

from nngp.architecture import Activation, ActivationError

Layer = dict[str, Any]  # "w" (fan-in, fan-out), "b" (fan-out,)


def draw(key: Any, sizes: Sequence[int], weight_vars: Any, bias_vars: Any) -> list[Layer]:
    """Weights of one network; `sizes` runs from inputs to outputs, the variances have one entry for
    each affine map, and their precision is that of the weights."""
    layers = []
    for i, (fan_in, fan_out) in enumerate(pairwise(sizes)):
        key, of_w, of_b = jax.random.split(key, 3)
        dtype = weight_vars.dtype
        w = jax.random.normal(of_w, (fan_in, fan_out), dtype)
        b = jax.random.normal(of_b, (fan_out,), dtype)
        layers.append(scaled(w, b, weight_vars[i], bias_vars[i]))
    return layers


def scaled(w: Any, b: Any, weight_var: Any, bias_var: Any) -> Layer:
    """A layer of the prior from numbers that are normal with variance 1."""
    return {"w": w * jnp.sqrt(weight_var / w.shape[-2]), "b": b * jnp.sqrt(bias_var)}


def preactivations(layers: Sequence[Layer], activation: Activation, X: Any) -> list[Any]:
    """z^0 .. z^L for inputs in rows; the last is the network's output."""
    z = [X @ layers[0]["w"] + layers[0]["b"]]
    for layer in layers[1:]:
        z.append(activation.fn(z[-1]) @ layer["w"] + layer["b"])
    return z


def forward(layers: Sequence[Layer], activation: Activation, X: Any) -> Any:
    """The network's outputs for inputs in rows."""
    return preactivations(layers, activation, X)[-1]


def check_traceable(activation: Activation) -> None:
    """A finite network needs an activation that JAX can trace; say so before any work."""
    try:
        jax.eval_shape(activation.fn, jax.ShapeDtypeStruct((2, 3), jnp.float32))
    except Exception as cause:  # whatever a user's function does with a tracer
        raise ActivationError(
            f"activation '{activation.name}' does not work on JAX arrays, which finite networks "
            "need; write it with jax.numpy, or use one of nngp.activation_names()"
        ) from cause
