"""The theory beside the measurements: phase diagrams and critical lines, experiment "critical"."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nngp.runs import RunStore

EXPERIMENT = "critical"
Array = NDArray[np.float64]


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


def read_theory(store: RunStore, activations: Sequence[str]) -> dict[str, Theory]:
    """The finest finished diagram of each activation; those without one are left out."""
    found: dict[str, Theory] = {}
    for run in store.runs(experiment=EXPERIMENT, status="done"):
        config, result = run.config, run.result or {}
        name = config["activation"]
        theory = Theory(
            name,
            np.array(config["weight_vars"], float),
            np.array(config["bias_vars"], float),
            np.array(result["phase"]),
            np.array(result["depth_scale"], float),
            np.array(result["line_weight_vars"], float),
            np.array(result["line_bias_vars"], float),
        )
        coarser = name not in found or theory.phase.size >= found[name].phase.size
        if name in activations and coarser:
            found[name] = theory
    return found
