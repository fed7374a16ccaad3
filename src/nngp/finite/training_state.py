"""One network in training as the host knows it: where it stands, and whether it is over."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nngp.finite.recipe import Plan, Recipe

Curve = dict[str, list[float | None]]


def _no_looks() -> Curve:
    return {"step": [], "train_loss": [], "accuracy": [], "loss": []}


@dataclass
class Seat:
    """The network in a lane. A look without finite outputs has a negative accuracy, and ends it."""

    name: Any
    recipe: Recipe
    curve: Curve = field(default_factory=_no_looks)
    steps: int = 0
    best: float = 0.0  # accuracy
    best_step: int = 0
    waited: int = 0
    overflowed: bool = False
    seconds: float = 0.0

    def look(
        self, interval: int, train_loss: float, accuracy: float, loss: float, better: bool
    ) -> None:
        """Take down what was seen after `interval` more steps, and whether it is the best."""
        self.steps += interval
        self.overflowed = accuracy < 0
        self.curve["step"].append(self.steps)
        self.curve["train_loss"].append(_short(train_loss))
        self.curve["accuracy"].append(None if self.overflowed else _short(accuracy))
        self.curve["loss"].append(_short(loss))
        self.waited = 0 if better else self.waited + 1
        if better:
            self.best, self.best_step = accuracy, self.steps

    def progress(self, plan: Plan) -> float:
        """What the last look adds to the work done, as a share of a network's whole training."""
        if self.ended(plan):
            return max(0.0, 1.0 - (self.steps - plan.interval) / plan.steps)
        return plan.interval / plan.steps

    def ended(self, plan: Plan) -> bool:
        """No more steps, no patience, nothing left to improve, or nothing to hope for."""
        over = self.steps >= plan.steps or self.waited >= plan.patience
        return over or self.best >= 1.0 or self.overflowed


def _short(value: float) -> float | None:
    """Six digits, as many as single precision has; infinity and NaN cannot be written down."""
    return float(f"{value:.6g}") if np.isfinite(value) else None
