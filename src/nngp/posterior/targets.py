"""Targets as the posterior sees them: checked, in float64, one column an output."""

from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from nngp._arrays import Array
from nngp.gram import KernelSplit

LARGEST = 1e140


def as_targets(Y: ArrayLike, n: int, name: str = "Y") -> tuple[Array, bool]:
    """Y as an array (n, outputs), and whether it was given as a plain vector."""
    raw = np.asarray(Y)
    try:
        if raw.dtype.kind not in "fiubO":
            raise TypeError
        out = raw.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must hold real numbers, got dtype {raw.dtype}; encode class labels as one "
            "column a class, for example one-hot minus the mean"
        ) from None
    single = out.ndim == 1
    if single:
        out = out[:, None]
    if out.ndim != 2 or out.shape[1] == 0:
        raise ValueError(f"{name} must be a vector or a matrix (n, outputs), got {raw.shape}")
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


def as_noise(noise_var: float) -> float:
    """A noise variance, checked."""
    if not isinstance(noise_var, Real | np.generic) or isinstance(noise_var, bool):
        raise TypeError(f"noise_var must be one number, got {type(noise_var).__name__}")
    value = float(noise_var)
    if not np.isfinite(value) or value < 0:
        raise ValueError(f"noise_var must be finite and not negative, got {noise_var}")
    return value
