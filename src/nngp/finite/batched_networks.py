"""Many networks drawn from the prior, some at a time: values of a function of each network.

Takes the prior and a function of one drawn network; gives the function's values for all networks as
NumPy arrays with one network a row. The weights themselves are not kept.

Reproducibility: network i is drawn from a key of its own, made of the seed, the hidden widths and
i. So it is the same however many networks are drawn, and however many fit in memory at a time.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from nngp._arrays import DeviceArray
from nngp._numbers import whole_number
from nngp.architecture.graph import Added, Affine, Normalised
from nngp.errors import VarianceError
from nngp.finite.layout import UnitLayout
from nngp.finite.weights import (
    ArrayTree,
    Layer,
    draw_masks,
    forward,
    layers_from,
    map_inputs,
    node_values,
)
from nngp.linsolve import CpuEngine

AT_A_TIME = 16 * 2**20  # bytes of weights and layers: about what caches hold, so faster than more

# Folded into a network's key, for independent random numbers:
WEIGHT_STREAM, MASK_STREAM = 0, 2


class DrawnNetwork(NamedTuple):
    """One network, and the prior that it comes from."""

    layers: list[Layer]
    layout: UnitLayout
    weight_vars: DeviceArray
    bias_vars: DeviceArray
    key: DeviceArray  # None where weights were given, and no masks are wanted

    def masks(self, rows: int) -> dict[int, DeviceArray] | None:
        """Its dropout masks for so many rows; None without dropout, or without a key."""
        if self.key is None or not self.layout.has_masks:
            return None
        return draw_masks(self.layout, jax.random.fold_in(self.key, MASK_STREAM), rows)


NetworkFunction = Callable[..., ArrayTree]  # of a `DrawnNetwork` and the data


@dataclass(frozen=True)
class OfWeights:
    """A user's function of weights, a key and the data, as one of a drawn network. Two of the same
    function are equal, so that it is compiled once."""

    function: Callable[..., ArrayTree]

    def __call__(self, net: DrawnNetwork, *data: DeviceArray) -> ArrayTree:
        return self.function(net.layers, jax.random.fold_in(net.key, MASK_STREAM), *data)


class NetworkPrior(NamedTuple):
    """The distribution that networks of one shape are drawn from."""

    layout: UnitLayout
    weight_vars: tuple[float, ...]  # of each affine map
    bias_vars: tuple[float, ...]

    @property
    def n_weights(self) -> int:
        """Weights and biases of one network."""
        return self.layout.n_weights


def weights(net: DrawnNetwork) -> list[Layer]:
    """The weights themselves."""
    return net.layers


def outputs(net: DrawnNetwork, X: DeviceArray) -> DeviceArray:
    """The outputs, (n, n_out)."""
    return forward(net.layout, net.layers, X, net.masks(len(X)))


def hidden(net: DrawnNetwork, X: DeviceArray) -> list[DeviceArray]:
    """The inputs of each affine map: in a chain X, then phi(z^0) .. phi(z^(L-1))."""
    return map_inputs(net.layout, node_values(net.layout, net.layers, X, net.masks(len(X))))


def kernels(net: DrawnNetwork, X: DeviceArray) -> DeviceArray:
    """The covariance of each affine map given what goes into it, (maps, n, n), and that of the
    outputs if these are not an affine map."""
    return stacked(net.layout, map_kernels(net, hidden(net, X)), len(X))


def map_kernels(net: DrawnNetwork, inputs: Sequence[DeviceArray]) -> list[DeviceArray]:
    """The covariance of each affine map given its inputs. Every position of an image is a row."""
    rows = [h.reshape(-1, h.shape[-1]) for h in inputs]
    layers = zip(net.weight_vars, net.bias_vars, rows, strict=True)
    return [b + w * h @ h.T / h.shape[1] for w, b, h in layers]


def stacked(layout: UnitLayout, of_maps: Sequence[DeviceArray], rows: int) -> DeviceArray:
    """Kernels of affine maps and outputs, (maps, n, n); of convolutions their mean over equal
    positions."""
    parts = [K.reshape(rows, len(K) // rows, rows, len(K) // rows) for K in of_maps]
    means = [jnp.einsum("ipjp->ij", K) / K.shape[1] for K in parts]
    return jnp.stack(output_last(layout, means))


def output_last(layout: UnitLayout, of_maps: Sequence[DeviceArray]) -> list[DeviceArray]:
    """Kernels of affine maps, then that of the outputs if these are not an affine map: a sum of
    independent units has the sum of their covariances, and layer norm divides."""
    at = dict(zip(layout.affine, of_maps, strict=True))
    for index, node in enumerate(layout.graph, start=1):
        if isinstance(node, Added) and all(source in at for source in node.sources):
            at[index] = sum(at[source] for source in node.sources)
        elif isinstance(node, Normalised) and node.source in at:
            deviations = jnp.sqrt(jnp.diagonal(at[node.source]))
            at[index] = at[node.source] / deviations / deviations[:, None]
    own = list(of_maps)
    return own if isinstance(layout.graph[-1], Affine) else [*own, at[len(layout.graph)]]


def outputs_and_kernels(net: DrawnNetwork, X: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    """Outputs and kernels of the same network."""
    return outputs(net, X), kernels(net, X)


def evaluate_drawn(
    function: NetworkFunction,
    prior: NetworkPrior,
    data: Sequence[NDArray[np.float64]],
    n_networks: int,
    seed: int,
    dtype: str = "float64",
    advance: Callable[[int], None] = lambda n_networks: None,
    held: int | None = None,
) -> ArrayTree:
    """Compute `function(net, *data)` for networks 0 .. networks - 1, stacked.

    `advance` is called with the number of networks that have just been done; `held` is how many
    numbers the function holds for one network, by default its units for all rows. Raises ValueError
    for wrong options, and MemoryError where the values cannot fit, before any work.
    """
    count, seed = whole_number("n_networks", n_networks), whole_number("seed", seed, least=0)
    if dtype not in ("float64", "float32"):
        raise ValueError(f"dtype must be 'float64' or 'float32', got {dtype!r}")
    with precision_of_arrays():
        variances = jnp.asarray(prior.weight_vars, dtype), jnp.asarray(prior.bias_vars, dtype)
        arrays = tuple(jnp.asarray(np.asarray(part, dtype)) for part in data)
        layout = prior.layout
        start = _start(layout, seed)

        def work(indices: DeviceArray) -> ArrayTree:
            keys = _keys(start, indices)
            layers = _layers(layout.shapes, _normals(layout.n_weights, dtype, keys), variances)
            return _evaluate(function, layout, layers, keys, variances, arrays)

        kept = _bytes(jax.eval_shape(work, jnp.arange(1)))
        units = len(arrays[0]) * layout.row if arrays else 0
        inside = (layout.n_weights + (held or units)) * np.dtype(dtype).itemsize
        _check_memory(count, inside, kept)
        return _in_chunks(count, inside + kept, work, advance)


def evaluate_given(
    function: NetworkFunction,
    prior: NetworkPrior,
    layers: list[Layer],
    X: DeviceArray,
    seed: int | None = None,
    held: int | None = None,
) -> ArrayTree:
    """Compute `function(net, X)` for networks whose weights are given, stacked on a leading axis;
    with the dropout masks of networks drawn with a seed, or without dropout. Within a
    transformation of JAX all of them at once, in the precision that it traces."""
    count, layout = len(layers[0]["w"]), prior.layout
    traced = [leaf for leaf in jax.tree.leaves((layers, X)) if is_traced(leaf)]
    dtype = traced[0].dtype if traced else layers[0]["w"].dtype
    variances = np.asarray(prior.weight_vars, dtype), np.asarray(prior.bias_vars, dtype)
    if traced:
        layers, X = jax.tree.map(lambda a: jnp.asarray(a, dtype), (layers, X))
        keys = None if seed is None else _keys(_start(layout, seed), np.arange(count))
        return _evaluate(function, layout, layers, keys, variances, (X,))
    with precision_of_arrays():
        start = None if seed is None else _start(layout, seed)

        def work(indices: DeviceArray) -> ArrayTree:
            some = jax.tree.map(lambda a: a[indices], layers)
            keys = None if start is None else _keys(start, indices)
            return _evaluate(function, layout, some, keys, variances, (X,))

        size = _bytes(layers) // count + X.itemsize * (held or len(X) * layout.row)
        one = jax.tree.map(lambda a: a[:1], layers)
        kept = jax.eval_shape(partial(_evaluate, function, layout), one, None, variances, (X,))
        _check_memory(count, size, _bytes(kept))
        return _in_chunks(count, size, work, lambda n_networks: None)


def is_traced(values: object) -> bool:
    """Whether a transformation of JAX (grad, jit, vmap) passes these values through."""
    return isinstance(values, jax.core.Tracer)


def _in_chunks(
    count: int, size: int, work: Callable[[DeviceArray], ArrayTree], advance: Callable[[int], None]
) -> ArrayTree:
    """Do `work` on indices 0 .. count - 1, as many at a time as `size` bytes for each allow."""
    most = max(1, AT_A_TIME // size)
    step = ceil(count / ceil(count / most))
    parts = []
    for first in range(0, count, step):
        # All chunks have one length, so that one program serves; the surplus is dropped.
        done = jax.tree.map(np.asarray, work(np.minimum(first + np.arange(step), count - 1)))
        _check_finite(done)
        left = min(step, count - first)
        parts.append(jax.tree.map(lambda a, left=left: a[:left], done))
        advance(left)
    return jax.tree.map(lambda *rows: np.concatenate(rows), *parts)


@contextmanager
def precision_of_arrays() -> Iterator[None]:
    """Compute in the arrays' own precision: JAX's default rounds float64 to float32, and on some
    devices products of float32 further."""
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        yield


def _check_memory(n_networks: int, inside: int, kept: int) -> None:
    """Raise MemoryError unless one network at work and all values (twice, while joined) fit."""
    needed, free = inside + 2 * n_networks * kept, CpuEngine().free_memory()
    if free is not None and needed > free:
        raise MemoryError(
            f"this needs {needed / 1e9:.1f} GB and {free / 1e9:.1f} GB are free; take fewer "
            "networks, fewer inputs or a smaller width"
        )


@jax.jit
def _keys(start: DeviceArray, indices: DeviceArray) -> DeviceArray:
    return jax.vmap(partial(jax.random.fold_in, start))(indices)


# A program of its own, which serves many functions: random numbers take JAX long to compile.
@partial(jax.jit, static_argnums=(0, 1))
def _normals(count: int, dtype: str, keys: DeviceArray) -> DeviceArray:
    def one(key: DeviceArray) -> DeviceArray:
        # In one precision, so that networks in float32 are those in float64, rounded.
        drawn = jax.random.normal(jax.random.fold_in(key, WEIGHT_STREAM), (count,), "float64")
        return drawn.astype(dtype)

    return jax.vmap(one)(keys)


@partial(jax.jit, static_argnums=0)
def _layers(
    shapes: tuple[tuple[int, int], ...], normals: DeviceArray, variances: ArrayTree
) -> list[Layer]:
    return jax.vmap(lambda row: layers_from(shapes, row, *variances))(normals)


@partial(jax.jit, static_argnums=(0, 1))
def _evaluate(
    function: NetworkFunction,
    layout: UnitLayout,
    layers: list[Layer],
    keys: DeviceArray,
    variances: ArrayTree,
    data: tuple[DeviceArray, ...],
) -> ArrayTree:
    def one(layers: list[Layer], key: DeviceArray) -> ArrayTree:
        net = DrawnNetwork(layers, layout, variances[0], variances[1], key)
        return function(net, *data)

    return jax.vmap(one)(layers, keys)


def _start(layout: UnitLayout, seed: int) -> DeviceArray:
    """The key that those of all networks are made of. It depends on the widths of hidden layers
    too, so that networks of other widths share no random number."""
    numbers = np.random.SeedSequence((seed, *layout.sizes[1:-1]))
    return jax.random.key(int(numbers.generate_state(1, np.uint64)[0] >> 1))


def _check_finite(values: ArrayTree) -> None:
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(values)):
        raise VarianceError(
            "a network has values that are not finite; take a smaller weight_var, less depth, or "
            "smaller inputs"
        )


def _bytes(tree: ArrayTree) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
