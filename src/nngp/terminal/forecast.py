"""Forecast of `nngp fit`: how much memory, said before it starts."""

from typing import NoReturn

from nngp.linsolve import Forecast
from nngp.posterior import forecast
from nngp.terminal.output import print_message
from nngp.terminal.scores import Model

SAY_FROM = 1e9  # bytes


def announce(model: Model, shape: tuple[int, int], outputs: int) -> None:
    """Print how much memory a fit will take, if that is worth a word; raises MemoryError if it
    does not fit."""
    final = model._forecast(shape, outputs, classes=model._kind == "NNGPClassifier").final
    if not final.fits:
        _refuse(model, final, shape[1], outputs)
    if final.bytes > SAY_FROM:
        print_message(f"this will take {final.bytes / 1e9:.2g} GB of memory")


def _refuse(model: Model, final: Forecast, d: int, outputs: int) -> NoReturn:
    """Raise MemoryError with what would fit."""
    remedy = f"take at most {final.largest:,} rows" if final.largest else "free some memory"
    if forecast(final.n, d, outputs, solver="cg", engine=model.engine).fits:
        remedy = f"use --solver cg, which needs less, or {remedy}"
    raise MemoryError(
        f"{final.n:,} rows need {final.bytes / 1e9:.2g} GB of memory and "
        f"{(final.available or 0) / 1e9:.2g} GB are free; {remedy}"
    )
