"""Options of a command as the engine, network and parameters of an estimator, checked before any
table is read, and the memory that its fit will take."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn

from nngp.architecture import Architecture, Network, network_from_dict
from nngp.estimators import NNGPClassifier, NNGPRegressor
from nngp.linsolve import Engine, Forecast, choose_engine
from nngp.posterior import forecast
from nngp.terminal.options import (
    ComputeOptions,
    EstimatorOption,
    FitOptions,
    TargetKind,
    estimator_options,
)
from nngp.terminal.output import (
    DataError,
    UsageError,
    option_named,
    print_message,
    usage_errors,
)

Kind = type[NNGPRegressor] | type[NNGPClassifier]
SHOW_MEMORY_FROM = 1e9  # bytes
TASKS: dict[TargetKind, Kind] = {
    TargetKind.regression: NNGPRegressor,
    TargetKind.classification: NNGPClassifier,
}


def check_parameters(options: FitOptions, engine: str | Engine) -> None:
    """Raise UsageError for options that cannot be used, before a table is read."""
    tasks = list(TASKS) if options.task == TargetKind.auto else [options.task]
    _check_known(options, tasks)
    for task in tasks:
        with usage_errors():
            choose_engine(engine, 0)
            model = TASKS[task](**_accepted(options, engine, TASKS[task]))
            model._check_parameters(1)
            model._candidates()


def parameters_for(task: TargetKind, options: FitOptions, engine: str | Engine) -> dict[str, Any]:
    """Keyword arguments of the estimator for a task; UsageError for options of another task."""
    _check_known(options, [task])
    return _accepted(options, engine, TASKS[task])


def _accepted(options: FitOptions, engine: str | Engine, kind: Kind) -> dict[str, Any]:
    """The values of all options that the estimator has a parameter for."""
    known, option = kind().get_params(deep=False), estimator_options(FitOptions)
    values = {one.name: _value(field, one, options) for field, one in option.items()}
    return {name: v for name, v in values.items() if name in known} | {"engine": engine}


def _value(field: str, option: EstimatorOption, options: FitOptions) -> object:
    given, words = getattr(options, field), dict(option.words)
    if given in words:
        return words[given]
    if option.number:
        return number(option_named(field), given, whole=option.number == "whole")
    return given


def _check_known(options: FitOptions, tasks: Sequence[TargetKind]) -> None:
    """Raise UsageError for an option that was given and that no estimator for the tasks has."""
    defaults = {one.name: one.default for one in fields(FitOptions)}
    known = {name for task in tasks for name in TASKS[task]().get_params(deep=False)}
    for field, option in estimator_options(FitOptions).items():
        if getattr(options, field) != defaults[field] and option.name not in known:
            raise UsageError(f"{option_named(field)} is not for {' or '.join(tasks)}; leave it out")


@contextmanager
def engine_of(options: ComputeOptions) -> Iterator[str | Engine]:
    """The engine that the options name; a connection to a cluster is closed in the end."""
    if options.cluster is None:
        if options.tile is not None or options.tile_store is not None:
            raise UsageError("--tile and --tile-store are for work on a cluster; add --cluster")
        with usage_errors():
            choose_engine(options.engine, 0)
        yield options.engine
        return
    if options.engine == "gpu":
        raise UsageError("--cluster and --engine gpu contradict each other; leave one of them out")
    from nngp.linsolve.engines.dask.dask_engine import TILE, DaskEngine

    tile = TILE if options.tile is None else options.tile
    with DaskEngine(options.cluster, tile, options.tile_store) as engine:
        yield engine


def announce_memory(
    model: NNGPRegressor | NNGPClassifier, shape: tuple[int, int], outputs: int
) -> None:
    """Print how much memory a fit will take, if that is worth a word; raises MemoryError if it
    does not fit."""
    final = model._forecast(shape, outputs, classes=model._kind == "NNGPClassifier").final
    if not final.fits:
        _refuse(model, final, shape[1], outputs)
    if final.bytes > SHOW_MEMORY_FROM:
        print_message(f"this will take {final.bytes / 1e9:.2g} GB of memory")


def _refuse(
    model: NNGPRegressor | NNGPClassifier, final: Forecast, d: int, outputs: int
) -> NoReturn:
    """Raise MemoryError with what would fit."""
    remedy = f"take at most {final.largest:,} rows" if final.largest else "free some memory"
    if forecast(final.n, d, outputs, solver="cg", engine=model.engine).fits:
        remedy = f"use --solver cg, which needs less, or {remedy}"
    raise MemoryError(
        f"{final.n:,} rows need {final.bytes / 1e9:.2g} GB of memory and "
        f"{(final.available or 0) / 1e9:.2g} GB are free; {remedy}"
    )


def number(option: str, text: str, whole: bool = False) -> float | str:
    """The value of an option that is a number or auto."""
    if text == "auto":
        return text
    try:
        return int(text) if whole and text != "inf" else float(text)
    except ValueError:
        kind = "a whole number, inf" if whole else "a number"
        raise UsageError(f"{option} must be {kind} or auto, got '{text}'") from None


def network(
    depth: float | str, activation: str, weight_var: float, bias_var: float
) -> Architecture:
    """The network that options describe."""
    with usage_errors():
        return Architecture(depth, activation, weight_var, bias_var)  # type: ignore[arg-type]


def network_file(path: Path) -> Network:
    """The network that a file describes: the JSON of its `as_dict()`."""
    try:
        values = json.loads(path.read_text("utf-8"))
        if not isinstance(values, dict):
            raise ValueError("it holds no object")
        found = network_from_dict(values)
        _ = found.is_infinite or found.graph  # ValueError unless it is a whole network
    except FileNotFoundError:
        raise DataError(f"there is no file {path}") from None
    except (OSError, ValueError, TypeError, KeyError) as cause:
        raise DataError(
            f"{path} describes no network ({cause}); write it in Python by "
            "json.dump(network.as_dict(), file)"
        ) from None
    return found
