"""The scale of predicted errors that leave-one-out asks for (beside figures 3 and 8).

Each training point is predicted from all others. The mean of squared residual over predicted
variance, over points and outputs, is 1 for a process that knows how far it errs. Multiplied by that
mean, the kernel gives the same predictions and variances that are right on the training set. Both
the residual and the variance are those of an observation, noise included.
"""

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np

from nngp.datasets import Split, split
from nngp.paper.experiment import Config, Experiment, network_of, result_of, rounded
from nngp.paper.part import Results
from nngp.paper.scope import ACTIVATIONS, Scope
from nngp.posterior import condition
from nngp.runs.study import Outcome, Study

EXPERIMENT = "loo_scale"
NETWORK = {"depth": 3, "weight_var": 2.0, "bias_var": 0.2}  # the paper's


def scale_study(scope: Scope) -> Study:
    """The paper's activations on each of the sizes, by size; the data are read once a size."""
    load = lru_cache(maxsize=1)(partial(split, scope.dataset, data=scope.data))
    configs = [
        {"dataset": scope.dataset, "train": train, "activation": activation, **NETWORK}
        for train in sorted(scope.sizes)
        for activation in ACTIVATIONS
        if activation in scope.activations
    ]
    return Study(EXPERIMENT, configs, partial(_work, load, scope.engine), load.cache_clear)


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
