"""The paper's own pipeline (sec. 2.5, steps 3 and 4): bilinear interpolation, layer by layer.

As inputs share one norm, a layer has one variance, and the table one row for it.
"""

from typing import Any

import numpy as np

from nngp._arrays import TINY, Array
from nngp.architecture import Architecture, Network
from nngp.covariance import LookupTable
from nngp.covariance.lookup import along_row


def checked_chain(network: Network) -> Architecture:
    """The network, if it is the paper's chain; ValueError otherwise."""
    if not isinstance(network, Architecture):
        raise ValueError(
            "method='lookup' is the paper's, for its chain of equal layers; use method='auto' for "
            "other networks"
        )
    return network


class LookupTransform:
    """Cosines to kernel values through the table, in place on blocks."""

    def __init__(
        self, architecture: Network, input_var: float, table: LookupTable, size: int = 1
    ) -> None:
        architecture = checked_chain(architecture)
        if table.activation != architecture.activation:
            raise ValueError(
                f"the table is for '{table.activation.name}', the network has "
                f"'{architecture.activation.name}'"
            )
        self.table, self.input_var, self.size = table, input_var, size
        self.weights = np.array(architecture.weight_vars)
        self.biases = np.array(architecture.bias_vars)
        self.variances = [self.biases[0] + self.weights[0] * input_var]
        rows = []
        for weight, bias in zip(self.weights[1:], self.biases[1:], strict=True):
            rows.append(table.row(self.variances[-1]))
            self.variances.append(bias + weight * float(rows[-1][-1]))
        self.rows = np.array(rows).reshape(len(rows), table.grid.n_c + 2)

    @property
    def diagonal(self) -> Array:
        """K^L(x, x) according to the table."""
        return np.full(self.size, self.variances[-1])

    @property
    def nearest(self) -> float:
        return 1.0  # near pairs are interpolated like all others

    def met(self, gap: float) -> None:
        """Nothing depends on it."""

    @property
    def noise(self) -> float:
        return self.table.error

    def error(self) -> float:
        """Of one interpolation in the table; the paper's method states no other."""
        return self.table.error

    def __call__(self, block: Array, rows: slice, columns: slice) -> None:
        cov = self.biases[0] + self.weights[0] * self.input_var * block
        for k, (q, row) in enumerate(zip(self.variances, self.rows, strict=False), start=1):
            cov = self.layer(np, cov, q, row, self.weights[k], self.biases[k])
        block[...] = cov

    def layer(self, xp: Any, cov: Any, q: Any, row: Any, weight: Any, bias: Any) -> Any:
        """The covariance after one more layer, from one with variance q; NumPy or JAX."""
        corr = xp.clip(cov / xp.maximum(q, TINY), -1.0, 1.0)
        return bias + weight * along_row(xp, row, self.table.grid.max_corr, corr)
