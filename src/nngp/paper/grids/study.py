"""The study of the grids: depth, weight variance and bias variance, judged on validation.

A run is a strip, the networks of one depth and weight variance: short enough that losing one
matters little, long enough to be worth a row in the store. Training sets up to 10,000 points get
the whole grid. Beyond, the grid goes from coarse to fine: the networks that did best on validation
with the next smaller set are tried, 100 of each activation up to 20,000 points and 25 above.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby, product
from typing import Any

from nngp.architecture import Architecture
from nngp.paper.experiment import Config, Experiment, rounded
from nngp.paper.grids.arrays import EXPERIMENT, SCORES, read_grids
from nngp.paper.grids.choice import Chosen, by_validation
from nngp.paper.grids.curves import Curves
from nngp.paper.grids.sweeps import Sweeps
from nngp.paper.scope import SIZES, Scope
from nngp.posterior import SweepResult
from nngp.runs import RunStore
from nngp.runs.study import Outcome, Study

LARGEST_FULL_GRID = 10_000  # training points up to which the whole grid is done
BEST = ((20_000, 100), (10**9, 25))  # training points up to which so many networks are tried
FIELDS = {"val_accuracy": "accuracy", "val_mse": "mse"}  # where a sweep has another name


def grid_study(scope: Scope) -> Study:
    """The whole grid on the sizes that get it. Sizes take turns, so that they share curves; weight
    variances go from coarse to fine, so that a part of the work shows the whole range."""
    sizes = [size for size in sorted(scope.sizes) if size <= LARGEST_FULL_GRID]
    weight_vars = coarse_to_fine(scope.weight_vars)
    shapes = product(weight_vars, scope.activations, sorted(scope.depths), sizes)
    configs = [
        _config(scope, size, activation, depth, weight_var, scope.bias_vars)
        for weight_var, activation, depth, size in shapes
    ]
    return _study(scope, configs)


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
    """The whole grid, then for each larger size the networks that the smaller ones suggest."""
    yield grid_study(scope)
    for size in sorted(scope.sizes):
        if size > LARGEST_FULL_GRID:
            yield promising_study(store, scope, size)


def promising_study(store: RunStore, scope: Scope, size: int) -> Study:
    """The networks that did best on the next smaller training set that the store has of their
    activation, whether or not that set is in the scope."""
    smaller = {small for small in (*SIZES, *scope.sizes) if small < size}
    known = read_grids(store, replace(scope, sizes=tuple(sorted(smaller))))
    below = {name: train for train, name, _ in sorted(known.by_name)}
    configs = [
        _config(scope, size, activation, depth, weight_var, bias_vars)
        for activation in scope.activations
        if activation in below
        for depth, weight_var, bias_vars in _strips(
            by_validation(known.of(below[activation], activation), _count(size))
        )
    ]
    return _study(scope, configs)


def later_strips(scope: Scope) -> list[Config]:
    """Estimates of the runs that depend on others: one for each large size and activation."""
    return [
        {"train": size, **scope.held_out, "activation": name, "bias_vars": [None] * _count(size)}
        for size in scope.sizes
        if size > LARGEST_FULL_GRID
        for name in scope.activations
    ]


GRID_RUNS = Experiment(EXPERIMENT, grid_study, grid_studies, later_strips)


def _count(size: int) -> int:
    """Number of networks of each activation that are tried on a large training set."""
    return next(count for limit, count in BEST if size <= limit)


def _strips(chosen: Sequence[Chosen]) -> Iterator[tuple[int, float, tuple[float, ...]]]:
    """Networks as strips, by weight variance, as depths of one share a sheet of curves."""
    ordered = sorted(chosen, key=lambda net: (net.weight_var, net.depth, net.bias_var))
    for shape, nets in groupby(ordered, key=lambda net: (net.depth, net.weight_var)):
        yield *shape, tuple(net.bias_var for net in nets)


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


def _study(scope: Scope, configs: Sequence[Config]) -> Study:
    sweeps, curves = Sweeps(scope), Curves(_sheets(configs))

    def work(config: Config) -> Outcome:
        networks = _networks(config)
        sweep = sweeps.of(config["train"])
        curves.ready(networks[0])
        return _outcome(list(sweep.run(networks)), sweeps.device(config["train"]))

    def close() -> None:
        sweeps.close()
        curves.close()

    return Study(EXPERIMENT, configs, work, close)


def _sheets(configs: Sequence[Config]) -> list[list[Architecture]]:
    """The networks of all depths and bias variances for each weight variance."""
    sheets: dict[tuple[str, float], dict[Architecture, None]] = {}
    for config in configs:
        sheet = sheets.setdefault((config["activation"], config["weight_var"]), {})
        sheet.update(dict.fromkeys(_networks(config)))
    return [list(sheet) for sheet in sheets.values()]


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
