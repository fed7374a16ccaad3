"""Forecast of `nngp fit`: how long and how much memory, said before it starts."""

from typing import NoReturn

from nngp._progress import time_in_words
from nngp.linsolve import Forecast
from nngp.posterior import forecast
from nngp.predictors.fit_forecast import FitForecast
from nngp.terminal.output import UsageError, on_terminal, print_message
from nngp.terminal.scores import Model

SAY_FROM, ASK_FROM = 10.0, 3600.0  # seconds


def announce(model: Model, shape: tuple[int, int], outputs: int, *, agreed: bool) -> None:
    """Print what a fit will take, if that is worth a word.

    Raises MemoryError if it does not fit, and UsageError if it takes more than an hour, somebody
    sits at the terminal, and has not `agreed`.
    """
    expected = model._forecast(shape, outputs, classes=model._kind == "NNGPClassifier")
    if not expected.final.fits:
        _refuse(model, expected.final, shape[1], outputs)
    cost = _cost(expected)
    if expected.seconds > ASK_FROM and on_terminal() and not agreed:
        raise UsageError(f"this fit will take {cost}; add --yes to start it, or take fewer rows")
    if expected.seconds > SAY_FROM:
        choice, final = time_in_words(expected.choice), time_in_words(expected.final_seconds)
        print_message(f"this will take {cost}: {choice} to choose a network, {final} to fit it")


def _cost(expected: FitForecast) -> str:
    return f"{time_in_words(expected.seconds)} and {expected.final.bytes / 1e9:.2g} GB of memory"


def _refuse(model: Model, final: Forecast, d: int, outputs: int) -> NoReturn:
    """Raise MemoryError with what would fit."""
    remedy = f"take at most {final.largest:,} rows" if final.largest else "free some memory"
    if forecast(final.n, d, outputs, solver="cg", engine=model.engine).fits:
        remedy = f"use --solver cg, which needs less, or {remedy}"
    raise MemoryError(
        f"{final.n:,} rows need {final.bytes / 1e9:.2g} GB of memory and "
        f"{(final.available or 0) / 1e9:.2g} GB are free; {remedy}"
    )
