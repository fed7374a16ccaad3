"""The maps that one column may get, learned from its training values."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nngp._arrays import Array
from nngp.predictors.maps.column_map import ColumnMap, learn_ranks
from nngp.predictors.maps.units import Units, units_of
from nngp.predictors.maps.yeo_johnson import likeliest_power

SOME = 200
FEW = 10  # distinct values: of fewer a map would be a free parameter for each


@dataclass(frozen=True)
class MapFamily:
    """Maps of a column x; `mappable` says whether it may get any but the identity."""

    x: Array
    mappable: bool

    @cached_property
    def units(self) -> Units:
        return units_of(self.x)

    @cached_property
    def can_move(self) -> bool:
        """Whether a monotone map changes anything."""
        return self.mappable and self.units.unit > 0 and _has_several(self.x)

    @cached_property
    def is_heavy(self) -> bool:
        return self.mappable and self.units.is_heavy and self.can_move

    @cached_property
    def default(self) -> ColumnMap:
        """The identity, or the bounded map of a column with heavy tails."""
        return self.make("bounded") if self.is_heavy else ColumnMap()

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """Fixed maps that may be tried; a heavy-tailed column does not get the identity."""
        if not self.can_move:
            return ("identity",)
        positive = ("log",) if self.x.min() > 0 else ()
        return ("bounded" if self.is_heavy else "identity", *positive, "ranks")

    @cached_property
    def learnable(self) -> bool:
        """Whether the power of Yeo-Johnson can be learned."""
        return self.can_move and not self.is_heavy

    @cached_property
    def yeo_johnson(self) -> ColumnMap:
        """Yeo-Johnson of power one, which is the identity, in units of the column."""
        center, unit = self._origin()
        t = (self.x - center) / unit
        return ColumnMap("yeo-johnson", center, unit, 1.0, float(t.min()), float(t.max()))

    @cached_property
    def likeliest(self) -> float:
        """The power that makes the column most like a normal sample."""
        one = self.yeo_johnson
        return likeliest_power((self.x - one.center) / one.unit)

    def make(self, kind: str, power: float = 1.0) -> ColumnMap:
        """The map of that kind."""
        center, unit, _ = self.units
        if kind == "yeo-johnson":
            return replace(self.yeo_johnson, power=power)
        if kind == "bounded":
            return ColumnMap("bounded", center, unit)
        if kind == "log":
            low, high = float(self.x.min()), float(self.x.max())
            return ColumnMap("log", 0.0, center, 1.0, low / center, high / center)
        if kind == "ranks":
            return learn_ranks(self.x, center, unit) or ColumnMap()
        return ColumnMap()

    def _origin(self) -> tuple[float, float]:
        """Zero of a column without negative values, otherwise its median; and the unit."""
        center, unit, _ = self.units
        return (0.0, unit) if self.x.min() >= 0 else (center, unit)


def _has_several(x: Array) -> bool:
    """Whether there are FEW distinct values or more; the first rows mostly tell."""
    return any(len(np.unique(x[:count])) >= FEW for count in (SOME, len(x)))
