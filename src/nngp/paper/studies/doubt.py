"""Figures 3 and 8: whether the process knows where it errs.

One network, the paper's, on every training set: the mean squared error that it expects at a test
point beside the one that comes true. What it expects is the variance of an observation, noise
included, as a test target is one. Points are put together in the order of what is expected, for
one squared error says little.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nngp.datasets import Split, split
from nngp.datasets.catalogue import IMAGE_SETS
from nngp.paper.scope import ACTIVATIONS, Scope
from nngp.paper.studies.network import network_of
from nngp.paper.studies.rounding import rounded
from nngp.posterior import condition
from nngp.runs.study import Outcome, Study

Array = NDArray[np.float64]
EXPERIMENT = "doubt"
NETWORK = {"depth": 3, "weight_var": 2.0, "bias_var": 0.2}  # the paper's
BIN = 100  # test points put together, the paper's
BINS = 25  # or so, where there are too few test points for the paper's
MANY = 5000  # test points from which on there are enough


def doubt_study(scope: Scope) -> Study:
    """The paper's activations on each of the sizes, by size; the data are read once a size."""
    load = lru_cache(maxsize=1)(partial(split, scope.dataset, data=scope.data))
    test = IMAGE_SETS[scope.dataset].test
    configs = [
        {
            "dataset": scope.dataset,
            "train": train,
            "test": test,
            "activation": activation,
            **NETWORK,
            "bin": BIN if test >= MANY else max(1, test // BINS),
        }
        for train in sorted(scope.sizes)
        for activation in ACTIVATIONS
        if activation in scope.activations
    ]
    return Study(EXPERIMENT, configs, partial(_work, load, scope.engine), load.cache_clear)


def binned(expected: Array, errors: Array, size: int) -> tuple[Array, Array]:
    """Means over bins of `size` points, or a few more, in the order of what was expected."""
    bins = np.array_split(np.argsort(expected, kind="stable"), max(1, len(expected) // size))
    return (
        np.array([expected[rows].mean() for rows in bins]),
        np.array([errors[rows].mean() for rows in bins]),
    )


def correlation(predicted: Array, realised: Array) -> float:
    """Pearson's, over bins."""
    if min(np.ptp(predicted), np.ptp(realised)) == 0:
        raise ArithmeticError("all bins expect the same error, or have it: nothing correlates")
    return float(np.corrcoef(predicted, realised)[0, 1])


def _work(load: Callable[[int], Split], engine: str, config: Mapping[str, Any]) -> Outcome:
    data = load(config["train"])
    posterior = condition(network_of(config), data.X, data.targets(data.labels), engine=engine)
    mean, variance = posterior.predict(data.X_test, noise=True)
    errors = np.mean((mean - data.targets(data.labels_test)) ** 2, axis=1)
    predicted, realised = binned(variance, errors, config["bin"])
    result = {
        "predicted": rounded(predicted),
        "realised": rounded(realised),
        "correlation": rounded(correlation(predicted, realised)),
        "points": len(errors),
    }
    return Outcome(result, posterior.report.engine, posterior.noise_var)
