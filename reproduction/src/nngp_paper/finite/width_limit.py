"""Networks of finite width beside their limit: scores and distances against the width.

Takes predictions of single networks and of the infinitely wide one; gives estimates for single
networks, for ensembles, and for the average of infinitely many networks, and the power of the width
that distances fall with. Needs no JAX.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nngp_paper.arrays import Array
from nngp_paper.finite.mean_estimates import (
    Estimate,
    mean_over_networks,
    square_of_all,
    square_of_one,
)

REGULAR = 1e-3  # noise from which on there is no peak where units are as many as training points
FITTED = 3  # widths that a power is fitted to, the widest


def measured(
    means: Array, process: Array, labels: NDArray[np.integer], targets: Array, members: int
) -> dict[str, Estimate]:
    """Accuracies, mean squared errors and squared distances to the process, each with its standard
    error: of single networks (their means are (networks, n, n_out)), of disjoint ensembles, of the
    average of infinitely many networks, and of the process itself."""
    shape = len(means) // members, members, *process.shape
    groups = means[: shape[0] * members].reshape(shape).mean(axis=1)
    found: dict[str, Estimate] = {
        "process_accuracy": Estimate(float(_share_right(process[None], labels)[0]), 0.0),
        "process_mse": Estimate(float(np.mean((process - targets) ** 2)), 0.0),
        "limit_mse": square_of_all(means - targets),
        "limit_square": square_of_all(means - process),
    }
    for name, own in (("single", means), ("ensemble", groups)):
        found[f"{name}_accuracy"] = mean_over_networks(_share_right(own, labels))
        found[f"{name}_mse"] = square_of_one(own - targets)
        found[f"{name}_square"] = square_of_one(own - process)
    return found


def _share_right(means: Array, labels: NDArray[np.integer]) -> Array:
    """Accuracy of each predictor, (predictors,)."""
    return np.asarray((means.argmax(axis=2) == labels).mean(axis=1))


@dataclass(frozen=True)
class WidthPoint:
    """Networks of one width: scores of single networks and of ensembles; of infinitely many
    networks the mean squared error and the mean squared distance to the process."""

    width: int
    networks: int
    single_accuracy: Estimate
    single_mse: Estimate
    single_square: Estimate
    ensemble_accuracy: Estimate
    ensemble_mse: Estimate
    limit_mse: Estimate
    limit_square: Estimate


@dataclass(frozen=True)
class Power:
    """A straight line fitted to logarithms: distance = level width^slope."""

    slope: float
    error: float
    level: float
    widths: tuple[int, ...]


@dataclass(frozen=True)
class LimitCurve:
    """One activation at one noise against the width, and the process that it is compared with."""

    activation: str
    noise_var: float
    train: int
    process_accuracy: float
    process_mse: float
    points: tuple[WidthPoint, ...]

    @property
    def widest(self) -> WidthPoint:
        """The point of the largest width."""
        return self.points[-1]

    def power(self, name: str) -> Power | None:
        """The power of the distance whose square is called `name`, of the widest networks; None
        where these are too few, or a peak is among them."""
        return fitted_power(self._fitted(), name)

    def _fitted(self) -> tuple[WidthPoint, ...]:
        last = self.points[-FITTED:]
        clear = self.noise_var >= REGULAR or last[0].width >= 2 * self.train
        return last if clear and len(last) == FITTED else ()


def fitted_power(points: Sequence[WidthPoint], name: str) -> Power | None:
    """Least squares in logarithms, weighted by the standard errors; None unless there are two
    widths or more and all distances are known to a half."""
    squares = np.array([getattr(point, name) for point in points]).reshape(-1, 2)
    if len(points) < 2 or np.any(squares[:, 0] <= 2 * squares[:, 1]):
        return None
    x = np.log([point.width for point in points])
    y, error = np.log(squares[:, 0]) / 2, squares[:, 1] / squares[:, 0] / 2
    weights = 1 / error**2
    centre = np.average(x, weights=weights)
    spread = weights @ (x - centre) ** 2
    slope = weights * (x - centre) @ y / spread
    level = np.exp(np.average(y, weights=weights) - slope * centre)
    widths = tuple(point.width for point in points)
    return Power(float(slope), float(spread**-0.5), float(level), widths)


@dataclass(frozen=True)
class WidthLimit:
    """Curves by noise, then by activation."""

    dataset: str
    train: int
    test: int
    members: int
    curves: tuple[LimitCurve, ...]

    @property
    def noise_vars(self) -> tuple[float, ...]:
        """The noise variances that are shown."""
        return tuple(dict.fromkeys(curve.noise_var for curve in self.curves))

    @property
    def regular(self) -> tuple[LimitCurve, ...]:
        """The curves at a noise that leaves no peak."""
        return tuple(curve for curve in self.curves if curve.noise_var >= REGULAR)
