"""Training finite networks as the paper did (sec. 3.1, app. D): Adam, early stopping on validation.

    train(network, split, recipe) -> Training

Many networks of one shape are trained at once, in lanes (`lanes`). `Trainer` takes their recipes
from an iterator, which may claim them from a store of runs (`random_search`), and yields results.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from nngp import FiniteNetwork
from nngp_paper.datasets import Split
from nngp_paper.finite.device import MOST_LANES, explained_memory_error, lanes_for
from nngp_paper.finite.lanes import (
    Lane,
    LaneSettings,
    advance_lanes,
    empty_lanes,
    fill_lanes,
    final_scores,
    lane_arrays,
    program_shape,
    settings_of,
)
from nngp_paper.finite.recipe import Plan, Recipe
from nngp_paper.finite.training_data import DataPart, TrainingData
from nngp_paper.finite.training_state import Evaluation, Scores, Training, TrainingState
from nngp_paper.numbers import whole_number
from nngp_paper.progress import Advance, progress_bar

States = list[TrainingState | None]  # one entry a lane, None for an empty one
EMPTY = Recipe(weight_var=1.0, bias_var=0.0)  # for an empty lane


class Trial(NamedTuple):
    """A recipe, the number of training points, and the name that its result is given under."""

    name: str
    recipe: Recipe
    points: int


@overload
def train(
    network: FiniteNetwork,
    data: Split,
    recipes: Recipe | None = None,
    plan: Plan | None = None,
    *,
    lanes: int | None = None,
    progress: bool | None = None,
) -> Training: ...
@overload
def train(
    network: FiniteNetwork,
    data: Split,
    recipes: Sequence[Recipe],
    plan: Plan | None = None,
    *,
    lanes: int | None = None,
    progress: bool | None = None,
) -> list[Training]: ...
def train(
    network: FiniteNetwork,
    data: Split,
    recipes: Recipe | Sequence[Recipe] | None = None,
    plan: Plan | None = None,
    *,
    lanes: int | None = None,
    progress: bool | None = None,
) -> Training | list[Training]:
    """Train networks of one shape.

    Parameters
    ----------
    network : FiniteNetwork
        Gives depth, widths and activation.
    data : Split
        As `nngp_paper.datasets.split` gives it.
    recipes : Recipe or sequence of Recipe, optional
        Where they have no variances, those of the architecture are taken.
        For a sequence the result is a list, otherwise one `Training`.
    plan : Plan, optional
    lanes : int, optional
        How many to train side by side; by default one on a CPU, on a GPU as many as fit.
    progress : bool, optional
        Whether to show a bar; by default on a terminal.

    Examples
    --------
    >>> import nngp
    >>> from nngp_paper import datasets, finite
    >>> digits = datasets.split("digits", 100)
    >>> network = nngp.FiniteNetwork(nngp.Architecture(1, "relu"), width=16, n_out=10)
    >>> recipe, plan = finite.Recipe(batch_size=16), finite.Plan(steps=20, interval=10)
    >>> trained = finite.train(network, digits, recipe, plan, progress=False)
    >>> trained.steps, trained.curve["step"], trained.test_accuracy > 0.1
    (20, [10, 20], True)
    """
    if recipes is None or isinstance(recipes, Recipe):
        return train(network, data, [recipes or Recipe()], plan, lanes=lanes, progress=progress)[0]
    given = list(recipes)
    if not all(isinstance(recipe, Recipe) for recipe in given):
        raise TypeError("recipes must be a Recipe or a list of them; a plan is given as plan=")
    wanted = [recipe.of(network.architecture) for recipe in given]
    if not wanted:
        return []
    largest, count = max(recipe.batch_size for recipe in wanted), len(wanted)
    on_device = TrainingData.of(data)
    trainer = Trainer(network, on_device, plan or Plan(), largest, lanes, count, keep_weights=True)
    trials = [Trial(str(i), recipe, len(data.X)) for i, recipe in enumerate(wanted)]
    with progress_bar("training", count, progress) as advance:
        trained = dict(trainer.run(trials, advance))
    return [trained[trial.name] for trial in trials]


class Trainer:
    """Trains networks of one shape, on the training set of a split or on the first of its points.

    `largest_batch` is the largest batch size to come, `expected` the number of networks: no more
    lanes than that are made.
    """

    def __init__(
        self,
        network: FiniteNetwork,
        data: TrainingData,
        plan: Plan,
        largest_batch: int,
        lanes: int | None = None,
        expected: int = MOST_LANES,
        keep_weights: bool = False,
    ) -> None:
        self.plan, self._data, self._keep_weights = plan, data, keep_weights
        self.shape = program_shape(network, data.data, plan, largest_batch)
        most = lanes_for(self.shape, expected) if lanes is None else whole_number("lanes", lanes)
        self.lanes = min(most, expected)
        self._monitor: DataPart = getattr(data, plan.monitor)

    def compile(self) -> None:
        """Compile the programs, so that `run` begins at once; may be called in another thread."""
        settings = self._settings([None] * self.lanes)
        lanes, marked = lane_arrays(self.shape, settings), np.zeros(self.lanes, bool)
        fill_lanes.lower(self.shape, lanes, marked, settings).compile()
        train, monitor = self._data.train, self._monitor
        advance_lanes.lower(self.shape, lanes, settings, train, monitor).compile()
        number = np.int32(0)
        final_scores.lower(self.shape, lanes, number, number, self._data.parts).compile()

    def run(self, trials: Iterable[Trial], advance: Advance) -> Iterator[tuple[str, Training]]:
        """Train a network for each trial; yield it under the trial's name when it has ended.

        Trials are taken one by one, as lanes become free. `advance` counts networks.
        """
        with explained_memory_error(self.lanes):
            yield from self._run(iter(trials), advance)

    def _run(self, trials: Iterator[Trial], advance: Advance) -> Iterator[tuple[str, Training]]:
        states: States = [None] * self.lanes
        lanes: Lane | None = None
        while True:
            start = time.perf_counter()
            fresh = _take(states, trials)
            if not any(states):
                return
            if fresh or lanes is None:
                settings = self._settings(states)
                lanes = self._filled(lanes, fresh, settings)
            lanes, seen = self._advanced(lanes, settings)
            self._record(states, seen, time.perf_counter() - start)
            for i, state in enumerate(states):
                if state:
                    advance(state.progress(self.plan))
                if state and state.ended(self.plan):
                    states[i] = None
                    yield state.name, self._training(state, lanes, i)

    def _settings(self, states: States) -> LaneSettings:
        """Settings of all lanes; no batch is larger than the padded one."""
        recipes = [state.recipe if state else EMPTY for state in states]
        most = self.shape.batch
        fitting = [replace(r, batch_size=min(r.batch_size, most)) for r in recipes]
        return settings_of(fitting, [state.points if state else most for state in states])

    def _filled(self, lanes: Lane | None, fresh: list[int], settings: LaneSettings) -> Lane:
        marked = np.isin(np.arange(self.lanes), fresh)
        filled: Lane = fill_lanes(
            self.shape, lanes or empty_lanes(self.shape, settings), marked, settings
        )
        return filled

    def _advanced(self, lanes: Lane, settings: LaneSettings) -> tuple[Lane, list[Evaluation]]:
        """The lanes some steps further, and their evaluations."""
        out = advance_lanes(self.shape, lanes, settings, self._data.train, self._monitor)
        on_training = self.plan.monitor == "train"
        counted = settings.points if on_training else len(self._monitor.X)
        accuracy = np.asarray(out.score.right) / counted
        columns = out.train_loss, accuracy, out.score.loss, out.better, out.lower
        return out.lanes, [Evaluation(*row) for row in np.column_stack(columns).tolist()]

    def _record(self, states: States, seen: list[Evaluation], seconds: float) -> None:
        """Add an evaluation to every network; they share the time it took."""
        pairs = [(state, one) for state, one in zip(states, seen, strict=True) if state]
        for state, one in pairs:
            state.record(self.plan.interval, one)
            state.seconds += seconds / len(pairs)

    def _training(self, state: TrainingState, lanes: Lane, lane: int) -> Training:
        best, lowest = self._scores(state, lanes, lane)
        return Training(
            recipe=state.recipe,
            **{name: value for name, value in best._asdict().items() if name != "step"},
            best_step=best.step,
            steps=state.steps,
            overflowed=state.overflowed,
            seconds=state.seconds,
            curve=state.curve,
            least_loss=lowest,
            weights=self._weights(lanes, lane),
        )

    def _scores(self, state: TrainingState, lanes: Lane, lane: int) -> tuple[Scores, Scores]:
        """Scores of the best weights by accuracy and by loss."""
        place, points = np.int32(lane), np.int32(state.points)
        found = np.asarray(final_scores(self.shape, lanes, place, points, self._data.parts), float)
        counts = [state.points, *(len(part.X) for part in self._data.parts[1:])]
        accuracy, error = np.maximum(found[..., 0], 0) / counts, found[..., 1]
        best, lowest = np.hstack([accuracy, error]).tolist()
        return Scores._make([*best, state.best_step]), Scores._make([*lowest, state.lowest_step])

    def _weights(self, lanes: Lane, lane: int) -> list[dict[str, NDArray[np.float32]]] | None:
        """The best weights by accuracy, if they are kept."""
        if not self._keep_weights:
            return None
        return [
            {name: np.asarray(stacked[lane]) for name, stacked in layer.items()}
            for layer in lanes.by_accuracy.layers
        ]


def _take(states: States, trials: Iterator[Trial]) -> list[int]:
    """Begin new trainings in the lanes that are free; gives the lanes that got one."""
    free = [i for i, state in enumerate(states) if state is None]
    fresh = []
    for i, trial in zip(free, trials, strict=False):
        states[i] = TrainingState(*trial)
        fresh.append(i)
    return fresh
