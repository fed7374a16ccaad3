"""The question of model selection: data, candidate networks, limits; and its answer."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nngp._arrays import Array, Index, Mask
from nngp._progress import Callback
from nngp.architecture import Activation, Architecture, Invariant, Network
from nngp.architecture.invariances import Family
from nngp.frames.scaling import InputScaling
from nngp.frames.whitening import STRENGTHS
from nngp.linsolve import Engine
from nngp.predictive.targets import TargetScaling

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
EFFORTS = ("fast", "normal", "thorough")
MAPS = ("auto", "identity")


@dataclass(frozen=True)
class Hyperparameters:
    """A network, its noise variance in units of the scaled targets, and the scaling of inputs and
    targets: all that a fit needs."""

    network: Network
    noise_var: float
    inputs: InputScaling
    targets: TargetScaling
    # Rows, and what is chosen without them: calibration must not use rows that the choice has seen.
    folds: tuple[tuple[Index, "Hyperparameters"], ...] = ()

    def with_rows(self, order: Index) -> "Hyperparameters":
        """The same, with the numbers that rows had before they were put into an order."""
        return replace(self, folds=tuple((order[rows], one) for rows, one in self.folds))


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

    def starting_at(self, start: Start) -> tuple[Architecture, float]:
        """The network and the noise with the free variances taken from `start`."""
        if self.is_infinite:
            start = start._replace(weight_var=INFINITE_DEPTH_WEIGHT_VAR)
        weight_var = start.weight_var if self.weight_var is None else self.weight_var
        bias_var = start.bias_var if self.bias_var is None else self.bias_var
        noise_var = start.noise_var if self.noise_var is None else self.noise_var
        return Architecture(self.depth, self.activation, weight_var, bias_var), noise_var


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """The networks to choose from, and what the choice may cost."""

    candidates: list[Candidate]  # the first is the default
    criterion: str | None  # "evidence", "loo" or None
    size: int  # points used at most
    budget: int | None  # networks computed at most
    learn_relevance: bool = False
    scaling: str = "standardize"  # kind of the inputs' scaling
    maps: str = "identity"  # "auto": monotone maps of columns are tried
    effort: str = "normal"
    networks: int = 1  # finalists wanted
    classes: bool = False  # whether the targets are one-hot classes
    network: Network | None = None  # given by the user
    scale_is_free: bool = True  # whether the outputs of a given network may get a scale
    whitening: float | None = None  # strength, with that scaling; None: it is chosen
    columns: int = 1  # inputs
    invariance: tuple[Family, ...] | None = ()  # of the network; None: it is chosen
    image_shape: tuple[int, ...] | None = None  # of a row, where an invariance is chosen
    engine: str | Engine = "auto"

    @property
    def strengths(self) -> tuple[float, ...]:
        """Strengths of whitening to choose from; none where inputs are not whitened."""
        if self.scaling != "whiten":
            return ()
        return STRENGTHS if self.whitening is None else (self.whitening,)


@dataclass(frozen=True, kw_only=True)
class SelectionProblem(SearchSettings):
    """The search on raw training data."""

    X: Array  # (n, d), encoded and not scaled
    Y: Array  # (n, outputs), not scaled
    targets: tuple[TargetScaling, ...]  # candidates; the first is the default
    rng: np.random.Generator
    progress: Callback | bool | None
    relevance: Array | None = None  # as the user gave it
    groups: NDArray[np.intp] | None = None  # inputs of one number share one relevance
    mappable: Mask | None = None  # inputs that may get a map; all if None
    weights: Array | None = None  # of rows: a weight of 2 is the row twice
    known_noise: Array | None = None  # variance of each row's noise beside the learned one, raw


def averaged(network: Network, families: tuple[Family, ...]) -> Network:
    """The network, averaged over the transformations of these families if there are any."""
    return Invariant(network, families) if families else network


def are_copies(weights: Array) -> bool:
    """Whether weights count copies of rows: whole numbers. The evidence then counts the copies,
    which agree, and takes that for little noise; other weights only say how noisy a row is."""
    return bool((weights == np.floor(weights)).all())


def row_noise(
    noise_var: Array | float, weights: Array | None, known: Array | float
) -> Array | float:
    """Noise variance of each row: a row of weight w stands for w rows that have the same mean."""
    total = known + noise_var
    return total if weights is None else total / weights


def scaled_known_noise(known: Array | None, Y: Array, targets: TargetScaling) -> Array | float:
    """Known noise variances in units of the scaled targets (of the outputs' average)."""
    if known is None:
        return 0.0
    with np.errstate(over="ignore"):
        slopes = np.exp(2.0 * targets.log_slopes(Y)).mean(axis=1)
    out: Array = known * slopes
    return out
