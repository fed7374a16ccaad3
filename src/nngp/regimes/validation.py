"""Validation of the arguments of the public functions, and the shape of their results.

Variances are checked, broadcast and flattened; results get the shape of the arguments back, plain
Python values for scalars.
"""

import reprlib
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nngp._arrays import Array
from nngp._numbers import check_unmasked

ScalarOrArray = Any  # a Python scalar for scalar arguments, an array for arrays
MAX_VARIANCE = 1e30  # of a variance: results must not overflow
SMALLEST = 1e-58  # smaller variances count as zero, as `moments.LOWEST` represents zero


@dataclass(frozen=True)
class BroadcastVariances:
    """weight_var and bias_var as flat arrays, and the shape of the arguments."""

    weight: Array
    bias: Array
    shape: tuple[int, ...]

    def restore(self, values: NDArray[Any]) -> ScalarOrArray:
        """Give flat results the shape of the arguments; a plain Python value for scalars."""
        return values.reshape(self.shape) if self.shape else values[0].item()


def broadcast_variances(weight_var: ArrayLike, bias_var: ArrayLike) -> BroadcastVariances:
    """Check and broadcast the two variances."""
    weight, bias = as_variances("weight_var", weight_var), as_variances("bias_var", bias_var)
    try:
        weight, bias = np.broadcast_arrays(weight, bias)
    except ValueError:
        raise ValueError(
            f"weight_var of shape {weight.shape} and bias_var of shape {bias.shape} do not "
            "broadcast; give scalars or arrays of matching shapes"
        ) from None
    return BroadcastVariances(weight.ravel(), bias.ravel(), weight.shape)


def as_variances(name: str, values: ArrayLike) -> Array:
    """Convert to an array of finite variances >= 0; those below SMALLEST become 0."""
    out = _as_numbers(name, values)
    wrong = ~((out >= 0) & (out <= MAX_VARIANCE))
    if wrong.any():
        raise ValueError(
            f"{name} must be a finite variance between 0 and {MAX_VARIANCE:g}, got "
            f"{out[wrong].flat[0]}"
        )
    return np.where(out < SMALLEST, 0.0, out)


def as_correlation(at: object) -> float:
    """Check that `at` is a correlation in [-1, 1]."""
    if not isinstance(at, Real) or not -1 <= float(at) <= 1:
        raise ValueError(f"at must be a correlation in [-1, 1] or 'fixed point', got {at!r}")
    return float(at)


def _as_numbers(name: str, values: ArrayLike) -> Array:
    check_unmasked(values, name)
    try:
        raw = np.asarray(values)
        if raw.dtype.kind not in "fiu" and raw.size:
            raise TypeError
    except (TypeError, ValueError):
        got = " ".join(reprlib.repr(values).split())
        raise TypeError(f"{name} must be a number or an array of numbers, got {got}") from None
    return raw.astype(np.float64)


def as_grid(name: str, values: ArrayLike) -> Array:
    """Convert to a one-dimensional, non-empty array of variances."""
    out = as_variances(name, values)
    if out.ndim != 1 or not out.size:
        raise ValueError(
            f"{name} must be a one-dimensional grid with at least one value, got shape {out.shape}"
        )
    return out
