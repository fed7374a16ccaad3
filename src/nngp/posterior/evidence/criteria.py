"""The two criteria by which networks are compared, and their derivatives in K.

Each formula is stated here once, for plain arrays: the tiled posterior, the dense evaluator of the
search and the classifier all use these functions. K stands for the kernel matrix with its noise,
P = K⁻¹, α = P Y with a column for each output, and p for the diagonal of P.

    log evidence             -½ Σ (YᵀP Y + log det K + n log 2π), over outputs
    leave-one-out            point i is predicted from all the others with variance 1/p_i, and
                             missed by α_i/p_i (Rasmussen and Williams, sec. 5.4.2)
    leave-one-out density    Σ_i w_i log N(y_i; that prediction), with a weight for each point

Derivatives are given as 2 dE/dK: an entry below the diagonal stands for its mirror image, too, and
only the diagonal counts half. With C = w (outputs/p + Σ(α/p)²), d = -w α/p and u = P d they are

    evidence                 α αᵀ - outputs P
    density                  -P C P - (u αᵀ + α uᵀ)

Where a kernel is kept in units of a scale, K = scale · M, the arguments are those of M (α = M⁻¹Y
and so on), and `scale` makes the values those of K. Derivatives are times the scale.
"""

from typing import NamedTuple

import numpy as np

from nngp._arrays import Array
from nngp.gram import Tile


class HeldOut(NamedTuple):
    """By how much each point is missed when it is predicted from all the others, (n, outputs), and
    the variance (n,) of an observation there."""

    residuals: Array
    variance: Array


def log_evidence(fit: float, log_det: float, n: int, outputs: int, scale: float = 1.0) -> float:
    """The log evidence, given `fit` = Σ YᵀP Y over the outputs, and log det K."""
    log_det = log_det + n * float(np.log(2 * np.pi * scale))
    with np.errstate(over="ignore"):  # infinite if the targets are too large beside the scale
        return float(-0.5 * (np.float64(fit) / scale + outputs * log_det))


def evidence_slope(alpha_rows: Tile, alpha_columns: Tile, minus_inverse: Tile) -> Tile:
    """Twice the derivative of the log evidence in some entries of K, given α of their rows,
    (rows, outputs), αᵀ of their columns, (outputs, columns), and -outputs P."""
    slope = alpha_rows @ alpha_columns
    slope += minus_inverse
    return slope


def evidence_slope_diagonal(
    alpha: Array, precision: Array, outputs: int, scale: float = 1.0
) -> Array:
    """The derivative of the log evidence in the diagonal of K, which the noise moves."""
    return 0.5 * ((alpha * (alpha / scale)).sum(axis=1) - outputs * precision)


def held_out(alpha: Array, precision: Array, scale: float = 1.0) -> HeldOut:
    """Leave-one-out residuals and variances; α of a single output may be a vector."""
    return HeldOut((alpha.T / precision).T, scale / precision)


def held_out_density(
    alpha: Array, precision: Array, weights: Array | None = None, scale: float = 1.0
) -> float:
    """The leave-one-out log density, summed over points and outputs."""
    w = np.ones(len(precision)) if weights is None else weights
    squares = ((alpha / np.sqrt(scale)) ** 2).sum(axis=1)  # of numbers that do not underflow
    log_precision = np.log(precision / (2 * np.pi)) - np.log(scale)
    return 0.5 * float(w @ (alpha.shape[1] * log_precision - squares / precision))


def held_out_rates(
    alpha: Array, precision: Array, weights: Array | None = None, scale: float = 1.0
) -> tuple[Array, Array]:
    """C (n,) and d (n, outputs), from which the derivative of the leave-one-out density follows."""
    w = np.ones(len(precision)) if weights is None else weights
    residuals = held_out(alpha, precision).residuals
    C = w * (alpha.shape[1] / precision + (residuals**2).sum(axis=1) / scale)
    return C, -w[:, None] * residuals


def held_out_slope(
    minus_PCP: Tile, u: Array, alpha: Array, rows: slice = slice(None), columns: slice = slice(None)
) -> Tile:
    """Twice the derivative of the leave-one-out density in some entries of K, in place of -P C P
    there; u and α are those of all points."""
    minus_PCP -= u[rows] @ alpha[columns].T + alpha[rows] @ u[columns].T
    return minus_PCP


def log_normal(residuals: Array, variance: Array) -> Array:
    """log N(residual; 0, variance) of every residual."""
    return -0.5 * (residuals**2 / variance + np.log(2 * np.pi * variance))
