"""Monotone maps of columns: hyper-parameters of the inputs, like their relevances.

`ColumnMap` is one column's map; `MapFamily` holds those that a column may get. `yeo_johnson` has
the transformation with its slope in the power; `units` the robust center and unit of a column.
"""

from nngp.predictors.maps.column_map import KINDS, ColumnMap
from nngp.predictors.maps.family import MapFamily
from nngp.predictors.maps.units import Units, units_of

__all__ = ["KINDS", "ColumnMap", "MapFamily", "Units", "units_of"]
