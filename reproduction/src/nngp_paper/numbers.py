"""Numbers that users pass, checked."""

from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike

from nngp_paper.arrays import Array


def whole_number(name: str, value: object, least: int = 1) -> int:
    """A whole number of at least `least`; ValueError for anything else, True and 1.0 included."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def check_unmasked(values: object, name: str) -> None:
    """Raise TypeError for a masked array, whose mask NumPy's functions would drop."""
    if np.ma.isMaskedArray(values):
        raise TypeError(f"{name} is a masked array; drop or fill its masked values first")


def as_matrix(values: ArrayLike, name: str) -> Array:
    """Finite real numbers with rows and columns; a vector becomes one column."""
    check_unmasked(values, name)
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers, got {array.dtype}")
    matrix = np.array(array[:, None] if array.ndim == 1 else array, dtype=float)
    if matrix.ndim != 2 or not matrix.size:
        raise ValueError(f"{name} must be a matrix, one row a point, got shape {array.shape}")
    if not np.isfinite(matrix).all():
        raise ValueError(f"{name} holds {matrix[~np.isfinite(matrix)][0]}; drop such rows first")
    return matrix
