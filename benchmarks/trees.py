"""How often the warning about trees is right.

    python benchmarks/trees.py --data DIR [--sets energy concrete ...]

For each table of `uci_regression_more`: at most 1,000 random rows to learn from, up to 2,000 others
to test. A line has the verdict of the check (rows left out: ratio of errors of trees and network,
standard errors), and the ratio of test errors of the best trees (forest, extremely randomized,
boosting in two forms) and the network. The check sees no test row.
"""

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)

import nngp
from nngp.estimators.trees import compare_with_trees

Array = NDArray[np.float64]
ROWS, TESTS = 1000, 2000
TREES: dict[str, Any] = {
    "forest": RandomForestRegressor,
    "randomized": ExtraTreesRegressor,
    "boosting": GradientBoostingRegressor,
    "histograms": HistGradientBoostingRegressor,
}


def judge(X: Array, y: Array, Xs: Array, ys: Array) -> str:
    """Verdict and truth of one split."""
    model = nngp.NNGPRegressor().fit(X, y)
    left_out = model.left_out().mean()[:, 0]
    start = time.perf_counter()
    found = compare_with_trees(X, y, left_out, classes=False)
    seconds = time.perf_counter() - start
    own = _rmse(model.predict(Xs), ys)
    ratios = {
        name: _rmse(kind(random_state=0).fit(X, y).predict(Xs), ys) / own
        for name, kind in TREES.items()
    }
    best = min(ratios, key=lambda name: ratios[name])
    truth = f"test: {best} {ratios[best]:.3f}"
    if found is None:
        return f"too few rows                                    {truth}"
    verdict = "trees" if found.trees_win else "-"
    left = f"{found.trees / found.network:7.3f} ({found.deviations:6.1f})"
    return f"{verdict:5s} {found.method:16s} {left} {seconds:5.2f} s  {truth}"


def _rmse(prediction: Array, truth: Array) -> float:
    return float(np.sqrt(np.mean((prediction - truth) ** 2)))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="*", default=[])
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    for path in sorted((args.data / "uci_regression_more").glob("*.npz")):
        if args.sets and path.stem not in args.sets:
            continue
        with np.load(path) as file:
            X, y = (np.asarray(file[name], dtype=float) for name in ("X", "y"))
        order = np.random.default_rng(args.seed).permutation(len(X))
        count = min(ROWS, int(0.8 * len(X)))
        train, test = order[:count], order[count : count + TESTS]
        print(f"{path.stem:16s} {judge(X[train], y[train], X[test], y[test])}", flush=True)


if __name__ == "__main__":
    main()
