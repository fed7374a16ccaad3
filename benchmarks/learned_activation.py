"""Does an activation whose two parameters are learned by the evidence beat relu and erf?

    python benchmarks/learned_activation.py [--splits 2] [--rows 150] [--depth 1] [--to FILE]

The family is cos(a) erf(x) + sin(a) gelu(x) + b exp(-x²): erf at a = b = 0, nearly relu at a = π/2.
Every network climbs the log evidence by L-BFGS over the variances of all layers, the noise and its
parameters, from the same variances. Columns are standardized, with a constant one, and normalized.
Prints, for each table, mean log evidence (of the training rows) and root mean squared error on the
other rows, in units of the target's deviation; on equal splits.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import special
from scipy.optimize import minimize
from sklearn import datasets

import nngp

DATA = Path(__file__).parents[1] / "docs" / "data"
STEPS = 20  # of L-BFGS at most
Table = tuple[np.ndarray, np.ndarray]


def mixed(x: np.ndarray, a: float, b: float) -> np.ndarray:
    """The family of activations."""
    out: np.ndarray = np.cos(a) * special.erf(x) + b * np.exp(-(x**2))
    return out + np.sin(a) * x * special.ndtr(x)


ACTIVATIONS: dict[str, Any] = {
    "relu": "relu",
    "erf": "erf",
    "learned": nngp.Activation(mixed, params={"a": 0.8, "b": 0.1}),
}


def from_file(name: str, target: str) -> Table:
    """Numeric columns of one of the documentation's tables, complete rows only."""
    table = pd.read_csv(DATA / f"{name}.csv").select_dtypes("number").dropna()
    return table.drop(columns=target).to_numpy(float), table[target].to_numpy(float)


def column_of(load: Callable[..., Any], column: int) -> Table:
    """A table without its classes: one column from the others."""
    X = load(return_X_y=True)[0]
    return np.delete(X, column, axis=1), X[:, column]


TABLES: dict[str, Callable[[], Table]] = {
    "concrete: strength": lambda: from_file("concrete", "strength"),
    "auto-mpg: mpg": lambda: from_file("auto-mpg", "miles_per_gallon"),
    "penguins: body mass": lambda: from_file("penguins", "body_mass_g"),
    "diabetes: progression": lambda: datasets.load_diabetes(return_X_y=True),
    "wine: alcohol": lambda: column_of(datasets.load_wine, 0),
    "iris: sepal length": lambda: column_of(datasets.load_iris, 0),
    "breast cancer: smoothness": lambda: column_of(datasets.load_breast_cancer, 4),
}


def split(table: Table, seed: int, rows: int) -> tuple[Table, Table]:
    """Training and test rows, prepared with what is known of the training rows."""
    X, y = table
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = np.split(order, [min(rows, int(0.7 * len(y)))])
    X = (X - X[train].mean(axis=0)) / (X[train].std(axis=0) + 1e-12)
    X = nngp.normalize(np.column_stack([X, np.full(len(X), 2.0)]))
    y = (y - y[train].mean()) / y[train].std()
    return (X[train], y[train]), (X[test], y[test])


def climb(activation: Any, depth: int, train: Table) -> nngp.Posterior:
    """The posterior at a maximum of the log evidence."""
    start = nngp.Architecture(depth, activation)
    names = list(start.params)

    def posterior_at(v: np.ndarray) -> nngp.Posterior:
        variances = np.exp(v[: 2 * depth + 3])
        net = nngp.Architecture(
            depth, activation, variances[: depth + 1], variances[depth + 1 : -1]
        ).with_params(**dict(zip(names, v[2 * depth + 3 :].tolist(), strict=True)))
        return nngp.condition(net, *train, noise_var=variances[-1], progress=False)

    def objective(v: np.ndarray) -> tuple[float, np.ndarray]:
        posterior = posterior_at(v)
        slope = posterior.evidence_gradient(per_layer=True)
        parts = [slope[name] for name in ("weight_var", "bias_var", "noise_var", *names)]
        by_variance = np.hstack(parts)
        by_variance[: 2 * depth + 3] *= np.exp(v[: 2 * depth + 3])
        return -posterior.log_evidence, -by_variance

    v = np.hstack([np.zeros(depth + 1), np.full(depth + 1, -2.0), -3.0, *start.params.values()])
    bounds = [(-7.0, 4.0)] * (2 * depth + 3) + [(-3.0, 3.0)] * len(names)
    found = minimize(objective, v, jac=True, bounds=bounds, options={"maxiter": STEPS})
    return posterior_at(found.x)


def main() -> None:
    """Measure, print, and write a record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--rows", type=int, default=150)
    parser.add_argument("--depth", type=int, default=1)
    parser.add_argument("--to", type=Path, help="a JSON file for the results")
    chosen, records = parser.parse_args(), []
    for table, load in TABLES.items():
        data = load()
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in ACTIVATIONS}
        for seed in range(chosen.splits):
            train, (Xs, ys) = split(data, seed, chosen.rows)
            for name, activation in ACTIVATIONS.items():
                began = time.process_time()
                posterior = climb(activation, chosen.depth, train)
                error = float(np.sqrt(np.mean((posterior.mean(Xs) - ys) ** 2)))
                found[name].append((posterior.log_evidence, error))
                records.append(
                    {
                        "table": table,
                        "split": seed,
                        "activation": name,
                        "log_evidence": round(posterior.log_evidence, 4),
                        "rmse": round(error, 5),
                        "params": {k: round(v, 4) for k, v in posterior.network.params.items()},
                        "cpu_seconds": round(time.process_time() - began, 2),
                    }
                )
        words = [
            f"{name} {np.mean([e for e, _ in pairs]):8.2f} {np.mean([r for _, r in pairs]):.4f}"
            for name, pairs in found.items()
        ]
        print(f"{table:<26}", "   ".join(words), flush=True)
        if chosen.to:
            lines = ",\n".join(json.dumps(record) for record in records)
            chosen.to.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
