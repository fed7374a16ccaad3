"""Time of `fit` at the defaults, where it goes, and what others take: all in one run.

    python benchmarks/estimator.py [--n 50 200 500 2000 10000] [--d 10] [--passes 3]
        [--digits] [--old DIR] [--peers gpr forest boosting catboost lightgbm] [--out FILE]

For each n: the medians of `NNGPRegressor().fit`, its seconds by stage of the search and of the
final solve, and the ratios to the others, which are timed in turns on the same data. `gpr` is
scikit-learn's with one length scale an input and a white kernel, on all points (up to 2,000 of
them). `--old DIR` is the checkout of another version, timed in a process of its own. `--digits`
adds a classifier of 898 images. Times of one run compare; those of two runs need not.
"""

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

import nngp

Array = NDArray[np.float64]
LARGEST_GPR = 2000
OLD = """
import sys, time, warnings, numpy as np
warnings.simplefilter("ignore")
import nngp
X, y, kind = np.load(sys.argv[1]), np.load(sys.argv[2]), sys.argv[3]
model = getattr(nngp, kind)()
start = time.perf_counter()
model.fit(X, y)
print(time.perf_counter() - start)
"""


def gpr(d: int) -> Any:
    """scikit-learn's Gaussian process with one length scale an input."""
    return GaussianProcessRegressor(RBF(np.ones(d)) + WhiteKernel(), normalize_y=True)


def by_name(module: str, name: str) -> Callable[[int], Any]:
    """A regressor of an optional package."""
    return lambda d: getattr(importlib.import_module(module), name)(
        **(
            {"verbose": 0, "allow_writing_files": False}
            if module == "catboost"
            else {"verbose": -1}
        )
    )


PEERS: dict[str, Callable[[int], Any]] = {
    "gpr": gpr,
    "forest": lambda d: RandomForestRegressor(random_state=0),
    "boosting": lambda d: HistGradientBoostingRegressor(random_state=0),
    "catboost": by_name("catboost", "CatBoostRegressor"),
    "lightgbm": by_name("lightgbm", "LGBMRegressor"),
}


def problem(n: int, d: int, seed: int) -> tuple[Array, Array]:
    """Draw n points in d dimensions, with noisy targets that depend on three inputs."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)


def timed(model: Any, X: Array, y: NDArray[Any]) -> float:
    """Fit the model and return the seconds it took."""
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start


def timed_old(checkout: Path, X: Array, y: NDArray[Any], kind: str, folder: Path) -> float:
    """The same of another version, in a process of its own."""
    paths = folder / "X.npy", folder / "y.npy"
    np.save(paths[0], X)
    np.save(paths[1], y)
    command = [sys.executable, "-c", OLD, *map(str, paths), kind]
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def where_it_goes(model: Any, total: float) -> dict[str, float]:
    """Seconds of each stage of the search, of the final solve, and of the rest. Ascents of a stage
    run side by side, and the seconds of all are added, so that nothing may be left for the rest."""
    out: dict[str, float] = {}
    for stage, seconds in zip(model.selection_["stage"], model.selection_["seconds"], strict=True):
        out[str(stage)] = out.get(str(stage), 0.0) + float(seconds)
    out["final solve"] = float(sum(model.report_.seconds.values()))
    out["rest"] = max(total - sum(out.values()), 0.0)
    return {name: round(value, 4) for name, value in out.items()}


def compare(
    X: Array, y: NDArray[Any], kind: str, peers: list[str], args: argparse.Namespace, folder: Path
) -> dict[str, Any]:
    """Times of one data set, in turns."""
    seconds: dict[str, list[float]] = {}
    for _ in range(args.passes):
        ours = getattr(nngp, kind)()
        seconds.setdefault("nngp", []).append(timed(ours, X, y))
        for name in peers:
            seconds.setdefault(name, []).append(timed(PEERS[name](X.shape[1]), X, y))
        if args.old:
            old = timed_old(args.old, X, y, kind, folder)
            seconds.setdefault("old", []).append(old)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    return {
        "kind": kind,
        "n": len(X),
        "d": X.shape[1],
        "seconds": medians,
        "ratios": {name: medians["nngp"] / m for name, m in medians.items() if name != "nngp"},
        "where": where_it_goes(ours, seconds["nngp"][-1]),
        "evaluations": int(ours.selection_["evaluations"].sum()),
    }


def main() -> None:
    import tempfile

    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--n", type=int, nargs="*", default=[50, 200, 500, 2000, 10000])
    parser.add_argument("--d", type=int, default=10)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--peers", nargs="*", default=["gpr", "forest", "boosting"], choices=PEERS)
    parser.add_argument("--old", type=Path)
    parser.add_argument("--digits", action="store_true")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # scikit-learn's, about its own bounds
    records = []
    with tempfile.TemporaryDirectory() as folder:
        for n in args.n:
            peers = [name for name in args.peers if name != "gpr" or n <= LARGEST_GPR]
            X, y = problem(n, args.d, 0)
            records.append(compare(X, y, "NNGPRegressor", peers, args, Path(folder)))
            print(json.dumps(records[-1]), flush=True)
        if args.digits:
            X, y = load_digits(return_X_y=True)
            found = compare(X[::2][:898], y[::2][:898], "NNGPClassifier", [], args, Path(folder))
            records.append(found)
            print(json.dumps(found), flush=True)
    if args.out:
        whole = {
            "command": "python benchmarks/estimator.py " + " ".join(sys.argv[1:]),
            "cores": os.cpu_count(),
            "runs": records,
        }
        args.out.write_text(json.dumps(whole, indent=1) + "\n")


if __name__ == "__main__":
    main()
