"""Lanes: networks of one shape trained side by side by one compiled program.

A lane holds one network: its weights, Adam's moments, and the best weights so far. One program
(`jax.vmap`) moves all lanes on by some steps, each with its own learning rate, weight decay and
batch size. A network whose training has ended leaves its lane to the next one, so no lane waits for
the slowest.

Padding: batches of all lanes have the same number of rows, that of the largest batch size; in a
lane with a smaller one, the remaining rows have weight zero in the loss.

Reproducibility: the seed of a recipe fixes the initial weights and the order of the batches, and no
lane's numbers enter another's. So training depends on the other lanes, and on the padding, by
rounding only. Precision is float32, on a GPU with JAX's default for products.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

from nngp._arrays import DeviceArray
from nngp.architecture import Activation
from nngp.datasets import Split
from nngp.finite.network import FiniteNetwork
from nngp.finite.recipe import Plan, Recipe
from nngp.finite.training_data import DataPart
from nngp.finite.weights import ArrayTree, Layer, count_weights, forward, layers_from

Layers = list[Layer]
ROWS = 2000  # evaluated in one go: activations of all lanes at once would be large
COPIES = 8  # arrays of a network's size that a lane holds: weights, best, two moments, gradient ...


class Score(NamedTuple):
    """Number of labels that are right, -1 if outputs overflow, and the mean loss."""

    right: DeviceArray
    loss: DeviceArray


class Lane(NamedTuple):
    """One network in training, or many of them stacked."""

    layers: Layers
    moments: ArrayTree
    best: Layers
    score: Score
    key: DeviceArray


class LaneSettings(NamedTuple):
    """The numbers of a recipe as arrays, one entry a lane."""

    learning_rate: DeviceArray
    weight_decay: DeviceArray
    weight_var: DeviceArray
    bias_var: DeviceArray
    batch_size: DeviceArray
    seed: DeviceArray


class Advanced(NamedTuple):
    """Lanes after some steps: mean training loss, score after them, is it the best so far."""

    lanes: Lane
    train_loss: DeviceArray
    score: Score
    better: DeviceArray


@dataclass(frozen=True)
class ProgramShape:
    """The constants of a compiled program; `batch` is the number of rows of a padded batch."""

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


def program_shape(
    network: FiniteNetwork, data: Split, plan: Plan, largest_batch: int
) -> ProgramShape:
    """The program that trains such networks; raise ValueError unless it fits the data."""
    if network.n_out != data.n_classes:
        raise ValueError(
            f"the network has {network.n_out} outputs and {data.name} has {data.n_classes} "
            f"classes; take n_out={data.n_classes}"
        )
    sizes = (data.X.shape[1], *network.widths, data.n_classes)
    batch = min(largest_batch, len(data.X))
    return ProgramShape(sizes, network.architecture.activation, plan.loss, plan.interval, batch)


def settings_of(recipes: list[Recipe]) -> LaneSettings:
    """Recipes as arrays, one entry a lane."""

    def column(name: str) -> DeviceArray:
        kind = np.uint32 if name in ("batch_size", "seed") else np.float32
        return np.array([getattr(recipe, name) for recipe in recipes], kind)

    return LaneSettings(*map(column, LaneSettings._fields))


def empty_lanes(sizes: tuple[int, ...], settings: LaneSettings) -> Lane:
    """Lanes with no network in them, as many as there are settings."""
    filled = jax.eval_shape(jax.vmap(partial(_start, sizes)), settings)
    return jax.tree.map(lambda part: jnp.zeros(part.shape, part.dtype), filled)


@partial(jax.jit, static_argnames="sizes", donate_argnums=1)
def fill_lanes(
    sizes: tuple[int, ...], lanes: Lane, fresh: DeviceArray, settings: LaneSettings
) -> Lane:
    """Put newly drawn networks into the lanes that `fresh` marks."""
    started = jax.vmap(partial(_start, sizes))(settings)

    def choose(new: DeviceArray, old: DeviceArray) -> DeviceArray:
        return jnp.where(fresh.reshape(-1, *[1] * (new.ndim - 1)), new, old)

    return jax.tree.map(choose, started, lanes)


@partial(jax.jit, static_argnames="shape", donate_argnums=1)
def advance_lanes(
    shape: ProgramShape, lanes: Lane, settings: LaneSettings, train: DataPart, monitor: DataPart
) -> Advanced:
    """Train all lanes for `shape.interval` steps, then evaluate them on the monitored part."""
    advance = partial(_advance, shape)
    return jax.vmap(advance, in_axes=(0, 0, None, None))(lanes, settings, train, monitor)


@partial(jax.jit, static_argnames=("activation", "loss"))
def evaluate_lanes(
    activation: Activation, loss: str, layers: Layers, part: DataPart
) -> tuple[Score, DeviceArray]:
    """Score and mean squared error of every lane's network on a part of the data."""
    return jax.vmap(partial(_evaluate, activation, loss), in_axes=(0, None))(layers, part)


def _start(sizes: tuple[int, ...], settings: LaneSettings) -> Lane:
    weights_key, batches_key = jax.random.split(jax.random.key(settings.seed))
    maps = len(sizes) - 1
    variances = jnp.full(maps, settings.weight_var), jnp.full(maps, settings.bias_var)
    normals = jax.random.normal(weights_key, (count_weights(sizes),), jnp.float32)
    layers = layers_from(sizes, normals, *variances)
    worst = Score(jnp.int32(-1), jnp.float32(jnp.inf))
    moments = _adam(settings).init(layers)
    return Lane(layers, moments, layers, worst, jax.random.key_data(batches_key))


def _adam(settings: LaneSettings) -> optax.GradientTransformation:
    def weights_only(layers: Layers) -> list[dict[str, bool]]:
        return [{"w": True, "b": False} for _ in layers]

    return optax.chain(
        optax.add_decayed_weights(settings.weight_decay, mask=weights_only),
        optax.scale_by_adam(),
        optax.scale_by_learning_rate(settings.learning_rate),
    )


def _advance(
    shape: ProgramShape, lane: Lane, settings: LaneSettings, train: DataPart, monitor: DataPart
) -> Advanced:
    key, epochs_key = jax.random.split(jax.random.wrap_key_data(lane.key))
    order = _epochs(epochs_key, len(train.X), shape.interval * shape.batch)
    layers, moments, loss = _descend(shape, lane, settings, train, order)
    score, _ = _evaluate(shape.activation, shape.loss, layers, monitor)
    better = _is_better(score, lane.score)

    def keep(new: DeviceArray, old: DeviceArray) -> DeviceArray:
        return jnp.where(better, new, old)

    best = jax.tree.map(keep, layers, lane.best)
    record = jax.tree.map(keep, score, lane.score)
    lane = Lane(layers, moments, best, record, jax.random.key_data(key))
    return Advanced(lane, loss, score, better)


def _descend(
    shape: ProgramShape, lane: Lane, settings: LaneSettings, train: DataPart, order: DeviceArray
) -> tuple[Layers, ArrayTree, DeviceArray]:
    """Take `shape.interval` steps on batches of rows in this order: weights, moments, mean loss."""
    place = jnp.arange(shape.batch)
    weight = jnp.where(place < settings.batch_size, 1.0 / settings.batch_size, 0.0)
    adam, gradient = _adam(settings), jax.value_and_grad(partial(_batch_loss, shape))

    def step(
        carry: tuple[Layers, ArrayTree], t: DeviceArray
    ) -> tuple[tuple[Layers, ArrayTree], DeviceArray]:
        layers, moments = carry
        rows = lax.dynamic_slice(order, (t * settings.batch_size,), (shape.batch,))
        loss, slope = gradient(layers, train.X[rows], train.Y[rows], weight)
        change, moments = adam.update(slope, moments, layers)
        return (optax.apply_updates(layers, change), moments), loss

    times = jnp.arange(shape.interval, dtype=settings.batch_size.dtype)
    (layers, moments), losses = lax.scan(step, (lane.layers, lane.moments), times)
    return layers, moments, losses.mean()


def _epochs(key: DeviceArray, n: int, length: int) -> DeviceArray:
    """Row numbers in random order, epoch after epoch, `length` of them or more."""
    keys = jax.random.split(key, -(-length // n))
    return jax.vmap(lambda k: jax.random.permutation(k, n))(keys).ravel()


def _batch_loss(
    shape: ProgramShape, layers: Layers, X: DeviceArray, Y: DeviceArray, weight: DeviceArray
) -> DeviceArray:
    return weight @ _losses(shape.loss, forward(layers, shape.activation, X), Y)


def _losses(loss: str, outputs: DeviceArray, Y: DeviceArray) -> DeviceArray:
    """One loss a row; for cross entropy the class is that of the largest target."""
    if loss == "mse":
        return jnp.mean((outputs - Y) ** 2, axis=-1)
    return optax.softmax_cross_entropy_with_integer_labels(outputs, Y.argmax(axis=-1))


def _evaluate(
    activation: Activation, loss: str, layers: Layers, part: DataPart
) -> tuple[Score, DeviceArray]:
    def of_row(row: DataPart) -> tuple[DeviceArray, ...]:
        outputs = forward(layers, activation, row.X[None])[0]
        right = outputs.argmax() == row.labels
        error = jnp.mean((outputs - row.Y) ** 2)
        return right, _losses(loss, outputs, row.Y), error, jnp.isfinite(outputs).all()

    right, losses, errors, finite = lax.map(of_row, part, batch_size=min(ROWS, len(part.X)))
    # Counted, not averaged: a mean in single precision may miss 1 when all are right.
    count = jnp.where(finite.all(), right.sum(dtype=jnp.int32), -1)
    return Score(count, jnp.where(finite.all(), losses.mean(), jnp.inf)), errors.mean()


def _is_better(score: Score, best: Score) -> DeviceArray:
    """More labels right, or as many with a lower loss."""
    level = (score.right == best.right) & (score.loss < best.loss)
    return (score.right > best.right) | level
