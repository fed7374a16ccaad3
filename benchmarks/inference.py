"""Inference against the bare factorisation, in one run; memory measured from outside.

    python benchmarks/inference.py [--n 10000] [--out benchmarks/results/inference.json]

Time of condition + mean + variance (n points, d = 784, 10 outputs, 1,000 test points, ReLU of
depth 3, float64) divided by the time of LAPACK's in-place dpotrf on a matrix of the same size.
Rounds are interleaved. Peak memory is that of another process which loads the data and then does
only this, above what it held before, divided by n² numbers.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf

import nngp
from nngp.linsolve import CpuEngine

D, OUTPUTS, TEST = 784, 10, 1000
NET = nngp.Architecture(3, "relu", 1.6, 0.1)
NOISE = 1e-2


def problem(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = nngp.normalize(rng.standard_normal((n + TEST, D)) + 0.5)
    return X[:n].copy(), rng.standard_normal((n, OUTPUTS)), X[n:].copy()


def infer(X: np.ndarray, Y: np.ndarray, Xs: np.ndarray) -> dict[str, float]:
    """Seconds of each part."""
    marks = [time.perf_counter()]
    posterior = nngp.condition(NET, X, Y, noise_var=NOISE, engine="cpu")
    marks.append(time.perf_counter())
    posterior.mean(Xs)
    marks.append(time.perf_counter())
    posterior.variance(Xs)
    marks.append(time.perf_counter())
    parts = dict(zip(("condition", "mean", "variance"), np.diff(marks).tolist(), strict=True))
    return {**parts, "total": marks[-1] - marks[0]}


def bare(n: int) -> float:
    """Seconds of dpotrf in place on a dense positive definite matrix."""
    A = np.full((n, n), 0.5, order="F")
    A[np.diag_indices(n)] = 1.0
    start = time.perf_counter()
    _, info = dpotrf(A, lower=1, overwrite_a=1, clean=0)
    spent = time.perf_counter() - start
    assert info == 0
    return spent


def product_rate(n: int = 3000) -> float:
    """Operations a second of a large matrix product, the best of a few."""
    A, times = np.ones((n, n)), []
    for _ in range(5):
        start = time.perf_counter()
        A @ A
        times.append(time.perf_counter() - start)
    return 2 * n**3 / min(times)


def operations(n: int) -> float:
    """Of everything, relative to the n³/3 of the factorisation."""
    kernel, cross, solve = n * n * D, 2 * (2 * TEST * n * D), TEST * n * n
    return 1 + (kernel + cross + solve) / (n**3 / 3)


def peak_memory(n: int, what: str) -> float:
    """Bytes above the data, of a process that does nothing else, relative to 8 n²."""
    with tempfile.TemporaryDirectory() as folder:
        for name, array in zip("XYS", problem(n), strict=True):
            np.save(f"{folder}/{name}.npy", array)
        child = subprocess.run(
            [sys.executable, __file__, "--child", folder, what],
            capture_output=True,
            text=True,
            check=True,
        )
    before, peak = (int(word) for word in child.stdout.split())
    return (peak - before) * 1024 / (8 * n * n)


def child(folder: str, what: str) -> None:
    """Run once on stored data and print the resident memory before and at the peak, in KiB."""
    sets = [np.load(f"{folder}/{name}.npy") for name in "XYS"]
    nngp.condition(NET, sets[0][:50], sets[1][:50], engine="cpu").variance(sets[2][:5])  # imports
    before = _status("VmRSS")
    if what == "inference":
        infer(*sets)
    else:
        nngp.condition(NET, *sets[:2], noise_var=NOISE, engine="cpu").evidence_gradient()
    print(before, _status("VmHWM"))


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1])


def measure(n: int, rounds: int) -> dict[str, Any]:
    tiles = CpuEngine().rate()  # before BLAS has threads of its own, which spin on
    product = product_rate()
    sets = problem(n)
    infer(*(part[:2000] for part in sets))  # warm up
    ours, theirs = [], []
    for _ in range(rounds):
        theirs.append(bare(n))
        ours.append(infer(*sets))
    potrf = statistics.median(theirs)
    ratios = {k: statistics.median(o[k] for o in ours) / potrf for k in ours[0]}
    return {
        "n": n,
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "numpy": np.__version__,
        "dpotrf_seconds": round(potrf, 3),
        "dpotrf_gflops": round(n**3 / 3 / potrf / 1e9, 1),
        "product_gflops": round(product / 1e9, 1),
        "tile_product_gflops": round(tiles / 1e9, 1),
        "ratio_to_dpotrf": {k: round(v, 2) for k, v in ratios.items()},
        "operations_relative_to_dpotrf": round(operations(n), 2),
        "peak_memory_relative_to_full_matrix": round(peak_memory(n, "inference"), 3),
        "peak_memory_of_the_gradient": round(peak_memory(n, "gradient"), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(*arguments.child)
        return
    result = measure(arguments.n, arguments.rounds)
    print(json.dumps(result, indent=1))
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
