"""The question of model selection: data, candidate networks, limits; and its answer: the choice,
and the table of the networks tried, `selection_` of the estimators.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

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
from nngp.selection.families import name_of

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
YEO_JOHNSON = "yeo-johnson"


@dataclass(frozen=True)
class HyperparameterPoint:
    """One point of the search: a network, its noise, and how inputs are scaled."""

    base: Architecture  # without its invariance
    noise_var: float
    relevance: Array | None = None  # of each input, beside the given ones; all one if None
    kinds: tuple[str, ...] = ()  # of the maps; the defaults if empty
    powers: Array = field(default_factory=lambda: np.empty(0))  # of Yeo-Johnson, for each input
    whitening: float | None = None  # strength; None where inputs are not whitened
    invariance: tuple[Family, ...] = ()  # transformations that the network is averaged over

    @property
    def moving(self) -> Index:
        """Columns whose power is learned."""
        return np.flatnonzero([kind == YEO_JOHNSON for kind in self.kinds])

    @property
    def network(self) -> Network:
        """The network with its invariance."""
        return averaged(self.base, self.invariance)


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


@dataclass(frozen=True)
class SearchEffort:
    """Points of the first stages, L-BFGS steps of each stage, and networks kept after the first."""

    points: int
    kind: int
    targets: int
    relevance: int
    maps: int
    more: int
    last: int
    all: int
    finalists: int
    share: float  # of `size`, the points of the last stages
    noise_factor: int  # points of the noise alone, over those


EFFORT = {
    "fast": SearchEffort(200, 6, 6, 10, 8, 0, 10, 0, 1, 0.5, 2),
    "normal": SearchEffort(300, 10, 10, 20, 14, 6, 20, 6, 2, 1.0, 2),
    "thorough": SearchEffort(500, 16, 16, 40, 25, 12, 60, 20, 4, 2.0, 2),
}


class SelectionRow(NamedTuple):
    """One ascent."""

    stage: str
    n: int  # points it was computed on
    score: float
    log_evidence: float  # of the targets in their own units
    evaluations: int
    seconds: float
    setting: HyperparameterPoint
    maps: int = 0  # columns that have a map
    transform: str = "identity"  # of the targets


@dataclass
class SelectionTable:
    """Rows in the order in which they were tried, and the setting that was chosen."""

    rows: list[SelectionRow] = field(default_factory=list)
    chosen: HyperparameterPoint | None = None

    def columns(self) -> dict[str, NDArray[Any]]:
        """Equally long arrays by name, as `pandas.DataFrame` takes them; none without rows."""
        records = [self._record(row) for row in self.rows]
        unused = [name for name in ("whitening", "invariance") if not _has(records, name)]
        for record in records:
            for name in unused:
                del record[name]
        names = list(records[0]) if records else []
        return {name: as_column([record[name] for record in records]) for name in names}

    def _record(self, row: SelectionRow) -> dict[str, object]:
        net = row.setting.base
        return {
            "stage": row.stage,
            "n": row.n,
            "score": row.score,
            "log_evidence": row.log_evidence,
            "evaluations": row.evaluations,
            "seconds": row.seconds,
            "activation": net.activation.name,
            "depth": net.depth,
            "weight_var": net.weight_var,
            "bias_var": net.bias_var,
            "noise_var": row.setting.noise_var,
            "maps": row.maps,
            "target_transform": row.transform,
            "whitening": row.setting.whitening,
            "invariance": name_of(row.setting.invariance),
            "chosen": row.setting is self.chosen,
        }


def _has(records: list[dict[str, object]], name: str) -> bool:
    return any(record[name] for record in records)


def as_column(values: Sequence[object]) -> NDArray[Any]:
    """Array of the values; one variance per layer stays together as a tuple."""
    if any(isinstance(value, tuple | list) for value in values):
        out = np.empty(len(values), dtype=object)
        out[:] = [tuple(value) if isinstance(value, list) else value for value in values]
        return out
    return np.asarray(values)


@dataclass(frozen=True)
class Choice:
    """The choice: the finalists (best first, distinct networks), the table of all tried."""

    best: Hyperparameters
    finalists: list[Hyperparameters]
    table: SelectionTable
