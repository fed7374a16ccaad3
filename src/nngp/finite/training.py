"""Training finite networks as the paper did (sec. 3.1, app. D): Adam, early stopping on validation.

    train(network, split, recipe) -> Training

Many networks of one shape are trained at once, in lanes (`lanes`); where the next one comes from
and where results go is the caller's: a list here, a store of runs in `search`.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import jax
import numpy as np
from numpy.typing import NDArray

from nngp._progress import Progress, progress_for
from nngp.datasets import Split
from nngp.finite import lanes as side_by_side
from nngp.finite.device import MOST_LANES, lanes_that_fit, memory_sentence
from nngp.finite.lanes import Numbers, Part, Shape, numbers_of
from nngp.finite.material import Material
from nngp.finite.network import FiniteNetwork
from nngp.finite.recipe import Plan, Recipe
from nngp.finite.requirements import whole
from nngp.finite.training_state import Curve, Seat

NOBODY = Recipe(weight_var=1.0, bias_var=0.0)  # in a lane that is empty


@dataclass(frozen=True)
class Training:
    """A trained network: how well it does, how it got there, and its weights if they were kept.

    Accuracies and mean squared errors are those of the weights that did best on the part that was
    monitored, found at `best_step` of `steps`. `curve` has one entry a look: step, mean loss on
    batches since the last look, then accuracy and loss on the monitored part.
    """

    recipe: Recipe
    train_accuracy: float
    val_accuracy: float
    test_accuracy: float
    train_mse: float
    val_mse: float
    test_mse: float
    best_step: int
    steps: int
    overflowed: bool
    seconds: float
    curve: Curve
    weights: list[dict[str, NDArray[np.float32]]] | None = field(default=None, repr=False)

    def result(self) -> dict[str, Any]:
        """What a store keeps of it."""
        skipped = ("recipe", "weights", "seconds")
        return {name: value for name, value in vars(self).items() if name not in skipped}


class Source(Protocol):
    """Where recipes come from and trained networks go."""

    def take(self, count: int) -> Sequence[tuple[Any, Recipe]]:
        """Up to `count` more, each with a name; none when there are no more."""

    def done(self, name: Any, training: Training) -> None:
        """One of them is trained."""

    def release(self, names: list[Any]) -> None:
        """These were taken and will not be trained: something went wrong."""


def train(
    network: FiniteNetwork,
    data: Split,
    recipes: Recipe | Sequence[Recipe] | None = None,
    plan: Plan | None = None,
    *,
    lanes: int | None = None,
    progress: Any = None,
) -> Any:
    """Train networks of one shape.

    Parameters
    ----------
    network : FiniteNetwork
        Gives depth, widths and activation.
    data : Split
        As `nngp.datasets.split` gives it.
    recipes : Recipe or sequence of Recipe, optional
        Where they have no variances, those of the architecture are taken.
        For a sequence the result is a list, otherwise one `Training`.
    plan : Plan, optional
    lanes : int, optional
        How many to train side by side; by default one on a CPU, on a GPU what fits.
    progress : callable or bool, optional
        As in `nngp.condition`; by default a bar on a terminal.
    """
    alone = recipes is None or isinstance(recipes, Recipe)
    given: list[Any] = [recipes or Recipe()] if alone else list(recipes)  # type: ignore[arg-type]
    if not all(isinstance(recipe, Recipe) for recipe in given):
        raise TypeError("recipes must be a Recipe or a list of them; a plan is given as plan=")
    wanted: list[Recipe] = [recipe.of(network.architecture) for recipe in given]
    if not wanted:
        return []
    room = max(recipe.batch_size for recipe in wanted)
    material, count = Material.of(data), len(wanted)
    trainer = Trainer(network, material, plan or Plan(), room, lanes, count, keep=True)
    source = _List(wanted)
    with Progress("training", count, progress_for(progress, math.inf)) as bar:
        trainer.run(source, bar)
    return source.trained[0] if alone else source.trained


class Trainer:
    """Networks of one shape on one split of the data.

    `room` is the largest batch size to come, `expected` how many networks: no more lanes than that
    are made. `keep` keeps the weights.
    """

    def __init__(
        self,
        network: FiniteNetwork,
        material: Material,
        plan: Plan,
        room: int,
        lanes: int | None = None,
        expected: int = MOST_LANES,
        keep: bool = False,
    ) -> None:
        self.plan, self._material, self._keep = plan, material, keep
        self.shape = shape_of(network, material.data, plan, room)
        most = lanes_that_fit(self.shape) if lanes is None else whole("lanes", lanes)
        self.lanes = min(most, expected)
        self._monitor: Part = getattr(material, plan.monitor)

    def run(self, source: Source, bar: Progress) -> None:
        """Train what the source has, until it has no more; `bar` counts networks."""
        seats: list[Seat | None] = [None] * self.lanes
        try:
            with memory_sentence(self.lanes):
                self._run(seats, source, bar)
        except BaseException:
            source.release([seat.name for seat in seats if seat])
            raise

    def _run(self, seats: list[Seat | None], source: Source, bar: Progress) -> None:
        state: Any = None
        while True:
            start = time.perf_counter()
            fresh = _fill(seats, source)
            if not any(seats):
                return
            if fresh:
                numbers = self._numbers(seats)
                state = self._filled(state, fresh, numbers)
            state, seen = self._advanced(state, numbers)
            _look(seats, self.plan, seen, time.perf_counter() - start)
            for i, seat in enumerate(seats):
                if seat:
                    bar.advance(seat.progress(self.plan))
                if seat and seat.ended(self.plan):
                    source.done(seat.name, self._training(seat, state.best, i))
                    seats[i] = None

    def _numbers(self, seats: list[Seat | None]) -> Numbers:
        """Of the networks in the lanes (any in an empty one); a batch has its room at most."""
        recipes = [seat.recipe if seat else NOBODY for seat in seats]
        room = self.shape.batch
        return numbers_of([replace(r, batch_size=min(r.batch_size, room)) for r in recipes])

    def _filled(self, state: Any, fresh: list[int], numbers: Numbers) -> Any:
        if state is None:
            state = side_by_side.empty(self.shape.sizes, numbers)
        marked = np.isin(np.arange(self.lanes), fresh)
        return side_by_side.fill(self.shape.sizes, state, marked, numbers)

    def _advanced(self, state: Any, numbers: Numbers) -> tuple[Any, list[list[float]]]:
        """The lanes some steps further, and what a look at each of them shows."""
        state, losses, score, better = side_by_side.advance(
            self.shape, state, numbers, self._material.train, self._monitor
        )
        accuracy = np.asarray(score.right) / len(self._monitor.X)
        return state, np.column_stack([losses, accuracy, score.loss, better]).tolist()

    def _training(self, seat: Seat, best: Any, lane: int) -> Training:
        layers = jax.tree.map(lambda stacked: stacked[lane : lane + 1], best)
        shape, scores = self.shape, {}
        for name in ("train", "validation", "test"):
            part: Part = getattr(self._material, name)
            score, error = side_by_side.judge(shape.activation, shape.loss, layers, part)
            short = name.replace("validation", "val")
            scores[f"{short}_accuracy"] = max(int(score.right[0]), 0) / len(part.X)
            scores[f"{short}_mse"] = float(error[0])
        return Training(
            recipe=seat.recipe,
            **scores,
            best_step=seat.best_step,
            steps=seat.steps,
            overflowed=seat.overflowed,
            seconds=seat.seconds,
            curve=seat.curve,
            weights=jax.tree.map(lambda one: np.asarray(one[0]), layers) if self._keep else None,
        )


class _List:
    """Recipes from a list; results in its order."""

    def __init__(self, recipes: list[Recipe]) -> None:
        self._waiting = list(enumerate(recipes))
        self.trained: list[Any] = [None] * len(recipes)

    def take(self, count: int) -> list[tuple[int, Recipe]]:
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        return taken

    def done(self, name: int, training: Training) -> None:
        self.trained[name] = training

    def release(self, names: list[int]) -> None:
        pass


def shape_of(network: FiniteNetwork, data: Split, plan: Plan, room: int) -> Shape:
    """What is compiled to train such networks."""
    if network.n_out != data.n_classes:
        raise ValueError(
            f"the network has {network.n_out} outputs and {data.name} has {data.n_classes} "
            f"classes; take n_out={data.n_classes}"
        )
    sizes = (data.X.shape[1], *network.widths, data.n_classes)
    activation, room = network.architecture.activation, min(room, len(data.X))
    return Shape(sizes, activation, plan.loss, plan.interval, room)


def _fill(seats: list[Seat | None], source: Source) -> list[int]:
    """Seat new networks where there is room; gives the lanes they got."""
    free = [i for i, seat in enumerate(seats) if seat is None]
    taken = source.take(len(free)) if free else []
    for i, (name, recipe) in zip(free, taken, strict=False):
        seats[i] = Seat(name, recipe)
    return free[: len(taken)]


def _look(seats: list[Seat | None], plan: Plan, seen: list[list[float]], seconds: float) -> None:
    """Take down a look at every network; they share the time it took."""
    taken = [(seat, row) for seat, row in zip(seats, seen, strict=True) if seat]
    for seat, (train_loss, accuracy, loss, better) in taken:
        seat.look(plan.interval, train_loss, accuracy, loss, bool(better))
        seat.seconds += seconds / len(taken)
