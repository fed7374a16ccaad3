"""Lanes: networks of one shape trained side by side by one compiled program.

A lane holds one network: its weights, the optimiser's moments, and the best weights so far, by
accuracy and by loss. One program (`jax.vmap`) moves all lanes on by some steps, each with its own
learning rate, weight decay, batch size and number of training points. A network whose training has
ended leaves its lane to the next one, so no lane waits for the slowest.

Training sets of several sizes: the first n rows of the data are the training set of a lane with n
points, so one program serves networks of one shape on all sizes.

Padding: batches of all lanes have the same number of rows, that of the largest batch size; in a
lane with a smaller one, the remaining rows have weight zero in the loss.

Reproducibility: the seed of a recipe fixes the initial weights and the order of the batches, and no
lane's numbers enter another's. So training depends on the other lanes, and on the padding, by
rounding only. Precision is float32, on a GPU with JAX's default for products.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

from nngp import FiniteNetwork
from nngp.finite import NetworkFunctions
from nngp_paper.arrays import DeviceArray
from nngp_paper.datasets import Split
from nngp_paper.finite.recipe import Plan, Recipe
from nngp_paper.finite.training_data import DataPart

ArrayTree = Any  # arrays of JAX in lists, tuples and dictionaries
Layers = list[dict[str, DeviceArray]]  # w and b of each affine map
MASK_STREAM = 2  # folded into a key, for random numbers of its own
Parts = tuple[DataPart, DataPart, DataPart]  # training, validation, test
ROWS = 2000  # evaluated in one go: activations of all lanes at once would be large
COPIES = 9  # arrays of a network's size that a lane holds: weights, two best, two moments, ...


class Score(NamedTuple):
    """Number of labels that are right, -1 if outputs overflow, and the mean loss."""

    right: DeviceArray
    loss: DeviceArray


class BestWeights(NamedTuple):
    """The best weights so far by one criterion, and their score."""

    layers: Layers
    score: Score


class Lane(NamedTuple):
    """One network in training, or many of them stacked."""

    layers: Layers
    moments: ArrayTree
    by_accuracy: BestWeights
    by_loss: BestWeights
    key: DeviceArray


class LaneSettings(NamedTuple):
    """The numbers of a trial as arrays, one entry a lane; `points` are its training points."""

    learning_rate: DeviceArray
    weight_decay: DeviceArray
    weight_var: DeviceArray
    bias_var: DeviceArray
    batch_size: DeviceArray
    seed: DeviceArray
    points: DeviceArray


class Sums(NamedTuple):
    """Sums over rows: labels right, losses, squared errors, rows whose outputs overflow."""

    right: DeviceArray
    loss: DeviceArray
    error: DeviceArray
    overflows: DeviceArray


class Advanced(NamedTuple):
    """Lanes after some steps: mean training loss, score after them, is it the most accurate so far,
    is its loss the lowest."""

    lanes: Lane
    train_loss: DeviceArray
    score: Score
    better: DeviceArray
    lower: DeviceArray


@dataclass(frozen=True)
class ProgramShape:
    """The constants of a compiled program; `batch` is the number of rows of a padded batch."""

    functions: NetworkFunctions
    loss: str
    optimiser: str
    monitor: str
    interval: int
    batch: int

    @property
    def weights(self) -> int:
        """Weights and biases of one network."""
        return self.functions.n_weights

    def lane_bytes(self) -> int:
        """Memory of one lane."""
        sizes = self.functions.sizes
        return 4 * (COPIES * self.weights + (ROWS + 4 * self.batch) * max(sizes) * len(sizes))


def program_shape(
    network: FiniteNetwork, data: Split, plan: Plan, largest_batch: int
) -> ProgramShape:
    """The program that trains such networks; raise ValueError unless it fits the data."""
    if network.n_out != data.n_classes:
        raise ValueError(
            f"the network has {network.n_out} outputs and {data.name} has {data.n_classes} "
            f"classes; take n_out={data.n_classes}"
        )
    batch = min(largest_batch, len(data.X))
    rules = plan.loss, plan.optimiser, plan.monitor, plan.interval
    return ProgramShape(network.functions(data.X.shape[1]), *rules, batch)


def settings_of(recipes: Sequence[Recipe], points: Sequence[int]) -> LaneSettings:
    """Recipes and numbers of training points as arrays, one entry a lane. No batch is larger than
    the training set."""
    batches = [min(recipe.batch_size, n) for recipe, n in zip(recipes, points, strict=True)]
    whole = {"batch_size": batches, "seed": [one.seed for one in recipes], "points": points}

    def column(name: str) -> DeviceArray:
        if name in whole:
            return np.array(whole[name], np.uint32)
        return np.array([getattr(recipe, name) for recipe in recipes], np.float32)

    return LaneSettings(*map(column, LaneSettings._fields))


def lane_arrays(shape: ProgramShape, settings: LaneSettings) -> Lane:
    """Shapes and types of the arrays of lanes, as many as there are settings."""
    lanes: Lane = jax.eval_shape(jax.vmap(partial(_start, shape)), settings)
    return lanes


@partial(jax.jit, static_argnames="shape")
def empty_lanes(shape: ProgramShape, settings: LaneSettings) -> Lane:
    """Lanes with no network in them, as many as there are settings."""
    arrays = lane_arrays(shape, settings)
    return jax.tree.map(lambda part: jnp.zeros(part.shape, part.dtype), arrays)


@partial(jax.jit, static_argnames="shape", donate_argnums=1)
def fill_lanes(
    shape: ProgramShape, lanes: Lane, fresh: DeviceArray, settings: LaneSettings
) -> Lane:
    """Put newly drawn networks into the lanes that `fresh` marks."""
    started = jax.vmap(partial(_start, shape))(settings)

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


@partial(jax.jit, static_argnames="shape")
def final_scores(
    shape: ProgramShape, lanes: Lane, lane: DeviceArray, points: DeviceArray, parts: Parts
) -> DeviceArray:
    """Labels right (-1 if outputs overflow) and mean squared error of the best weights in a lane,
    an array (by accuracy or by loss, part of the data, 2). Of the training part the first `points`
    rows count."""
    counts = points, *(len(part.X) for part in parts[1:])
    rows = []
    for best in (lanes.by_accuracy, lanes.by_loss):
        layers = jax.tree.map(lambda stacked: stacked[lane], best.layers)
        found = [
            _evaluate(shape, layers, part, n, n) for part, n in zip(parts, counts, strict=True)
        ]
        rows.append([jnp.stack([score.right, error]) for score, error in found])
    return jnp.array(rows)


def _start(shape: ProgramShape, settings: LaneSettings) -> Lane:
    weights_key, batches_key = jax.random.split(jax.random.key(settings.seed))
    maps = len(shape.functions.sizes) - 1
    variances = jnp.full(maps, settings.weight_var), jnp.full(maps, settings.bias_var)
    normals = jax.random.normal(weights_key, (shape.weights,), jnp.float32)
    layers = shape.functions.weights(normals, *variances)
    best = BestWeights(layers, Score(jnp.int32(-1), jnp.float32(jnp.inf)))
    moments = _optimiser(shape, settings).init(layers)
    return Lane(layers, moments, best, best, jax.random.key_data(batches_key))


def _optimiser(shape: ProgramShape, settings: LaneSettings) -> optax.GradientTransformation:
    def weights_only(layers: Layers) -> list[dict[str, bool]]:
        return [{"w": True, "b": False} for _ in layers]

    return optax.chain(
        optax.add_decayed_weights(settings.weight_decay, mask=weights_only),
        optax.scale_by_adam() if shape.optimiser == "adam" else optax.identity(),
        optax.scale_by_learning_rate(settings.learning_rate),
    )


def _advance(
    shape: ProgramShape, lane: Lane, settings: LaneSettings, train: DataPart, monitor: DataPart
) -> Advanced:
    key, epochs_key = jax.random.split(jax.random.wrap_key_data(lane.key))
    order = _epochs(epochs_key, settings.points, shape.interval * shape.batch, len(train.X))
    masks_key = jax.random.fold_in(epochs_key, MASK_STREAM)
    layers, moments, loss = _descend(shape, lane, settings, train, order, masks_key)
    counted = settings.points if shape.monitor == "train" else len(monitor.X)
    score, _ = _evaluate(shape, layers, monitor, counted, len(monitor.X))
    better, lower = _is_better(score, lane.by_accuracy.score), score.loss < lane.by_loss.score.loss
    new = BestWeights(layers, score)
    by_accuracy, by_loss = _kept(better, new, lane.by_accuracy), _kept(lower, new, lane.by_loss)
    lane = Lane(layers, moments, by_accuracy, by_loss, jax.random.key_data(key))
    return Advanced(lane, loss, score, better, lower)


def _kept(better: DeviceArray, new: BestWeights, old: BestWeights) -> BestWeights:
    """The new weights and score if they are better, else the old ones."""
    kept: BestWeights = jax.tree.map(lambda one, other: jnp.where(better, one, other), new, old)
    return kept


def _descend(
    shape: ProgramShape,
    lane: Lane,
    settings: LaneSettings,
    train: DataPart,
    order: DeviceArray,
    masks_key: DeviceArray,
) -> tuple[Layers, ArrayTree, DeviceArray]:
    """Take `shape.interval` steps on batches of rows in this order: weights, moments, mean loss.
    Every step has dropout masks of its own."""
    place = jnp.arange(shape.batch)
    weight = jnp.where(place < settings.batch_size, 1.0 / settings.batch_size, 0.0)
    optimiser, gradient = (
        _optimiser(shape, settings),
        jax.value_and_grad(partial(_batch_loss, shape)),
    )

    def step(
        carry: tuple[Layers, ArrayTree], t: DeviceArray
    ) -> tuple[tuple[Layers, ArrayTree], DeviceArray]:
        layers, moments = carry
        rows = lax.dynamic_slice(order, (t * settings.batch_size,), (shape.batch,))
        key = jax.random.fold_in(masks_key, t)
        loss, slope = gradient(layers, train.X[rows], train.Y[rows], weight, key)
        change, moments = optimiser.update(slope, moments, layers)
        return (optax.apply_updates(layers, change), moments), loss

    times = jnp.arange(shape.interval, dtype=settings.batch_size.dtype)
    (layers, moments), losses = lax.scan(step, (lane.layers, lane.moments), times)
    return layers, moments, losses.mean()


def _epochs(key: DeviceArray, n: DeviceArray, length: int, most: int) -> DeviceArray:
    """Numbers of the first n rows in random order, epoch after epoch, `length` of them or more. n
    may be traced, up to `most`: places are sorted by epoch, and within one at random. Epochs that
    begin before `length` are whole."""
    place = jnp.arange(length + most, dtype=jnp.uint32)
    n = jnp.asarray(n, jnp.uint32)
    chance = jax.random.bits(key, place.shape, jnp.uint32)
    _, _, rows = lax.sort((place // n, chance, place % n), num_keys=2)
    return rows


def _batch_loss(
    shape: ProgramShape,
    layers: Layers,
    X: DeviceArray,
    Y: DeviceArray,
    weight: DeviceArray,
    masks_key: DeviceArray,
) -> DeviceArray:
    return weight @ _losses(shape.loss, shape.functions.forward(layers, X, masks_key), Y)


def _losses(loss: str, outputs: DeviceArray, Y: DeviceArray) -> DeviceArray:
    """One loss a row; for cross entropy the class is that of the largest target."""
    if loss == "mse":
        return jnp.mean((outputs - Y) ** 2, axis=-1)
    return optax.softmax_cross_entropy_with_integer_labels(outputs, Y.argmax(axis=-1))


def _evaluate(
    shape: ProgramShape, layers: Layers, part: DataPart, n: DeviceArray, until: DeviceArray
) -> tuple[Score, DeviceArray]:
    """Score and mean squared error on the first n rows, some at a time. Rows are gone through up to
    `until`, which may be more than n: lanes with different n go through the same rows."""
    size = min(ROWS, len(part.X))

    def add(i: DeviceArray, sums: Sums) -> Sums:
        start = i * size
        first = jnp.minimum(start, len(part.X) - size)  # the last rows overlap with those before
        rows = jax.tree.map(lambda a: lax.dynamic_slice_in_dim(a, first, size), part)
        place = first + jnp.arange(size)
        counted = (place >= start) & (place < n)
        return Sums(*map(jnp.add, sums, _sums(shape, layers, rows, counted)))

    zero, none = jnp.float32(0), jnp.int32(0)
    # Counted, not averaged: a mean in single precision may miss 1 when all are right.
    total = lax.fori_loop(0, (until + size - 1) // size, add, Sums(none, zero, zero, none))
    overflow = total.overflows > 0
    score = Score(
        jnp.where(overflow, -1, total.right), jnp.where(overflow, jnp.inf, total.loss / n)
    )
    return score, total.error / n


def _sums(shape: ProgramShape, layers: Layers, rows: DataPart, counted: DeviceArray) -> Sums:
    outputs = shape.functions.forward(layers, rows.X)  # without dropout
    error = jnp.mean((outputs - rows.Y) ** 2, axis=-1)
    overflows = ~jnp.isfinite(outputs).all(axis=-1)

    def total(values: DeviceArray) -> DeviceArray:
        return jnp.where(counted, values, 0).sum(dtype=jnp.float32)

    right = counted & (outputs.argmax(axis=-1) == rows.labels)
    losses = _losses(shape.loss, outputs, rows.Y)
    count = (counted & overflows).sum(dtype=jnp.int32)
    return Sums(right.sum(dtype=jnp.int32), total(losses), total(error), count)


def _is_better(score: Score, best: Score) -> DeviceArray:
    """More labels right, or as many with a lower loss."""
    level = (score.right == best.right) & (score.loss < best.loss)
    return (score.right > best.right) | level
