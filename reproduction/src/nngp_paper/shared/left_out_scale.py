"""The scale of predicted errors that leave-one-out asks for (beside figures 3 and 8).

Each training point is predicted from all others. The mean of squared residual over predicted
variance, over points and outputs, is 1 for a process that knows how far it errs. Multiplied by that
mean, the kernel gives the same predictions and variances that are right on the training set. Both
the residual and the variance are those of an observation, noise included.
"""

from collections.abc import Callable

import numpy as np

from nngp import condition
from nngp_paper.datasets import Split
from nngp_paper.experiment import Config, Experiment, network_of, result_of, rounded
from nngp_paper.part import Results
from nngp_paper.runs.study import Outcome, Study
from nngp_paper.scope import Scope
from nngp_paper.shared.one_network import network_study

EXPERIMENT = "loo_scale"


def scale_study(scope: Scope) -> Study:
    """The network of figures 3 and 8, its training held-out points one at a time."""
    return network_study(EXPERIMENT, scope, _work)


SCALE_RUNS = Experiment(EXPERIMENT, scale_study)


def _work(load: Callable[[int], Split], engine: str, config: Config) -> Outcome:
    data = load(config["train"])
    targets = data.targets(data.labels)
    posterior = condition(network_of(config), data.X, targets, engine=engine)
    mean, variance = posterior.leave_one_out(noise=True)
    squares = (targets - mean) ** 2
    result = {
        "scale": rounded(np.mean(squares / variance[:, None])),
        "left_out_mse": rounded(np.mean(squares)),
        "left_out_variance": rounded(np.mean(variance)),
    }
    return Outcome(result, posterior.report.engine, posterior.report.noise_var)


def read_scales(results: Results) -> dict[tuple[str, int], float]:
    """Scales by activation and training points; there may be none."""
    runs = results.store.runs(EXPERIMENT, "done", where={"dataset": results.scope.dataset})
    wanted = {(c["activation"], c["train"]) for c in scale_study(results.scope).configs}
    found = {(run.config["activation"], run.config["train"]): result_of(run) for run in runs}
    return {name: result["scale"] for name, result in found.items() if name in wanted}
