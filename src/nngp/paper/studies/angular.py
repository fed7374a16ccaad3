"""Figure 6: the kernel against the angle, layer by layer (app. B)."""

from collections.abc import Mapping
from typing import Any

from nngp.paper.scope import Scope
from nngp.paper.studies.network import network_of
from nngp.paper.studies.rounding import rounded
from nngp.plots.angular import angular_structure
from nngp.runs.study import Outcome, Study

EXPERIMENT = "angular"
CONFIG = {"activation": "relu", "depth": 9, "weight_var": 1.6, "bias_var": 0.1}  # the paper's
CURVES = ("theta", "exact", "sparse_theta", "lookup")


def angular_study(scope: Scope) -> Study:
    """One run; the scope has no say in it."""
    return Study(EXPERIMENT, [CONFIG], _work)


def _work(config: Mapping[str, Any]) -> Outcome:
    found = angular_structure(network_of(config))
    return Outcome({name: rounded(getattr(found, name)) for name in CURVES})
