"""Figures 4, 9 and 10: phases, depth scales and the critical line, to lay beside the grids.

The plane is the experiment's, in finer steps, and the same whatever the experiment's grid.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from nngp.paper.scope import BIAS_VARS, WEIGHT_VARS, Scope, values
from nngp.paper.studies.rounding import rounded
from nngp.plots.phases import limiting_depth_scale
from nngp.regimes import phase_diagram
from nngp.runs.study import Outcome, Study

EXPERIMENT = "critical"
STEPS = (59, 41)  # weight_vars, bias_vars; none is 2, where relu is critical
ON_LINE = 61  # points of the critical line


def critical_study(scope: Scope) -> Study:
    """One run an activation."""
    axes = {
        "weight_vars": list(values(WEIGHT_VARS, STEPS[0])),
        "bias_vars": list(values(BIAS_VARS, STEPS[1])),
    }
    configs = [{"activation": activation, **axes} for activation in scope.activations]
    return Study(EXPERIMENT, configs, _work)


def _work(config: Mapping[str, Any]) -> Outcome:
    activation, biases = config["activation"], config["bias_vars"]
    diagram = phase_diagram(activation, config["weight_vars"], biases)
    # The line may leave bias_var = 0 like a root, so its points are close to each other there.
    along = biases[0] + (biases[-1] - biases[0]) * np.linspace(0.0, 1.0, ON_LINE) ** 2
    line = phase_diagram(activation, [1.0], along).critical_weight_vars
    there = (line > 0) & np.isfinite(line)
    return Outcome(
        {
            "line_bias_vars": rounded(along[there]),
            "line_weight_vars": rounded(line[there]),
            "phase": diagram.phase.tolist(),
            "depth_scale": rounded(limiting_depth_scale(diagram)),
        }
    )
