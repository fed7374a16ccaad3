"""Figure 7: how far the kernels of networks of finite width are from the infinite one's."""

from dataclasses import dataclass

import numpy as np

from nngp.architecture import Architecture
from nngp.finite.decay import Decay
from nngp.paper.readings.finished import finished, result_of
from nngp.paper.scope import Scope
from nngp.paper.studies.network import network_of
from nngp.paper.studies.spread import spread_study
from nngp.runs import RunStore


@dataclass(frozen=True)
class Spread:
    """The error of kernels against width, of so many networks of each."""

    architecture: Architecture
    networks: int
    decay: Decay


def spread(store: RunStore, scope: Scope) -> Spread:
    """The networks that the study drew."""
    (run,) = finished(store, spread_study(scope))
    result = result_of(run)
    decay = Decay(
        tuple(result["widths"]), np.array(result["error"]), np.array(result["error_of_error"])
    )
    return Spread(network_of(run.config), run.config["networks"], decay)
