"""Figure 6: the kernel against the angle, by depth."""

import numpy as np

from nngp.paper.readings.finished import finished, result_of
from nngp.paper.scope import Scope
from nngp.paper.studies.angular import CURVES, angular_study
from nngp.paper.studies.network import network_of
from nngp.plots.angular import AngularStructure
from nngp.runs import RunStore


def angular(store: RunStore, scope: Scope) -> AngularStructure:
    """The paper's network, from the exact curve and from the look-up table."""
    (run,) = finished(store, angular_study(scope))
    result = result_of(run)
    return AngularStructure(
        network_of(run.config), **{name: np.array(result[name]) for name in CURVES}
    )
