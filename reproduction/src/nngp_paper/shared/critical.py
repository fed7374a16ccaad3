"""Phases and the critical line of each activation, to lay beside the grids (figures 4, 9 and 10).

The plane is that of the grids, in finer steps, and the same whatever the scope's grid.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nngp.regimes import PhaseDiagram, phase_diagram
from nngp_paper.arrays import Array
from nngp_paper.experiment import Config, Experiment, result_of, rounded
from nngp_paper.ranges import BIAS_VAR_RANGE, WEIGHT_VAR_RANGE, evenly_spaced
from nngp_paper.runs import RunStore
from nngp_paper.runs.study import Outcome, Study
from nngp_paper.scope import Scope

EXPERIMENT = "critical"
STEPS = (59, 41)  # weight_vars, bias_vars; none is 2, where relu is critical
LINE_POINTS = 61
NO_LINE = "The critical line has not been computed."


def critical_study(scope: Scope) -> Study:
    """One run for each activation."""
    axes = {
        "weight_vars": list(evenly_spaced(WEIGHT_VAR_RANGE, STEPS[0])),
        "bias_vars": list(evenly_spaced(BIAS_VAR_RANGE, STEPS[1])),
    }
    configs = [{"activation": activation, **axes} for activation in scope.activations]
    return Study(EXPERIMENT, configs, _work)


CRITICAL_RUNS = Experiment(EXPERIMENT, critical_study)


def _work(config: Config) -> Outcome:
    activation, biases = config["activation"], config["bias_vars"]
    diagram = phase_diagram(activation, config["weight_vars"], biases)
    # The line may leave bias_var = 0 like a cube root, so points are close to each other there.
    along = biases[0] + (biases[-1] - biases[0]) * np.linspace(0.0, 1.0, LINE_POINTS) ** 2
    line = phase_diagram(activation, [1.0], along).critical_weight_vars
    there = (line > 0) & np.isfinite(line)
    return Outcome(
        {
            "line_bias_vars": rounded(along[there]),
            "line_weight_vars": rounded(line[there]),
            "phase": diagram.phase.tolist(),
            "depth_scale": rounded(_limiting_depth_scale(diagram)),
        }
    )


@dataclass(frozen=True)
class Theory:
    """An activation's phases over W weight variances and B bias variances, (B, W), and its critical
    line as points."""

    activation: str
    weight_vars: Array
    bias_vars: Array
    phase: NDArray[np.str_]
    depth_scale: Array
    line_weight_vars: Array
    line_bias_vars: Array

    def line_within(self, weight_vars: Array) -> tuple[Array, Array]:
        """Weight and bias variances of the line, where it lies between the first and the last of
        these weight variances."""
        first, last = weight_vars.min(), weight_vars.max()
        inside = (self.line_weight_vars >= first) & (self.line_weight_vars <= last)
        return self.line_weight_vars[inside], self.line_bias_vars[inside]


def read_theories(store: RunStore, activations: Sequence[str]) -> dict[str, Theory]:
    """The finest finished diagram of each activation, by name; some may have none."""
    found: dict[str, Theory] = {}
    for run in store.runs(experiment=EXPERIMENT, status="done"):
        name, result = run.config["activation"], result_of(run)
        theory = Theory(
            name,
            np.array(run.config["weight_vars"], float),
            np.array(run.config["bias_vars"], float),
            np.array(result["phase"]),
            np.array(result["depth_scale"], float),
            np.array(result["line_weight_vars"], float),
            np.array(result["line_bias_vars"], float),
        )
        coarser = name not in found or theory.phase.size >= found[name].phase.size
        if name in activations and coarser:
            found[name] = theory
    return found


def critical_weight_var(theory: Theory | None, bias_var: float) -> float | None:
    """The weight variance of the critical line at a bias variance; None without a line."""
    if theory is None or not len(theory.line_weight_vars):
        return None
    order = np.argsort(theory.line_bias_vars)
    line = theory.line_bias_vars[order], theory.line_weight_vars[order]
    return float(np.interp(bias_var, *line))


def _limiting_depth_scale(diagram: PhaseDiagram) -> Array:
    """Layers in which a network forgets its inputs: the depth scale of the correlation, or of a
    variance that vanishes or grows for ever, if that is smaller."""
    rests = (diagram.variance > 0) & np.isfinite(diagram.variance)
    return np.where(rests, diagram.xi_c, np.minimum(diagram.xi_c, diagram.xi_q))
