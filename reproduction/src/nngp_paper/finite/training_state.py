"""One network's training on the host: its state while it lasts, and its result. Needs no JAX."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nngp_paper.finite.recipe import Plan, Recipe

LEAST_LOSS = "least_loss_"  # before the names of scores of the weights with the lowest loss
LearningCurve = dict[str, list[float | None]]


class Scores(NamedTuple):
    """Accuracies and mean squared errors of some weights, and the step that they were found at."""

    train_accuracy: float
    val_accuracy: float
    test_accuracy: float
    train_mse: float
    val_mse: float
    test_mse: float
    step: int


@dataclass(frozen=True)
class Training:
    """A trained network: its accuracies and errors, its learning curve, and its weights if kept.

    Accuracies and mean squared errors are those of the weights that had the highest accuracy on the
    monitored part, found at `best_step` of `steps`. `least_loss` has the scores of those with the
    lowest loss on it. `curve` has one entry for each evaluation: step, mean loss on
    batches since the last evaluation, then accuracy and loss on the monitored part.

    Examples
    --------
    >>> import nngp
    >>> from nngp_paper import datasets, finite
    >>> digits = datasets.split("digits", 100)
    >>> network = nngp.FiniteNetwork(nngp.Architecture(1, "relu"), width=16, n_out=10)
    >>> recipe, plan = finite.Recipe(batch_size=16), finite.Plan(steps=20, interval=10)
    >>> trained = finite.train(network, digits, recipe, plan, progress=False)
    >>> trained.steps, [layer["w"].shape for layer in trained.weights]
    (20, [(64, 16), (16, 10)])
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
    curve: LearningCurve
    least_loss: Scores
    weights: list[dict[str, NDArray[np.float32]]] | None = field(default=None, repr=False)

    def result(self) -> dict[str, object]:
        """The values that a store of runs keeps, those of the lowest loss under names of their
        own."""
        skipped = ("recipe", "weights", "seconds", "least_loss")
        own = {name: value for name, value in vars(self).items() if name not in skipped}
        others = self.least_loss._asdict().items()
        return own | {f"{LEAST_LOSS}{name}": value for name, value in others}


class Evaluation(NamedTuple):
    """A network on the monitored part; a negative accuracy stands for outputs that overflow."""

    train_loss: float
    accuracy: float
    loss: float
    better: bool  # the most accurate so far; of equals the lower loss
    lower: bool  # the lowest loss so far


def _empty_curve() -> LearningCurve:
    return {"step": [], "train_loss": [], "accuracy": [], "loss": []}


@dataclass
class TrainingState:
    """The network in a lane: its recipe, the steps taken, and its evaluations so far."""

    name: str
    recipe: Recipe
    points: int  # training points
    curve: LearningCurve = field(default_factory=_empty_curve)
    steps: int = 0
    best: float = 0.0  # accuracy
    best_step: int = 0
    lowest_step: int = 0
    waited: int = 0
    overflowed: bool = False
    seconds: float = 0.0

    def record(self, interval: int, seen: Evaluation) -> None:
        """Add an evaluation made after `interval` more steps."""
        self.steps += interval
        self.overflowed = seen.accuracy < 0
        self.curve["step"].append(self.steps)
        self.curve["train_loss"].append(_rounded(seen.train_loss))
        self.curve["accuracy"].append(None if self.overflowed else _rounded(seen.accuracy))
        self.curve["loss"].append(_rounded(seen.loss))
        self.waited = 0 if seen.better or seen.lower else self.waited + 1
        if seen.better:
            self.best, self.best_step = seen.accuracy, self.steps
        if seen.lower:
            self.lowest_step = self.steps

    def progress(self, plan: Plan) -> float:
        """The share of a whole training that ended with the last evaluation."""
        if self.ended(plan):
            return max(0.0, 1.0 - (self.steps - plan.interval) / plan.steps)
        return plan.interval / plan.steps

    def ended(self, plan: Plan) -> bool:
        """Whether steps or patience are used up, all labels are right, or outputs overflow."""
        over = self.steps >= plan.steps or self.waited >= plan.patience
        return over or self.best >= 1.0 or self.overflowed


def _rounded(value: float) -> float | None:
    """Six digits, all that single precision has; None for infinity and NaN, as in JSON."""
    return float(f"{value:.6g}") if np.isfinite(value) else None
