"""The paper's grid over weight and bias variance, with `nngp.Sweep`, on the CPU or on a GPU.

    python benchmarks/sweep.py --data DIR [--n 10000] [--grid 30] [--engine gpu] [--out FILE]

DIR holds MNIST in any of the forms that nngp_paper.datasets reads. Training points are the first n
after the 10,000 validation images.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from large import command, load, machine

import nngp
from nngp_paper.ranges import BIAS_VAR_RANGE, WEIGHT_VAR_RANGE


def grid(size: int, depth: int, activation: str) -> list[nngp.Architecture]:
    """Networks over the paper's ranges of the two variances (appendix D)."""
    return [
        nngp.Architecture(depth, activation, float(w), float(b))
        for w in np.linspace(*WEIGHT_VAR_RANGE, size)
        for b in np.linspace(*BIAS_VAR_RANGE, size)
    ]


def measure(folder: Path, n: int, m: int, nets: list[Any], engine: str) -> dict[str, Any]:
    x, y, *_ = load(folder, "mnist")
    val, train = slice(0, m), slice(10_000, 10_000 + n)
    mean = x[train].mean(axis=0)
    X = nngp.normalize(x - mean, center=True)
    Y = np.eye(10)[y] - 0.1
    start = time.perf_counter()
    sweep = nngp.Sweep(X[train], Y[train], X[val], Y[val], engine=engine)
    prepared = time.perf_counter()
    results, marks = [], [prepared]
    for result in sweep.run(nets):
        results.append(result)
        marks.append(time.perf_counter())
    each = np.diff(marks)
    best = max(results, key=lambda r: (r.accuracy == r.accuracy, r.accuracy))
    return {
        "command": command(),
        "n": n,
        "validation_points": m,
        "networks": len(nets),
        **machine(engine),
        "seconds_prepare": round(prepared - start, 3),
        "seconds_first_network": round(float(each[0]), 3),
        "seconds_total": round(marks[-1] - start, 2),
        "seconds_median_network": round(float(np.median(each)), 4),
        "best": {
            "network": repr(best.architecture),
            "accuracy": best.accuracy,
            "mse": best.mse,
            "noise_var": best.noise_var,
        },
        "failed": sum(bool(r.error) for r in results),
        "ladder_climbed": sum(r.failed_attempts > 0 for r in results),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--validation", type=int, default=2000)
    parser.add_argument("--grid", type=int, default=30)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--activation", default="relu")
    parser.add_argument("--engine", choices=("cpu", "gpu"), default="gpu")
    parser.add_argument("--out", type=Path)
    a = parser.parse_args()
    nets = grid(a.grid, a.depth, a.activation)
    record = measure(a.data, a.n, a.validation, nets, a.engine)
    print(json.dumps(record, indent=1))
    if a.out:
        a.out.parent.mkdir(parents=True, exist_ok=True)
        a.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
