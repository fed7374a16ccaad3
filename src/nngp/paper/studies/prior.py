"""Figure 5: functions of one number, drawn from the prior of a deep ReLU network (app. A).

The paper gives the network and not the range of the inputs. From -2 to 2 both sides of these
functions are seen: the bends near 0, where biases matter, and the nearly straight lines beyond.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from nngp.paper.scope import Scope
from nngp.paper.studies.network import network_of
from nngp.paper.studies.rounding import rounded
from nngp.posterior import sample_prior
from nngp.runs.study import Outcome, Study

EXPERIMENT = "prior"
CONFIG = {
    "activation": "relu",
    "depth": 10,
    "weight_var": 1.8,
    "bias_var": 0.01,
    "points": 401,
    "draws": 10,
    "seed": 0,
}
REACH = 2.0


def prior_study(scope: Scope) -> Study:
    """One run; the scope has no say in it."""
    return Study(EXPERIMENT, [CONFIG], _work)


def _work(config: Mapping[str, Any]) -> Outcome:
    x = np.linspace(-REACH, REACH, config["points"])
    values = sample_prior(network_of(config), x[:, None], config["draws"], config["seed"])
    return Outcome({"x": rounded(x), "values": rounded(values)})
