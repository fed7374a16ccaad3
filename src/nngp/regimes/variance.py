"""Fixed points of the variance map V(q) = bias_var + weight_var E[phi²].

Takes the moments and flat arrays of weight_var and bias_var; gives every fixed point, and the one
to which depth drives the variance of a unit-variance input.

In x = log q a Gaussian density falls no faster than 1/2 (d log N(u; 0, q) / d log q >= -1/2), so
log V has slope >= -1/2 in x. The iteration over layers therefore has no cycles: it converges
monotonically, or with a decaying alternation, to a fixed point, to zero, or to infinity. Fixed
points are found as changes of sign of the excess V(q)/q - 1 on a wide grid in x; where the excess
has an extremum between two grid points, its sign there is checked too.
"""

from dataclasses import dataclass

import numpy as np

from nngp._arrays import TINY, Array, Index, Mask
from nngp._roots import find_roots
from nngp.regimes.moments import HIGHEST, LOWEST, Moments

GRID = np.linspace(np.log(LOWEST), np.log(HIGHEST), 1601)
STEP = float(GRID[1] - GRID[0])
FLAT = 1e-13  # |V/q - 1| below this is rounding
STEPS = 100  # enough for any alternation, which shrinks by half or more in each


@dataclass(frozen=True)
class VarianceFixedPoints:
    """All fixed points of many networks: network `row[i]` has one at exp(log_q[i])."""

    row: Index
    log_q: Array
    stable: Mask
    to_zero: Mask  # for each network: whether a small variance vanishes
    to_infinity: Mask  # whether a large variance grows without bound


def limit_variance(moments: Moments, weight: Array, bias: Array) -> Array:
    """The limit of the variance with depth, from an input of unit variance; may be 0 or inf."""
    start = np.log(np.maximum(weight + bias, LOWEST))
    still = np.abs(_excess(moments, weight, bias, start)) <= FLAT
    start = _after_transient(moments, weight, bias, start)
    points = variance_fixed_points(moments, weight, bias)
    above, below = np.full(len(weight), np.inf), np.full(len(weight), -np.inf)
    up = points.log_q > start[points.row]
    np.minimum.at(above, points.row[up], points.log_q[up])
    np.maximum.at(below, points.row[~up], points.log_q[~up])
    excess = _excess(moments, weight, bias, start)
    nearer = np.where(above - start < start - below, above, below)
    end = np.where(np.abs(excess) <= FLAT, nearer, np.where(excess > 0, above, below))
    with np.errstate(over="ignore"):
        return np.where(still, weight + bias, np.exp(end))


def _after_transient(moments: Moments, weight: Array, bias: Array, log_q: Array) -> Array:
    """Iterate V for some layers if V decreases anywhere.

    A decreasing V can step over fixed points, so that their order alone does not tell to which of
    them the iteration converges.
    """
    if not (moments(np.exp(GRID)).radial < 0).any():
        return log_q
    for _ in range(STEPS):
        before, variance = log_q, bias + weight * moments(np.exp(log_q)).second
        log_q = np.clip(np.log(variance + TINY), GRID[0], GRID[-1])
        if np.abs(log_q - before).max(initial=0.0) <= FLAT:
            break
    return log_q


def variance_fixed_points(moments: Moments, weight: Array, bias: Array) -> VarianceFixedPoints:
    """All fixed points between 1e-60 and 1e60."""
    q, at = np.exp(GRID), moments(np.exp(GRID))
    excess = bias[:, None] / q + weight[:, None] * (at.second / q) - 1
    sign = np.where(np.abs(excess) > FLAT, np.sign(excess), 0.0)
    row, low, high = sign_changes(sign)
    turn = (at.radial - at.second) / q * weight[:, None] - bias[:, None] / q
    double = _double_roots(moments, weight, bias, (excess, turn))
    rows = np.concatenate([row, double[0], double[0]])
    left = np.concatenate([GRID[low], GRID[double[1]], double[2]])
    right = np.concatenate([GRID[high], double[2], GRID[double[1] + 1]])
    w, b = weight[rows], bias[rows]
    root = find_roots(lambda x: _excess(moments, w, b, x), left, right)
    stable = _excess(moments, w, b, right) < 0
    ends = _first_sign(sign) < 0, _first_sign(sign[:, ::-1]) > 0
    return VarianceFixedPoints(rows, root, stable, *ends)


def _excess(moments: Moments, weight: Array, bias: Array, log_q: Array) -> Array:
    q = np.exp(log_q)
    return (bias + weight * moments(q).second) / q - 1


def sign_changes(sign: Array) -> tuple[Index, Index, Index]:
    """Rows and columns of neighbours of opposite sign along the last axis, zeros skipped."""
    row, column = np.nonzero(sign)
    values = sign[row, column]
    change = np.flatnonzero((row[1:] == row[:-1]) & (values[1:] != values[:-1]))
    return row[change], column[change], column[change + 1]


def _first_sign(sign: Array) -> Array:
    first = np.argmax(sign != 0, axis=1)
    return sign[np.arange(len(sign)), first]


def _double_roots(
    moments: Moments, weight: Array, bias: Array, grid: tuple[Array, Array]
) -> tuple[Index, Index, Array]:
    """Cells in which the excess has two roots, invisible in its sign at the ends.

    Returns the network, the cell, and the extremum between the two roots.
    """
    excess, turn = grid
    left, right = excess[:, :-1], excess[:, 1:]
    near = np.minimum(np.abs(left), np.abs(right)) < STEP * np.maximum(
        np.abs(turn[:, :-1]), np.abs(turn[:, 1:])
    )
    side, onward = np.sign(excess), np.sign(turn)
    same = side[:, :-1] == side[:, 1:]
    turns_back = same & (onward[:, :-1] == -side[:, :-1]) & (onward[:, 1:] == side[:, 1:])
    row, cell = np.nonzero(turns_back & near)
    w, b = weight[row], bias[row]

    def turning(x: Array) -> Array:
        q = np.exp(x)
        at = moments(q)
        return (w * (at.radial - at.second) - b) / q

    extremum = find_roots(turning, GRID[cell], GRID[cell + 1])
    crossed = side[row, cell] * _excess(moments, w, b, extremum) < -FLAT
    return row[crossed], cell[crossed], extremum[crossed]
