"""Observation noise: a variance, or one for each row; absolute, or in the kernel's own scale.

The ladder knows one number, its level. It begins at the smallest noise; each step sets a floor that
is ten times as high, and every row has at least the floor. So rows that have more noise keep it,
and one number for all rows is multiplied by ten.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from nngp._arrays import Array
from nngp._numbers import as_real, as_reals
from nngp._records import NonNegative, Positive, Range, Shaped
from nngp.architecture import Network
from nngp.errors import VarianceError
from nngp.gram import InputSet, KernelSplit, Shift, kernel_scale

MAX_NOISE = 1e300  # noise in units of the kernel's scale


@dataclass(frozen=True, eq=False)
class Noise:
    """The noise as given, or the floor where that is higher, times `unit` is the variance; the
    ladder climbs in units. `input_var` is the norm that the unit was taken at, None if the noise is
    absolute."""

    stated: Annotated[Shift, Shaped("n"), Range(0.0)]
    unit: Positive = 1.0
    input_var: NonNegative | None = None
    floor: NonNegative = 0.0

    @classmethod
    def of(
        cls, noise_var: ArrayLike, relative: bool, network: Network, inputs: InputSet
    ) -> "Noise":
        """The noise from the arguments of `nngp.condition`."""
        if not isinstance(relative, bool | np.bool_):
            raise TypeError(f"relative_noise must be True or False, got {relative!r}")
        stated = as_noise_of_rows(noise_var, len(inputs))
        return cls(stated, *kernel_scale(network, inputs)) if relative else cls(stated)

    @property
    def is_by_row(self) -> bool:
        return isinstance(self.stated, np.ndarray)

    @cached_property
    def used(self) -> Shift:
        """The noise in units, with the floor."""
        if isinstance(self.stated, np.ndarray):
            return np.maximum(self.stated, self.floor)
        return max(self.stated, self.floor)

    @property
    def variance(self) -> Shift:
        return self.used * self.unit

    @property
    def level(self) -> float:
        """Where the ladder begins: the smallest noise in units."""
        return float(np.min(self.used))

    @property
    def least(self) -> float:
        """The smallest variance."""
        return self.level * self.unit

    @property
    def largest(self) -> float:
        """The largest variance."""
        return float(np.max(self.used)) * self.unit

    def shift(self, split: KernelSplit) -> Shift:
        """The noise as M has it on its diagonal."""
        return self.variance / split.scale

    def check(self, split: KernelSplit) -> None:
        """Raise VarianceError for noise that float64 cannot hold in units of the kernel's scale."""
        if self.largest / split.scale > MAX_NOISE:
            raise VarianceError(
                f"noise_var {self.largest:.0e} is out of proportion to this kernel, whose scale "
                f"is {split.scale:.0e}; use less noise, or a network whose kernel is larger"
            )

    def raised_to(self, level: float) -> "Noise":
        """The same, with at least this number of units."""
        return replace(self, floor=max(level, self.floor))

    def rows_raised(self, n: int) -> int:
        """How many of the n rows have more than was stated."""
        raised = np.sum(self.stated < self.floor)
        return int(raised) if self.is_by_row else n * int(raised)

    def followed_by(self, more: ArrayLike | None, old: int, new: int) -> "Noise":
        """The noise of `old` rows and `new` ones, whose own is `more`: by row, unless that is
        None, which only noise that all rows share allows."""
        if more is None and self.is_by_row:
            raise ValueError(
                "noise_var was given by row, so the new rows need theirs; pass "
                f"noise_var= to update: one number, or {new}"
            )
        if more is None:
            return self
        stated = as_noise_of_rows(more, new, "X_new has")
        both = np.broadcast_to(self.stated, old), np.broadcast_to(stated, new)
        return replace(self, stated=np.concatenate(both))


def as_noise(noise_var: float) -> float:
    """A noise variance, checked."""
    value = as_real(noise_var, "noise_var")
    if not np.isfinite(value) or value < 0:
        raise ValueError(f"noise_var must be finite and not negative, got {noise_var}")
    return value


def as_noise_of_rows(noise_var: ArrayLike, n: int, whose: str = "the inputs have") -> Shift:
    """A noise variance for all rows or one for each of n, checked; an array is copied."""
    if not is_array(noise_var):
        return as_noise(noise_var)  # type: ignore[arg-type]  # which says what is wrong with it
    return as_variances(noise_var, n, "noise_var", f"{whose} {n} rows")


def as_observation_noise(noise: ArrayLike, m: int) -> Shift:
    """The noise of new observations at m test points, checked."""
    if not is_array(noise):
        value = as_real(noise, "noise")
        if not np.isfinite(value) or value < 0:
            raise ValueError(f"noise must be True, False or variances, got {value}")
        return value
    if np.asarray(noise).dtype == bool:
        raise TypeError("noise must be True, False or variances, got an array of True and False")
    return as_variances(noise, m, "noise", f"there are {m} test points")


def is_array(value: object) -> bool:
    """Whether something is meant as several numbers, rather than one."""
    return getattr(value, "ndim", 0) > 0 or (
        not hasattr(value, "ndim")
        and hasattr(value, "__len__")
        and not isinstance(value, str | bytes)
    )


def as_variances(values: ArrayLike, n: int, name: str, rows: str) -> Array:
    """A variance for each of n rows, checked and copied; `rows` says how many there are."""
    out = np.array(as_reals(values, name))
    if out.ndim != 1:
        raise ValueError(f"{name} must be one number or a vector of one a row, got {out.shape}")
    if len(out) != n:
        raise ValueError(f"{name} has {len(out)} numbers and {rows}; pass one number, or one a row")
    wrong = ~np.isfinite(out) | (out < 0)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(f"{name} must be finite and not negative, got {out[row]} (row {row})")
    return out
