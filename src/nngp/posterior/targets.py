"""Targets as the posterior sees them: checked, in float64, one column an output."""

import numpy as np
from numpy.typing import ArrayLike

from nngp._arrays import Array
from nngp._numbers import as_reals
from nngp.gram import KernelSplit

LARGEST = 1e140
ENCODE = "encode class labels as one column a class, for example one-hot minus the mean"


def as_targets(Y: ArrayLike, n: int, name: str = "Y") -> tuple[Array, bool]:
    """Y as an array (n, outputs), and whether it was given as a plain vector."""
    out = np.array(as_reals(Y, name, ENCODE))  # a copy: Y may be changed later
    shape, single = out.shape, out.ndim == 1
    if single:
        out = out[:, None]
    if out.ndim != 2 or out.shape[1] == 0:
        raise ValueError(f"{name} must be a vector or a matrix (n, outputs), got {shape}")
    if len(out) != n:
        raise ValueError(f"{name} has {len(out)} rows and the inputs have {n}; they must agree")
    if not np.isfinite(out).all():
        row, column = np.argwhere(~np.isfinite(out))[0]
        raise ValueError(f"{name} holds {out[row, column]} (row {row}); drop such rows first")
    if np.abs(out).max() > LARGEST:
        raise ValueError(f"{name} holds numbers above {LARGEST:g}, whose squares overflow; rescale")
    return np.ascontiguousarray(out), single


def middle_of(Y: Array) -> Array:
    """A constant near the targets of each output: exactly theirs if they are all the same."""
    return np.median(Y, axis=0)


def with_ones(Y: Array, middle: Array, split: KernelSplit) -> Array:
    """The targets; where the constant function is kept apart, less their middle and with the
    constant as one more."""
    return Y if split.is_trivial else np.column_stack([Y - middle, np.ones(len(Y))])
