"""Variances as the public functions take them: checked, broadcast, flattened, and given back.

Scalars in, scalars out; arrays in, arrays out. The arithmetic between works on flat arrays.
"""

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
LARGEST = 1e30  # of a variance: what follows from it must stay within float64
SMALLEST = 1e-58  # what is less counts as zero, as it does beside the lowest variance looked at


@dataclass(frozen=True)
class Settings:
    """weight_var and bias_var as flat arrays, and the shape they came in."""

    weight: Array
    bias: Array
    shape: tuple[int, ...]

    def give(self, values: NDArray[Any]) -> Any:
        """Flat results in the shape of the input; a plain Python value for scalars."""
        return values.reshape(self.shape) if self.shape else values[0].item()


def settings_of(weight_var: ArrayLike, bias_var: ArrayLike) -> Settings:
    """Check and broadcast the two variances."""
    weight, bias = as_variances("weight_var", weight_var), as_variances("bias_var", bias_var)
    try:
        weight, bias = np.broadcast_arrays(weight, bias)
    except ValueError:
        raise ValueError(
            f"weight_var of shape {weight.shape} and bias_var of shape {bias.shape} do not "
            "broadcast; give scalars or arrays of matching shapes"
        ) from None
    return Settings(weight.ravel(), bias.ravel(), weight.shape)


def as_variances(name: str, values: ArrayLike) -> Array:
    """An array of finite variances >= 0, those that no flow can see being 0."""
    out = _as_numbers(name, values)
    wrong = ~((out >= 0) & (out <= LARGEST))
    if wrong.any():
        raise ValueError(
            f"{name} must be a finite variance between 0 and {LARGEST:g}, got {out[wrong].flat[0]}"
        )
    return np.where(out < SMALLEST, 0.0, out)


def as_correlation(at: Any) -> float:
    """A correlation in [-1, 1]."""
    if not isinstance(at, Real) or not -1 <= float(at) <= 1:
        raise ValueError(f"at must be a correlation in [-1, 1] or 'fixed point', got {at!r}")
    return float(at)


def _as_numbers(name: str, values: ArrayLike) -> Array:
    if np.ma.is_masked(values):
        raise TypeError(f"{name} has masked values; drop them first")
    try:
        raw = np.asarray(values)
        if raw.dtype.kind not in "fiu" and raw.size:
            raise TypeError
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number or an array of numbers, got {values!r}") from None
    return raw.astype(np.float64)


def as_grid(name: str, values: ArrayLike) -> Array:
    """A one-dimensional, non-empty array of variances."""
    out = as_variances(name, values)
    if out.ndim != 1 or not out.size:
        raise ValueError(
            f"{name} must be a one-dimensional grid with at least one value, got shape {out.shape}"
        )
    return out
