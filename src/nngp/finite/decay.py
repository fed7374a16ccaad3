"""How an error falls with the width of the network, layer by layer: a line in logarithms."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Decay:
    """Relative errors of the kernels of layers 1 .. depth, with their standard errors."""

    widths: tuple[int, ...]
    error: Array  # (widths, depth)
    error_of_error: Array

    @cached_property
    def fitted(self) -> slice:
        """The widths that slopes are fitted to: the wider half, where 1/width² has died out."""
        return slice(-max(2, len(self.widths) // 2), None)

    @cached_property
    def slope(self) -> Array:
        """Of log error against log width, (depth,); -1/2 in theory."""
        return self._regression @ np.log(self.error[self.fitted])

    @cached_property
    def slope_error(self) -> Array:
        """Standard error of `slope`, from the scatter between networks."""
        relative = self.error_of_error[self.fitted] / self.error[self.fitted]
        return np.sqrt(self._regression**2 @ relative**2)

    def line(self, layer: int) -> Array:
        """What the fit says of a layer (from 1) at all widths."""
        x, slope = np.log(self.widths), self.slope[layer - 1]
        level = np.mean(np.log(self.error[self.fitted, layer - 1]) - slope * x[self.fitted])
        return np.asarray(np.exp(level + slope * x))

    @cached_property
    def _regression(self) -> Array:
        """What least squares weighs the logarithms of the errors with."""
        x = np.log(self.widths[self.fitted])
        x = x - x.mean()
        return np.asarray(x / (x @ x))
