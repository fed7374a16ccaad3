"""Training rows: inputs, targets, weights, and known variances of their noise."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nngp._arrays import Array, Index
from nngp._numbers import as_reals
from nngp.selection import Hyperparameters, row_noise, scaled_known_noise

LARGEST_WEIGHT = 1e100
MOST_COPIES = 300  # rows in all: with more, weights are cheaper


@dataclass(frozen=True)
class TrainingRows:
    """Rows as the search and the final fit take them.

    Attributes
    ----------
    X : array, (n, d)
        Encoded and not scaled.
    Y : array, (n, outputs)
        Not scaled.
    weights : array (n,) or None
        All positive. A row of weight 2 is the row twice.
    known_noise : array (n,) or None
        Variance of each row's noise beside the one that is learned, in squared units of Y.
    """

    X: Array
    Y: Array
    weights: Array | None = None
    known_noise: Array | None = None

    def noise(self, chosen: Hyperparameters, learned: Array | None = None) -> Array | float:
        """Noise variance of every row in units of the scaled targets, with its own that was
        `learned` or the one that was chosen; one number if all share it."""
        known = scaled_known_noise(self.known_noise, self.Y, chosen.targets)
        return row_noise(chosen.noise_var if learned is None else learned, self.weights, known)

    def scaled_known_noise(self, chosen: Hyperparameters) -> Array | None:
        """Known noise in units of the scaled targets, if there is any."""
        found = scaled_known_noise(self.known_noise, self.Y, chosen.targets)
        return found if isinstance(found, np.ndarray) else None

    def order(self) -> Index:
        """An order of the rows that is their own where they are few: an ascent amplifies rounding,
        which depends on the order, and copies of rows are to choose what their weights choose."""
        if len(self.X) > MOST_COPIES:
            return np.arange(len(self.X))
        keys = [part for part in (self.weights, self.known_noise) if part is not None]
        return np.lexsort([*keys, *self.Y.T, *self.X.T])

    def some(self, keep: NDArray[Any]) -> "TrainingRows":
        """The rows of a mask or of indices."""
        weights = None if self.weights is None else self.weights[keep]
        known = None if self.known_noise is None else self.known_noise[keep]
        return replace(self, X=self.X[keep], Y=self.Y[keep], weights=weights, known_noise=known)


def as_weights(sample_weight: ArrayLike | None, n: int) -> Array | None:
    """Weights of n rows, checked; None where all are one."""
    if sample_weight is None:
        return None
    weights = as_reals(sample_weight, "sample_weight")
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have the shape ({n},), got {weights.shape}")
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise ValueError(
            "sample_weight must hold finite numbers, none negative and not all zero; leave out "
            "rows without a weight"
        )
    if not are_weights(weights):
        raise ValueError(
            f"sample_weight must be zero or between {1 / LARGEST_WEIGHT:.0e} and "
            f"{LARGEST_WEIGHT:.0e}; divide all by one of them"
        )
    return None if (weights == 1.0).all() else weights


def are_weights(weights: Array) -> bool:
    """Whether weights are zero or such that products with variances are numbers."""
    some = weights[weights != 0]
    return bool((some >= 1 / LARGEST_WEIGHT).all() and (some <= LARGEST_WEIGHT).all())


def as_copies(weights: Array) -> tuple[Index, Array | None]:
    """Rows to use, and the weights of these: rows of weight zero are left out, and whole weights
    become copies where these are few, so that a weight of 2 is the row twice to the bit."""
    if (weights == np.floor(weights)).all() and weights.sum() <= MOST_COPIES:
        return np.repeat(np.arange(len(weights)), weights.astype(int)), None
    rows = np.flatnonzero(weights)
    return rows, weights[rows]


def as_known_noise(noise_var: ArrayLike | None, n: int) -> Array | None:
    """Known noise variances of n rows, checked; None where there is none."""
    if noise_var is None:
        return None
    known = as_reals(noise_var, "noise_var")
    if known.ndim == 0:
        known = np.full(n, float(known))
    if known.shape != (n,):
        raise ValueError(
            f"noise_var must have one number for each of the {n} rows, got shape {known.shape}"
        )
    wrong = ~np.isfinite(known) | (known < 0)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"noise_var must be finite and not negative, got {known[row]} (row {row})")
    return known if known.any() else None


def as_rows(
    X: Array, y: NDArray[Any], sample_weight: ArrayLike | None, noise_var: ArrayLike | None
) -> TrainingRows:
    """Checked rows of a regression, without those of weight zero."""
    Y = as_reals(y, "y").reshape(len(X), -1)
    weights = as_weights(sample_weight, len(X))
    rows = TrainingRows(X, Y, None, as_known_noise(noise_var, len(X)))
    if weights is None:
        return rows
    which, left = as_copies(weights)
    return replace(rows.some(which), weights=left)
