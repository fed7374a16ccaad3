"""Figure 5: functions of one number, drawn from the prior of a deep ReLU network (app. A).

The paper gives the network and not the range of the inputs. From -2 to 2 both sides of these
functions are seen: the bends near 0, where biases matter, and the nearly straight lines beyond.
"""

from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import numpy as np

from nngp._arrays import Array
from nngp.architecture import Architecture
from nngp.paper.experiment import Config, Experiment, network_of, rounded
from nngp.paper.part import Claim, Figure, Part, Results
from nngp.paper.scope import Scope
from nngp.posterior import sample_prior
from nngp.runs.study import Outcome, Study

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


def study(scope: Scope) -> Study:
    """One run, the same for every scope."""
    return Study("prior", [CONFIG], _work)


PRIOR_RUNS = Experiment("prior", study, seconds=1.0)


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


SIZE, POINTS = (6.0, 3.8), 10
DASHES = ("-", "--")  # a second round of the colours looks different from the first


def draw(data: Prior, path: str | Path | None = None) -> Figure:
    """One line for each draw; colours only tell them apart."""
    import matplotlib.pyplot as plt

    from nngp.plots.style import COLOURS, plain, save

    looks = cycle((colour, dash) for dash in DASHES for colour in COLOURS)
    net = data.architecture
    with plt.rc_context({"font.size": POINTS}):
        figure, axes = plt.subplots(figsize=SIZE, layout="constrained")
        for values, (colour, dash) in zip(data.values, looks, strict=False):
            axes.plot(data.x, values, color=colour, ls=dash, lw=1.3)
        axes.set(xlabel="x", ylabel="z(x)", xlim=(data.x[0], data.x[-1]))
        axes.set_title(
            f"{len(data.values)} draws: {net.activation.name}, depth {net.depth}, "
            f"weight_var {net.weight_var}, bias_var {net.bias_var}",
            fontsize=POINTS,
        )
        plain(axes)
        save(figure, path)
    return figure


PART = Part("fig5", CLAIM, (PRIOR_RUNS,), read, finding, draw, about_data=False)
