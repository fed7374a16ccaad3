"""The paper's own infinitely wide networks (tables 1 and 2), at the settings that it prints.

Each is judged twice: with the authors' look-up table, which the settings were chosen with, and with
the exact kernel.
"""

from nngp_paper.experiment import Config, Experiment, network_of, rounded
from nngp_paper.grids.study import authors_table
from nngp_paper.grids.sweeps import Sweeps
from nngp_paper.published import Published, published
from nngp_paper.runs.study import Outcome, Study
from nngp_paper.scope import Scope

EXPERIMENT = "setting"
KERNELS = ("authors", "exact")
# Runs of earlier versions with the authors' table: correlations above 0.99999 were not clamped.
OLD_TABLE = "table"


def published_settings(scope: Scope) -> list[Published]:
    """The paper's rows of infinite networks with the scope's data set, sizes and activations."""
    return [
        row
        for row in published()
        if row.width is None
        and row.dataset == scope.dataset
        and row.train in scope.sizes
        and row.activation in scope.activations
    ]


def setting_study(scope: Scope) -> Study:
    """The published networks of the scope, with both kernels."""
    sweeps = Sweeps(scope)
    configs = [
        {
            "dataset": row.dataset,
            "train": row.train,
            **scope.held_out,
            "activation": row.activation,
            "depth": row.depth,
            "weight_var": row.weight_var,
            "bias_var": row.bias_var,
            "kernel": kernel,
        }
        for row in published_settings(scope)
        for kernel in KERNELS
    ]
    return Study(EXPERIMENT, configs, lambda config: _work(sweeps, config), sweeps.close)


SETTING_RUNS = Experiment(EXPERIMENT, setting_study)


def _work(sweeps: Sweeps, config: Config) -> Outcome:
    table = authors_table(config["activation"]) if config["kernel"] == "authors" else None
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
