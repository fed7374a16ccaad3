"""Figure 5: functions of one number, drawn from the prior of a deep ReLU network (app. A).

The paper gives the network and not the range of the inputs. From -2 to 2 both sides of these
functions are seen: the bends near 0, where biases matter, and the nearly straight lines beyond.
"""

from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import numpy as np

from nngp import Architecture, kernel_diag, sample_prior
from nngp_paper.arrays import Array
from nngp_paper.experiment import Config, Experiment, network_of, rounded
from nngp_paper.part import Claim, Figure, Part, Results
from nngp_paper.runs.study import Outcome, Study
from nngp_paper.scope import Scope
from nngp_paper.verdict import ClaimVerdict, share_word

CLAIM = Claim(
    title="functions drawn from the prior",
    paper="A deep ReLU network of infinite width is a distribution over functions; draws of it in "
    "one dimension are continuous, with slopes on many scales.",
    look="Each line is one draw; all have the same covariance.",
)
CONFIG = {
    **{"activation": "relu", "depth": 10, "weight_var": 1.8, "bias_var": 0.01},
    **{"points": 401, "draws": 10, "seed": 0},
}
REACH = 2.0  # the largest input
CONTINUOUS = 0.05  # of the range, between inputs that are 0.01 apart


def study(scope: Scope) -> Study:
    """One run, the same for every scope."""
    return Study("prior", [CONFIG], _work)


PRIOR_RUNS = Experiment("prior", study)


def _work(config: Config) -> Outcome:
    x = np.linspace(-REACH, REACH, config["points"])
    values = sample_prior(network_of(config), x[:, None], config["draws"], config["seed"])
    return Outcome({"x": rounded(x), "values": rounded(values)})


@dataclass(frozen=True)
class Prior:
    """Functions of one number: (points,) and (draws, points)."""

    architecture: Architecture
    x: Array
    values: Array


def read(results: Results) -> Prior:
    """The draws of the paper's network."""
    ((config, result),) = results.finished(study(results.scope))
    return Prior(network_of(config), np.array(result["x"]), np.array(result["values"]))


def finding(data: Prior) -> str:
    """The number of draws, and the network."""
    net = data.architecture
    return (
        f"{len(data.values)} draws of a {net.activation.name} network of depth {net.depth}, weight "
        f"variance {net.weight_var:g}, bias variance {net.bias_var:g}."
    )


def verdict(data: Prior) -> ClaimVerdict:
    """Whether the draws vary as the kernel says, and are continuous."""
    variance = kernel_diag(data.architecture, data.x[:, None])
    ratio = float(np.mean(data.values**2 / variance))
    error = float(np.sqrt(2 / len(data.values)))  # as if the values of one draw were all alike
    steps = np.abs(np.diff(data.values, axis=1)).max() / np.ptp(data.values)
    return ClaimVerdict(
        share_word([abs(ratio - 1) <= 2 * error, bool(steps < CONTINUOUS)]),
        f"The draws' mean square is {ratio:.2f} of the kernel's variance (1 ± {error:.2f} expected "
        f"of {len(data.values)} draws); between neighbouring inputs a draw moves by at most "
        f"{steps:.1%} of their range.",
    )


SIZE, NARROW, POINTS = (6.0, 3.8), (3.9, 3.2), 10
DASHES = ("-", "--")  # a second round of the colours looks different from the first


def draw(data: Prior, path: str | Path | None = None, *, narrow: bool = False) -> Figure:
    """One line for each draw; colours only tell them apart."""
    import matplotlib.pyplot as plt

    from nngp_paper.plots.style import COLOURS, plain, save

    looks = cycle((colour, dash) for dash in DASHES for colour in COLOURS)
    net, apart = data.architecture, "\n" if narrow else " "
    with plt.rc_context({"font.size": POINTS}):
        figure, axes = plt.subplots(figsize=NARROW if narrow else SIZE, layout="constrained")
        for values, (colour, dash) in zip(data.values, looks, strict=False):
            axes.plot(data.x, values, color=colour, ls=dash, lw=1.3)
        axes.set(xlabel="x", ylabel="z(x)", xlim=(data.x[0], data.x[-1]))
        axes.set_title(
            f"{len(data.values)} draws: {net.activation.name}, depth {net.depth},{apart}"
            f"weight_var {net.weight_var}, bias_var {net.bias_var}",
            fontsize=POINTS,
        )
        plain(axes)
        save(figure, path)
    return figure


PART = Part("fig5", CLAIM, (PRIOR_RUNS,), read, finding, verdict, draw, about_data=False)
