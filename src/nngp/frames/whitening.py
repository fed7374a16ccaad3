"""Regularised whitening of inputs (ZCA): neighbouring pixels no longer say the same.

Let S and U be the eigenvalues and eigenvectors of the covariance of the training rows, in a unit in
which S is one on average. W = U (S + strength)^(-1/2) Uᵀ makes directions of large variance count
no more than others, and directions whose variance is far below `strength` hardly more than they
did. W is symmetric, so a whitened image still looks like one. A strength far above one leaves the
inputs as they were, up to a factor; one far below makes all directions equal, noise included.

One decomposition serves all strengths: about 25 d³ operations, and d² numbers.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.linalg import eigh, lapack

from nngp._arrays import EPS, Array
from nngp._records import Range, Shaped
from nngp.frames.column_moments import moments

STRENGTHS = (1.0, 0.3, 0.1, 0.03, 0.01)  # tried for "auto"
DEFAULT_STRENGTH = 0.1  # where nothing is chosen
LEAST_STRENGTH, LARGEST_STRENGTH = 1e-8, 1e8  # less would whiten the rounding of S
MOST_COLUMNS = 10_000  # of a matrix of d² numbers, and d³ operations
CENTRED_ROWS = 4096  # that are centred at once
VANISHED = 16 * EPS  # of a row beside the mean: what rounding leaves of their difference
DECOMPOSITION = 12  # times d³ multiplications


@dataclass(frozen=True)
class Whitening:
    """W = U (S + strength)^(-1/2) Uᵀ, for rows that are centred and have variance one on average.

    Attributes
    ----------
    strength : float
        What is added to the eigenvalues, over their mean.
    matrix : array (d, d)
        W, symmetric and positive definite.
    """

    strength: Annotated[float, Range(LEAST_STRENGTH, LARGEST_STRENGTH)]
    matrix: Annotated[Array, Shaped("d", "d")]

    def __call__(self, Z: Array) -> Array:
        """W z of every row z."""
        out: Array = Z @ self.matrix
        return out

    def check_saved(self) -> None:
        """Raise ValueError unless this is W of a covariance whose mean eigenvalue is one."""
        symmetric = np.array_equal(self.matrix, self.matrix.T)
        if not symmetric or not _is_whitening(self.matrix, self.strength):
            raise ValueError("its matrix of whitening is not one of that strength")


def _is_whitening(matrix: Array, strength: float) -> bool:
    """Whether W⁻² - strength has no negative eigenvalue and the trace d."""
    d = len(matrix)
    with np.errstate(over="ignore", invalid="ignore"):
        # |W| <= strength^(-1/2), and the largest entry of such a matrix is no larger.
        if not np.abs(matrix).max() <= (1 + 1e-6) / np.sqrt(strength):
            return False
        factor, failed = lapack.dpotrf(matrix, lower=1)
        if failed:
            return False
        inverse, failed = lapack.dpotri(factor, lower=1)
        below = np.tril(inverse, -1)
        trace = 2 * np.square(below).sum() + np.square(inverse.diagonal()).sum()
        return not failed and bool(abs(trace / d - strength - 1) <= 1e-6 * (1 + strength))


@dataclass(frozen=True)
class InputSpectrum:
    """Eigenvalues and eigenvectors of the covariance of training rows.

    Attributes
    ----------
    center : array (d,)
        Mean of every column.
    factor : float for each column, (d,)
        One over the root mean variance, the same for all; 0 for columns that are constant, which
        are ignored whatever they hold later.
    values, vectors : arrays (d,), (d, d)
        Of the covariance of (x - center) · factor; the values have the mean one.
    """

    center: Array
    factor: Array
    values: Array
    vectors: Array

    @classmethod
    def learn(cls, X: Array, weights: Array | None = None) -> "InputSpectrum":
        """Decompose the covariance of the rows, with their weights. Raises ValueError for a row
        that equals the mean, which has no direction."""
        d = X.shape[1]
        if d > MOST_COLUMNS:
            raise ValueError(
                f"input_scaling='whiten' takes at most {MOST_COLUMNS:,} columns, and there are "
                f"{d:,}; use 'unit' or 'standardize'"
            )
        center, spread = moments(X, weights)
        largest = spread.max() if spread.any() else 1.0
        unit = largest * np.sqrt(np.mean((spread / largest) ** 2))
        factor = np.where(spread > 0, 1.0 / unit, 0.0) if unit > 0 else np.zeros(d)
        values, vectors = eigh(_covariance(X, center, factor, weights), driver="evd")
        # Rounding leaves eigenvalues of rows fewer than columns a little below zero.
        return cls(center, factor, np.maximum(values, 0.0), vectors)

    def whitening(self, strength: float) -> Whitening:
        """W of that strength."""
        half = self.vectors * (self.values + strength) ** -0.25
        return Whitening(strength, half @ half.T)  # symmetric to the bit


def _covariance(X: Array, center: Array, factor: Array, weights: Array | None) -> Array:
    """Mean of z zᵀ over the rows z = (x - center) · factor, some rows at a time."""
    out = np.zeros((X.shape[1], X.shape[1]))
    share = np.full(len(X), 1.0 / len(X)) if weights is None else weights / weights.sum()
    for start in range(0, len(X), CENTRED_ROWS):
        rows = slice(start, start + CENTRED_ROWS)
        Z = (X[rows] - center) * factor
        check_directions(Z, center, factor, start)
        Z *= np.sqrt(share[rows])[:, None]
        out += Z.T @ Z
    return out


def check_directions(Z: Array, center: Array, factor: Array, first: int = 0) -> None:
    """Raise ValueError if a row (x - center) · factor vanishes: x is the mean of training, up to
    rounding. Rows are numbered from `first` on."""
    with np.errstate(over="ignore"):
        vanished = np.abs(Z).max(axis=1) <= VANISHED * np.abs(center * factor).max()
    if vanished.any():
        raise ValueError(
            f"row {first + int(vanished.argmax())} equals the mean of the training inputs, so "
            "input_scaling='whiten' finds no direction in it; leave out such rows or use "
            "'standardize'"
        )


def whitening_work(n: int, d: int, strengths: int) -> float:
    """Multiplications to decompose the covariance and to try some strengths."""
    return (DECOMPOSITION + strengths) * float(d) ** 3 + 2.0 * n * d**2
