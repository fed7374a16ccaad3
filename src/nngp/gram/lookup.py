"""The paper's own pipeline (sec. 2.5, steps 3 and 4): bilinear interpolation, layer by layer."""

import numpy as np
from numpy.typing import NDArray

from nngp.architecture import Architecture
from nngp.covariance import LookupTable

Array = NDArray[np.float64]


class LookupTransform:
    """Cosines to kernel values through the table, in place on blocks."""

    def __init__(
        self, architecture: Architecture, input_var: float, table: LookupTable, size: int = 1
    ) -> None:
        if table.activation != architecture.activation:
            raise ValueError(
                f"the table is for '{table.activation.name}', the network has "
                f"'{architecture.activation.name}'"
            )
        self.architecture, self.table, self.input_var = architecture, table, input_var
        self.size = size
        weights, biases = architecture.weight_vars, architecture.bias_vars
        self.variances = [biases[0] + weights[0] * input_var]
        for weight, bias in zip(weights[1:], biases[1:], strict=True):
            self.variances.append(bias + weight * float(table(self.variances[-1], 1.0)))

    @property
    def diagonal(self) -> Array:
        """K^L(x, x) according to the table."""
        return np.full(self.size, self.variances[-1])

    def error(self) -> float:
        """Of one interpolation in the table; the paper's method states no other."""
        return self.table.error

    def __call__(self, block: Array, rows: slice, columns: slice) -> None:
        weights, biases = self.architecture.weight_vars, self.architecture.bias_vars
        cov = biases[0] + weights[0] * self.input_var * block
        for layer, (weight, bias) in enumerate(zip(weights[1:], biases[1:], strict=True)):
            q = self.variances[layer]
            cov = bias + weight * self.table(q, np.clip(cov / q, -1.0, 1.0) if q > 0 else cov)
        block[...] = cov
