"""Geometry of the data at the output of a network.

Takes a network, inputs or none, and 1 - c* if it is known; gives an `OutputGeometry`. A kernel
learns from K(x,x) - K(x,x'), and only through the difference of that from its limit at infinite
depth can the network distinguish one pair of inputs from another.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from nngp._arrays import EPS, Array
from nngp.architecture import Network
from nngp.curve import curve_at
from nngp.errors import VarianceError
from nngp.gram import as_inputs

SAMPLE = 300  # points whose pairs are used
DEGREE = math.pi / 180


@dataclass(frozen=True)
class OutputGeometry:
    """K(x,x), `spread` and `contrast` at the output (see `Diagnosis`), where they exist."""

    variance: float | None = None
    spread: float | None = None
    contrast: float | None = None
    has_kernel: bool = True  # whether the recursion stays within float64
    one_direction: bool = False  # whether all inputs are parallel


def output_geometry(network: Network, X: ArrayLike | None, apart: float | None) -> OutputGeometry:
    """Measure spread and contrast over the pairs of X, or over angles up to 90 degrees.

    `apart` is 1 - c*, from which contrast is measured; without it pairs are compared.
    """
    input_var, one_minus = input_geometry(X)
    one_direction = not one_minus.any()
    try:
        curve = curve_at(network, input_var)
    except VarianceError:
        return OutputGeometry(has_kernel=False, one_direction=one_direction)
    if network.is_infinite:
        return OutputGeometry(one_direction=one_direction)
    if curve.variance == 0:
        return OutputGeometry(0.0, 0.0, 0.0, one_direction=one_direction)
    share = curve.deficit(one_minus=one_minus) / curve.variance
    clear = one_minus >= 1 - math.cos(DEGREE)
    counted = share[clear | ~clear.any()]
    contrast = np.ptp(counted) if apart is None else np.abs(counted - apart).max()
    if apart is None and len(counted) == 1:
        contrast = counted[0]
    return OutputGeometry(
        curve.variance, float(share.max()), float(contrast), one_direction=one_direction
    )


def input_geometry(X: ArrayLike | None) -> tuple[float, Array]:
    """x·x/d, and 1 - cosine of pairs: of X, or of angles up to 90 degrees at x·x/d = 1."""
    if X is None:
        return 1.0, 1 - np.cos(DEGREE * np.arange(1, 91))
    return _geometry(as_inputs(X))


def _geometry(points: Array) -> tuple[float, Array]:
    """Median x·x/d, and 1 - cosine of every pair among some of the points."""
    if len(points) < 2:
        raise ValueError("X must have at least two points: one alone makes no angle")
    if len(points) > SAMPLE:
        points = points[np.linspace(0, len(points) - 1, SAMPLE).astype(int)]
    # Points are divided by their largest entry first, as squares may overflow.
    size = np.abs(points).max(axis=1)
    if not np.median(size) > 0:
        raise ValueError("most points of X are zero and have no direction; remove them")
    scaled = points[size > 0] / size[size > 0, None]
    norm = np.linalg.norm(scaled, axis=1)
    input_var = _mean_square(float(np.median(size[size > 0] * norm)), points.shape[1])
    unit = scaled / norm[:, None]
    distance2 = [((unit[i + 1 :] - row) ** 2).sum(axis=1) for i, row in enumerate(unit)]
    one_minus = np.clip(0.5 * np.concatenate(distance2), 0.0, 2.0)
    return input_var, np.where(one_minus > 4 * EPS**2, one_minus, 0.0)


def _mean_square(norm: float, features: int) -> float:
    """x·x/d; ValueError where it would overflow or underflow."""
    root = norm / math.sqrt(features)
    if not 1e-150 < root < 1e150:
        raise ValueError(
            f"X holds numbers so {'large' if root > 1 else 'small'} that x·x leaves float64; "
            "rescale it first"
        )
    return root**2
