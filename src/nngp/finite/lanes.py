"""Many networks of one shape trained side by side, each in a lane of its own.

A lane holds one network: its weights, Adam's moments, the best weights so far. One program moves
all lanes on by some steps (`jax.vmap`), with a learning rate, weight decay and batch size for each:
batches have room for the largest, and a smaller one leaves rows of weight zero. A network that has
ended leaves its lane to the next, so that lanes do not wait for the slowest. What a lane computes
does not depend on the others. Precision is float32, on a GPU with whatever products JAX has there.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from numpy.typing import NDArray

from nngp.architecture import Activation
from nngp.finite.recipe import Recipe
from nngp.finite.weights import Layer, count_weights, draw, forward

Layers = list[Layer]
ROWS = 2000  # looked at in one go: activations of all lanes at once would be large
COPIES = 8  # arrays of a network's size that a lane holds: weights, best, two moments, gradient ...


class Part(NamedTuple):
    """Inputs, targets and labels on the device."""

    X: Any
    Y: Any
    labels: Any


class Score(NamedTuple):
    """How a network does on a part of the data: how many labels are right, -1 if outputs overflow,
    and the mean loss."""

    right: Any
    loss: Any


class Lane(NamedTuple):
    """What moves on: one network, or many of them stacked."""

    layers: Layers
    moments: Any
    best: Layers
    score: Score
    key: Any


class Numbers(NamedTuple):
    """A recipe's numbers as the program sees them."""

    learning_rate: Any
    weight_decay: Any
    weight_var: Any
    bias_var: Any
    batch_size: Any
    seed: Any


@dataclass(frozen=True)
class Shape:
    """What a program is compiled for: the networks' shape, the loss, the steps between two looks,
    and the room of a batch."""

    sizes: tuple[int, ...]
    activation: Activation
    loss: str
    interval: int
    batch: int

    @property
    def weights(self) -> int:
        """Weights and biases of one network."""
        return count_weights(self.sizes)

    def lane_bytes(self) -> int:
        """Memory of one lane."""
        widest = max(self.sizes)
        return 4 * (COPIES * self.weights + (ROWS + 4 * self.batch) * widest * len(self.sizes))


def numbers_of(recipes: list[Recipe]) -> Numbers:
    """Recipes as arrays, one entry a lane."""
    columns = {name: [getattr(r, name) for r in recipes] for name in Numbers._fields}
    whole = ("batch_size", "seed")
    return Numbers(
        **{
            name: np.array(values, np.uint32 if name in whole else np.float32)
            for name, values in columns.items()
        }
    )


def empty(sizes: tuple[int, ...], numbers: Numbers) -> Lane:
    """As many lanes as there are numbers, with nothing in them yet."""
    filled = jax.eval_shape(jax.vmap(partial(_start, sizes)), numbers)
    return jax.tree.map(lambda part: jnp.zeros(part.shape, part.dtype), filled)


@partial(jax.jit, static_argnames="sizes", donate_argnums=1)
def fill(sizes: tuple[int, ...], lanes: Lane, fresh: Any, numbers: Numbers) -> Lane:
    """Networks at their start in the lanes marked as fresh."""
    started = jax.vmap(partial(_start, sizes))(numbers)

    def choose(new: Any, old: Any) -> Any:
        return jnp.where(fresh.reshape(-1, *[1] * (new.ndim - 1)), new, old)

    return jax.tree.map(choose, started, lanes)


@partial(jax.jit, static_argnames="shape", donate_argnums=1)
def advance(
    shape: Shape, lanes: Lane, numbers: Numbers, train: Part, monitor: Part
) -> tuple[Lane, Any, Score, Any]:
    """All lanes some steps further: the lanes, the mean training loss, the score after it, and
    whether that is the best so far."""
    step = partial(_advance, shape)
    return jax.vmap(step, in_axes=(0, 0, None, None))(lanes, numbers, train, monitor)


@partial(jax.jit, static_argnames=("activation", "loss"))
def judge(activation: Activation, loss: str, layers: Layers, part: Part) -> tuple[Score, Any]:
    """Score and mean squared error of every lane's network on a part of the data."""
    return jax.vmap(partial(_judge, activation, loss), in_axes=(0, None))(layers, part)


def _start(sizes: tuple[int, ...], numbers: Numbers) -> Lane:
    of_weights, of_batches = jax.random.split(jax.random.key(numbers.seed))
    maps = len(sizes) - 1
    layers = draw(
        of_weights, sizes, jnp.full(maps, numbers.weight_var), jnp.full(maps, numbers.bias_var)
    )
    worst = Score(jnp.int32(-1), jnp.float32(jnp.inf))
    return Lane(layers, _adam(numbers).init(layers), layers, worst, jax.random.key_data(of_batches))


def _adam(numbers: Numbers) -> optax.GradientTransformation:
    def weights_only(layers: Layers) -> list[dict[str, bool]]:
        return [{"w": True, "b": False} for _ in layers]

    return optax.chain(
        optax.add_decayed_weights(numbers.weight_decay, mask=weights_only),
        optax.scale_by_adam(),
        optax.scale_by_learning_rate(numbers.learning_rate),
    )


def _advance(
    shape: Shape, lane: Lane, numbers: Numbers, train: Part, monitor: Part
) -> tuple[Lane, Any, Score, Any]:
    key, of_epochs = jax.random.split(jax.random.wrap_key_data(lane.key))
    order = _epochs(of_epochs, len(train.X), shape.interval * shape.batch)
    place = jnp.arange(shape.batch)
    weight = jnp.where(place < numbers.batch_size, 1.0 / numbers.batch_size, 0.0)
    adam, gradient = _adam(numbers), jax.value_and_grad(partial(_batch_loss, shape))

    def step(carry: tuple[Layers, Any], t: Any) -> tuple[tuple[Layers, Any], Any]:
        layers, moments = carry
        rows = lax.dynamic_slice(order, (t * numbers.batch_size,), (shape.batch,))
        loss, slope = gradient(layers, train.X[rows], train.Y[rows], weight)
        change, moments = adam.update(slope, moments, layers)
        return (optax.apply_updates(layers, change), moments), loss

    times = jnp.arange(shape.interval, dtype=numbers.batch_size.dtype)
    (layers, moments), losses = lax.scan(step, (lane.layers, lane.moments), times)
    score, _ = _judge(shape.activation, shape.loss, layers, monitor)
    better = _is_better(score, lane.score)

    def keep(new: Any, old: Any) -> Any:
        return jnp.where(better, new, old)

    best = jax.tree.map(keep, layers, lane.best)
    record = jax.tree.map(keep, score, lane.score)
    lane = Lane(layers, moments, best, record, jax.random.key_data(key))
    return lane, losses.mean(), score, better


def _epochs(key: Any, n: int, length: int) -> Any:
    """Row numbers in random order, epoch after epoch, `length` of them or more."""
    keys = jax.random.split(key, -(-length // n))
    return jax.vmap(lambda k: jax.random.permutation(k, n))(keys).ravel()


def _batch_loss(shape: Shape, layers: Layers, X: Any, Y: Any, weight: Any) -> Any:
    return weight @ _losses(shape.loss, forward(layers, shape.activation, X), Y)


def _losses(loss: str, outputs: Any, Y: Any) -> Any:
    """One loss a row; cross entropy reads the class off the largest target."""
    if loss == "mse":
        return jnp.mean((outputs - Y) ** 2, axis=-1)
    return optax.softmax_cross_entropy_with_integer_labels(outputs, Y.argmax(axis=-1))


def _judge(activation: Activation, loss: str, layers: Layers, part: Part) -> tuple[Score, Any]:
    def of_row(row: Part) -> tuple[Any, Any, Any, Any]:
        outputs = forward(layers, activation, row.X[None])[0]
        right = outputs.argmax() == row.labels
        error = jnp.mean((outputs - row.Y) ** 2)
        return right, _losses(loss, outputs, row.Y), error, jnp.isfinite(outputs).all()

    right, losses, errors, finite = lax.map(of_row, part, batch_size=min(ROWS, len(part.X)))
    # Counted, not averaged: a mean in single precision may miss 1 when all are right.
    count = jnp.where(finite.all(), right.sum(dtype=jnp.int32), -1)
    return Score(count, jnp.where(finite.all(), losses.mean(), jnp.inf)), errors.mean()


def _is_better(score: Score, best: Score) -> Any:
    """More labels right, or as many with a lower loss."""
    level = (score.right == best.right) & (score.loss < best.loss)
    return (score.right > best.right) | level


def part_of(X: NDArray[Any], Y: NDArray[Any], labels: NDArray[Any]) -> Part:
    """A part of the data on the device, in single precision."""
    return Part(
        jnp.asarray(X, jnp.float32), jnp.asarray(Y, jnp.float32), jnp.asarray(labels, jnp.int32)
    )
