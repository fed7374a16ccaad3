"""Many networks, a few at a time: what is asked of each is kept, its weights are not.

Takes a description of the networks and a function of one drawn network; gives the function's values
for all of them, as NumPy arrays with one network a row. Network i comes from a key of its own, so
it is the same however many are drawn, and whatever fits in memory at a time.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from math import ceil
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from nngp.architecture import Activation
from nngp.errors import VarianceError
from nngp.finite.weights import Layer, count_weights, cut, forward, preactivations
from nngp.linsolve import CpuEngine

AT_A_TIME = 16 * 2**20  # bytes of weights and layers: about what caches hold, so faster than more

OF_WEIGHTS, OF_NOISE = 0, 1  # what a network's key is turned into before it is used


class Drawn(NamedTuple):
    """One network, and the prior that it comes from."""

    layers: list[Layer]
    activation: Activation
    weight_vars: Any
    bias_vars: Any
    key: Any


Question = Callable[..., Any]  # of a `Drawn` and the data


class Family(NamedTuple):
    """What all networks have in common."""

    activation: Activation
    sizes: tuple[int, ...]  # from inputs to outputs
    weight_vars: tuple[float, ...]
    bias_vars: tuple[float, ...]

    @property
    def n_weights(self) -> int:
        """Weights and biases of one network."""
        return count_weights(self.sizes)


def weights(net: Drawn) -> list[Layer]:
    """The weights themselves."""
    return net.layers


def outputs(net: Drawn, X: Any) -> Any:
    """The outputs, (n, n_out)."""
    return forward(net.layers, net.activation, X)


def hidden(net: Drawn, X: Any) -> list[Any]:
    """What goes into each affine map: the inputs, then phi(z^0) .. phi(z^(L-1))."""
    z = preactivations(net.layers, net.activation, X)
    return [X, *(net.activation.fn(one) for one in z[:-1])]


def kernels(net: Drawn, X: Any) -> Any:
    """The covariance of z^l given the layer below it, (depth + 1, n, n)."""
    return jnp.stack(
        [
            b + w * h @ h.T / h.shape[1]
            for w, b, h in zip(net.weight_vars, net.bias_vars, hidden(net, X), strict=True)
        ]
    )


def outputs_and_kernels(net: Drawn, X: Any) -> tuple[Any, Any]:
    """Both, of the same network."""
    return outputs(net, X), kernels(net, X)


def ask_each(
    question: Question,
    family: Family,
    data: tuple[Any, ...],
    networks: int,
    seed: int,
    dtype: str = "float64",
    advance: Callable[[int], None] = lambda networks: None,
) -> Any:
    """`question(net, *data)` of networks 0 .. networks - 1, stacked; `advance` is told how many
    are done. Refuses what does not fit in memory."""
    with precisely():
        variances = [jnp.asarray(v, dtype) for v in (family.weight_vars, family.bias_vars)]
        data = tuple(jnp.asarray(part) for part in data)
        start = jax.random.key(_mixed(seed, family.sizes[1:-1]))

        def ask(indices: Any) -> Any:
            keys = _keys(start, indices)
            layers = _layers(family.sizes, _normals(family.n_weights, dtype, keys), variances)
            return _answer(question, family.activation, layers, keys, variances, data)

        answer = _bytes(jax.eval_shape(ask, jnp.arange(1)))
        rows = data[0].shape[0] if data else 0
        inside = (family.n_weights + rows * sum(family.sizes)) * np.dtype(dtype).itemsize
        check_memory(networks, inside, answer)
        return in_chunks(networks, inside + answer, ask, advance)


def forward_each(layers: list[Layer], activation: Activation, X: Any) -> Any:
    """Outputs of networks whose weights are given, stacked on a leading axis."""
    count = len(layers[0]["w"])
    units = sum(layer["b"].shape[1] for layer in layers)
    with precisely():

        def ask(indices: Any) -> Any:
            some = jax.tree.map(lambda a: a[indices], layers)
            return _answer(outputs, activation, some, None, (None, None), (X,))

        size = _bytes(layers) // count + X.itemsize * len(X) * units
        return in_chunks(count, size, ask, lambda networks: None)


def in_chunks(
    count: int, size: int, work: Callable[[Any], Any], advance: Callable[[int], None]
) -> Any:
    """`work` on indices 0 .. count - 1, as many at a time as `size` bytes for each allow."""
    most = max(1, AT_A_TIME // size)
    step = ceil(count / ceil(count / most))
    parts = []
    for first in range(0, count, step):
        # All chunks have one length, so that one program serves; what is too much is dropped.
        done = jax.tree.map(np.asarray, work(np.minimum(first + np.arange(step), count - 1)))
        _check_finite(done)
        left = min(step, count - first)
        parts.append(jax.tree.map(lambda a, left=left: a[:left], done))
        advance(left)
    return jax.tree.map(lambda *rows: np.concatenate(rows), *parts)


@contextmanager
def precisely() -> Iterator[None]:
    """Arithmetic in the precision of the arrays, here only: JAX's own default rounds float64 to
    float32, and products of float32 further on some devices."""
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        yield


def check_memory(networks: int, inside: int, answer: int) -> None:
    """Refuse what cannot fit: one network at work, and all answers (twice, while joined)."""
    needed, free = inside + 2 * networks * answer, CpuEngine().free_memory()
    if free is not None and needed > free:
        raise MemoryError(
            f"this needs {needed / 1e9:.1f} GB and {free / 1e9:.1f} GB are free; take fewer "
            "networks, fewer inputs or a smaller width"
        )


@jax.jit
def _keys(start: Any, indices: Any) -> Any:
    return jax.vmap(partial(jax.random.fold_in, start))(indices)


# A program of its own, which serves many questions: random numbers are what is long to compile.
@partial(jax.jit, static_argnums=(0, 1))
def _normals(count: int, dtype: str, keys: Any) -> Any:
    def one(key: Any) -> Any:
        return jax.random.normal(jax.random.fold_in(key, OF_WEIGHTS), (count,), dtype)

    return jax.vmap(one)(keys)


@partial(jax.jit, static_argnums=0)
def _layers(sizes: tuple[int, ...], normals: Any, variances: Any) -> list[Layer]:
    return jax.vmap(lambda row: cut(sizes, row, *variances))(normals)


@partial(jax.jit, static_argnums=(0, 1))
def _answer(
    question: Question,
    activation: Activation,
    layers: Any,
    keys: Any,
    variances: Any,
    data: tuple[Any, ...],
) -> Any:
    def one(layers: Any, key: Any) -> Any:
        return question(Drawn(layers, activation, variances[0], variances[1], key), *data)

    return jax.vmap(one)(layers, keys)


def _mixed(seed: int, widths: tuple[int, ...]) -> int:
    """One seed from several numbers, so that networks of other widths are others altogether."""
    return int(np.random.SeedSequence((seed, *widths)).generate_state(1, np.uint64)[0] >> 1)


def _check_finite(answers: Any) -> None:
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(answers)):
        raise VarianceError(
            "a network has values that are not finite; take a smaller weight_var, less depth, or "
            "smaller inputs"
        )


def _bytes(tree: Any) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
