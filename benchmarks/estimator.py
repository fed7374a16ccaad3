"""Time of `fit` at the defaults: NNGPRegressor and scikit-learn's GaussianProcessRegressor.

    python benchmarks/estimator.py [--n 2000] [--d 10] [--passes 3] [--out FILE]

scikit-learn's has an RBF and a white kernel and optimises them on all points. Both are timed in
turns on the same data; the result is the ratio of the medians.
"""

import argparse
import json
import os
import statistics
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

import nngp

Array = NDArray[np.float64]


def problem(n: int, d: int, seed: int) -> tuple[Array, Array]:
    """Draw n points in d dimensions, with noisy targets that depend on three inputs."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)


def timed(model: nngp.NNGPRegressor | GaussianProcessRegressor, X: Array, y: Array) -> float:
    """Fit the model and return the seconds it took."""
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
