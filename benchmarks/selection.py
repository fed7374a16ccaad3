"""What the choice of a network is worth: RMSE, log likelihood and CPU seconds on a few sets.

    python benchmarks/selection.py --data DIR [--sets boston concrete energy ...] [--splits 4]

DIR holds `uci_regression/` and `uci_regression_more/`: .npz files with X, y and `test` (the rows of
each split) or `fold`. Run it with PYTHONPATH at another checkout's `src` to compare versions: it
uses nothing but `fit` and `predict`. Averages over the first splits; the evidence is that of all
training targets.
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import nngp

Array = NDArray[np.float64]
SETS = ("boston", "concrete", "energy", "yacht", "machine", "autompg")
FOLDERS = ("uci_regression", "uci_regression_more")


def splits(name: str, data: Path, count: int) -> Iterator[tuple[Array, Array, Array, Array]]:
    """Training and test rows of the first splits of a set."""
    path = next(p for f in FOLDERS if (p := data / f / f"{name}.npz").exists())
    with np.load(path) as file:
        X, y = file["X"], file["y"].ravel()
        if "test" in file:
            tests = [np.isin(np.arange(len(X)), t) if t.dtype != bool else t for t in file["test"]]
        else:
            tests = [file["fold"] == fold for fold in np.unique(file["fold"])]
    for test in tests[:count]:
        yield X[~test], y[~test], X[test], y[test]


def measure(X: Array, y: Array, Xs: Array, ys: Array) -> tuple[float, float, float, float]:
    """RMSE, log likelihood, CPU seconds of `fit`, log evidence."""
    start = time.process_time()
    model = nngp.NNGPRegressor(random_state=0).fit(X, y)
    seconds = time.process_time() - start
    mean, std = model.predict(Xs, return_std=True)
    density = -0.5 * np.log(2 * np.pi * std**2) - 0.5 * ((ys - mean) / std) ** 2
    rmse = float(np.sqrt(np.mean((mean - ys) ** 2)))
    return rmse, float(density.mean()), seconds, model.log_evidence_


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--splits", type=int, default=4)
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # about test rows outside the training data
    print(f"{'set':<12}{'RMSE':>9}{'log lik.':>10}{'CPU s':>8}{'evidence':>11}")
    for name in args.sets:
        each = [measure(*split) for split in splits(name, args.data, args.splits)]
        rmse, density, seconds, evidence = np.mean(each, axis=0)
        print(f"{name:<12}{rmse:9.4f}{density:10.4f}{seconds:8.2f}{evidence:11.1f}", flush=True)


if __name__ == "__main__":
    main()
