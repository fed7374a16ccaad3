"""Figure 10: where the best networks lie, beside the critical line."""

from dataclasses import dataclass

from nngp.paper.readings.choice import Chosen, by_validation
from nngp.paper.readings.grids import Grids, no_grids, read_grids
from nngp.paper.readings.lines import Theory, read_theory
from nngp.paper.scope import BIAS_VARS, WEIGHT_VARS, Scope
from nngp.runs import RunStore

TOP = 25  # networks
PANELS = 4  # training sets that are shown


@dataclass(frozen=True)
class Best:
    """The best 25 by validation, the best first, of all depths: by activation and training points;
    `networks` counts those that they were chosen from, `wanted` those of the whole grids."""

    dataset: str
    activations: tuple[str, ...]
    sizes: tuple[int, ...]
    chosen: dict[tuple[str, int], tuple[Chosen, ...]]
    networks: dict[tuple[str, int], int]
    wanted: int
    theories: dict[str, Theory]
    weight_range: tuple[float, float] = WEIGHT_VARS
    bias_range: tuple[float, float] = BIAS_VARS


def best_settings(store: RunStore, scope: Scope, grids: Grids | None = None) -> Best:
    """The best of every activation on up to four training sets, from the smallest to the largest
    that have been begun."""
    own = grids or read_grids(store, scope)
    known = sorted({train for train, _, _ in own.by_name})
    names = tuple(name for name in scope.activations if any(n == name for _, n, _ in own.by_name))
    sizes = _spread(known, PANELS)
    every = {(name, train): own.of(train, name) for name in names for train in sizes}
    chosen = {key: tuple(by_validation(of, TOP)) for key, of in every.items()}
    if not any(chosen.values()):
        raise no_grids(scope)
    return Best(
        scope.dataset,
        names,
        tuple(sizes),
        {key: some for key, some in chosen.items() if some},
        {key: sum(grid.networks for grid in of) for key, of in every.items()},
        len(scope.depths) * scope.grid**2,
        read_theory(store, names),
    )


def _spread(sizes: list[int], count: int) -> list[int]:
    """The first, the last, and others evenly between them."""
    if len(sizes) <= count:
        return sizes
    return [sizes[round(i * (len(sizes) - 1) / (count - 1))] for i in range(count)]
