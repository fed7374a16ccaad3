"""Figure 6: the kernel against the angle between inputs, layer by layer (app. B)."""

from pathlib import Path

import numpy as np

from nngp.plots.angular import AngularStructure, compute_angular_structure
from nngp_paper.experiment import Config, Experiment, network_of, rounded
from nngp_paper.part import Claim, Figure, Part, Results
from nngp_paper.runs.study import Outcome, Study
from nngp_paper.scope import Scope
from nngp_paper.verdict import ClaimVerdict, share_word

CLAIM = Claim(
    title="the kernel against the angle",
    paper="Depth flattens the kernel as a function of the angle between inputs, and the look-up "
    "table agrees with the closed form.",
    look="Lines are exact, marks the authors' look-up table: they should lie on each other.",
)
CONFIG = {"activation": "relu", "depth": 9, "weight_var": 1.6, "bias_var": 0.1}  # the paper's
AGREES = 0.01  # of the variance
CURVES = ("theta", "exact", "sparse_theta", "lookup")


def study(scope: Scope) -> Study:
    """One run, the same for every scope."""
    return Study("angular", [CONFIG], _work)


ANGULAR_RUNS = Experiment("angular", study)


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
    return f"Table and exact kernel differ by at most {100 * _apart(data):.2f}% of the variance."


def verdict(data: AngularStructure) -> ClaimVerdict:
    """Whether every layer is flatter than the one before, and the table agrees with it."""
    apart = _apart(data)
    ranges = np.ptp(data.exact, axis=1) / np.max(data.exact, axis=1)
    flatter = bool((np.diff(ranges) < 0).all())
    return ClaimVerdict(
        share_word([flatter, apart < AGREES]),
        "From the first to the last layer the kernel's range over angles falls from "
        f"{ranges[0]:.2f} to {ranges[-1]:.2f} of its variance, {'in' if flatter else 'not in'} "
        f"every layer; table and exact kernel differ by at most {100 * apart:.2f}% of it.",
    )


def _apart(data: AngularStructure) -> float:
    """The largest difference between table and exact kernel, over the variance."""
    exact = np.array([np.interp(data.sparse_theta, data.theta, row) for row in data.exact])
    return float(np.max(np.abs(data.lookup - exact) / np.max(data.exact, axis=1)[:, None]))


def draw(
    data: AngularStructure, path: str | Path | None = None, /, *, narrow: bool = False
) -> Figure:
    """A curve for each layer, marks for the look-up table."""
    from nngp.plots.angular import draw_angular_structure

    return draw_angular_structure(data, path, narrow=narrow)


PART = Part("fig6", CLAIM, (ANGULAR_RUNS,), read, finding, verdict, draw, about_data=False)
