"""A network of finite width as pure functions of its weights.

Weights of an affine map are drawn with variance weight_var / fan-in and biases with bias_var
(paper, sec. 2.1). The variances may be traced: networks that differ in them are drawn by one
program. The shape of a network is known to `node_values` alone, which walks its graph.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import accumulate
from math import prod
from operator import add, mul
from typing import Any

import jax
import jax.numpy as jnp

from nngp.architecture import Activation
from nngp.architecture.graph import (
    INPUT,
    Added,
    Affine,
    Joined,
    Masked,
    Multiplied,
    Node,
    Nonlinearity,
    Normalised,
    Windowed,
)
from nngp.architecture.planes import AxisWindow
from nngp.errors import ActivationError
from nngp.finite.layout import UnitLayout

DeviceArray = Any  # a JAX array, or its tracer; a NumPy array where JAX takes one
ArrayTree = Any  # arrays in lists, tuples and dicts: a JAX pytree
Layer = dict[str, DeviceArray]  # "w" (fan-in, fan-out), "b" (fan-out,)


def layers_from(
    shapes: Sequence[tuple[int, int]],
    normals: DeviceArray,
    weight_vars: DeviceArray,
    bias_vars: DeviceArray,
) -> list[Layer]:
    """Cut a row of standard normal numbers into the affine maps of one network, and scale them.

    Shapes and variances have one entry for each affine map. All numbers come in one row because
    each call for random numbers takes JAX long to compile.
    """
    layers, at = [], 0
    for i, (fan_in, fan_out) in enumerate(shapes):
        middle, end = at + fan_in * fan_out, at + (fan_in + 1) * fan_out
        w = normals[at:middle].reshape(fan_in, fan_out) * jnp.sqrt(weight_vars[i] / fan_in)
        layers.append({"w": w, "b": normals[middle:end] * jnp.sqrt(bias_vars[i])})
        at = end
    return layers


def draw_masks(layout: UnitLayout, key: DeviceArray, rows: int) -> dict[int, DeviceArray]:
    """Draw for each dropout, by the index of its node, which units of each row are kept. A row's
    masks depend on its number, and not on how many rows there are."""
    masked = [(i, node.keep) for i, node in enumerate(layout.graph, 1) if isinstance(node, Masked)]
    shapes = [(*layout.positions[i], layout.units[i]) for i, _ in masked]
    ends = list(accumulate(prod(shape) for shape in shapes))

    def uniform(row: DeviceArray) -> DeviceArray:
        return jax.random.uniform(jax.random.fold_in(key, row), (ends[-1],), jnp.float32)

    parts = jnp.split(jax.vmap(uniform)(jnp.arange(rows)), ends[:-1], axis=1)
    return {
        i: part.reshape(rows, *shape) < keep
        for (i, keep), shape, part in zip(masked, shapes, parts, strict=True)
    }


def node_values(
    layout: UnitLayout,
    layers: Sequence[Layer],
    X: DeviceArray,
    masks: Mapping[int, DeviceArray] | None = None,
    shifts: Sequence[DeviceArray] | None = None,
) -> list[DeviceArray]:
    """Compute the units of every node for inputs in rows, the inputs themselves first. Units of
    images are (rows, height, width, channels).

    Without masks, dropout passes units on as they are. `shifts` are added to the affine maps, one
    array each: gradients in them are those that tangent kernels are made of.
    """
    values, maps = [X], 0
    repeated = jnp.tile(X, (1, layout.copies)) if layout.copies > 1 else X
    for index, node in enumerate(layout.graph, start=1):
        if isinstance(node, Affine):
            z = values[node.source] @ layers[maps]["w"] + layers[maps]["b"]
            values.append(z if shifts is None else z + shifts[maps])
            maps += 1
        else:
            own = [repeated if one == INPUT else values[one] for one in node.sources]
            values.append(_units(node, own, None if masks is None else masks.get(index)))
    return values


def _units(node: Node, own: Sequence[DeviceArray], mask: DeviceArray | None) -> DeviceArray:
    """The units of a node that has no weights."""
    match node:
        case Nonlinearity(activation=phi):
            return phi.apply(own[0])
        case Normalised():
            centred = own[0] - own[0].mean(axis=-1, keepdims=True)
            return centred / jnp.sqrt(jnp.mean(centred**2, axis=-1, keepdims=True))
        case Masked(keep=keep):
            return own[0] if mask is None else jnp.where(mask, own[0] / keep, 0)
        case Added():
            return reduce(add, own)
        case Multiplied():
            return reduce(mul, own)
        case Joined():
            return jnp.concatenate(own, axis=-1)
        case Windowed():
            return _through_windows(node, own[0])
    raise TypeError(f"{type(node).__name__} is an affine map, or no node at all")


def _through_windows(node: Windowed, x: DeviceArray) -> DeviceArray:
    """The units of an image, (rows, height, width, channels), or those that it leaves."""
    if node.kind == "image":
        assert node.window is not None
        copies = x.shape[1] // (prod(node.window) * node.channels)
        x = x.reshape(len(x), copies, *node.window, node.channels)
        return jnp.moveaxis(x, 1, 3).reshape(len(x), *node.window, copies * node.channels)
    if node.window is None:
        return x.reshape(len(x), -1) if node.kind == "flat" else x.mean(axis=(1, 2))
    mode = "wrap" if node.padding == "circular" else "constant"
    windows = [AxisWindow.of(node, axis, x.shape[axis + 1]) for axis in (0, 1)]
    x = jnp.pad(x, [(0, 0), *((one.low, one.high) for one in windows), (0, 0)], mode=mode)
    down, across = windows
    seen = [
        x[:, i : i + (down.out - 1) * down.stride + 1 : down.stride][
            :, :, j : j + (across.out - 1) * across.stride + 1 : across.stride
        ]
        for i in range(down.window)
        for j in range(across.window)
    ]
    return sum(seen) / len(seen) if node.kind == "mean" else jnp.concatenate(seen, axis=-1)


def map_inputs(layout: UnitLayout, values: Sequence[DeviceArray]) -> list[DeviceArray]:
    """Inputs of each affine map, from the values of all nodes."""
    return [values[source] for i in layout.affine for source in layout.graph[i - 1].sources]


def forward(
    layout: UnitLayout,
    layers: Sequence[Layer],
    X: DeviceArray,
    masks: Mapping[int, DeviceArray] | None = None,
) -> DeviceArray:
    """Compute the network's outputs for inputs in rows."""
    return node_values(layout, layers, X, masks)[-1][:, : layout.n_out]


def check_traceable(activation: Activation) -> None:
    """Raise ActivationError unless JAX can trace the activation."""
    try:
        jax.eval_shape(activation.apply, jax.ShapeDtypeStruct((2, 3), jnp.float32))
    except Exception as cause:  # a user's function may do anything with a tracer
        raise ActivationError(
            f"activation '{activation.name}' does not work on JAX arrays, which finite networks "
            "need; write it with jax.numpy, or use one of nngp.activations.names()"
        ) from cause
