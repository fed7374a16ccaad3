"""A store filled by hand: finished runs of the experiments that tables and figures read."""

import numpy as np

SIZES = {"validation": 500, "test": 2000}


def put(store, experiment, config, result, seconds=1.0, device="cpu", jitter=None):
    """One finished run."""
    (key,) = store.declare(experiment, [config])
    store.claim([key])
    store.finish(key, result, seconds=seconds, device=device, jitter=jitter)


def scores(rng, count):
    """Scores of a strip as they are stored, some of them equal."""
    return {
        "val_accuracy": (rng.integers(70, 95, count) / 100).tolist(),
        "val_mse": rng.uniform(0.01, 0.09, count).tolist(),
        "test_accuracy": (rng.integers(60, 99, count) / 100).tolist(),
        "test_mse": rng.uniform(0.01, 0.09, count).tolist(),
        "log_evidence": rng.normal(0, 100, count).tolist(),
        "noise_var": [1e-10] * count,
    }


def put_grid(store, scope, train, activation, depth, skip=(), **more):
    """All strips of a grid but those with a weight variance in `skip`; gives every network's scores
    as plain rows, in the order in which they were made."""
    name = f"{scope.dataset} {train} {activation} {depth}"
    rng = np.random.default_rng([ord(letter) for letter in name])
    rows = []
    for weight_var in scope.weight_vars:
        if weight_var in skip:
            continue
        config = {
            **{"dataset": scope.dataset, "train": train, **SIZES, "activation": activation},
            **{"depth": depth, "weight_var": weight_var, "bias_vars": list(scope.bias_vars)},
            **more,
        }
        result = scores(rng, len(scope.bias_vars))
        put(store, "grid", config, result, seconds=2.0, device="abacus")
        columns = [result[score] for score in result]
        for bias_var, *values in zip(scope.bias_vars, *columns, strict=True):
            pairs = zip(result, values, strict=True)
            rows.append(
                {"depth": depth, "weight_var": weight_var, "bias_var": bias_var} | dict(pairs)
            )
    return rows


def put_setting(store, paper, kernel, accuracy, **more):
    """One network at a setting that the paper prints."""
    config = {
        **{"dataset": paper.dataset, "train": paper.train, **SIZES, "activation": paper.activation},
        **{"depth": paper.depth, "weight_var": paper.weight_var, "bias_var": paper.bias_var},
        **{"kernel": kernel, **more},
    }
    put(store, "setting", config, {"test_accuracy": accuracy, "test_mse": 0.01})


def put_trial(
    store, dataset, train, activation, depth, width, trial, val, test, lowest=None, **more
):
    """One finite network."""
    config = {
        **{"dataset": dataset, "train": train, "activation": activation, "depth": depth},
        **{"width": width, **SIZES, "loss": "mse", "steps": 3000, "interval": 100, "patience": 8},
        **{"monitor": "validation", "trial": trial, "weight_var": 1.234, "bias_var": 0.5, **more},
    }
    result = {"val_accuracy": val, "val_mse": 0.1, "test_accuracy": test, "test_mse": 1 - test}
    put(store, "finite", config, {**result, **(lowest or {})})


def put_line(store, activation, line=(1.0, 2.0, 3.0), points=4):
    """A phase diagram that is ordered on the left."""
    weights, biases = np.linspace(0.1, 5.0, points), np.linspace(0.0, 2.0, points)
    phase = np.where(weights[None, :] < 1 + biases[:, None], "ordered", "chaotic")
    put(
        store,
        "critical",
        {"activation": activation, "weight_vars": weights.tolist(), "bias_vars": biases.tolist()},
        {
            "line_bias_vars": np.linspace(0, 2, len(line)).tolist(),
            "line_weight_vars": list(line),
            "phase": phase.tolist(),
            "depth_scale": np.full(phase.shape, np.inf).tolist(),
        },
    )
