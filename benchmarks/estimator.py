"""Time of a first call: NNGPRegressor with everything "auto" against scikit-learn's GPR.

    python benchmarks/estimator.py [--n 2000] [--d 10] [--passes 3] [--out FILE]

scikit-learn's has one RBF and a white kernel, at its own defaults, and optimises them on all
points. Both are timed in turns on the same data; the ratio of the medians is the figure.
"""

import argparse
import json
import os
import statistics
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

import nngp


def problem(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)


def timed(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--n", type=int, default=2000)
    parser.add_argument("--d", type=int, default=10)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # scikit-learn's, about its own bounds
    X, y = problem(args.n, args.d, 0)
    Xs, ys = problem(1000, args.d, 1)
    seconds: dict[str, list[float]] = {"nngp": [], "gpr": []}
    for _ in range(args.passes):
        ours, theirs = nngp.NNGPRegressor(), GaussianProcessRegressor(RBF() + WhiteKernel())
        seconds["nngp"].append(timed(ours, X, y))
        seconds["gpr"].append(timed(theirs, X, y))
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    record = {
        "command": "python benchmarks/estimator.py " + " ".join(sys.argv[1:]),
        "n": args.n,
        "d": args.d,
        "cores": os.cpu_count(),
        "seconds": seconds,
        "ratio": medians["nngp"] / medians["gpr"],
        "rmse": {
            "nngp": float(np.sqrt(np.mean((ours.predict(Xs) - ys) ** 2))),
            "gpr": float(np.sqrt(np.mean((theirs.predict(Xs) - ys) ** 2))),
        },
    }
    print(json.dumps(record, indent=1))
    if args.out:
        args.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
