"""The paper's table on a device: the arithmetic of `lookup`, on device arrays."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from nngp.architecture import Architecture
from nngp.covariance import LookupTable
from nngp.gram.device.blocks import DeviceCosines, Where, on_diagonal, where_of
from nngp.gram.host.lookup import LookupTransform
from nngp.gram.inputs import Inputs
from nngp.gram.plan import make_plan
from nngp.gram.split import TRIVIAL_SPLIT

Array = NDArray[np.float64]


class LookupBlocks:
    """Blocks of K through the paper's table, on the device; inputs share one norm."""

    split, is_exact = TRIVIAL_SPLIT, True

    def __init__(
        self,
        architecture: Architecture,
        left: Inputs,
        right: Inputs | None,
        table: LookupTable,
        stored: dict[tuple[int, int], Any] | None = None,
    ) -> None:
        self.symmetric, self.left = right is None, left
        self.right = left if right is None else right
        self.architecture, self._stored = architecture, stored
        self.plan = make_plan(architecture, self.left, self.right, "lookup")
        if self.plan.input_var is None:
            raise ValueError("the paper's table needs inputs of equal norm")
        self._host = LookupTransform(architecture, self.plan.input_var, table, len(left))
        self._compiled = jax.jit(self._values)

    @property
    def diagonal(self) -> Array:
        """K(x, x) of the left inputs."""
        return self._host.diagonal

    def block(self, rows: slice, columns: slice, *, shift: float = 0.0, out: Any = None) -> Any:
        """K of these rows and columns, with `shift` on its diagonal; `out` is of no use here."""
        with jax.enable_x64(True):
            if self._stored is None:
                cosines = DeviceCosines(self.left, self.right).block(rows, columns)
            else:
                cosines = self._stored[rows.start, columns.start]
            return self._compiled(
                cosines, where_of(rows, columns, self.symmetric), np.float64(shift)
            )

    def _values(self, c: Any, where: Where, shift: Any) -> Any:
        host, variances = self._host, jnp.asarray(self._host.variances)
        table, weights, biases = (jnp.asarray(a) for a in (host.rows, host.weights, host.biases))

        def layer(k: Any, cov: Any) -> Any:
            return host.layer(jnp, cov, variances[k], table[k], weights[k + 1], biases[k + 1])

        cov = biases[0] + weights[0] * host.input_var * c
        if len(table):
            cov = lax.fori_loop(0, len(table), layer, cov)
        return jnp.where(on_diagonal(c.shape, where), variances[-1] + shift, cov)

    def error(self) -> float:
        """Of one interpolation in the table."""
        return self._host.error()
