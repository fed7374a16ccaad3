"""The network of the paper's figures 3 and 8 on every training set: a study of it.

Several experiments measure this network; each has a function that does one run.
"""

from collections.abc import Callable
from functools import lru_cache, partial

from nngp_paper.datasets import Split, split
from nngp_paper.experiment import Config
from nngp_paper.runs.study import Outcome, Study
from nngp_paper.scope import ACTIVATIONS, Scope

NETWORK = {"depth": 3, "weight_var": 2.0, "bias_var": 0.2}  # the paper's
Work = Callable[[Callable[[int], Split], str, Config], Outcome]  # takes the data of a size, engine


def network_study(experiment: str, scope: Scope, work: Work, **more: int) -> Study:
    """The paper's activations on each of the sizes, by size; the data are read once a size. `more`
    is added to every configuration."""
    load = lru_cache(maxsize=1)(partial(split, scope.dataset, data=scope.data))
    shared = {**NETWORK, **more}
    configs = [
        {"dataset": scope.dataset, "train": train, "activation": activation, **shared}
        for train in sorted(scope.sizes)
        for activation in ACTIVATIONS
        if activation in scope.activations
    ]
    return Study(experiment, configs, partial(work, load, scope.engine), load.cache_clear)
