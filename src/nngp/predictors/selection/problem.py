"""The question of model selection: data, candidate networks, limits."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nngp._arrays import Array
from nngp._progress import Callback
from nngp.architecture import Activation, Architecture
from nngp.linsolve import Engine

Variance = float | tuple[float, ...]  # of all layers, or of each


class Start(NamedTuple):
    """Variances at which an ascent begins."""

    weight_var: float
    bias_var: float
    noise_var: float


STARTS = (Start(2.0, 0.3, 0.1), Start(8.0, 1.0, 0.01))
CHOOSE = "choose the network"  # the phase, to those who follow progress
MIN_POINTS = 5  # with fewer the default network is used
INFINITE_DEPTH_WEIGHT_VAR = 0.5  # inside the ordered phase, where the kernel has a limit


@dataclass(frozen=True)
class Hyperparameters:
    """A network, its noise variance, and the relevance of each input (all one if None)."""

    architecture: Architecture
    noise_var: float
    relevance: Array | None = None


@dataclass(frozen=True)
class Candidate:
    """An activation and a depth, with the variances that the user fixed; None is free."""

    activation: Activation
    depth: int
    weight_var: Variance | None = None
    bias_var: Variance | None = None
    noise_var: float | None = None

    @property
    def is_infinite(self) -> bool:
        return self.depth == np.inf

    @property
    def layers(self) -> int:
        """Number of weight variances; all layers of an infinitely deep network share one."""
        return 1 if self.is_infinite else self.depth + 1

    def starting_at(self, start: Start, relevance: Array | None = None) -> Hyperparameters:
        """Hyper-parameters with the free variances taken from `start`."""
        if self.is_infinite:
            start = start._replace(weight_var=INFINITE_DEPTH_WEIGHT_VAR)
        weight_var = start.weight_var if self.weight_var is None else self.weight_var
        bias_var = start.bias_var if self.bias_var is None else self.bias_var
        noise_var = start.noise_var if self.noise_var is None else self.noise_var
        architecture = Architecture(self.depth, self.activation, weight_var, bias_var)
        return Hyperparameters(architecture, noise_var, relevance)


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """The networks to choose from, and what the choice may cost."""

    candidates: list[Candidate]  # the first is the default
    criterion: str | None  # "evidence", "loo", "grid" or None
    size: int  # points used at most
    budget: int | None  # networks computed at most
    learn_relevance: bool = False


@dataclass(frozen=True, kw_only=True)
class SelectionProblem(SearchSettings):
    """The search on scaled training data."""

    X: Array
    Y: Array  # (n, outputs)
    engine: str | Engine
    rng: np.random.Generator
    progress: Callback | bool | None
    classes: bool  # whether the targets are one-hot classes
    own_spread: Array | None = None  # relevances that undo the standardisation of columns
