"""Figure 6: the kernel against the angle between inputs, layer by layer (app. B)."""

from pathlib import Path

import numpy as np

from nngp.paper.experiment import Config, Experiment, network_of, rounded
from nngp.paper.part import Claim, Figure, Part, Results
from nngp.paper.scope import Scope
from nngp.plots.angular import AngularStructure, compute_angular_structure
from nngp.runs.study import Outcome, Study

CLAIM = Claim(
    title="the kernel against the angle",
    paper="Depth flattens the kernel as a function of the angle between inputs, and the look-up "
    "table agrees with the closed form.",
    look="Lines are exact, marks the authors' look-up table: they should lie on each other.",
)
CONFIG = {"activation": "relu", "depth": 9, "weight_var": 1.6, "bias_var": 0.1}  # the paper's
CURVES = ("theta", "exact", "sparse_theta", "lookup")


def study(scope: Scope) -> Study:
    """One run, the same for every scope."""
    return Study("angular", [CONFIG], _work)


ANGULAR_RUNS = Experiment("angular", study, seconds=15.0)


def _work(config: Config) -> Outcome:
    found = compute_angular_structure(network_of(config))
    return Outcome({name: rounded(getattr(found, name)) for name in CURVES})


def read(results: Results) -> AngularStructure:
    """The paper's network, from the exact curve and from the look-up table."""
    ((config, result),) = results.finished(study(results.scope))
    curves = {name: np.array(result[name]) for name in CURVES}
    return AngularStructure(network_of(config), **curves)


def finding(data: AngularStructure) -> str:
    """The largest difference between table and exact kernel."""
    exact = np.array([np.interp(data.sparse_theta, data.theta, row) for row in data.exact])
    variances = np.max(data.exact, axis=1)[:, None]
    apart = float(np.max(np.abs(data.lookup - exact) / variances))
    return f"Table and exact kernel differ by at most {100 * apart:.2f}% of the variance."


def draw(
    data: AngularStructure, path: str | Path | None = None, /, *, narrow: bool = False
) -> Figure:
    """A curve for each layer, marks for the look-up table."""
    from nngp.plots.angular import draw_angular_structure

    return draw_angular_structure(data, path, narrow=narrow)


PART = Part("fig6", CLAIM, (ANGULAR_RUNS,), read, finding, draw, about_data=False)
