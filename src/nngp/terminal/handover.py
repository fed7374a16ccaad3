"""Options handed to an estimator as its parameters."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from nngp.estimators import NNGPClassifier, NNGPRegressor
from nngp.linsolve import Engine, choose_engine
from nngp.terminal.options import FitOptions, Handed, TargetKind, handed_parameters
from nngp.terminal.output import UsageError, usage_errors
from nngp.terminal.parsing import number
from nngp.terminal.words import option_named

Kind = type[NNGPRegressor] | type[NNGPClassifier]
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
    known, handed = kind().get_params(deep=False), handed_parameters(FitOptions)
    values = {one.name: _value(field, one, options) for field, one in handed.items()}
    return {name: v for name, v in values.items() if name in known} | {"engine": engine}


def _value(field: str, handed: Handed, options: FitOptions) -> object:
    given, words = getattr(options, field), dict(handed.words)
    if given in words:
        return words[given]
    if handed.number:
        return number(option_named(field), given, whole=handed.number == "whole")
    return given


def _check_known(options: FitOptions, tasks: Sequence[TargetKind]) -> None:
    """Raise UsageError for an option that was given and that no estimator for the tasks has."""
    defaults = {one.name: one.default for one in fields(FitOptions)}
    known = {name for task in tasks for name in TASKS[task]().get_params(deep=False)}
    for field, handed in handed_parameters(FitOptions).items():
        if getattr(options, field) != defaults[field] and handed.name not in known:
            raise UsageError(f"{option_named(field)} is not for {' or '.join(tasks)}; leave it out")
