"""Scaling of targets: a monotone transform of each output, then centre and spread.

The transform is a hyper-parameter: log densities of different transforms are compared in the units
of the data, with the logarithm of the Jacobian. Targets that lie on a grid (whole numbers, cents)
have a least variance of the noise, `noise_floor`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated

import numpy as np

from nngp._arrays import Array
from nngp._records import UNSAVED, NonNegative, Range, Shaped
from nngp.frames.column_moments import moments
from nngp.predictive.resolution import spacing
from nngp.predictive.transforms import TRANSFORMS, TargetMap

TARGET_SCALINGS = ("standardize", "none")
TARGET_TRANSFORMS = ("auto", *TRANSFORMS)
MIN_POINTS_FOR_SHAPE = 20  # points say too little about the shape of a distribution
NEARLY_LINEAR = 0.1  # of a logarithm, its deviation; of a power, its distance from one
NOISE_OF_LABELS = 1e-6  # least variance; rows that repeat say zero, and would leave rounding
LARGEST_SAVED = 1e304  # of a center or spread: a thousand spreads are a number
HIGHEST_FLOOR = 0.5  # in units of the targets' variance


@dataclass(frozen=True)
class TargetScaling:
    """(T(y) - center) / spread of every output, with a transform T each.

    Attributes
    ----------
    center, spread : array, (outputs,)
    transforms : tuple of TargetMap
        One for each output; empty if all are the identity.
    positive : bool
        Whether predictions are conditioned on positive targets, as all in training were.
    noise_floor : float
        Least variance of the noise in scaled units; zero if the targets lie on no grid.
    reach : pair of arrays (outputs,) or None
        The range of the training targets, widened by its length on both sides. Means of transformed
        targets count what lies beyond as its ends: the inverse of a transform turns the tail of a
        wide Gaussian into a mean that no target comes near.
    """

    center: Annotated[Array, Shaped("outputs"), Range(-LARGEST_SAVED, LARGEST_SAVED)]
    spread: Annotated[Array, Shaped("outputs"), Range(0.0, LARGEST_SAVED, above=True)]
    transforms: tuple[TargetMap, ...] = ()
    positive: bool = False
    noise_floor: NonNegative = 0.0
    reach: tuple[Array, Array] | None = field(default=None, metadata=UNSAVED)

    @classmethod
    def learn(
        cls,
        Y: Array,
        kind: str,
        transform: str = "identity",
        *,
        positive: bool = False,
        weights: Array | None = None,
    ) -> "TargetScaling":
        """Learn scaling and transform of these kinds from the training targets, (n, outputs), with
        weights of the rows (n,).

        Outputs of fewer than three values keep the identity. Raises ValueError for the logarithm
        of targets that are not positive.
        """
        if transform == "log" and not (Y > 0).all():
            raise ValueError(
                f"target_transform='log' needs positive targets, got {Y.min():g}; "
                "use 'yeo-johnson' or 'auto'"
            )
        maps = tuple(TargetMap.learn(y, transform if _varies(y) else "identity") for y in Y.T)
        if all(one.kind == "identity" for one in maps):
            maps = ()
        plain = cls(np.zeros(Y.shape[1]), np.ones(Y.shape[1]), maps, positive)
        if kind != "none":
            center, spread = moments(plain(Y), weights)
            plain = replace(plain, center=center, spread=np.where(spread > 0, spread, 1.0))
        return replace(plain, noise_floor=plain._floor(Y))

    @classmethod
    def common(cls, Y: Array, weights: Array | None = None) -> "TargetScaling":
        """One spread for all outputs and no shift, so that the largest output stays the largest:
        for one-hot targets."""
        middle = np.average(Y, axis=0, weights=weights)
        spread = float(np.sqrt(np.average((Y - middle) ** 2, axis=0, weights=weights).mean()))
        outputs = Y.shape[1]
        spreads = np.full(outputs, spread if spread > 0 else 1.0)
        return cls(np.zeros(outputs), spreads, noise_floor=NOISE_OF_LABELS)

    @property
    def outputs(self) -> int:
        return len(self.center)

    @property
    def maps(self) -> tuple[TargetMap, ...]:
        """The transform of each output, identities too."""
        return self.transforms or (TargetMap(),) * self.outputs

    @property
    def transform(self) -> str:
        """The kind of transform of the outputs that have one."""
        kinds = {one.kind for one in self.transforms} - {"identity"}
        return min(kinds) if kinds else "identity"

    def holding(self, Y: Array) -> "TargetScaling":
        """The same scaling for more targets: those that are not all positive end the condition that
        predictions are. Raises ValueError if they have no logarithm."""
        if (Y > 0).all():
            return self
        if any(one.kind == "log" for one in self.transforms):
            raise ValueError(
                "targets are predicted by their logarithms, as all were positive; got "
                f"{Y.min():g}, so call fit with all rows"
            )
        return replace(self, positive=False)

    def reaching(self, scaled: Array) -> "TargetScaling":
        """The same scaling, with the reach of these scaled training targets."""
        if not self.transforms:
            return self
        Y = self.undo(scaled)
        low, high = Y.min(axis=0), Y.max(axis=0)
        with np.errstate(over="ignore"):
            length = np.minimum(high - low, LARGEST_SAVED)
            return replace(self, reach=(low - length, high + length))

    def shrunk(self, factor: float) -> "TargetScaling":
        """The scaling that gives targets divided by a number as well."""
        floor = self.noise_floor / factor**2
        return replace(self, spread=self.spread * factor, noise_floor=floor)

    def without_floor(self) -> "TargetScaling":
        """The same scaling for targets that were not rounded after all."""
        return replace(self, noise_floor=0.0)

    def __call__(self, Y: Array) -> Array:
        return (self._transformed(Y) - self.center) / self.spread

    def undo(self, scaled: Array) -> Array:
        """Convert scaled targets, (..., outputs), to the units of the data."""
        T = scaled * self.spread + self.center
        return _by_output(T, [one.inverse for one in self.transforms])

    def log_slopes(self, Y: Array) -> Array:
        """Logarithm of the derivative of each scaled target, in the shape of Y."""
        if not self.transforms:
            return np.broadcast_to(-np.log(self.spread), np.shape(Y))
        return _by_output(Y, [one.log_slope for one in self.transforms]) - np.log(self.spread)

    def log_jacobian(self, Y: Array) -> float:
        """The logarithm of the Jacobian: added to a log density of scaled targets it gives that of
        targets."""
        return float(self.log_slopes(Y).sum())

    def scaled_spacing(self, Y: Array) -> Array:
        """Spacing of the targets' grid at each target, in scaled units; zero without a grid."""
        steps = np.array([spacing(y) for y in Y.T])
        return np.asarray(steps * np.exp(np.minimum(self.log_slopes(Y), 300.0)))

    def check_saved(self) -> None:
        """Raise ValueError unless there is a transform for every output, or none."""
        if self.transforms and len(self.transforms) != len(self.center):
            raise ValueError("its transforms are not those of its targets")

    def _transformed(self, Y: Array) -> Array:
        return _by_output(Y, self.transforms)

    def _floor(self, Y: Array) -> float:
        """Spacing²/12 with the mean squared slope, of the finest output: they share the noise."""
        steps = np.minimum(self.scaled_spacing(Y), 1e100)
        floors = (steps**2).mean(axis=0) / 12
        return float(np.minimum(floors, HIGHEST_FLOOR * moments(self(Y))[1] ** 2).min())


def candidates(
    Y: Array, scaling: str, target_transform: str, weights: Array | None = None
) -> tuple[TargetScaling, ...]:
    """Scalings to choose from by evidence; the first is the default.

    With "auto" these are the identity and, given enough points, those transforms that can be used
    and that are far from linear on the targets. Predictions for targets that are all positive are
    conditioned on that, except with "identity".
    """
    if target_transform not in TARGET_TRANSFORMS:
        raise ValueError(
            f"target_transform must be one of {', '.join(TARGET_TRANSFORMS)}, "
            f"got {target_transform!r}"
        )
    positive = target_transform != "identity" and bool((Y > 0).all())
    learn = partial(TargetScaling.learn, Y, scaling, positive=positive, weights=weights)
    if target_transform != "auto":
        return (learn(transform=target_transform),)
    plain = learn()
    if len(Y) < MIN_POINTS_FOR_SHAPE or not any(_varies(y) for y in Y.T):
        return (plain,)
    out = [plain]
    if positive and (np.log(Y).std(axis=0) > NEARLY_LINEAR).any():
        out.append(learn(transform="log"))
    bent = learn(transform="yeo-johnson")
    if any(abs(one.power - 1.0) > NEARLY_LINEAR for one in bent.transforms):
        out.append(bent)
    return tuple(out)


def _varies(y: Array) -> bool:
    """Whether there are more than two values."""
    return bool(((y != y.min()) & (y != y.max())).any())


def _by_output(Y: Array, functions: Iterable[Callable[[Array], Array]]) -> Array:
    """A function of each output, the last axis; Y itself if there are none."""
    each = [function(Y[..., i]) for i, function in enumerate(functions)]
    return np.stack(each, axis=-1) if each else Y
