"""The infinitely wide network beside the finite ones: the best of a small grid, by validation.

One run in the store for each training set, activation and depth. The grid spans the paper's ranges
of the two variances (app. D) in fewer steps: it gives the level that finite networks are compared
with, and the paper's own grid is another experiment.
"""

from itertools import product

import numpy as np

from nngp.architecture import Architecture
from nngp.datasets import Split
from nngp.linsolve import choose_engine
from nngp.posterior import Sweep, condition
from nngp.runs import Run, RunStore
from nngp.runs.study import Outcome, Study, carry_out

EXPERIMENT = "infinite"
WEIGHT_VARS = tuple(np.linspace(0.1, 5.0, 10).round(4).tolist())
BIAS_VARS = tuple(np.linspace(0.0, 2.0, 4).round(4).tolist())


def infinite(
    store: RunStore,
    data: Split,
    activation: str,
    depth: int,
    *,
    engine: str = "auto",
) -> Run:
    """The run, done now if nobody has."""
    Architecture(depth, activation)  # refuses what cannot be, before it is declared
    config = {
        "dataset": data.name,
        "train": len(data.X),
        "validation": len(data.X_val),
        "test": len(data.X_test),
        "activation": activation,
        "depth": depth,
        "weight_vars": WEIGHT_VARS,
        "bias_vars": BIAS_VARS,
    }
    study = Study(EXPERIMENT, [config], lambda config: _best(data, activation, depth, engine))
    (key,) = carry_out(store, study, progress=False)
    run = store.get(key)
    if run.status == "failed":
        raise RuntimeError(f"{run.error}; nngp runs --retry-failed has it tried again")
    return run


def _best(data: Split, activation: str, depth: int, engine: str) -> Outcome:
    """Choose on validation, judge on test."""
    Y = data.targets(data.labels)
    sweep = Sweep(data.X, Y, data.X_val, data.targets(data.labels_val), engine=engine)
    grid = [Architecture(depth, activation, *pair) for pair in product(WEIGHT_VARS, BIAS_VARS)]
    scores = [score for score in sweep.run(grid) if not score.error]
    if not scores:
        raise ArithmeticError(f"no {activation} network of depth {depth} on the grid has a kernel")
    best = max(scores, key=lambda score: (score.accuracy, -score.mse))
    mean = condition(best.architecture, data.X, Y, engine=engine).mean(data.X_test)
    error = np.mean((mean - data.targets(data.labels_test)) ** 2)
    result = {
        "weight_var": best.architecture.weight_var,
        "bias_var": best.architecture.bias_var,
        "val_accuracy": best.accuracy,
        "val_mse": best.mse,
        "test_accuracy": float(np.mean(mean.argmax(axis=1) == data.labels_test)),
        "test_mse": float(error),
    }
    return Outcome(result, choose_engine(engine, len(data.X)).name, best.noise_var)
