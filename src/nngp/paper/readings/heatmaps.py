"""Figures 4 and 9: test accuracy over the two variances, and the theory of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nngp.paper.readings.choice import Chosen, by_validation
from nngp.paper.readings.grids import Grid, Grids, no_grids, read_grids
from nngp.paper.readings.lines import Theory, read_theory
from nngp.paper.scope import ACTIVATIONS, Scope
from nngp.runs import RunStore

DEEP = 50  # hidden layers of figure 4: depth has told the phases apart, and float64 still knows
COLUMNS = (1, 3, 10, 50)  # depths of figure 9


@dataclass(frozen=True)
class HeatMap:
    """One grid and the network of it that validation chooses."""

    grid: Grid
    best: Chosen | None


@dataclass(frozen=True)
class HeatMaps:
    """Heat maps on one training set by activation and depth, and the theory of each activation;
    what is missing in either was not run."""

    dataset: str
    train: int
    activations: tuple[str, ...]
    depths: tuple[int, ...]
    maps: dict[tuple[str, int], HeatMap]
    theories: dict[str, Theory]

    @property
    def networks(self) -> int:
        """How many were run."""
        return sum(one.grid.networks for one in self.maps.values())

    @property
    def wanted(self) -> int:
        """How many the whole grids have."""
        size = next(iter(self.maps.values())).grid.wanted
        return size * len(self.activations) * len(self.depths)


def phase_maps(store: RunStore, scope: Scope, grids: Grids | None = None) -> HeatMaps:
    """Figure 4: the paper's activations at one depth, the nearest to 50 layers that there is."""
    own = grids or read_grids(store, scope)
    names = [name for name in ACTIVATIONS if name in scope.activations] or scope.activations
    known = {depth for _, name, depth in own.by_name if name in names}
    if not known:
        raise no_grids(scope)
    depth = min(known, key=lambda depth: (abs(np.log(depth / DEEP)), depth))
    return _maps(store, scope, own, names, [depth])


def depth_maps(store: RunStore, scope: Scope, grids: Grids | None = None) -> HeatMaps:
    """Figure 9: all activations of the scope at depths 1, 3, 10 and 50, or at those that there
    are."""
    own = grids or read_grids(store, scope)
    if not own.by_name:
        raise no_grids(scope)
    known = sorted({depth for _, _, depth in own.by_name})
    usual = [depth for depth in COLUMNS if depth in known]
    depths = usual if len(usual) > 1 else known[: len(COLUMNS)]
    return _maps(store, scope, own, scope.activations, depths)


def _maps(
    store: RunStore, scope: Scope, grids: Grids, names: Sequence[str], depths: Sequence[int]
) -> HeatMaps:
    train = _fullest(grids, names, depths)
    maps = {
        (name, depth): HeatMap(grid, next(iter(by_validation([grid])), None))
        for name in names
        for depth in depths
        if (grid := grids.get(train, name, depth)) is not None
    }
    shown = tuple(name for name in names if any(key[0] == name for key in maps))
    return HeatMaps(scope.dataset, train, shown, tuple(depths), maps, read_theory(store, shown))


def _fullest(grids: Grids, names: Sequence[str], depths: Sequence[int]) -> int:
    """The largest training set that has as many complete grids of these as any; where none is
    complete, the one that has the most networks."""
    complete, networks = (dict.fromkeys(grids.scope.sizes, 0) for _ in range(2))
    for (train, name, depth), grid in grids.by_name.items():
        if name in names and depth in depths:
            complete[train] += grid.complete
            networks[train] += grid.networks
    if any(complete.values()):
        return max(complete, key=lambda train: (complete[train], train))
    return max(networks, key=lambda train: (networks[train], train))
