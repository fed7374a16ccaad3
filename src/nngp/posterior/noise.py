"""Observation noise: a variance, or a multiple of the kernel's own scale."""

from dataclasses import dataclass, replace

import numpy as np

from nngp.architecture import Architecture
from nngp.errors import VarianceError
from nngp.gram import InputSet, KernelSplit, kernel_scale
from nngp.posterior.targets import as_noise

LARGEST = 1e300  # noise in units of the kernel's scale


@dataclass(frozen=True)
class Noise:
    """`stated` times `unit` is the variance; the ladder climbs in units. `input_var` is the norm
    that the unit was taken at, None if the noise is absolute."""

    stated: float
    unit: float = 1.0
    input_var: float | None = None

    @classmethod
    def of(
        cls, noise_var: float, relative: bool, architecture: Architecture, inputs: InputSet
    ) -> "Noise":
        """The noise from the arguments of `nngp.condition`."""
        if not isinstance(relative, bool | np.bool_):
            raise TypeError(f"relative_noise must be True or False, got {relative!r}")
        stated = as_noise(noise_var)
        return cls(stated, *kernel_scale(architecture, inputs)) if relative else cls(stated)

    @property
    def variance(self) -> float:
        return self.stated * self.unit

    def check(self, split: KernelSplit) -> None:
        """Raise VarianceError for noise that float64 cannot hold in units of the kernel's scale."""
        if self.variance / split.scale > LARGEST:
            raise VarianceError(
                f"noise_var {self.variance:.0e} is out of proportion to this kernel, whose scale "
                f"is {split.scale:.0e}; use less noise, or a network whose kernel is larger"
            )

    def raised_to(self, stated: float) -> "Noise":
        """The same unit, with another number of it."""
        return replace(self, stated=stated)
