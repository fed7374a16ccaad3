"""Figure 7: how kernels of finite networks gather round the infinite one's (app. C)."""

from collections.abc import Mapping
from typing import Any

from nngp.finite.width_convergence import convergence, three_inputs
from nngp.paper.scope import Scope
from nngp.paper.studies.network import network_of
from nngp.paper.studies.rounding import rounded
from nngp.runs.study import Outcome, Study

EXPERIMENT = "spread"
CONFIG = {
    "activation": "relu",
    "depth": 3,
    "weight_var": 1.6,
    "bias_var": 0.1,
    "widths": [4, 8, 16, 32, 64, 128, 256],
    "networks": 2000,
    "seed": 0,
    "inputs": 3,
}
MEASURED = ("error", "error_of_error", "slope", "slope_error")


def spread_study(scope: Scope) -> Study:
    """One run, which needs the extra `finite`; the scope has no say in it."""
    return Study(EXPERIMENT, [CONFIG], _work)


def _work(config: Mapping[str, Any]) -> Outcome:
    found = convergence(
        network_of(config),
        three_inputs()[: config["inputs"]],
        config["widths"],
        config["networks"],
        config["seed"],
        progress=False,
    )
    result = {name: rounded(getattr(found, name)) for name in MEASURED}
    from nngp.finite.device import device_name

    return Outcome({"widths": list(found.widths), **result}, device_name())
