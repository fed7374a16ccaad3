"""The tangent kernel beside the kernel of the same networks, on images and on tables.

    python benchmarks/tangent.py images --data DIR [--sizes 1000,10000]
    python benchmarks/tangent.py tables --data DIR [--minutes 20]
    python benchmarks/tangent.py summary

`images`: MNIST and CIFAR-10 with the paper's splits; depth and variances are chosen on validation
images, for either kernel among the same networks. `tables`: the 90 small sets of Arora et al.
(2020), four splits each; depth and noise are chosen by
leave-one-out accuracy on at most 1,000 training rows, then all training rows are used. No test row
is seen by a choice. Both go on where the record in results/tangent.json ends.
"""

import argparse
import json
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

import nngp
from nngp_paper import datasets
from nngp_paper.sweep import Sweep

sys.path.append(str(Path(__file__).parent / "tables"))

from tabular_sets import Fold, fold, names, table
from tabular_summary import LARGER

RECORD = Path(__file__).parent / "results" / "tangent.json"
KERNELS = {"nngp": lambda net: net, "ntk": nngp.NTK}
IMAGES = [
    nngp.Architecture(depth, "relu", 2.0, bias)
    for depth, bias in product((1, 2, 3, 5, 10), (0.0, 0.1))
]
TABLES = [nngp.Architecture(depth, "relu", 2.0, 0.1) for depth in (1, 2, 3, 4, 5)]
NOISES = tuple(10.0 ** np.arange(-4.0, 1.5, 0.5))  # of the mean variance
CHOICE, SPLITS = 1000, 4
PUBLISHED = 0.8195  # Arora et al. 2020, table 1: their NTK, settings chosen in view of test rows
Array = NDArray[np.float64]
Rows = list[dict[str, Any]]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("what", choices=("images", "tables", "summary"))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sizes", default="1000,10000")
    parser.add_argument("--minutes", type=float, default=1e9)
    asked = parser.parse_args()
    record = json.loads(RECORD.read_text("utf-8")) if RECORD.exists() else {}
    rows: Rows = record.setdefault(asked.what, []) if asked.what != "summary" else []
    until = time.monotonic() + 60 * asked.minutes
    if asked.what == "images":
        sizes = [int(size) for size in asked.sizes.split(",")]
        todo = [(name, n) for n in sizes for name in ("mnist", "cifar10")]
        for name, n in todo:
            if not any(row["dataset"] == name and row["train"] == n for row in rows):
                rows += on_images(name, n, asked.data)
                _save(record)
    if asked.what == "tables":
        for name, split in _splits(asked.data):
            if time.monotonic() > until:
                break
            if not any(row["set"] == name and row["split"] == split for row in rows):
                rows.append(on_table(name, split, asked.data))
                _save(record)
    print(summary(record))


def _save(record: dict[str, Any]) -> None:
    lines = {
        what: "[\n  " + ",\n  ".join(json.dumps(row) for row in rows) + "\n ]"
        for what, rows in record.items()
    }
    parts = ",\n ".join(f'"{what}": {text}' for what, text in lines.items())
    RECORD.write_text("{\n " + parts + "\n}\n", "utf-8")


def on_images(name: str, n: int, data: Path | None) -> Rows:
    """The best network of either kernel, by validation."""
    split = datasets.split(name, n, data=data)
    sets = (split.X, split.targets(split.labels)), (split.X_val, split.targets(split.labels_val))
    test = split.X_test, split.targets(split.labels_test)
    sweep = Sweep(*sets[0], *sets[1], *test, engine="cpu")
    out = []
    for kind, wrap in KERNELS.items():
        start = time.perf_counter()
        found = list(sweep.run([wrap(net) for net in IMAGES]))
        best = max((one for one in found if not one.error), key=lambda one: one.accuracy)
        out.append(
            {
                "dataset": name,
                "train": n,
                "kernel": kind,
                "network": repr(best.architecture),
                "val_accuracy": best.accuracy,
                "test_accuracy": best.test_accuracy,
                "test_mse": best.test_mse,
                "networks": len(found),
                "seconds": round(time.perf_counter() - start, 1),
            }
        )
        print(out[-1], flush=True)
    return out


def _splits(data: Path | None) -> list[tuple[str, int]]:
    """Sets and splits, small sets first."""
    wanted = [name for name in names("uci_class") if name not in LARGER]
    small = sorted(wanted, key=lambda name: len(table("uci_class", name, data).y))
    return [(name, split) for name in small for split in range(SPLITS)]


def on_table(name: str, split: int, data: Path | None) -> dict[str, Any]:
    """Test accuracy of either kernel."""
    part = fold({"collection": "uci_class", "set": name, "split": split, "rows": None}, data)
    X, Xs = _standardised(part)
    Y = np.eye(part.classes)[part.y.astype(int)]
    row: dict[str, Any] = {"set": name, "split": split, "train": len(X)}
    for kind, wrap in KERNELS.items():
        start = time.perf_counter()
        net, noise = _chosen([wrap(net) for net in TABLES], X, Y, split)
        posterior = nngp.condition(net, X, Y - Y.mean(axis=0), noise_var=noise, progress=False)
        votes = posterior.mean(Xs) + Y.mean(axis=0)
        row[kind] = float((votes.argmax(axis=1) == part.ys).mean())
        row[f"{kind}_depth"] = net.depth
        row[f"{kind}_seconds"] = round(time.perf_counter() - start, 2)
    print(row, flush=True)
    return row


def _standardised(part: Fold) -> tuple[Array, Array]:
    spread = part.X.std(axis=0)
    varies = spread > 0
    center, spread = part.X.mean(axis=0)[varies], spread[varies]
    return (part.X[:, varies] - center) / spread, (part.Xs[:, varies] - center) / spread


def _chosen(nets: list[nngp.Network], X: Array, Y: Array, seed: int) -> tuple[nngp.Network, float]:
    """Network and noise of the highest leave-one-out accuracy, of equals the lowest error."""
    some = np.random.default_rng(seed).permutation(len(X))[:CHOICE]
    X, Y = X[some], Y[some] - Y[some].mean(axis=0)
    best: tuple[tuple[float, float], nngp.Network, float] | None = None
    for net in nets:
        K = nngp.kernel(net, X)
        unit = float(np.trace(K)) / len(K)
        values, vectors = eigh(K)
        turned = vectors.T @ Y
        for noise in NOISES:
            inverse = 1.0 / (np.maximum(values, 0.0) + noise * unit)
            alpha = vectors @ (inverse[:, None] * turned)
            precision = (vectors**2) @ inverse
            left_out = Y - alpha / precision[:, None]
            right = float((left_out.argmax(axis=1) == Y.argmax(axis=1)).mean())
            score = right, -float(((left_out - Y) ** 2).mean())
            if best is None or score > best[0]:
                best = score, net, noise * unit
    assert best is not None
    return best[1], best[2]


def by_set(record: dict[str, Any]) -> dict[str, Array]:
    """The mean accuracy of either kernel on each of the small sets with all splits."""
    rows: dict[str, Rows] = {}
    for row in record["tables"]:
        if row["set"] not in LARGER:
            rows.setdefault(row["set"], []).append(row)
    whole = [some for some in rows.values() if len(some) == SPLITS]
    return {
        kind: np.array([np.mean([row[kind] for row in some]) for some in whole]) for kind in KERNELS
    }


def summary(record: dict[str, Any]) -> str:
    """Both tables in words."""
    lines = [
        f"{row['dataset']} {row['train']} {row['kernel']}: test accuracy "
        f"{100 * row['test_accuracy']:.2f} ({row['network']})"
        for row in record.get("images", [])
    ]
    if record.get("tables"):
        means = by_set(record)
        gain = means["ntk"] - means["nngp"]
        wins = int((gain > 1e-12).sum()), int((np.abs(gain) <= 1e-12).sum())
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        lines.append(
            f"{len(gain)} sets: NNGP {100 * means['nngp'].mean():.2f}%, NTK "
            f"{100 * means['ntk'].mean():.2f}%; difference {100 * gain.mean():.2f} ± "
            f"{100 * error:.2f}; NTK better on {wins[0]}, equal on {wins[1]} (published NTK, "
            f"chosen in view of test rows: {100 * PUBLISHED:.2f}%)"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
