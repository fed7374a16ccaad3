"""Figure 5: functions drawn from the prior."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nngp.architecture import Architecture
from nngp.paper.readings.finished import finished, result_of
from nngp.paper.scope import Scope
from nngp.paper.studies.network import network_of
from nngp.paper.studies.prior import prior_study
from nngp.runs import RunStore

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Prior:
    """Functions of one number: (points,) and (draws, points)."""

    architecture: Architecture
    x: Array
    values: Array


def prior(store: RunStore, scope: Scope) -> Prior:
    """The paper's network."""
    (run,) = finished(store, prior_study(scope))
    result = result_of(run)
    return Prior(network_of(run.config), np.array(result["x"]), np.array(result["values"]))
