"""Recipes of single trainings, the plan that trainings share, and the paper's ranges (app. D).

Where the paper is silent: weight decay is the gradient of weight_decay/2 |W|², of weights and not
of biases; Adam's other numbers are optax's defaults; the loss is the mean over batch and outputs.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import count
from numbers import Real
from typing import Any, Literal

import numpy as np

from nngp import Network
from nngp_paper.numbers import whole_number

# The random search over finite networks:
LEARNING_RATE = 1e-4, 0.2  # log-uniform
WEIGHT_DECAY = 1e-8, 1.0  # log-uniform
SIGMA_W = 0.01, 2.5  # uniform
SIGMA_B = 0.0, 1.5  # uniform
BATCH_SIZES = 16, 32, 64, 128, 256

LARGEST = 1e30  # larger numbers overflow when multiplied in single precision


@dataclass(frozen=True)
class Recipe:
    """The numbers of one training: those of the optimiser, the variances of the initial weights (by
    default the architecture's), and the seed of weights and batches.

    Examples
    --------
    >>> import nngp
    >>> from nngp_paper.finite import Recipe
    >>> net = nngp.Architecture(2, "relu", weight_var=1.6, bias_var=0.1)
    >>> Recipe(learning_rate=1e-3, batch_size=32).of(net).weight_var
    1.6
    """

    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    weight_var: float | None = None
    bias_var: float | None = None
    batch_size: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        _check_number("learning_rate", self.learning_rate, zero=False)
        _check_number("weight_decay", self.weight_decay, zero=True)
        if self.weight_var is not None:
            _check_number("weight_var", self.weight_var, zero=False)
        if self.bias_var is not None:
            _check_number("bias_var", self.bias_var, zero=True)
        whole_number("batch_size", self.batch_size)
        if whole_number("seed", self.seed, least=0) >= 2**32:
            raise ValueError(f"seed must be below 2**32, got {self.seed}")

    def as_dict(self) -> dict[str, object]:
        """The fields as plain values, for a run's configuration."""
        return asdict(self)

    def of(self, net: Network) -> "Recipe":
        """Fill in variances that are None from the network."""
        own = {"weight_var": set(net.weight_vars), "bias_var": set(net.bias_vars)}
        missing = {name: values for name, values in own.items() if getattr(self, name) is None}
        if any(len(values) > 1 for values in missing.values()):
            raise ValueError(
                "networks are trained from one weight_var and one bias_var for all layers; give "
                "them in the recipe"
            )
        one_value = {name: values.pop() for name, values in missing.items()}
        return replace(self, **one_value)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Plan:
    """The rules of training that all networks of a search share.

    Parameters
    ----------
    loss : "mse" or "cross_entropy"
        The squared error on one-hot targets minus 1/classes, as in the paper, or the other choice.
    steps : int
        The most steps of the optimiser.
    interval : int
        Steps from one evaluation to the next; batches are drawn again, epoch by epoch.
    patience : int
        Training ends after so many evaluations without a better one: one of higher accuracy or of
        lower loss than all before it. The weights of the highest accuracy are the result, of
        equals those with the lower loss; those of the lowest loss are scored beside them.
    monitor : "validation" or "train"
        The part that the network is evaluated on. On the training set it ends once all labels are
        learned, which is how the generalisation gap is measured.
    optimiser : "adam" or "sgd"
        The paper's results are Adam's; SGD is plain, without momentum.

    Examples
    --------
    >>> from nngp_paper.finite import Plan
    >>> Plan(steps=200, interval=50).as_dict()
    {'loss': 'mse', 'steps': 200, 'interval': 50, 'patience': 8, 'monitor': 'validation'}
    """

    loss: Literal["mse", "cross_entropy"] = "mse"
    steps: int = 3000
    interval: int = 100
    patience: int = 8
    monitor: Literal["validation", "train"] = "validation"
    optimiser: Literal["adam", "sgd"] = "adam"

    def __post_init__(self) -> None:
        if self.optimiser not in ("adam", "sgd"):
            raise ValueError(f"optimiser must be 'adam' or 'sgd', got {self.optimiser!r}")
        if self.loss not in ("mse", "cross_entropy"):
            raise ValueError(f"loss must be 'mse' or 'cross_entropy', got {self.loss!r}")
        if self.monitor not in ("validation", "train"):
            raise ValueError(f"monitor must be 'validation' or 'train', got {self.monitor!r}")
        for name in ("steps", "interval", "patience"):
            whole_number(name, getattr(self, name))
        if self.steps % self.interval:
            raise ValueError(
                f"steps must be a multiple of interval, got {self.steps} and {self.interval}; the "
                "network is evaluated every interval steps, and at the end"
            )

    def as_dict(self) -> dict[str, object]:
        """The fields as plain values, for a run's configuration. Adam is not named: runs had no
        other optimiser before it became a choice, and keep their keys."""
        values = asdict(self)
        if self.optimiser == "adam":
            del values["optimiser"]
        return values

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> "Plan":
        """The plan in a run's configuration."""
        return cls(**{name: config[name] for name in cls.__dataclass_fields__ if name in config})


def random_recipes(*seeds: int) -> Iterator[Recipe]:
    """Draw recipes from the paper's ranges, without end; the i-th depends on the seeds and i.

    Examples
    --------
    >>> from itertools import islice
    >>> from nngp_paper.finite import random_recipes
    >>> first, second = islice(random_recipes(0), 2)
    >>> first != second, first == next(random_recipes(0)), first.batch_size
    (True, True, 16)
    """
    for seed in seeds:
        whole_number("seed", seed, least=0)
    for trial in count():
        yield _random_recipe(np.random.default_rng([*seeds, trial]))


def _random_recipe(rng: np.random.Generator) -> Recipe:
    def log_uniform(low: float, high: float) -> float:
        return math.exp(rng.uniform(math.log(low), math.log(high)))

    return Recipe(
        learning_rate=log_uniform(*LEARNING_RATE),
        weight_decay=log_uniform(*WEIGHT_DECAY),
        weight_var=rng.uniform(*SIGMA_W) ** 2,
        bias_var=rng.uniform(*SIGMA_B) ** 2,
        batch_size=int(rng.choice(BATCH_SIZES)),
        seed=int(rng.integers(2**31)),
    )


def _check_number(name: str, value: float, zero: bool) -> None:
    good = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if not good or not 0 <= value < LARGEST or (value == 0 and not zero):
        kind = "zero or a positive number" if zero else "a positive number"
        raise ValueError(f"{name} must be {kind} below {LARGEST:g}, got {value!r}")
