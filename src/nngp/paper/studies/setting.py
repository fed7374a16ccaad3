"""The paper's own networks: its table of results, row by row, at the settings that it prints.

Each is judged twice: with the authors' look-up table, which the settings were chosen with, and with
the exact kernel.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from nngp.covariance import LookupTable
from nngp.datasets.catalogue import IMAGE_SETS
from nngp.paper.published import published
from nngp.paper.scope import Scope
from nngp.paper.studies.network import network_of
from nngp.paper.studies.rounding import rounded
from nngp.paper.studies.sweeps import Sweeps
from nngp.runs.study import Outcome, Study

EXPERIMENT = "setting"
KERNELS = ("table", "exact")


def setting_study(scope: Scope) -> Study:
    """Every row of the paper with the scope's data set, sizes and activations."""
    entry, sweeps = IMAGE_SETS[scope.dataset], Sweeps(scope)
    configs = [
        {
            "dataset": row.dataset,
            "train": row.train,
            "validation": entry.validation,
            "test": entry.test,
            "activation": row.activation,
            "depth": row.depth,
            "weight_var": row.weight_var,
            "bias_var": row.bias_var,
            "kernel": kernel,
        }
        for row in published()
        if row.width is None
        and row.dataset == scope.dataset
        and row.train in scope.sizes
        and row.activation in scope.activations
        for kernel in KERNELS
    ]

    def work(config: Mapping[str, Any]) -> Outcome:
        return _work(sweeps, config)

    return Study(EXPERIMENT, configs, work, sweeps.close)


def _work(sweeps: Sweeps, config: Mapping[str, Any]) -> Outcome:
    table = _authors(config["activation"]) if config["kernel"] == "table" else None
    sweep = sweeps.of(config["train"])  # data that cannot be read are no fault of the network
    try:
        (found,) = sweep.run([network_of(config)], table=table)
    except ValueError as error:  # a variance past the end of the table
        raise ArithmeticError(str(error)) from error
    if found.error:
        raise ArithmeticError(found.error)
    result = {
        "val_accuracy": found.accuracy,
        "val_mse": found.mse,
        "test_accuracy": found.test_accuracy,
        "test_mse": found.test_mse,
        "log_evidence": found.log_evidence,
    }
    short = {name: rounded(value) for name, value in result.items()}
    return Outcome(short, sweeps.device(config["train"]), found.noise_var)


@cache
def _authors(activation: str) -> LookupTable:
    return LookupTable.authors(activation)
