"""Invariances: networks whose function does not change under transformations of its inputs.

`family.py` is the seam: a `Family` of transformations with a weight each. `images.py` and
`symmetries.py` have families, `orbit.py` multiplies them out into the kernels that are averaged,
and `Invariant` (`invariant.py`) is the network; `WithHead` (`headed.py`) has layers on top of one.
"""

from nngp.architecture.invariances.family import ColumnOrder, Family, RowFunction
from nngp.architecture.invariances.headed import (
    WithHead,
    average_of,
    covariance_of,
    tangent_of,
)
from nngp.architecture.invariances.invariant import Invariant
from nngp.architecture.invariances.orbit import Orbit, orbit_of

__all__ = [
    "ColumnOrder",
    "Family",
    "Invariant",
    "Orbit",
    "RowFunction",
    "WithHead",
    "average_of",
    "covariance_of",
    "orbit_of",
    "tangent_of",
]
