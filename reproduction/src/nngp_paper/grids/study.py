"""The study of the grids: depth, weight variance and bias variance, judged on validation.

A run is a strip, the networks of one depth and weight variance: short enough that losing one
matters little, long enough to be worth a row in the store. Training sets up to 10,000 points get
the whole grid; activations beside the paper's get a coarser one (`Scope.step`). Beyond 10,000
points those networks of the paper's activations are tried that could be the best (`candidates.py`),
the most promising first. Grids with relative noise, which may be coarser (`Scope.relative`), and
those with the authors' look-up table are experiments of their own, on one training set and for the
depths that figures 4 and 9 show. These figures need no other grids (`map_study`).
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import groupby, product
from typing import Any

from nngp import Architecture
from nngp.curves import LookupTable
from nngp_paper.experiment import Config, Experiment, rounded
from nngp_paper.grids.arrays import AUTHORS, EXPERIMENT, RELATIVE, SCORES, Grid, read_grids
from nngp_paper.grids.candidates import candidates
from nngp_paper.grids.choice import Chosen
from nngp_paper.grids.sweeps import Sweeps
from nngp_paper.runs import RunStore
from nngp_paper.runs.study import Outcome, Study
from nngp_paper.scope import SIZES, Scope
from nngp_paper.sweep import SweepResult

LARGEST_FULL_GRID = 10_000  # training points up to which the whole grid is done
MOST = ((20_000, 400), (10**9, 120))  # training points up to which so many networks are tried
BATCH = 40  # networks that are equally urgent: strips of one batch are done by weight variance
MAP_SIZE = 1000  # training points of the grids of figures 4 and 9, or the nearest to it
# What the configurations of each kind of grid have more than those of the paper's:
MORE: dict[str, Config] = {
    EXPERIMENT: {},
    RELATIVE: {"relative_noise": True},
    AUTHORS: {"kernel": "authors"},
}
SHOWN_DEPTHS, DEEP = (1, 3, 10, 50), 50  # of figures 9 and 4
FIELDS = {"val_accuracy": "accuracy", "val_mse": "mse"}  # where a sweep has another name


def grid_study(scope: Scope) -> Study:
    """The whole grid on the sizes that get it. Sizes take turns, so that they share curves; weight
    variances go from coarse to fine, so that a part of the work shows the whole range."""
    sizes = [size for size in sorted(scope.sizes) if size <= LARGEST_FULL_GRID]
    return _study(scope, EXPERIMENT, _whole_grid(scope, scope.activations, scope.depths, sizes))


def map_study(scope: Scope, experiment: str = EXPERIMENT, *, deep: bool = False) -> Study:
    """The grids of figure 9 on one training set, or with `deep` the one depth of figure 4: with
    absolute noise, with noise relative to each kernel's scale (what a network still knows, where
    the absolute noise may hide it), or with the authors' look-up table."""
    own = scope.relative if experiment == RELATIVE else scope
    depths = {deep_one(scope.depths)} | set(() if deep else shown_depths(scope.depths))
    size = map_size(scope)
    sizes = [] if size is None else [size]
    configs = _whole_grid(own, scope.paper_activations, depths, sizes)
    return _study(scope, experiment, [{**config, **MORE[experiment]} for config in configs])


def map_size(scope: Scope) -> int | None:
    """The training set of these grids, the nearest to 1,000 points."""
    small = [size for size in scope.sizes if size <= LARGEST_FULL_GRID]
    return min(small, key=lambda size: _apart(size, MAP_SIZE)) if small else None


def shown_depths(depths: Collection[int]) -> list[int]:
    """Depths that figure 9 shows: 1, 3, 10 and 50, or the first four of those that there are."""
    usual = [depth for depth in SHOWN_DEPTHS if depth in depths]
    return usual if len(usual) > 1 else sorted(depths)[: len(SHOWN_DEPTHS)]


def deep_one(depths: Collection[int]) -> int:
    """The depth that figure 4 shows: the nearest to 50."""
    return min(depths, key=lambda depth: (_apart(depth, DEEP), depth))


def _apart(number: float, other: float) -> float:
    return abs(math.log(number / other))


def _whole_grid(
    scope: Scope, activations: Sequence[str], depths: Collection[int], sizes: Sequence[int]
) -> list[Config]:
    order = coarse_to_fine(scope.weight_vars)
    shapes = product(order, activations, sorted(depths), sizes)
    return [
        _config(scope, size, name, depth, weight_var, scope.bias_vars_of(name))
        for weight_var, name, depth, size in shapes
        if weight_var in scope.weight_vars_of(name, depth)
    ]


def coarse_to_fine(values: Sequence[float]) -> list[float]:
    """All values, those first that are farthest apart: every 16th, then the 8ths between them, and
    so on."""
    step = 1 << max(len(values) - 1, 1).bit_length()
    order: dict[int, None] = {}
    while step:
        order.update(dict.fromkeys(range(0, len(values), step)))
        step //= 2
    return [values[i] for i in order]


def grid_studies(store: RunStore, scope: Scope) -> Iterator[Study]:
    """The whole grid, then for each larger size the networks that could be the best."""
    yield grid_study(scope)
    for size in sorted(scope.sizes):
        if size > LARGEST_FULL_GRID:
            yield promising_study(store, scope, size)


def promising_study(store: RunStore, scope: Scope, size: int) -> Study:
    """The candidates by the next smaller training set that the store has of their activation,
    whether or not that set is in the scope; networks that have been tried are left out."""
    sizes = {small for small in (*SIZES, *scope.sizes) if small < size}
    known = read_grids(store, replace(scope, sizes=(*sorted(sizes), size)))
    configs = []
    for activation in scope.paper_activations:
        found = candidates(known, size, activation)
        if found is not None:
            tried = _tried(known.of(size, activation))
            for strip in _strips(found.networks[: _most(size)], tried):
                configs.append(_config(scope, size, activation, *strip))
    return _study(scope, EXPERIMENT, configs)


def later_strips(scope: Scope) -> list[Config]:
    """Estimates of the runs that depend on others: one for each large size and activation."""
    return [
        {"train": size, **scope.held_out, "activation": name, "bias_vars": [None] * _most(size)}
        for size in scope.sizes
        if size > LARGEST_FULL_GRID
        for name in scope.paper_activations
    ]


GRID_RUNS = Experiment(EXPERIMENT, grid_study, grid_studies, later_strips)
MAP_RUNS, DEEP_RUNS = (
    tuple(Experiment(kind, partial(map_study, experiment=kind, deep=deep)) for kind in MORE)
    for deep in (False, True)
)
Network = tuple[int, float, float]  # depth, weight variance, bias variance


def _most(size: int) -> int:
    """Number of networks of each activation that are tried at most on a large training set."""
    return next(count for limit, count in MOST if size <= limit)


def _tried(grids: Sequence[Grid]) -> set[Network]:
    return {
        (grid.depth, float(grid.weight_vars[row]), float(grid.bias_vars[column]))
        for grid in grids
        for row, column in zip(*grid.tried.nonzero(), strict=True)
    }


def _strips(
    chosen: Sequence[Chosen], tried: Collection[Network]
) -> Iterator[tuple[int, float, tuple[float, ...]]]:
    """Networks as strips, a batch after the other; in a batch by weight variance. A strip is done
    as a whole, so what is left stays the same strips."""
    every = [(net.depth, net.weight_var, net.bias_var) for net in chosen]
    for start in range(0, len(every), BATCH):
        batch = sorted(every[start : start + BATCH], key=lambda net: (net[1], net[0], net[2]))
        for shape, nets in groupby(batch, key=lambda net: net[:2]):
            if left := tuple(net[2] for net in nets if net not in tried):
                yield *shape, left


def _config(
    scope: Scope,
    size: int,
    activation: str,
    depth: int,
    weight_var: float,
    bias_vars: Sequence[float],
) -> Config:
    return {
        "dataset": scope.dataset,
        "train": size,
        **scope.held_out,
        "activation": activation,
        "depth": depth,
        "weight_var": weight_var,
        "bias_vars": list(bias_vars),
    }


def _study(scope: Scope, experiment: str, configs: Sequence[Config]) -> Study:
    sweeps = Sweeps(scope)

    def work(config: Config) -> Outcome:
        sweep = sweeps.of(config["train"], config.get("relative_noise", False))
        table = authors_table(config["activation"]) if "kernel" in config else None
        device = "cpu" if table else sweeps.device(config["train"])
        return _outcome(list(sweep.run(_networks(config), table=table)), device)

    return Study(experiment, configs, work, sweeps.close)


@cache
def authors_table(activation: str) -> LookupTable:
    """The authors' table of an activation, which takes seconds to fill."""
    return LookupTable.authors(activation)


def _networks(config: Config) -> list[Architecture]:
    shape = config["depth"], config["activation"], config["weight_var"]
    return [Architecture(*shape, bias_var) for bias_var in config["bias_vars"]]


def _outcome(results: Sequence[SweepResult], device: str) -> Outcome:
    columns: dict[str, Any] = {
        name: [
            None if result.error else rounded(getattr(result, FIELDS.get(name, name)))
            for result in results
        ]
        for name in SCORES
    }
    errors = list(dict.fromkeys(result.error for result in results if result.error))
    if errors:
        columns["errors"] = errors
    noises = [result.noise_var for result in results if not result.error]
    return Outcome(columns, device, max(noises, default=None))
