"""Figures 3 and 8: expected and realised errors, of the largest training set and of the others."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nngp.errors import NothingMeasuredError
from nngp.paper.readings.finished import finished, result_of
from nngp.paper.scope import Scope
from nngp.paper.studies.doubt import doubt_study
from nngp.runs import Run, RunStore

Array = NDArray[np.float64]


@dataclass(frozen=True)
class DoubtCurve:
    """One network on one training set: mean squared errors by bin of test points."""

    train: int
    activation: str
    predicted: Array
    realised: Array
    correlation: float
    points: int  # test points in all
    bin: int  # test points put together


@dataclass(frozen=True)
class Doubt:
    """What a figure shows; `done` of `wanted` runs of both figures are finished."""

    dataset: str
    curves: tuple[DoubtCurve, ...]  # by size, then by activation
    done: int
    wanted: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """The training sets that are shown."""
        return tuple(dict.fromkeys(curve.train for curve in self.curves))


def doubt(store: RunStore, scope: Scope) -> Doubt:
    """Figure 3: the largest training set that is finished."""
    found = every_doubt(store, scope)
    return _only(found, found.sizes[-1:])


def doubt_by_size(store: RunStore, scope: Scope) -> Doubt:
    """Figure 8: those smaller than figure 3's."""
    found = every_doubt(store, scope)
    if len(found.sizes) == 1:
        raise NothingMeasuredError(
            f"{store.path} has the error of one training size on {scope.dataset} only, which "
            "is figure 3's; measure smaller ones with nngp reproduce fig8 first"
        )
    return _only(found, found.sizes[:-1])


def every_doubt(store: RunStore, scope: Scope) -> Doubt:
    """The curves of all training sets."""
    study = doubt_study(scope)
    curves = tuple(_curve(run) for run in finished(store, study))
    return Doubt(scope.dataset, curves, len(curves), len(study.configs))


def _only(data: Doubt, sizes: tuple[int, ...]) -> Doubt:
    shown = tuple(curve for curve in data.curves if curve.train in sizes)
    return Doubt(data.dataset, shown, data.done, data.wanted)


def _curve(run: Run) -> DoubtCurve:
    config, result = run.config, result_of(run)
    return DoubtCurve(
        config["train"],
        config["activation"],
        np.array(result["predicted"]),
        np.array(result["realised"]),
        result["correlation"],
        result["points"],
        config["bin"],
    )
