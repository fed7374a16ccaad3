"""Appendix B: how the kernel's dependence on the angle flattens with depth.

Takes an architecture; gives K^l over the angle for l = 0 .. depth, from the exact curve and from
the paper's look-up table.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nngp.architecture import Architecture
from nngp.covariance import LookupTable
from nngp.curve import compile_curves
from nngp.gram.host.lookup import LookupTransform

Array = NDArray[np.float64]


@dataclass(frozen=True)
class AngularStructure:
    """K^l(theta), one row per depth."""

    architecture: Architecture
    theta: Array
    exact: Array
    sparse_theta: Array
    lookup: Array


def angular_structure(
    architecture: Architecture, table: LookupTable | None = None
) -> AngularStructure:
    """The figure's numbers; the paper's are Architecture(9, "relu", 1.6, 0.1)."""
    theta, sparse = np.linspace(0, np.pi, 400), np.linspace(0, np.pi, 25)
    curves = compile_curves(architecture)
    one_minus = 2 * np.sin(theta / 2) ** 2
    exact = np.array([curve(one_minus=one_minus) for curve in curves])
    table = LookupTable(architecture.activation, s_max=10.0) if table is None else table
    lookup = [
        _through_table(architecture.truncated(depth), table, np.cos(sparse))
        for depth in range(len(architecture.weight_vars))
    ]
    return AngularStructure(architecture, theta, exact, sparse, np.array(lookup))


def _through_table(architecture: Architecture, table: LookupTable, corr: Array) -> Array:
    block = corr[None, :].copy()
    LookupTransform(architecture, 1.0, table)(block, slice(0, 1), slice(0, len(corr)))
    return block[0]
